"""Counting how often numbers stand in a tile, in counters that all threads of a block add to."""

from __future__ import annotations

from tile_tileas.dialect.buffers import Buffer

from tile_core.mlir import ir
from tile_nvptx.passes.tileas.device.memory import count_text
from tile_nvptx.passes.tileas.ruleset import rules
from tile_nvptx.passes.tileas.thread.build import Builder
from tile_nvptx.passes.tileas.thread.state import Kernel, tile_layout

_ULT = 6  # arith.CmpIPredicate


@rules.on("nv_tileas.count")
def count(op: ir.OpView, cx: Kernel) -> None:
    """count => a `red` per element by one of the threads that hold it, if it has a counter"""
    b, (source, counters) = Builder(cx), op.operands
    layout = tile_layout(cx, source)
    buffer = Buffer.of(cx.before(counters))
    assert buffer is not None, "the verifier has seen to it"
    speaks = cx.state.holds_unique(cx, layout)
    name, body = count_text()
    copies = layout.free_mask("register")
    for register in range(layout.elements_per_thread):
        if register & copies:
            continue
        number = b.extract(source, register)
        flag = _has_counter(b, number, buffer.shape[0])
        if speaks is not None:
            flag = b.binary("andi", flag, speaks)
        place = b.offset(counters, b.widen(_index(b, number), b.i64), b.i32)
        cx.state.helpers.call(cx, name, body, [place, flag], None)


def _has_counter(b: Builder, number: ir.Value, counters: int) -> ir.Value:
    """i1: `number`, without a sign, is below `counters`."""
    if counters >> number.type.width:  # any that the type has is
        return b.constant(1, b.i1)
    return b.compare(_ULT, number, b.constant(counters, number.type))


def _index(b: Builder, number: ir.Value) -> ir.Value:
    """A number that has a counter, i32 at most."""
    if number.type.width <= b.i32.width:
        return number
    return b.cx.create("arith.trunci", [number], [b.i32]).result
