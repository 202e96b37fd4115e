"""Operands that threads make in each step, of products by tcgen05 that stay in flight: two buffers
in turn; the same bits, and nothing too many.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import numpy as np
import pytest
import tile_cudatile
import tile_sim
from support.pipelined import Steps, tiles
from support.programs import I32, Program
from support.removals import SCHEDULES, is_caught, without, wrong_waits
from tile_cudatile import types as t
from tile_cudatile.tree import Value

import tile_core
from tile_core.artifact import Artifact

_LEAST_STEPS = 20_000  # of a kernel that ends; mutants may wait for ever
_STEPS = 9  # more than stages
_TILE = (128, 32, 32)
_FEW = 32  # rows that no instruction of tcgen05 has


def steps(turns: int = 0) -> Steps:
    """B is squared by threads."""
    return Steps(right="twice", turns=turns, tile=_TILE, most=_STEPS)


def made(one: Steps, maps: str) -> Artifact:
    module = one.program().module()
    tile_cudatile.verify(module)
    options = {"tma-descriptors": maps, "unspecialized-pipeline-num-stages": 2, "num-warps": 4}
    return tile_core.compile(
        str(tile_cudatile.to_mlir(module)), "sm_100", opt_level=2, emit="ptx",
        start_at="convert-cudatile-to-tileaa", options=options, keep_stages=False,
    )  # fmt: skip


@cache
def ptx(maps: str, turns: int = 0) -> str:
    found = made(steps(turns), maps)
    assert found.statistics["tileas-unspecialized-pipeline", "in_flight"] == 1
    return str(found.stage("ptx"))


def check(text: str, schedule: str, first: int = 0, last: int = _STEPS, turns: int = 0) -> None:
    """The steps from `first` to `last` against NumPy: sums are exact."""
    arguments = steps(turns).arguments(first, last)
    a, b = (one[first:last].astype(np.float32) for one in arguments[:2])
    report = tile_sim.Module(text).launch(
        "k", (1, 1, 1), None, arguments, check=True, schedule=schedule, max_steps=_LEAST_STEPS
    )
    assert not report.findings
    np.testing.assert_array_equal(arguments[-1], (a @ (b * b)).sum(0) * (turns or 1))


@pytest.mark.parametrize("turns", [0, 3])
@pytest.mark.parametrize("maps", ["host", "off"])
def test_every_trip_count(maps: str, turns: int) -> None:
    """Fewer steps than stages, none at all, and a loop that runs again."""
    text = ptx(maps, turns)
    for first, last in ((0, _STEPS), (0, 1), (3, 5), (1, 1)):
        for schedule in SCHEDULES:
            check(text, schedule, first, last, turns)


@pytest.mark.parametrize("maps", ["host", "off"])
def test_one_buffer_would_not_do(maps: str) -> None:
    """Threads would write what the product of the step before reads."""
    text = ptx(maps)
    turns = re.findall(r"xor\.b32 \t(%r\d+), (%r\d+), 1;", text)
    broken = [text.replace(f"xor.b32 \t{a}, {b}, 1;", f"mov.b32 \t{a}, {b};") for a, b in turns]
    assert any(is_caught(lambda schedule, one=one: check(one, schedule)) for one in broken)


@pytest.mark.parametrize("maps", ["host", "off"])
def test_no_wait_can_go(maps: str) -> None:
    for broken in wrong_waits(ptx(maps)):
        assert is_caught(lambda schedule, one=broken: check(one, schedule))


class Mixed(Steps):
    """The sum of A B_i^2, and one of 32 rows, which warps multiply: of A's first ones."""

    def program(self) -> Program:
        p, (m, k, n) = Program(), self.tile
        loads = [tiles(p, self, shape, self.element) for shape in ((m, k), (k, n))]
        bounds = [p.argument(I32), p.argument(I32), p.constant(I32, 1)]
        few = tiles(p, self, (_FEW, k), self.element)
        types = [t.Tile((rows, n), t.F32) for rows in (m, _FEW)]
        starts = [p.constant(type_, 0) for type_ in types]

        def body(i: Value, *totals: Value) -> list[Value]:
            a, b, c = (load(i) for load in (*loads, few))
            square = p.emit("mulf", [b, b], b.type, rounding_mode="nearest_even")
            given = zip((a, c), totals, types, strict=True)
            return [p.emit("mmaf", [x, square, total], type_) for x, total, type_ in given]

        region = p.region([I32, *types], body, "continue")
        p.emit("for", [*bounds, tuple(starts)], *types, regions=(region,))
        for result, type_ in zip(p.ops[-1].results, types, strict=True):
            p.store(result, type_.shape, t.F32)
        return p

    def arguments(self, first: int, last: int) -> list[Any]:
        a, b, *bounds, out = super().arguments(first, last)
        few = np.ascontiguousarray(a[:, :_FEW])
        return [a, b, *bounds, few, out, np.zeros((_FEW, self.tile[2]), np.float32)]


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("maps", ["host", "off"])
def test_what_warps_read_is_none_of_it(maps: str, schedule: str) -> None:
    """Their product reads it beside the one in flight, and threads meet for it."""
    one = Mixed(tile=_TILE, most=_STEPS)
    text = str(made(one, maps).stage("ptx"))
    assert "mma.sync" in text
    assert "tcgen05.mma" in text
    for first, last in ((0, _STEPS), (2, 4)):
        arguments = one.arguments(first, last)
        a, b = (x[first:last].astype(np.float32) for x in arguments[:2])
        report = tile_sim.Module(text).launch(
            "k", (1, 1, 1), None, arguments, check=True, schedule=schedule
        )
        assert not report.findings
        meant = (a @ (b * b)).sum(0)
        np.testing.assert_array_equal(arguments[-2], meant)
        np.testing.assert_array_equal(arguments[-1], meant[:_FEW])


#: What later ones cover: the meeting behind the initialisation of barriers, and where `cp.async`
#: fills stages of A, the fence and the meeting in front of a step: others follow them.
SPARE = {
    "host": {r"bar\.sync \t0;": 1},
    "off": {r"bar\.sync \t0;": 2, r"fence\.proxy\.async[^;]*;": 1},
}


@pytest.mark.parametrize("maps", ["host", "off"])
def test_fences_meetings_and_waits_are_needed(maps: str) -> None:
    instructions = (
        r"fence\.proxy\.async[^;]*;", r"bar\.sync \t0;", r"mbarrier\.arrive\.[^;]*;",
        r"cp\.async\.wait_group[^;]*;", r"tcgen05\.commit[^;]*;",
    )  # fmt: skip
    for instruction in instructions:
        found = without(ptx(maps), instruction)
        assert found
        unseen = [
            broken
            for broken in found
            if not is_caught(lambda schedule, one=broken: check(one, schedule))
        ]
        assert len(unseen) <= SPARE[maps].get(instruction, 0), instruction
