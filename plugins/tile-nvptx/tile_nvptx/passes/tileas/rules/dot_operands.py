"""Operands of tensor cores: fragments in registers, or read from shared memory step by step."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Protocol

from tile_cute import gf2
from tile_cute.linear import MatrixSide
from tile_cute.linear.layout import log2
from tile_tileas.dot_stage import Product
from tile_tileas.dots import Fragments
from tile_tileas.stages import Stage

from tile_core.mlir import ir
from tile_nvptx.passes.tileas.device.memory import load_matrices
from tile_nvptx.passes.tileas.thread.build import Builder, join
from tile_nvptx.passes.tileas.thread.shared import Moved, SharedBuffer, scratch_pointer, when
from tile_nvptx.passes.tileas.thread.state import Kernel, linear, tile_layout
from tile_nvptx.passes.tileas.thread.types import count_of, element_of, storage_type, vector_of


def product_of(op: ir.OpView, cx: Kernel) -> Product:
    """What the staging of a dot follows from, whose operands are vectors by now."""
    a, b, c = (tile_layout(cx, op.operands[at]) for at in range(3))
    bits = storage_type(element_of(op.operands[0].type)).width
    return Product(op, (a, b, c), bits, cx.target.chip)


class Operand(Protocol):
    """Gives the fragments of A or B that one step along K needs."""

    def step(self, cx: Kernel, k: int) -> ir.Value:
        """The registers of all atoms of step `k`."""
        ...


@dataclass
class Held:
    """An operand whose fragments are in registers."""

    value: ir.Value
    fragments: Fragments

    def step(self, cx: Kernel, k: int) -> ir.Value:
        """Registers whose bits along K say `k`."""
        whole = self.fragments.whole.bases["register"]
        wanted = gf2.combine([1 << whole.index(basis) for basis in self.fragments.steps], k)
        own = [1 << whole.index(basis) for basis in self.fragments.step.bases["register"]]
        return Builder(cx).shuffle(self.value, [wanted ^ register for register in gf2.table(own)])


@dataclass
class Staged:
    """An operand in shared memory."""

    stage: Stage
    fragments: Fragments
    memory: SharedBuffer
    element: ir.Type

    @staticmethod
    def of(
        op: ir.OpView,
        cx: Kernel,
        value: ir.Value,
        stage: Stage,
        fragments: Fragments,
        at: int,
    ) -> Staged:
        """Store the operand `at` bytes into the scratch; the caller places the barrier."""
        b = Builder(cx)
        stored = b.to_storage(value)
        memory = SharedBuffer(cx, scratch_pointer(op, cx, at), element_of(stored.type))
        with when(cx, cx.state.speaks(cx, stage.redundant_lanes, stage.redundant_warps)):
            side, size = stage.store, stage.store.vector * stage.elem_bytes
            for access in side.accesses[0]:
                pointer = memory.at((*side.lane_map, *side.warp_map), access.offset)
                b.store(b.shuffle(stored, access.registers), pointer, size)
        return Staged(stage, fragments, memory, element_of(value.type))

    def step(self, cx: Kernel, k: int) -> ir.Value:
        """Read the registers of step `k`."""
        return self._read(cx, self.stage.steps[k], None)

    def steps_from(self, cx: Kernel, k: ir.Value, count: int) -> list[ir.Value]:
        """Read the registers of steps `k`, `k` + 1, ...; k is a multiple of `count`, an i32 that
        is known as the program runs. `count` is a power of two.
        """
        low, bits = log2(count), log2(len(self.stage.steps))
        bases = [0] * low + [self.stage.steps[1 << bit] for bit in range(low, bits)]
        moved = (linear(Builder(cx), k, bases), reduce(or_, bases)) if any(bases) else None
        return [self._read(cx, self.stage.steps[step], moved) for step in range(count)]

    def _read(self, cx: Kernel, offset: int, moved: Moved | None) -> ir.Value:
        """All registers of a step at `offset`; those that are copies of others are not read."""
        b, side = Builder(cx), self.stage.load
        accesses = side.accesses if isinstance(side, MatrixSide) else side.accesses[0]
        loaded = [self._load(cx, access.offset ^ offset, moved) for access in accesses]
        held = gf2.table(self.fragments.step.flat("register"))
        order = [register for access in accesses for register in access.registers]
        place = {held[register]: at for at, register in enumerate(order)}
        in_order = b.shuffle(join(b, loaded), [place[element] for element in held])
        return b.from_storage(in_order, self.element)

    def _load(self, cx: Kernel, offset: int, moved: Moved | None) -> ir.Value:
        b, side, element = Builder(cx), self.stage.load, self.memory.element
        pointer = self.memory.at((*side.lane_map, *side.warp_map), offset, moved)
        if not isinstance(side, MatrixSide):
            type_ = vector_of(side.vector, element)
            return b.load(pointer, type_, side.vector * self.stage.elem_bytes)
        name, body = load_matrices(side.matrices, transposed=side.transposed, rows=side.rows)
        words = vector_of(side.words, b.i32)
        found = cx.state.helpers.call(cx, name, body, [pointer], words).result
        return b.bitcast(found, vector_of(count_of(words) * 32 // element.width, element))
