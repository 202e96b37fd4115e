"""Scratch in shared memory, and warp shuffles of whole fragments."""

from __future__ import annotations

from tile_core.convert import Conversion
from tile_core.mlir import ir
from tile_core.passes import error_at
from tile_nvptx.passes.tileas.build import Builder
from tile_nvptx.passes.tileas.helpers import shuffle_words
from tile_nvptx.passes.tileas.rules import state
from tile_nvptx.passes.tileas.types import (
    count_of,
    element_of,
    shared_pointer,
    storage_type,
    vector_of,
)

GLOBAL_SMEM = "global_smem"


def scratch_pointer(op: ir.OpView, cx: Conversion, extra: int = 0) -> ir.Value:
    """Address of the operation's scratch, `extra` bytes in."""
    if "shared_offset" not in op.attributes:
        raise error_at(op, "has no place in shared memory; run 'tileas-allocate-shared' before")
    b = Builder(cx)
    symbol = {"global_name": ir.FlatSymbolRefAttr.get(GLOBAL_SMEM)}
    base = cx.create("llvm.mlir.addressof", [], [shared_pointer()], symbol).result
    start = ir.IntegerAttr(op.attributes["shared_offset"]).value + extra
    return b.offset(base, start, b.i8)


def shuffle(cx: Conversion, value: ir.Value, mode: str, lane: ir.Value) -> ir.Value:
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


def _move(cx: Conversion, words: ir.Value, mode: str, lane: ir.Value) -> ir.Value:
    name, body = shuffle_words(count_of(words.type), mode)
    return state(cx).helpers.call(cx, name, body, [words, lane], words.type).result
