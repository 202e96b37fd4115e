"""Kernels as users write them, against NumPy: each in the simulator's check mode."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
PATHS = [str(ROOT / "benchmarks"), str(ROOT / "examples")]
sys.path[:0] = PATHS

#: One launch, of a case by its name for a target under a schedule; numbers are those of any
#: program: floats around zero, whole numbers of few bits.
_LAUNCH = """
import sys
rows, name, target, schedule = sys.argv[1:5]
sys.path[:0] = sys.argv[5:]
from tile_sim import cutile
cutile.settings.arch, cutile.settings.compiler, cutile.settings.opt_level = target, "tilec", 3
cutile.settings.strict = True
cutile.settings.launch.update(schedule=schedule)
import cuda.tile as ct
import numpy as np
from importlib import import_module
from speed_rows import named

draw = np.random.default_rng(1)

def fill(kind, *shape):
    whole = np.issubdtype(named(kind), np.integer)
    found = draw.integers(0, 100, shape) if whole else draw.standard_normal(shape) / 2
    return found.astype(np.float32).astype(named(kind))

one = next(case for case in import_module(rows).CASES if case.name == name)
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
}
TARGETS = ("sm_100", "sm_90", "sm_120", "sm_100", "sm_90", "sm_80")


def check(rows: str, name: str, target: str, schedule: str) -> None:
    command = [sys.executable, "-c", _LAUNCH, rows, name, target, schedule, *PATHS]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]


def cases(rows: str) -> list[Any]:
    pytest.importorskip("cuda.tile", reason="cuTile programs; `make test` installs it")
    return list(import_module(rows).CASES)


@pytest.mark.parametrize(
    ("rows", "number"), [(rows, n) for rows, count in COLLECTIONS.items() for n in range(count)]
)
def test_against_numpy(rows: str, number: int) -> None:
    """By one target after the other, those with products of warpgroups and tcgen05 twice as often
    as the others.
    """
    found = cases(rows)
    assert len(found) == COLLECTIONS[rows]
    one, order = found[number], TARGETS[number % 6 :] + TARGETS
    target = next(t for t in order if int(t.removeprefix("sm_")) >= one.capability)
    check(rows, one.name, target, ("late", "early", "random")[number % 3])


@pytest.mark.slow
@pytest.mark.parametrize("rows", COLLECTIONS)
@pytest.mark.parametrize("schedule", ["late", "early", "random"])
@pytest.mark.parametrize("target", ["sm_80", "sm_90", "sm_100", "sm_120"])
def test_all_of_them(target: str, schedule: str, rows: str) -> None:
    for case in cases(rows):
        if int(target.removeprefix("sm_")) >= case.capability:
            check(rows, case.name, target, schedule)
