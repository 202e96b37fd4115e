"""Loads of every kind run ahead of their loop: the same bits, none of its synchronisation too many.

Tiles that are reshaped, transposed, converted or used before they are multiplied, loads through
pointers with and without masks, and pointers that the loop carries.
"""

from __future__ import annotations

import re
from functools import cache

import numpy as np
import pytest
import tile_cudatile
from support.pipelined import KINDS, Steps
from tile_sim import LaunchReport, Module, SimError
from tile_tileas.pipelining.multistage import Multistage

import tile_core

#: Kinds whose tiles go from memory to the product's buffer by cp.async, and what is left of
#: barriers of a step: those that also meet after a second trip through registers have two.
DIRECT = ("view", "transposed", "pointers", "masked", "carried")


def compiled(
    left: str,
    right: str,
    strategy: str,
    step: int = 1,
    stages: int = 3,
    latency: int | None = None,
    target: str = "sm_80",
    most: int = 6,
) -> str:
    module = Steps(left, right, most, step, latency).program().module()
    tile_cudatile.verify(module)
    made = tile_core.compile(
        str(tile_cudatile.to_mlir(module)),
        target,
        opt_level=2,
        start_at="convert-cudatile-to-tileaa",
        emit="ptx",
        keep_stages=False,
        options={
            "pipeline-strategy": strategy,
            "unspecialized-pipeline-num-stages": stages,
        },
    )
    return str(made.stage("ptx"))


ptx = cache(compiled)


def run(text: str, steps: Steps, first: int, last: int, schedule: str = "late") -> np.ndarray:
    """The result; what check mode finds fails."""
    arguments = steps.arguments(first, last)
    report: LaunchReport = Module(text).launch(
        "k", (1, 1, 1), None, arguments, check=True, schedule=schedule
    )
    assert not report.findings, "\n".join(map(str, report.findings))
    return arguments[-1]


def meant(steps: Steps, first: int, last: int) -> np.ndarray:
    """What the evaluator makes of the kernel."""
    arguments = steps.arguments(first, last)
    tile_cudatile.evaluate(steps.program().module(), "k", (1, 1, 1), arguments)
    return arguments[-1]


@pytest.mark.parametrize(("left", "right"), [(k, "view") for k in KINDS] + [("view", "carried")])
def test_every_kind_for_any_trip_count(left: str, right: str) -> None:
    steps = Steps(left, right)
    ahead, still = ptx(left, right, "unspecialize"), ptx(left, right, "none")
    assert "cp.async" not in still
    direct = left in DIRECT and right in DIRECT
    # In the loop, and before it, where the first fragments are read.
    assert ahead.count("bar.sync") == (2 if direct else still.count("bar.sync"))
    for first, last in ((0, 0), (0, 1), (0, 2), (1, 6)):
        if "carried" in (left, right) and first:
            continue  # its pointers begin at the first tile whatever the counter is
        wanted = meant(steps, first, last)
        np.testing.assert_array_equal(run(still, steps, first, last), wanted)
        for schedule in ("late", "random"):
            np.testing.assert_array_equal(run(ahead, steps, first, last, schedule), wanted)


@pytest.mark.parametrize("left", ["view", "carried", "converted"])
def test_wider_steps(left: str) -> None:
    """Iterations are not what the counter says."""
    steps = Steps(left, step=2)
    text = ptx(left, "view", "unspecialize", step=2)
    for last in (1, 4, 5):
        np.testing.assert_array_equal(run(text, steps, 0, last), meant(steps, 0, last))


def test_the_hint_latency_says_how_far_ahead() -> None:
    """2 of less traffic than usual (5), 10 of twice as much; 1 is worth the fewest stages."""
    found = {
        hint: ptx("view", "view", "unspecialize", stages=16, latency=hint)
        for hint in (None, 1, 2, 5, 10)
    }
    size = {hint: int(re.findall(r"global_smem\[(\d+)\]", text)[0]) for hint, text in found.items()}
    assert "cp.async" in found[1]
    assert size[1] <= size[2] < size[5] == size[None] < size[10]
    steps = Steps(latency=10)
    np.testing.assert_array_equal(run(found[10], steps, 0, 6), meant(steps, 0, 6))


_MUTATED = r"cp\.async\.(wait_group|commit_group)|\bbar(rier)?\.\w*\.?sync"


@pytest.mark.parametrize("left", ["transposed", "converted", "masked", "other", "carried"])
def test_nothing_of_it_can_go(left: str) -> None:
    """Every wait, commit and barrier, removed once each, is missed."""
    steps = Steps(left)
    lines = ptx(left, "view", "unspecialize").split("\n")
    places = [at for at, line in enumerate(lines) if re.search(_MUTATED, line)]
    assert len(places) >= 5
    wanted = meant(steps, 0, 6)
    for at in places:
        text = "\n".join([*lines[:at], "", *lines[at + 1 :]])
        with pytest.raises((AssertionError, SimError)):
            np.testing.assert_array_equal(run(text, steps, 0, 6), wanted)


#: What is loaded beyond the last iteration, and where that shows: through pointers outside of the
#: array; by maps, which clip, in copies that are under way when the block ends.
_BEYOND = [("sm_80", "pointers"), ("sm_80", "carried"), ("sm_90", "view"), ("sm_120", "view")]


@pytest.mark.parametrize(("target", "left"), _BEYOND)
def test_loads_ahead_stop_with_the_loop(
    target: str, left: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the question whether there is such an iteration, check mode finds the load."""
    steps = Steps(left, most=1)
    text = compiled(left, "view", "unspecialize", target=target, most=1)
    wanted = meant(steps, 0, 1)
    np.testing.assert_array_equal(run(text, steps, 0, 1), wanted)
    monkeypatch.setattr(Multistage, "_if_exists", lambda self, exists, copies, *_, **__: copies())
    broken = compiled(left, "view", "unspecialize", target=target, most=1)
    assert broken != text
    with pytest.raises((AssertionError, SimError)):
        np.testing.assert_array_equal(run(broken, steps, 0, 1), wanted)
