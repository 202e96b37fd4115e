"""Tiles that are multiplied, and that threads work on, too: these read the product's stages."""

from __future__ import annotations

import re
from functools import cache

import numpy as np
import pytest
import tile_cudatile
import tile_sim
from support.pipelined import Steps
from support.removals import SCHEDULES, is_caught, without, wrong_waits

import tile_core

_MOST, _LEAST_STEPS = 7, 20_000
#: By whom products are made: the target, and the tile.
FAMILIES = {
    "mma.sync": ("sm_80", (64, 32, 64)),
    "tensor maps, mma.sync": ("sm_120", (64, 64, 64)),
    "wgmma": ("sm_90", (64, 64, 64)),
    "tcgen05": ("sm_100", (128, 64, 64)),
}
KINDS = ("summed", "summed_transposed")
RANGES = ((0, 0), (0, 1), (2, 4), (0, _MOST))
#: Instructions that nothing here misses: barriers are made known twice.
SPARE = {("tcgen05", r"bar\.sync[^;]*;"): 1}


def steps_of(family: str, kind: str) -> Steps:
    return Steps(left=kind, most=_MOST, tile=FAMILIES[family][1])


@cache
def ptx(family: str, kind: str) -> str:
    module = steps_of(family, kind).program().module()
    tile_cudatile.verify(module)
    made = tile_core.compile(
        str(tile_cudatile.to_mlir(module)), FAMILIES[family][0], opt_level=3, emit="ptx",
        start_at="convert-cudatile-to-tileaa", keep_stages=False,
        options={"unspecialized-pipeline-num-stages": 2},
    )  # fmt: skip
    return str(made.output)


def check(family: str, kind: str, text: str, first: int, last: int, schedule: str) -> None:
    arguments = steps_of(family, kind).arguments(first, last)
    a, b = (one.astype(np.float32) for one in arguments[:2])
    if kind == "summed_transposed":
        a = a.transpose(0, 2, 1)
    report = tile_sim.Module(text).launch(
        "k", (1, 1, 1), None, arguments, check=True, schedule=schedule, max_steps=200_000
    )
    assert not report.findings
    np.testing.assert_array_equal(arguments[-2], a[first:last].sum(axis=(0, 2)))
    np.testing.assert_array_equal(
        arguments[-1], np.einsum("imk,ikn->mn", a[first:last], b[first:last])
    )


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("family", FAMILIES)
def test_every_trip_count(family: str, kind: str, schedule: str) -> None:
    for first, last in RANGES:
        check(family, kind, ptx(family, kind), first, last, schedule)


@pytest.mark.parametrize("family", FAMILIES)
def test_no_other_buffer(family: str) -> None:
    """Stages are those of the product alone: without sums there are as many bytes of them."""
    both = [_shared(ptx(family, kind)) for kind in ("summed", "view")]
    assert abs(both[0] - both[1]) < 2048


def _shared(text: str) -> int:
    return sum(int(size) for size in re.findall(r"\.shared [^;]*\[(\d+)\];", text))


def fails(family: str, text: str) -> bool:
    def attempt(schedule: str) -> None:
        for first, last in RANGES:
            check(family, "summed", text, first, last, schedule)

    return is_caught(attempt)


@pytest.mark.parametrize("family", ["tensor maps, mma.sync", "wgmma", "tcgen05"])
def test_no_wait_can_go_or_be_for_another_phase(family: str) -> None:
    for number, broken in enumerate(wrong_waits(ptx(family, "summed"))):
        assert fails(family, broken), number


@pytest.mark.slow
@pytest.mark.parametrize("family", ["tensor maps, mma.sync", "wgmma", "tcgen05"])
def test_nothing_of_it_can_go(family: str) -> None:
    text = ptx(family, "summed")
    for pattern in (
        r"fence\.proxy\.async[^;]*;", r"mbarrier\.arrive[^;]*;", r"mbarrier\.init[^;]*;",
        r"bar\.sync[^;]*;", r"tcgen05\.commit[^;]*;",
    ):  # fmt: skip
        missed = [n for n, broken in enumerate(without(text, pattern)) if not fails(family, broken)]
        assert len(missed) <= SPARE.get((family, pattern), 0), (pattern, missed)
