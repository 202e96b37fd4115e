"""Products that pairs of blocks make together, by tcgen05 of `cta_group::2`: the numbers of one
block, and nothing too many.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache, partial
from itertools import product
from typing import Any

import numpy as np
import pytest
import tile_cudatile
import tile_sim
from support.pipelined import Steps, tiles
from support.programs import I32, Program
from support.removals import SCHEDULES, is_caught, without, without_meetings, wrong_waits
from tile_cudatile import types as t
from tile_cudatile.tree import Value

import tile_core
from tile_core.artifact import Artifact

_LEAST_STEPS = 5_000  # of a kernel that ends; mutants may wait for ever
_TILE = (256, 16, 32)
_STEPS = 7  # more than stages
_PAIR = "tcgen05.mma.cta_group::2"
#: How tiles come: by tensor maps, which one thread leads; by threads, which meet in each step; and
#: where no load runs ahead.
WAYS = {
    "led": {"tma-descriptors": "host"},
    "met": {"tma-descriptors": "off"},
    "alone": {"pipeline-strategy": "none"},
}


def made(steps: Steps, options: Mapping[str, object], target: str = "sm_100") -> Artifact:
    module = steps.program().module()
    tile_cudatile.verify(module)
    given = {"num-ctas": 2, "unspecialized-pipeline-num-stages": 2, **options}
    return tile_core.compile(
        str(tile_cudatile.to_mlir(module)), target, opt_level=2, emit="ptx",
        start_at="convert-cudatile-to-tileaa", options=given, keep_stages=False,
        # Pairs with agents of their own: test_run_in_turn.
        pass_options={"tileas-unspecialized-pipeline.in-turn": False},
    )  # fmt: skip


class Gated(Steps):
    """The sum of A B_i less that of A C_i, each tile of A being loaded once."""

    def program(self) -> Program:
        p, (m, k, n) = Program(), self.tile
        loads = [tiles(p, self, shape, self.element) for shape in ((m, k), (k, n))]
        bounds = [p.argument(I32), p.argument(I32), p.constant(I32, 1)]
        loads.append(tiles(p, self, (k, n), self.element))
        start = p.constant(t.Tile((m, n), t.F32), 0)

        def body(i: Value, *totals: Value) -> list[Value]:
            a, *others = (load(i) for load in loads)
            return [p.emit("mmaf", [a, b, total], total.type)
                    for b, total in zip(others, totals, strict=True)]  # fmt: skip

        region = p.region([I32, start.type, start.type], body, "continue")
        given = [*bounds, (start, start)]
        p.emit("for", given, start.type, start.type, regions=(region,))
        gate, up = p.ops[-1].results
        less = p.emit("subf", [gate, up], start.type, rounding_mode="nearest_even")
        p.store(less, (m, n), t.F32)
        return p

    def arguments(self, first: int, last: int) -> list[Any]:
        a, b, *bounds, out = super().arguments(first, last)
        return [a, b, *bounds, np.ascontiguousarray(-2 * b[::-1]), out]


@cache
def ptx(way: str, turns: int = 0, tile: tuple[int, int, int] = _TILE) -> str:
    return str(made(Steps(turns=turns, tile=tile, most=_STEPS), WAYS[way]).stage("ptx"))


def check(steps: Steps, text: str, first: int, last: int, schedule: str) -> None:
    """The steps from `first` to `last` against NumPy: sums are exact."""
    arguments = steps.arguments(first, last)
    a, b = (one[first:last].astype(np.float32) for one in arguments[:2])
    if steps.right == "transposed":
        b = b.transpose(0, 2, 1)
    elif steps.right == "twice":
        b = b * b
    meant = (a @ b).sum(0) * (steps.turns or 1)
    report = tile_sim.Module(text).launch(
        "k", (1, 1, 1), None, arguments, check=True, schedule=schedule, max_steps=_LEAST_STEPS
    )
    assert not report.findings
    np.testing.assert_array_equal(arguments[-1], meant)


@pytest.mark.parametrize(
    ("way", "turns", "rows"), [*product(WAYS, (0, 3), (256,)), *product(WAYS, (0,), (128,))]
)
def test_every_trip_count(way: str, turns: int, rows: int) -> None:
    """Fewer steps than stages, none at all, and a loop that runs again."""
    tile = (rows, *_TILE[1:])
    text, steps = ptx(way, turns, tile), Steps(turns=turns, tile=tile, most=_STEPS)
    assert _PAIR in text
    assert "cta_group::1" not in text
    for first, last in ((0, _STEPS), (0, 1), (3, 5), (1, 1)):
        for schedule in SCHEDULES:
            check(steps, text, first, last, schedule)


@pytest.mark.parametrize(
    ("tile", "right", "element"),
    [
        ((256, 16, 512), "view", t.F16),  # two instructions along N: half of B is not half of one
        ((512, 32, 64), "transposed", t.BF16),  # two along M
        ((256, 64, 32), "transposed", t.F8E4M3FN),
        # 64 rows in each block: one half of the columns lies in the lower rows of tensor memory
        ((128, 16, 32), "view", t.F16),
        ((128, 16, 512), "view", t.F16),
        ((128, 32, 64), "transposed", t.BF16),
        ((128, 64, 256), "transposed", t.F8E4M3FN),
    ],
    ids=str,
)
def test_shapes_and_types(tile: tuple[int, int, int], right: str, element: t.Scalar) -> None:
    steps = Steps(right=right, tile=tile, element=element, most=3)
    text = str(made(steps, {}).stage("ptx"))
    assert _PAIR in text
    for schedule in SCHEDULES:
        check(steps, text, 0, 3, schedule)


@pytest.mark.parametrize("rows", [128, 256])
def test_products_share_a_tile(rows: int) -> None:
    """As gated layers have them: both read all of A, and each has a half of its B."""
    steps = Gated(tile=(rows, 16, 32), most=3)
    text = str(made(steps, {}).stage("ptx"))
    assert len(re.findall(re.escape(_PAIR), text)) >= 2
    for schedule in SCHEDULES:
        a, b, first, last, up, out = arguments = steps.arguments(0, 3)
        report = tile_sim.Module(text).launch(
            "k", (1, 1, 1), None, arguments, check=True, schedule=schedule, max_steps=_LEAST_STEPS
        )
        assert not report.findings
        left, right, other = (x[first:last].astype(np.float32) for x in (a, b, up))
        np.testing.assert_array_equal(out, (left @ right).sum(0) - (left @ other).sum(0))


def test_a_block_has_its_rows_of_a_and_half_of_b() -> None:
    text = ptx("led")
    m, k, n = _TILE
    assert f"expect_tx.shared.b64 %state, [%rd{{}}], {(m * k + k * n) * 2}" in re.sub(
        r"%rd\d+", "%rd{}", text
    )
    assert "multicast::cluster.b64" in text  # of commits alone
    assert "bytes.multicast" not in text


@pytest.mark.parametrize(
    ("steps", "options", "why"),
    [
        (Steps(tile=(64, 16, 32)), {}, "it has 64 rows or more, and the tile 32"),
        (Steps(tile=_TILE, right="twice"), {}, "no tile that is loaded for it"),
        (Steps(tile=_TILE, right="pointers"), {}, "no tile that is loaded for it"),
        (Steps(tile=(512, 16, 32)), {"num-ctas": 4}, "has several pairs"),
        (Steps(tile=_TILE), {"num-warps": 2}, "read by 4 warps together"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_does_not_fit_is_made_by_each_block(
    steps: Steps, options: Mapping[str, object], why: str
) -> None:
    found = made(steps, options)
    text = str(found.stage("ptx"))
    assert "cta_group::2" not in text
    assert any(why in str(remark) for remark in found.remarks)
    check(steps, text, 0, 6, "late")


@pytest.mark.parametrize(("tile", "clusters"), [((128, 64, 128), 2), ((256, 64, 256), 1)])
def test_short_steps_leave_room_for_another_cluster(
    tile: tuple[int, int, int], clusters: int
) -> None:
    """Steps of 128 clk of products hide each other's waits, those of 512 need none to."""
    options = {"unspecialized-pipeline-num-stages": 4}
    text = str(made(Steps(tile=tile), options).stage("ptx"))
    assert f".minnctapersm {clusters}\n" in text


def test_other_targets_have_none() -> None:
    found = made(Steps(tile=_TILE), {}, "sm_90")
    assert "tcgen05" not in str(found.stage("ptx"))
    assert not any("pairs together" in str(remark) for remark in found.remarks)


# -- nothing of it can go ----------------------------------------------------------------------


def fails(text: str, turns: int) -> bool:
    steps = Steps(turns=turns, tile=_TILE, most=_STEPS)
    return is_caught(partial(check, steps, text, 0, _STEPS))


_MEETING = "meeting of blocks"
#: What the simulator does not miss, by the way and whether the loop runs again: fences around
#: allocation and deallocation, as in test_run_tensor_dot, and around the epilogue's meeting, behind
#: which the one of blocks has fences of its own. Where threads meet in each step, those behind
#: initialisations of barriers, and of blocks a meeting that another one stands behind; the last
#: one where the block has met before: no block of the simulator leaves columns to others too soon.
SPARE = {
    r"tcgen05\.fence::before_thread_sync": {"led": (2, 4), "met": (2, 4)},
    r"tcgen05\.fence::after_thread_sync": {"led": (2, 3), "met": (2, 3)},
    r"\bbar(rier)?\.\w*\.?sync": {"led": (0, 3), "met": (2, 4)},
    r"fence\.mbarrier_init": {"met": (1, 1)},
    _MEETING: {"led": (0, 1), "met": (2, 2)},
}


#: What is there for loops that run again, too, and what all need.
_AGAIN = (
    r"\bbar(rier)?\.\w*\.?sync", r"tcgen05\.fence::before_thread_sync",
    r"tcgen05\.fence::after_thread_sync", r"mbarrier\.inval", r"fence\.mbarrier_init", _MEETING,
)  # fmt: skip
_ONCE = (
    r"cp\.async\.wait_group", r"cp\.async\.commit_group", r"tcgen05\.commit",
    r"tcgen05\.wait::ld", r"mbarrier\.init", r"mbarrier\.arrive\.expect_tx",
    r"fence\.proxy\.async", r"tcgen05\.alloc", r"tcgen05\.dealloc", r"cp\.async\.bulk\.tensor",
)  # fmt: skip


@pytest.mark.parametrize(
    ("way", "turns"),
    [
        ("led", 2), ("met", 0),
        *(pytest.param(*one, marks=pytest.mark.slow) for one in (("led", 0), ("met", 2))),
    ],
)  # fmt: skip
def test_nothing_of_it_can_go(way: str, turns: int) -> None:
    text = ptx(way, turns)
    for instruction in _AGAIN if turns else (*_AGAIN, *_ONCE):
        met = instruction == _MEETING
        broken = without_meetings(text) if met else without(text, rf"{instruction}[^;]*;")
        missed = sum(not fails(mutant, turns) for mutant in broken)
        spare = SPARE.get(instruction, {}).get(way, (0, 0))[bool(turns)]
        assert missed <= spare, (instruction, missed, len(broken))


#: What concerns both blocks done for one: (pattern, what takes its place).
ONE = {
    "a product says so to one block": (
        r"\.multicast::cluster\.b64 (\[[^;]*\]), %rs\d+;",
        r".b64 \1;",
    ),
    "bytes of one block": (r"(expect_tx[^\n]*, )\d+;", rf"\g<1>{(128 * 16 + 16 * 16) * 2};"),
    "copies to the own barrier": (
        r"mapa\.shared::cluster\.u64 %there, (%\w+), [^;]*;([^\n]*)\[%there\];",
        r"\2[\1];",
    ),
}  # fmt: skip


@pytest.mark.parametrize("mutant", ONE)
def test_both_blocks_are_told(mutant: str) -> None:
    text = ptx("led")
    pattern, instead = ONE[mutant]
    found = list(re.finditer(pattern, text))
    assert found
    for one in found:
        assert fails(text[: one.start()] + one.expand(instead) + text[one.end() :], 0)


@pytest.mark.parametrize(("way", "turns"), [*product(("led", "met"), (0, 2))])
def test_no_wait_can_go_or_be_for_another_phase(way: str, turns: int) -> None:
    for broken in wrong_waits(ptx(way, turns)):
        assert fails(broken, turns)
