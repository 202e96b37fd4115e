"""Loops that bend, under every strategy: right for any number of steps, and no synchronisation of
theirs can go. Each run is a process: the simulator takes the place of cuTile's driver in it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("cuda.tile", reason="cuTile programs; `make test` installs it")

TESTS = Path(__file__).resolve().parents[2]
STRATEGIES = ("none", "unspecialize", "warp-specialize")
TARGETS = ("sm_80", "sm_90", "sm_100", "sm_120")
NAMES = (
    "conditional load", "conditional use", "early exit", "early return", "nested pair",
    "through memory", "stored before", "overwritten behind", "unlocked behind", "two users",
    "carried twice", "loaded address", "dynamic step", "padding of minus infinity",
    "padding of NaN", "ragged", "base off by 8 bytes", "stride of 8 bytes", "boxes of 512 rows",
    "counted once", "arrays of a list", "tiles dealt out", "sums in turn",
    "sums of a batch",
)  # fmt: skip


def told(
    target: str, strategy: str, names: tuple[str, ...], steps: int | list[int], **more: str
) -> Any:
    """What tests/support/run_loop_programs.py says of these programs."""
    given = {"target": target, "strategy": strategy, "names": names, "steps": steps, **more}
    script = TESTS / "support" / "run_loop_programs.py"
    done = subprocess.run(
        [sys.executable, str(script), json.dumps(given)],
        capture_output=True, text=True, timeout=900, env={"PYTHONPATH": str(TESTS)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    "target", [*(pytest.param(t, marks=pytest.mark.slow) for t in TARGETS[:2]), TARGETS[2]]
)
def test_they_are_right(target: str) -> None:
    told(target, "unspecialize", NAMES, [5])


def test_agents_are_right() -> None:
    told("sm_90", "warp-specialize", ("nested pair", "ragged"), [5])


@pytest.mark.parametrize(
    ("target", "names"),
    [
        ("sm_80", ("conditional use", "loaded address", "stored before", "overwritten behind")),
        ("sm_90", ("loaded address",)),
    ],
)
def test_nothing_of_them_can_go(target: str, names: tuple[str, ...]) -> None:
    assert told(target, "unspecialize", names, 9) == []


@pytest.mark.parametrize("target", [pytest.param("sm_90", marks=pytest.mark.slow), "sm_100"])
@pytest.mark.parametrize("name", ["arrays of a list", "tiles dealt out"])
def test_nothing_of_maps_that_are_made_again_can_go(name: str, target: str) -> None:
    """Fences behind them, and the wait for stores by the ones before."""
    maps = r"fence\.proxy\.tensormap|bulk\.wait_group\.read"
    assert told(target, "unspecialize", (name,), 3, of=maps) == []


#: What others make good in these programs, by kind. Whoever places them does not know that:
#: - meeting and fence behind the initialisation of barriers: threads meet again, and fence, before
#:   the first copy, for operands that they store themselves, or for a bulk store (both programs);
#: - a loop in a loop meets before its first stages are filled, which an earlier run may still read,
#:   and behind itself, before its barriers end: between the two, threads meet for a bulk store;
#: - fences before meetings, of all that the asynchronous proxy may access behind them: another one
#:   stands before the meeting that comes last.
COVERED = {
    "stored before": {"meeting": 1, "fence": 1},
    "overwritten behind": {"meeting": 3, "fence": 2},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", COVERED)
def test_what_others_make_good(name: str) -> None:
    missed = told("sm_90", "unspecialize", (name,), 9)
    kinds = Counter(one.split(": ")[1].split(",")[0] for one in missed)
    assert kinds == COVERED[name], missed


_GROUPS = r"bulk\.(wait|commit)_group"


@pytest.mark.parametrize(
    ("name", "between"),
    [
        ("sums in turn", rf"{_GROUPS}|mbarrier\.(try_wait|arrive)|tcgen05\.commit"),
        ("sums of a batch", _GROUPS),
    ],
)
def test_nothing_between_agents_and_slices_can_go(name: str, between: str) -> None:
    """Waits and arrivals of stages and accumulators, and groups of stores whose slices of memory
    are used again.
    """
    missed = told("sm_100", "unspecialize", (name,), 3, of=between)
    assert missed == []


@pytest.mark.slow
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("target", TARGETS)
def test_they_are_right_for_any_number_of_steps(target: str, strategy: str) -> None:
    told(target, strategy, NAMES, [*range(10)])
