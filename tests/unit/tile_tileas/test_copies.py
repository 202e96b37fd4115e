"""Tiles that go from memory to memory as they are: by tensor maps, the same bits as by threads."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import numpy as np
import pytest
import tile_cudatile
from support.copies import KINDS, MOST, Copies
from tile_cudatile import types as t
from tile_sim import Module, SimError

import tile_core

#: What tokens order behind stores, which threads load.
ORDERED = ("again", "down")
SCHEDULES = ("late", "early", "random")
_LOAD = re.compile(r"cp\.async\.bulk\.tensor\.\dd\.shared")
_STORE = re.compile(r"cp\.async\.bulk\.tensor\.\dd\.global")


@cache
def compiled(kernel: Copies, target: str = "sm_90", level: int = 2, **options: Any) -> Any:
    module = kernel.program().module()
    tile_cudatile.verify(module)
    return tile_core.compile(
        str(tile_cudatile.to_mlir(module)), target, opt_level=level,
        start_at="convert-cudatile-to-tileaa", emit="ptx", keep_stages=False,
        options={name.replace("_", "-"): value for name, value in options.items()},
    )  # fmt: skip


def ptx(kernel: Copies, target: str = "sm_90", level: int = 2, **options: Any) -> str:
    return str(compiled(kernel, target, level, **options).stage("ptx"))


def check(text: str, kernel: Copies, schedule: str = "late", steps: int | None = None) -> None:
    """Run it in check mode; all three arrays are what NumPy makes of them."""
    steps = (MOST - 1 if kernel.kind == "down" else MOST) if steps is None else steps
    arguments = kernel.arguments(steps)
    report = Module(text).launch(
        "k", (1, 1, 1), None, arguments, check=True, schedule=schedule, max_steps=200_000
    )
    assert not report.findings, "\n".join(map(str, report.findings))
    for found, wanted in zip(arguments[:3], kernel.wanted(steps), strict=True):
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("target", ["sm_90", "sm_100", "sm_120"])
@pytest.mark.parametrize("kind", KINDS)
def test_by_maps(kind: str, target: str, schedule: str) -> None:
    kernel = Copies(kind)
    text = ptx(kernel, target)
    assert _STORE.search(text)
    assert bool(_LOAD.search(text)) == (kind not in ORDERED)
    for steps in (0, 1, 3):
        check(text, kernel, schedule, steps)


@pytest.mark.parametrize(
    ("element", "tile"), [(t.F32, (8, 128)), (t.I8, (64, 64)), (t.F64, (16, 32))]
)
@pytest.mark.parametrize("kind", ["one", "loop"])
def test_of_any_element(kind: str, element: t.Scalar, tile: tuple[int, int]) -> None:
    kernel = Copies(kind, element, tile)
    text = ptx(kernel)
    assert _LOAD.search(text)
    check(text, kernel)


@pytest.mark.parametrize("maps", ["host", "device", "off"])
@pytest.mark.parametrize("kind", ["loop", "row", "again"])
def test_what_is_outside_stays(kind: str, maps: str) -> None:
    """The last tile is cut; wherever maps come from, the bits are the same."""
    kernel = Copies(kind, rows=MOST * 32 - 12)
    text = ptx(kernel, tma_descriptors=maps)
    assert bool(_STORE.search(text)) == (maps != "off")
    for schedule in SCHEDULES:
        check(text, kernel, schedule)


def test_by_threads() -> None:
    """Where nothing else may, where it was not wanted, and where the tile is small."""
    kernel, small = Copies("loop"), Copies("loop", tile=(8, 64))
    for text, copied in (
        (ptx(kernel, "sm_80"), kernel),
        (ptx(kernel, level=1), kernel),
        (ptx(kernel, tma_loads="never", tma_stores="never"), kernel),
        (ptx(small), small),
    ):
        assert not _LOAD.search(text)
        assert not _STORE.search(text)
        check(text, copied)


@pytest.mark.parametrize("kind", ["one", "loop"])
@pytest.mark.parametrize(
    ("target", "element", "tile"),
    [("sm_90", t.I64, (128, 128)), ("sm_120", t.F32, (128, 128)), ("sm_120", t.I64, (64, 128))],
)
def test_tiles_without_room_for_two(
    target: str, element: t.Scalar, tile: tuple[int, int], kind: str
) -> None:
    """Threads load where a second tile of that size has no place in shared memory."""
    kernel = Copies(kind, element, tile)
    made = compiled(kernel, target)
    text = str(made.stage("ptx"))
    assert not _LOAD.search(text)
    assert _STORE.search(text)
    if kind == "one":
        assert any("does not fit into" in str(remark) for remark in made.remarks)
    check(text, kernel, steps=1)


def test_one_side_alone() -> None:
    """Whoever cannot have a map falls back alone, and says why."""
    kernel = Copies("loop")
    by_half = ptx(kernel, tma_loads="never")
    assert _STORE.search(by_half)
    assert not _LOAD.search(by_half)
    check(by_half, kernel)


MUTANTS = {
    "no wait": r"\n[^\n]*mbarrier\.try_wait[^\n]*",
    "no expectation": r"\n[^\n]*expect_tx[^\n]*",
    "no copy": r"\n[^\n]*cp\.async\.bulk\.tensor[^\n]*",
    "no init": r"\n[^\n]*mbarrier\.init[^\n]*",
    "no meeting": r"\n[^\n]*\bbar\.sync[^\n]*",
    "no commit": r"\n[^\n]*cp\.async\.bulk\.commit_group[^\n]*",
    "no wait for the group": r"\n[^\n]*cp\.async\.bulk\.wait_group[^\n]*",
    "no fence": r"\n[^\n]*fence\.proxy\.async[^\n]*",
}
#: What something else does the work of. In the loop, threads meet behind the wait for a stage and,
#: with a fence, behind the wait for the store before: meetings and the fence around the store
#: come after their reads of the stage, too. With "again" what tokens order at the loop's start, and
#: across the proxies, are different arrays.
SPARE = {
    ("no meeting", "loop"): {1},
    ("no fence", "loop"): {0},
    ("no wait for the group", "again"): {0},
    ("no meeting", "again"): {0},
    ("no fence", "again"): {1, 3},
}
_OF_LOADS = ("no wait", "no expectation", "no init")


@pytest.mark.parametrize("kind", ["one", "loop", "again", "down"])
@pytest.mark.parametrize("mutant", MUTANTS)
def test_nothing_of_it_can_go(mutant: str, kind: str) -> None:
    kernel = Copies(kind)
    text = ptx(kernel)
    found = list(re.finditer(MUTANTS[mutant], text))
    assert bool(found) == (kind not in ORDERED or mutant not in _OF_LOADS)
    for number, match in enumerate(found):
        if number in SPARE.get((mutant, kind), ()):
            continue
        broken = text[: match.start()] + text[match.end() :]
        assert _is_caught(broken, kernel), f"{mutant} {number} of {len(found)}"


def _is_caught(text: str, kernel: Copies) -> bool:
    for schedule in SCHEDULES:
        try:
            check(text, kernel, schedule)
        except (AssertionError, SimError):
            return True
    return False
