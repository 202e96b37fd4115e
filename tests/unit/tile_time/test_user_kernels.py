"""Kernels as users write them, against NumPy: each in the simulator's check mode."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
PATHS = [str(ROOT / "benchmarks"), str(ROOT / "examples")]
sys.path[:0] = PATHS

#: A launch of each of some cases, by their names, for a target under a schedule; numbers are those
#: of any program: floats around zero, whole numbers of few bits.
_LAUNCH = """
import sys
rows, target, schedule, names = sys.argv[1:5]
sys.path[:0] = sys.argv[5:]
from tile_sim import cutile
cutile.settings.arch, cutile.settings.compiler, cutile.settings.opt_level = target, "tilec", 3
cutile.settings.strict = True
cutile.settings.launch.update(schedule=schedule)
import cuda.tile as ct
import numpy as np
from importlib import import_module
from speed_rows import named

def fill(kind, *shape):
    whole = np.issubdtype(named(kind), np.integer)
    found = draw.integers(0, 100, shape) if whole else draw.standard_normal(shape) / 2
    return found.astype(np.float32).astype(named(kind))

for one in (case for case in import_module(rows).CASES if case.name in names.split(",")):
    print("of", one.name, file=sys.stderr)
    draw = np.random.default_rng(1)
    made = one.case(fill, *one.compared)
    made.prepare()
    wanted = [expected() for _, expected in made.written]
    kernel = getattr(import_module(one.module), one.kernel)
    ct.launch(None, (*made.grid, 1, 1)[:3], kernel, made.arguments)
    for (found, _), meant in zip(made.written, wanted, strict=True):
        scale = np.abs(meant).max()
        np.testing.assert_allclose(found.astype(np.float32), meant, rtol=0, atol=one.within * scale)
"""


COLLECTIONS = {
    "user_rows": 26,
    "model_rows": 17,
    "science_rows": 21,
    "library_rows": 29,
    "signal_rows": 12,
    "sequence_rows": 12,
    "data_rows": 12,
    "training_rows": 10,
    "product_rows": 16,
    "column_rows": 8,
}
TARGETS = ("sm_100", "sm_90", "sm_120", "sm_100", "sm_90", "sm_80")


def check(rows: str, names: Iterable[str], target: str, schedule: str) -> None:
    """In one process: to begin one takes as long as to compile a kernel."""
    command = [sys.executable, "-c", _LAUNCH, rows, target, schedule, ",".join(names), *PATHS]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-2000:]


def cases(rows: str) -> list[Any]:
    pytest.importorskip("cuda.tile", reason="cuTile programs; `make test` installs it")
    return list(import_module(rows).CASES)


@pytest.mark.parametrize("rows", COLLECTIONS)
@pytest.mark.parametrize("turn", range(len(TARGETS)))
def test_against_numpy(rows: str, turn: int) -> None:
    """By one target after the other, those with products of warpgroups and tcgen05 twice as often
    as the others.
    """
    found = cases(rows)
    assert len(found) == COLLECTIONS[rows]
    names: dict[str, list[str]] = {}
    for one in found[turn :: len(TARGETS)]:
        order = TARGETS[turn:] + TARGETS
        target = next(t for t in order if _has(t, one))
        names.setdefault(target, []).append(one.name)
    for target, some in names.items():
        check(rows, some, target, ("late", "early", "random")[turn % 3])


def _has(target: str, case: Any) -> bool:
    """Whether a target has what a case needs."""
    return int(target.removeprefix("sm_")) >= case.capability


@pytest.mark.slow
@pytest.mark.parametrize("rows", COLLECTIONS)
@pytest.mark.parametrize("schedule", ["late", "early", "random"])
@pytest.mark.parametrize("target", ["sm_80", "sm_90", "sm_100", "sm_120"])
def test_all_of_them(target: str, schedule: str, rows: str) -> None:
    check(rows, [case.name for case in cases(rows) if _has(target, case)], target, schedule)
