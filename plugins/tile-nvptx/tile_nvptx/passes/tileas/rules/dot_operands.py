"""Operands of tensor cores: fragments in registers, or read from shared memory step by step."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Protocol

from tile_cute import gf2
from tile_cute.linear import LayoutError, LinearLayout, MatrixSide, SharedSide
from tile_cute.linear.layout import log2
from tile_tileas.dialect.buffers import Buffer
from tile_tileas.dots import Fragments
from tile_tileas.stages import Reading, reading, turns_bytes

from tile_core.mlir import ir
from tile_core.passes import error_at
from tile_nvptx.passes.tileas.device.memory import load_matrices
from tile_nvptx.passes.tileas.rules.buffers import buffer_of, layout_in_memory
from tile_nvptx.passes.tileas.thread.build import Builder, join
from tile_nvptx.passes.tileas.thread.shared import Moved, SharedBuffer
from tile_nvptx.passes.tileas.thread.state import Kernel, linear, tile_layout
from tile_nvptx.passes.tileas.thread.types import count_of, held_type, storage_type, vector_of


def shape_before(cx: Kernel, value: ir.Value) -> tuple[int, ...]:
    """The shape of the tile that `value` is a part of, or the address of."""
    buffer = Buffer.of(cx.before(value))
    return tile_layout(cx, value).shape if buffer is None else tuple(buffer.shape)


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

    reads: Reading
    fragments: Fragments
    memory: SharedBuffer
    element: ir.Type

    @staticmethod
    def of(op: ir.OpView, cx: Kernel, buffer: ir.Value, fragments: Fragments) -> Staged:
        """The operand that lies in `buffer`."""
        element = held_type(buffer_of(cx, buffer).tile.element_type)
        stored = storage_type(element)
        turns = turns_bytes(cx.target.chip)
        try:
            reads = reading(
                layout_in_memory(cx, buffer), fragments, stored.width, turns_bytes=turns
            )
        except LayoutError as error:
            raise error_at(op, f"cannot read a buffer: {error}") from error
        return Staged(reads, fragments, SharedBuffer(cx, buffer, stored), element)

    def step(self, cx: Kernel, k: int) -> ir.Value:
        """Read the registers of step `k`."""
        return self._read(cx, self.reads.steps[k], None)

    def steps_from(self, cx: Kernel, k: ir.Value, count: int) -> list[ir.Value]:
        """Read the registers of steps `k`, `k` + 1, ...; k is a multiple of `count`, an i32 that
        is known as the program runs. `count` is a power of two.
        """
        low, bits = log2(count), log2(len(self.reads.steps))
        bases = [0] * low + [self.reads.steps[1 << bit] for bit in range(low, bits)]
        moved = (linear(Builder(cx), k, bases), reduce(or_, bases)) if any(bases) else None
        return [self._read(cx, self.reads.steps[step], moved) for step in range(count)]

    def _read(self, cx: Kernel, offset: int, moved: Moved | None) -> ir.Value:
        return read_part(
            cx, self.memory, self.reads.load, self.fragments.step, self.element, offset, moved
        )


def read_part(
    cx: Kernel,
    memory: SharedBuffer,
    side: SharedSide | MatrixSide,
    part: LinearLayout,
    element: ir.Type,
    offset: int = 0,
    moved: Moved | None = None,
) -> ir.Value:
    """A part of a tile, read at `offset`; registers that are copies of others are not read."""
    b = Builder(cx)
    accesses = side.accesses if isinstance(side, MatrixSide) else side.accesses[0]
    loaded = [_load(cx, memory, side, access.offset ^ offset, moved) for access in accesses]
    held = gf2.table(part.flat("register"))
    order = [register for access in accesses for register in access.registers]
    place = {held[register]: at for at, register in enumerate(order)}
    in_order = b.shuffle(join(b, loaded), [place[one] for one in held])
    return b.from_storage(in_order, element)


def _load(
    cx: Kernel,
    memory: SharedBuffer,
    side: SharedSide | MatrixSide,
    offset: int,
    moved: Moved | None,
) -> ir.Value:
    b, element = Builder(cx), memory.element
    pointer = memory.at((*side.lane_map, *side.warp_map), offset, moved)
    if not isinstance(side, MatrixSide):
        type_ = vector_of(side.vector, element)
        return b.load(pointer, type_, side.vector * (element.width // 8))
    name, body = load_matrices(side.matrices, transposed=side.transposed, rows=side.rows)
    words = vector_of(side.words, b.i32)
    found = cx.state.helpers.call(cx, name, body, [pointer], words).result
    return b.bitcast(found, vector_of(count_of(words) * 32 // element.width, element))
