"""Shared memory in which warps leave their parts of a reduction (`tile_tileas.partials`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from operator import or_

from tile_tileas.partials import Partials, partials_of
from tile_tileas.reductions import ReductionPlan

from tile_core.mlir import ir
from tile_nvptx.passes.tileas.rules.combine import Fragments
from tile_nvptx.passes.tileas.thread.build import Builder
from tile_nvptx.passes.tileas.thread.shared import when
from tile_nvptx.passes.tileas.thread.state import LANE_BITS, Kernel
from tile_nvptx.passes.tileas.thread.types import storage_type, vector_of

#: arith.CmpIPredicate "ult".
_LESS = 6
#: Makes vectors of so many elements of longer ones, by folding what lies so far apart.
Tree = Callable[[Fragments, int], Fragments]


class AcrossWarps:
    """Of one reduction, which folds tiles of elements of `types`, with a buffer for each."""

    def __init__(
        self, cx: Kernel, plan: ReductionPlan, types: Sequence[ir.Type], buffers: Sequence[ir.Value]
    ) -> None:
        self._cx, self._plan, self._builder = cx, plan, Builder(cx)
        places = partials_of(plan, [_width(type_) for type_ in types])
        self._tiles = list(zip(types, buffers, places, strict=True))
        self._once = places[0].once

    def exchanged(self, values: Fragments, tree: Tree) -> Fragments:
        """What all warps have found, of the thread's own results, from what its own warp has."""
        with when(self._cx, self._speaks()):
            self._write(values)
        self._builder.barrier()
        if self._once:
            with when(self._cx, self._has_results()):
                self._fold_once(tree)
            self._builder.barrier()
        found = [self._read(*tile) for tile in self._tiles]
        return tree(found, self._plan.result.elements_per_thread)

    def _speaks(self) -> ir.Value | None:
        """i1: of the threads that hold equal parts, this is the first."""
        result = self._plan.result
        along = sum(1 << bit for bit in self._plan.warp_bits)
        warps = result.free_mask("warp") & ~along
        return self._cx.state.speaks(self._cx, result.free_mask("lane"), warps)

    def _write(self, values: Fragments) -> None:
        b = self._builder
        for value, (type_, buffer, places) in zip(values, self._tiles, strict=True):
            stored, width = b.to_storage(value), _width(type_)
            parts = list(places.threads)
            for position, bit in enumerate(self._plan.warp_bits):
                parts[LANE_BITS + bit] = places.stride << position
            mine, bits = self._cx.state.linear(self._cx, parts), reduce(or_, parts, 0)
            side = 1 if places.stride == 1 else places.together
            for register in range(0, 1 << len(places.registers), side):
                place = places.of_register(register)
                pointer = self._pointer(buffer, mine, place, type_, bits)
                some = b.shuffle(stored, range(register, register + side))
                b.store(some, pointer, width * side)

    def _read(self, type_: ir.Type, buffer: ir.Value, places: Partials) -> ir.Value:
        """The thread's results; the parts of each so far apart as there are results."""
        b, width = self._builder, _width(type_)
        mine, bits = self._cx.state.linear(self._cx, places.threads), reduce(or_, places.threads, 0)
        vector = vector_of(places.together, storage_type(type_))
        found = b.concat([
            b.load(self._pointer(buffer, mine, place, type_, bits), vector, width * places.together)
            for place in places.reads
        ])  # fmt: skip
        if places.stride == 1:
            results, parts = 1 << len(places.registers), places.number
            order = [one * parts + part for part in range(parts) for one in range(results)]
            found = b.shuffle(found, order)
        return b.from_storage(found, type_)

    def _has_results(self) -> ir.Value | None:
        """i1: there is a result for the thread to fold; None if there is one for each."""
        size, state = self._plan.result.size, self._cx.state
        if size >= state.agent.threads:
            return None
        b = self._builder
        return b.compare(_LESS, state.thread_index(self._cx), b.constant(size))

    def _fold_once(self, tree: Tree) -> None:
        """Each thread folds the parts of some results, into the first of them."""
        b, state = self._builder, self._cx.state
        index = state.thread_index(self._cx)
        rounds = range(0, self._plan.result.size, state.agent.threads)
        folded = tree([self._parts(*tile, index, rounds) for tile in self._tiles], len(rounds))
        for value, (type_, buffer, _) in zip(folded, self._tiles, strict=True):
            stored = b.to_storage(value)
            for at, first in enumerate(rounds):
                pointer = self._pointer(buffer, index, first, type_)
                b.store(b.shuffle(stored, [at]), pointer, _width(type_))

    def _parts(
        self, type_: ir.Type, buffer: ir.Value, places: Partials, index: ir.Value, rounds: range
    ) -> ir.Value:
        """All parts of the results that a thread folds."""
        b, one, width = self._builder, vector_of(1, storage_type(type_)), _width(type_)
        where = [first + part * places.stride for part in range(places.number) for first in rounds]
        pointers = [self._pointer(buffer, index, place, type_) for place in where]
        found = b.concat([b.load(pointer, one, width) for pointer in pointers])
        return b.from_storage(found, type_)

    def _pointer(
        self, buffer: ir.Value, mine: ir.Value | None, place: int, type_: ir.Type, bits: int = 0
    ) -> ir.Value:
        """Where an element is: at `mine`, which has some of these `bits`, and `place` by XOR."""
        b, stored = self._builder, storage_type(type_)
        if mine is not None and place & bits:
            return b.offset(buffer, b.with_constant("xori", mine, place), stored)
        pointer = buffer if mine is None else b.offset(buffer, mine, stored)
        return b.offset(pointer, place, stored)


def _width(type_: ir.Type) -> int:
    """Bytes of an element in memory."""
    return storage_type(type_).width // 8
