"""Tiles that loops load one after the other stay in shared memory: the same bits, no barrier."""

from __future__ import annotations

import re
from functools import cache

import numpy as np
import pytest
import tile_cudatile
from support.programs import I32, Program
from tile_cudatile import types as t
from tile_cudatile.attrs import DivBy
from tile_cudatile.tree import Value
from tile_sim import Module, SimError

import tile_core

#: More tiles stay than LLVM peels iterations of a loop.
TILES, WIDTH, KEPT, RING = 20, 512, 6, 3
WEAK = {"memory_ordering_semantics": "weak"}
SCHEDULES = ("late", "early", "random")


class _Sums(Program):
    """The sum of the first `last` tiles of x, then that of their differences from it."""

    def __init__(self, change: bool, first: int = 0) -> None:
        super().__init__()
        self.tile = t.Tile((WIDTH,), t.F32)
        base = self.argument(t.Tile((), t.Pointer(t.F32)))
        base = self.emit("assume", [base], base.type, predicate=DivBy(16))
        tensor = t.TensorView(t.F32, (TILES * WIDTH,), (1,))
        view = self.emit("make_tensor_view", [base, (), ()], tensor)
        of_tiles = t.PartitionView((WIDTH,), tensor, (0,), "zero")
        self.view_of_x = self.emit("make_partition_view", [view], of_tiles)
        last = self.argument(I32)
        bounds = [self.constant(I32, first), last, self.constant(I32, 1)]
        zero = self.constant(self.tile, 0)

        def add(total: Value, x: Value) -> Value:
            return self._of("addf", total, x)

        total = self._loop(bounds, zero, None, add)
        token = self._changed(zero) if change else None
        done = self._loop(
            bounds, zero, token, lambda sums, x: add(sums, self._of("subf", x, total))
        )
        self.store(done, (WIDTH,), t.F32)

    def _changed(self, tile: Value) -> Value:
        """Store a tile as the first of x; its token."""
        at = (self.constant(I32, 0),)
        return self.emit("store_view_tko", [tile, self.view_of_x, at], t.TOKEN, **WEAK)

    def _of(self, name: str, left: Value, right: Value) -> Value:
        return self.emit(name, [left, right], self.tile, rounding_mode="nearest_even")

    def _loop(self, bounds, start, token, body) -> Value:
        def step(i: Value, sums: Value) -> list[Value]:
            operands = [self.view_of_x, (i,)] + ([] if token is None else [token])
            x = self.emit("load_view_tko", operands, self.tile, t.TOKEN, **WEAK)
            return [body(sums, x)]

        region = self.region([I32, self.tile], step, "continue")
        return self.emit("for", [*bounds, (start,)], self.tile, regions=(region,))


@cache
def made(change: bool = False, first: int = 0, keep: int = KEPT, target: str = "sm_80"):
    return tile_core.compile(
        str(tile_cudatile.to_mlir(_Sums(change, first).module())),
        target,
        opt_level=2,
        start_at="convert-cudatile-to-tileaa",
        emit="ptx",
        pass_options={"tileas-prefetch-loads.keep": keep},
    )


def rings(change: bool = False, first: int = 0, keep: int = KEPT) -> int:
    """How many buffers loops have for tiles of x."""
    text = str(made(change, first, keep).stage("mlir:buffers"))
    return len(re.findall(r'"nv_tileas\.alloc_tensor"\(\)[^\n]*pipelined', text))


def check(text: str, last: int, schedule: str, *, change: bool = False) -> None:
    x = np.random.default_rng(0).integers(-8, 8, TILES * WIDTH).astype(np.float32)
    tiles = x.reshape(TILES, WIDTH)[:last].copy()
    total = tiles.sum(0)
    if change:
        tiles[:1] = 0
    wanted = (tiles - total).sum(0) if last > 0 else np.zeros(WIDTH, np.float32)
    y = np.ones(WIDTH, np.float32)
    arguments = [x, np.int32(last), y]
    report = Module(text).launch("k", (1, 1, 1), None, arguments, check=True, schedule=schedule)
    assert not report.findings
    np.testing.assert_array_equal(y, wanted)


@pytest.mark.parametrize("last", [0, 1, KEPT - 1, *range(KEPT, KEPT + 5), TILES])
def test_any_number_of_tiles(last: int) -> None:
    text = str(made().stage("ptx"))
    assert rings() == 1
    assert "bar.sync" not in text
    for schedule in SCHEDULES:
        check(text, last, schedule)


def test_all_stages_are_filled_before_the_first_tile_is_read() -> None:
    before = str(made().stage("ptx")).split("cp.async.wait_group")[0]
    assert len(re.findall(r"cp\.async\.c[ag]\.", before)) == KEPT + RING - 1


def test_nothing_stays_where_none_may() -> None:
    assert rings(keep=0) == 2
    check(str(made(keep=0).stage("ptx")), TILES, "late")


def test_tiles_of_other_numbers_do_not_stay() -> None:
    assert rings(first=1) == 2


@pytest.mark.parametrize("last", [1, TILES])
def test_what_a_store_in_between_writes_is_read(last: int) -> None:
    assert rings(change=True) == 2
    for schedule in SCHEDULES:
        check(str(made(change=True).stage("ptx")), last, schedule, change=True)


MUTANTS = {
    "no wait": r"cp\.async\.wait_group[^\n]*",
    "no commit": r"cp\.async\.commit_group[^\n]*",
    "no copy": r"cp\.async\.c[ag]\.[^\n]*",
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_nothing_of_it_can_go(mutant: str) -> None:
    text = str(made().stage("ptx"))
    found = list(re.finditer(MUTANTS[mutant], text))
    assert found
    for m in found:
        broken = text[: m.start()] + text[m.end() :]
        assert _is_caught(broken), m.group()


def test_no_wait_leaves_one_group_more() -> None:
    text = str(made().stage("ptx"))
    found = list(re.finditer(r"cp\.async\.wait_group (\d+)", text))
    assert {int(m[1]) for m in found} == {KEPT + RING - 2, RING - 2}
    for m in found:
        broken = f"{text[: m.start(1)]}{int(m[1]) + 1}{text[m.end(1) :]}"
        assert _is_caught(broken), m.group()


def _is_caught(text: str) -> bool:
    for schedule in SCHEDULES:
        try:
            check(text, TILES, schedule)
        except (AssertionError, SimError):
            return True
    return False
