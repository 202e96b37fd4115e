"""Accesses to shared memory, and warp shuffles of whole fragments."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from operator import or_

from tile_core.mlir import ir
from tile_nvptx.passes.tileas.device.vectors import shuffle_words
from tile_nvptx.passes.tileas.thread.build import Builder
from tile_nvptx.passes.tileas.thread.state import Kernel
from tile_nvptx.passes.tileas.thread.types import (
    count_of,
    element_of,
    storage_type,
    vector_of,
)

GLOBAL_SMEM = "global_smem"


#: An offset in elements, i32, and the bits that it may have.
Moved = tuple[ir.Value, int]


@dataclass(frozen=True)
class SharedBuffer:
    """A buffer whose offsets are linear in the bits of the thread's index."""

    cx: Kernel
    base: ir.Value
    element: ir.Type  # storage type

    def at(
        self, thread_bases: tuple[int, ...], offset: int, moved: Moved | None = None
    ) -> ir.Value:
        """Address of element `offset` XOR `thread_bases[i]` of all bits i of the thread index, XOR
        what `moved` says.

        Bits of the offset that neither sets add up, so that accesses share one register and differ
        in the instruction's immediate.
        """
        b = Builder(self.cx)
        place = self.cx.state.linear(self.cx, thread_bases)
        used = reduce(or_, thread_bases, 0)
        if moved is not None:
            place = moved[0] if place is None else b.binary("xori", place, moved[0])
            used |= moved[1]
        if place is None:
            return b.offset(self.base, offset, self.element)
        mixed = b.with_constant("xori", place, offset & used)
        return b.offset(b.offset(self.base, mixed, self.element), offset & ~used, self.element)


@contextmanager
def when(cx: Kernel, condition: ir.Value | None) -> Iterator[None]:
    """Emit what is inside under `condition` (i1); without one, as it is."""
    if condition is None:
        yield
        return
    branch = cx.create("scf.if", [condition], regions=2)
    with cx.at(ir.InsertionPoint(branch.regions[0].blocks.append())):
        yield
        cx.create("scf.yield")


def shuffle(cx: Kernel, value: ir.Value, mode: str, lane: ir.Value) -> ir.Value:
    """The fragment of another lane: `bfly` of lane ^ operand, `idx` of lane `operand`.

    32 bits travel at a time; smaller elements are packed where they fill words, and widened
    where they do not.
    """
    b, element = Builder(cx), element_of(value.type)
    count = count_of(value.type)
    stored = b.to_storage(value)
    narrow = storage_type(element)
    bits = count * narrow.width
    if bits % 32:
        wide = vector_of(count, b.i32)
        as_int = b.bitcast(stored, vector_of(count, ir.IntegerType.get_signless(narrow.width)))
        moved = _move(cx, cx.create("llvm.zext", [as_int], [wide]).result, mode, lane)
        back = cx.create("llvm.trunc", [moved], [as_int.type]).result
    else:
        back = _move(cx, b.bitcast(stored, vector_of(bits // 32, b.i32)), mode, lane)
    return b.from_storage(b.bitcast(back, stored.type), element)


def _move(cx: Kernel, words: ir.Value, mode: str, lane: ir.Value) -> ir.Value:
    name, body = shuffle_words(count_of(words.type), mode)
    return cx.state.helpers.call(cx, name, body, [words, lane], words.type).result
