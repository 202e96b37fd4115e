"""Products that tensor maps store: the same bits as stores by threads, nothing too many."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import numpy as np
import pytest
import tile_cudatile
from support.stored import KINDS, Stores
from tile_cudatile import types as t
from tile_sim import Module, SimError

import tile_core

_STORE = re.compile(r"cp\.async\.bulk\.tensor\.\dd\.global")
SCHEDULES = ("late", "early", "random")


@cache
def ptx(stores: str, target: str = "sm_90", maps: str = "host", level: int = 2,
        when: str = "estimate") -> str:  # fmt: skip
    """The kernel `Stores(...)` of that text."""
    module = eval(f"Stores({stores})", {"Stores": Stores, "t": t}).program().module()
    tile_cudatile.verify(module)
    options: dict[str, Any] = {} if level < 2 else {"tma-descriptors": maps, "tma-stores": when}
    made = tile_core.compile(
        str(tile_cudatile.to_mlir(module)), target, opt_level=level,
        start_at="convert-cudatile-to-tileaa", emit="ptx", keep_stages=False, options=options,
    )  # fmt: skip
    return str(made.stage("ptx"))


def run(text: str, stores: Stores, schedule: str = "late", steps: int = 4) -> np.ndarray:
    """C; what check mode finds fails."""
    arguments = stores.arguments(steps)
    report = Module(text).launch("k", (1, 1, 1), None, arguments, check=True, schedule=schedule)
    assert not report.findings, "\n".join(map(str, report.findings))
    return arguments[2]


def meant(stores: Stores, steps: int = 4) -> np.ndarray:
    """What the evaluator makes of the kernel."""
    arguments = stores.arguments(steps)
    tile_cudatile.evaluate(stores.program().module(), "k", (1, 1, 1), arguments)
    return arguments[2]


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("target", ["sm_90", "sm_120"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_same_bits(kind: str, target: str, schedule: str) -> None:
    text = ptx(f"{kind!r}", target)
    assert _STORE.search(text)
    for steps in (0, 1, 4):
        found = run(text, Stores(kind), schedule, steps)
        np.testing.assert_array_equal(found, meant(Stores(kind), steps))


@pytest.mark.parametrize(
    "stores", ["'apart', t.F32", "'apart', t.F16, 56", "'chained', t.F32, 40, 200"]
)
def test_wide_elements_and_tiles_that_are_cut(stores: str) -> None:
    """What is outside of C keeps what it held."""
    kernel = eval(f"Stores({stores})", {"Stores": Stores, "t": t})
    text = ptx(stores)
    assert _STORE.search(text)
    np.testing.assert_array_equal(run(text, kernel), meant(kernel))
    np.testing.assert_array_equal(run(ptx(stores, level=0), kernel), meant(kernel))


@pytest.mark.parametrize("kind", KINDS)
def test_maps_of_the_kernel_give_the_same_bits(kind: str) -> None:
    text = ptx(f"{kind!r}", maps="device")
    assert _STORE.search(text)
    np.testing.assert_array_equal(run(text, Stores(kind)), meant(Stores(kind)))


def test_by_threads_where_no_map_may() -> None:
    assert not _STORE.search(ptx("'apart'", maps="off"))
    assert not _STORE.search(ptx("'apart'", when="never"))
    assert not _STORE.search(ptx("'apart'", "sm_80"))


def test_no_conversion_before() -> None:
    """Fragments go to the buffer as they are, which all who multiply meet before and behind; all of
    the block meet where barriers are made, and where the agents end.
    """
    text = ptx("'apart'")
    assert len(re.findall(r"bar\.sync \t1, 128", text)) == 2
    assert len(re.findall(r"bar\.sync \t0", text)) == 2
    assert "st.global" not in text


MUTANTS = {
    "no wait": r"\n[^\n]*cp\.async\.bulk\.wait_group[^\n]*",
    "no commit": r"\n[^\n]*cp\.async\.bulk\.commit_group[^\n]*",
    "no copy": r"\n[^\n]*cp\.async\.bulk\.tensor\.\dd\.global[^\n]*",
    "no fence": r"\n[^\n]*fence\.proxy\.async[^\n]*",
    "no meeting": r"\n[^\n]*\bbar\.sync[^\n]*",
}


@pytest.mark.parametrize("kind", ["chained", "added", "read back"])
@pytest.mark.parametrize("mutant", MUTANTS)
def test_nothing_of_it_can_go(mutant: str, kind: str) -> None:
    text = ptx(f"{kind!r}")
    found = [match for match in re.finditer(MUTANTS[mutant], text) if not _spare(text, match)]
    assert found
    wanted = meant(Stores(kind))
    for number, match in enumerate(found):
        broken = text[: match.start()] + text[match.end() :]
        assert _is_caught(broken, kind, wanted), f"{mutant} {number} of {len(found)}"


def _spare(text: str, match: re.Match[str]) -> bool:
    """A step's meeting behind the wait for its loads: those around the store do its work, too. The
    fence and the meeting where agents end: nothing is stored behind.
    """
    before = text[max(0, match.start() - 200) : match.start()]
    last = not re.search(rf"stmatrix|{_STORE.pattern}", text[match.end() :])
    orders = "bar.sync" in match[0] or "fence" in match[0]
    return (orders and last) or ("bar.sync" in match[0] and "try_wait" in before)


def _is_caught(text: str, kind: str, wanted: np.ndarray) -> bool:
    for schedule in ("late", "early"):
        try:
            found = run(text, Stores(kind), schedule)
        except (AssertionError, SimError):
            return True
        if (found != wanted).any():
            return True
    return False
