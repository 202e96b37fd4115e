"""Products of tiles whose numbers a loop reads from memory, as blocks of a sparse matrix: two
threads lead such a loop by tcgen05, and who copies reads the number, too.
"""

from __future__ import annotations

import re
from functools import cache

import numpy as np
import pytest
import tile_cudatile
from support.programs import I32, Program
from support.removals import SCHEDULES, is_caught, without, wrong_waits
from tile_cudatile import types as t
from tile_cudatile.attrs import DivBy
from tile_cudatile.tree import Value
from tile_sim import Module

import tile_core

WEAK = {"memory_ordering_semantics": "weak"}
M, K, N, MOST = 64, 32, 64, 9
_LEAST_STEPS = 20_000


def _tiles(p: Program, shape: tuple[int, ...], tile: tuple[int, ...], element: t.Scalar) -> Value:
    """Tiles of a new argument, row-major."""
    base = p.argument(t.Tile((), t.Pointer(element)))
    base = p.emit("assume", [base], base.type, predicate=DivBy(16))
    steps = tuple(int(np.prod(shape[at + 1 :])) for at in range(len(shape)))
    tensor = t.TensorView(element, shape, steps)
    view = p.emit("make_tensor_view", [base, (), ()], tensor)
    kind = t.PartitionView(tile, tensor, tuple(range(len(shape))), "zero")
    return p.emit("make_partition_view", [view], kind)


@cache
def ptx(target: str = "sm_100", *, stored: bool = False, plain: bool = False) -> str:
    """Sums over p of A's tile p by the tile of B whose number is the p-th. `stored`: the numbers
    are stored, too, so that threads need them. `plain`: by tile p of B.
    """
    p = Program()
    a = _tiles(p, (MOST * M, K), (M, K), t.F16)
    b = _tiles(p, (MOST * K, N), (K, N), t.F16)
    numbers = _tiles(p, (MOST,), (1,), t.I32)
    out = _tiles(p, (M, N), (M, N), t.F32)
    seen = _tiles(p, (MOST,), (1,), t.I32)
    bounds = [p.argument(I32), p.argument(I32), p.constant(I32, 1)]
    zero, start = p.constant(I32, 0), p.constant(t.Tile((M, N), t.F32), 0)

    def tile(view: Value, place: tuple[Value, ...], shape: tuple[int, ...], kind: t.Scalar):
        return p.emit("load_view_tko", [view, place], t.Tile(shape, kind), t.TOKEN, **WEAK)

    def body(i: Value, total: Value) -> list[Value]:
        found = tile(numbers, (i,), (1,), t.I32)
        if stored:
            p.emit("store_view_tko", [found, seen, (i,)], t.TOKEN, **WEAK)
        number = i if plain else p.emit("reshape", [found], I32)
        left = tile(a, (i, zero), (M, K), t.F16)
        right = tile(b, (number, zero), (K, N), t.F16)
        return [p.emit("mmaf", [left, right, total], total.type)]

    region = p.region([I32, start.type], body, "continue")
    total = p.emit("for", [*bounds, (start,)], start.type, regions=(region,))
    p.emit("store_view_tko", [total, out, (zero, zero)], t.TOKEN, **WEAK)
    module = p.module()
    tile_cudatile.verify(module)
    made = tile_core.compile(
        str(tile_cudatile.to_mlir(module)), target, opt_level=3, emit="ptx", keep_stages=False,
        start_at="convert-cudatile-to-tileaa",
    )  # fmt: skip
    return str(made.stage("ptx"))


def check(text: str, first: int, last: int, schedule: str) -> None:
    draw = np.random.default_rng(1)
    a, b = (draw.integers(-3, 4, (MOST, *shape)).astype(np.float16) for shape in ((M, K), (K, N)))
    numbers = draw.integers(0, MOST, MOST).astype(np.int32)
    out, seen = np.ones((M, N), np.float32), np.zeros(MOST, np.int32)
    report = Module(text).launch(
        "k", (1, 1, 1), None, [a, b, numbers, out, seen, np.int32(first), np.int32(last)],
        check=True, schedule=schedule, max_steps=_LEAST_STEPS,
    )  # fmt: skip
    assert not report.findings, "\n".join(map(str, report.findings))
    steps = range(first, last)
    products = (a[p].astype(np.float32) @ b[numbers[p]].astype(np.float32) for p in steps)
    np.testing.assert_array_equal(out, sum(products, np.zeros((M, N), np.float32)))


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("target", ["sm_80", "sm_90", "sm_100", "sm_120"])
def test_every_trip_count(target: str, schedule: str) -> None:
    """Numbers of iterations that there are not are outside of memory, and not read."""
    text = ptx(target)
    for first, last in ((0, 0), (0, 1), (1, 4), (0, MOST), (3, MOST)):
        check(text, first, last, schedule)


def test_two_threads_lead() -> None:
    """As where the loop numbers tiles: nobody meets more often, and threads copy nothing."""
    numbered, plain = ptx(), ptx(plain=True)
    meetings = [len(re.findall(r"\bbar(rier)?\.\w*\.?sync", text)) for text in (numbered, plain)]
    assert meetings[0] == meetings[1]
    assert "cp.async.bulk.tensor" in numbered
    assert "cp.async.commit_group" not in numbered


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_numbers_that_threads_need_come_for_them(schedule: str) -> None:
    check(ptx(stored=True), 0, MOST, schedule)


def is_wrong(text: str) -> bool:
    return is_caught(lambda schedule: check(text, 0, MOST, schedule))


@pytest.mark.parametrize("instruction", [r"tcgen05\.commit", r"expect_tx", r"ld\.global\.b32"])
def test_nothing_of_it_can_go(instruction: str) -> None:
    """Each commit, expectation and number, of the loop and before it."""
    found = without(ptx(), rf"[^\n]*{instruction}[^\n]*\n")
    assert found
    for number, broken in enumerate(found):
        assert is_wrong(broken), f"{instruction} {number}"


def test_no_wait_can_go_or_be_for_another_phase() -> None:
    assert all(map(is_wrong, wrong_waits(ptx())))
