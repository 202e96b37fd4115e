"""Every operation of the language, compiled for a target of each generation and run.

The simulator looks for races and accesses out of bounds meanwhile; results are those of the
reference evaluator.
"""

import numpy as np
import pytest
import tile_cudatile
import tile_sim
from support.programs import _bytes
from tile_cudatile.ops import BODY_OPS
from unit.tile_nvptx.operations import CASES, NOT_RUN, ULPS

GENERATIONS = ("sm_80", "sm_90", "sm_100", "sm_120")
LEVELS = {"sm_80": 2, "sm_90": 3, "sm_100": 0, "sm_120": 1}


def name_of(case):
    make, kind = case
    return make.__name__ if kind is None else f"{make.__name__}-{kind}"


def near(found, wanted):
    """Within the documented error, or the last place of a half."""
    dtype, wide = wanted.dtype, wanted.astype(np.float64)
    if dtype.itemsize == 2:
        step = np.abs(np.spacing(wanted.astype(np.float32))) * (2**16 if dtype != np.float16 else
                                                               2**13)  # fmt: skip
    else:
        step = np.abs(np.spacing(wanted)).astype(np.float64) * ULPS
    assert (np.abs(found.astype(np.float64) - wide) <= step + 1e-300).all()


def _plan():
    """Every case for every generation; half of them, in turn, are left to the long run."""
    for at, case in enumerate(CASES):
        for step, target in enumerate(GENERATIONS):
            marks = () if (at + step) % 2 == 0 else pytest.mark.slow
            yield pytest.param(case, target, marks=marks, id=f"{name_of(case)}-{target}")


@pytest.mark.parametrize(("case", "target"), [*_plan()])
def test_operations(case, target):
    make, kind = case
    made = make(kind)
    expected = [a.copy() if isinstance(a, np.ndarray) else a for a in made.args]
    module = made.p.module()
    tile_cudatile.evaluate(module, "k", made.grid, expected)
    compiled = tile_sim.Module(made.p.ptx(target, LEVELS[target]))
    report = compiled.launch("k", made.grid, None, made.args, check=True)
    assert not report.findings, "\n".join(map(str, report.findings))
    for at, (found, wanted) in enumerate(zip(made.args, expected, strict=True)):
        if at in made.near:
            near(found, wanted)
        else:
            np.testing.assert_array_equal(*_bytes(found, wanted), err_msg=f"argument {at}")


def test_no_operation_is_left_out():
    """Of the operations that bodies hold, 13.1 to 13.5."""
    used = set().union(*(make(kind).names() for make, kind in CASES))
    known = set(BODY_OPS.by_name)
    assert used | set(NOT_RUN) == known, sorted(known - used - set(NOT_RUN))
    assert not used & set(NOT_RUN)
