"""Loads that threads make a step ahead of their use, in registers that the loop carries.

    for i:                          x = load(lower)
      x = load(i)                   for i:
      f(x)                            f(x)
                                      x = load(i + 1), of the last step again

A load stands behind what uses the one before: ptxas waits for both where the first one comes from
in front of the loop.

A tile of a few registers has nothing that hides its latency where it is used as soon as it is
loaded, and is too small for stages in shared memory, which threads would meet for.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from tile_tileaa.dialect.hints import latency_of

from tile_core.mlir import ir
from tile_tileas.access import fall_back
from tile_tileas.analysis.tokens import LOADS, is_weak
from tile_tileas.analysis.users import within
from tile_tileas.cloning import replace_operands
from tile_tileas.dialect import layout_of
from tile_tileas.pipelining.awaited import hand_on_token, is_awaited_inside
from tile_tileas.pipelining.carrying import carrying, hand_on
from tile_tileas.pipelining.slices import Slice, slice_of
from tile_tileas.pipelining.writer import Writer
from tile_tileas.storage import storage_bits

#: Registers of a thread that such tiles take at most: loops of chained products have few left.
MOST_REGISTERS = 4
_WHY = "threads load it a step ahead, in registers"


class SmallLoad(NamedTuple):
    """A load of a loop, and what its operands are computed from there."""

    load: ir.OpView
    slice: Slice


def small_loads(loop: ir.OpView, others: Collection[ir.Operation]) -> list[SmallLoad]:
    """The loads of `loop` but `others` that can be made a step ahead and fit into registers, in
    their order.
    """
    chosen, room = list[SmallLoad](), MOST_REGISTERS
    for op in loop.regions[0].blocks[0].operations:
        if op.operation.name not in LOADS or op.operation in others or not _may_move(op, loop):
            continue
        made_of, taken = slice_of(op.operands, loop), _registers(op.results[0])
        if isinstance(made_of, Slice) and not made_of.carried and taken <= room:
            chosen.append(SmallLoad(op, made_of))
            room -= taken
    return chosen


def carry(loop: ir.OpView, loads: Sequence[SmallLoad]) -> ir.OpView:
    """The loop in place of `loop` that has these loads, one at least, a step ahead."""
    return _Carried(loop, loads).run()


def _may_move(load: ir.OpView, loop: ir.OpView) -> bool:
    used = any(True for _ in load.results[0].uses)
    asked = latency_of(load) != 1  # which says that it is worth no prefetch
    return used and asked and is_weak(load) and not is_awaited_inside(load, loop)


def _registers(tile: ir.Value) -> int:
    """Registers of a thread; of a tile without a layout more than there are."""
    layout = layout_of(tile.type)
    if layout is None:
        return MOST_REGISTERS + 1
    return -(-layout.elements_per_thread * storage_bits(tile.type.element_type) // 32)


def _first_user(value: ir.Value, block: ir.Block) -> ir.Operation:
    """The operation of `block` that uses `value`, by itself or inside of it, before all others."""
    users = {within(use.owner.operation, block) for use in value.uses}
    return next(op.operation for op in block.operations if op.operation in users)


class _Carried:
    def __init__(self, loop: ir.OpView, loads: Sequence[SmallLoad]) -> None:
        self._loop, self._loads = loop, loads
        self._at = Writer(loop.location)

    def run(self) -> ir.OpView:
        at, loads = self._at, self._loads
        first = self._first()
        new, block, carried = carrying(self._loop, first)
        made = list[ir.Value]()
        for load, held in zip(loads, carried, strict=True):
            load.load.results[0].replace_all_uses_with(held)
            at.move(ir.InsertionPoint.after(_first_user(held, block)))
            made.append(self._load(load, {block.arguments[0]: self._later(new, block)}))
            hand_on_token(load.load, by_engine=False, met=False)
            load.load.operation.erase()
        hand_on(block, made)
        return new.opview

    def _first(self) -> list[ir.Value]:
        """The tiles of the first step; zeros where there is none."""
        at, loop = self._at, self._loop
        at.move(ir.InsertionPoint(loop))
        lower, upper = list(loop.operands)[:2]
        place = {loop.regions[0].blocks[0].arguments[0]: lower}
        nothing = [at.zeros(load.load.results[0].type) for load in self._loads]
        runs = at.is_less(at.wide(lower), at.wide(upper))
        return at.choice(runs, lambda: [self._load(load, place) for load in self._loads], nothing)

    def _later(self, loop: ir.Operation, block: ir.Block) -> ir.Value:
        """The next step; the last one itself."""
        at, now = self._at, block.arguments[0]
        upper, step = list(loop.operands)[1:3]
        later = at.binary("addi", now, step)
        exists = at.is_less(at.binary("addi", at.wide(now), at.wide(step)), at.wide(upper))
        return at.create("arith.select", [exists, later, now], [now.type]).result

    def _load(self, small: SmallLoad, place: Mapping[ir.Value, ir.Value]) -> ir.Value:
        """The tile of another step."""
        values = dict(place)
        for op in small.slice.ops:
            values.update(zip(op.results, self._clone(op, values).results, strict=True))
        made = self._clone(small.load, values)
        fall_back(made.opview, _WHY)
        return made.results[0]

    def _clone(self, op: ir.OpView, values: dict[ir.Value, ir.Value]) -> ir.Operation:
        made = op.operation.clone(ip=self._at.place)
        replace_operands(made, values)
        return made
