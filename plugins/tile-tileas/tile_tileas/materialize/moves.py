"""Conversions of layouts, slices and printed tiles that pass through shared memory."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import dropwhile

from tile_cute.linear import SharedRoundTrip, subtile

from tile_core.mlir import ir
from tile_tileas.dialect import layout_of
from tile_tileas.materialize.exchange import Exchange
from tile_tileas.moves import conversion_plan, layout_at
from tile_tileas.storage import row_major
from tile_tileas.tile_graph import is_tile, kind_of

#: Relations of layouts whose operations stay within a thread.
_IN_REGISTERS = ("same", "source", "broadcast", "view")


def convert_layout(op: ir.OpView) -> None:
    """convert_layout => copy to a buffer and back; or convert_in_parts where it does not fit"""
    plan = conversion_plan(op)
    if not isinstance(plan, SharedRoundTrip):
        return
    cx, (source,), result = Exchange(op), op.operands, op.results[0]
    if plan.buffer is not None:
        found = cx.load(cx.staged(source, plan.buffer), result.type)
    else:
        part = cx.run_of(plan.bytes // plan.elem_bytes, source.type.element_type)
        found = cx.create("nv_tileas.convert_in_parts", [source, part], [result.type]).result
    result.replace_all_uses_with(found)
    op.operation.erase()


def extract_slice(op: ir.OpView) -> None:
    """extract_slice of registers that threads do not hold => extract_slice of a buffer, and so are
    those of the same tile that come soon
    """
    if not _is_of_others(op):
        return
    source = op.operands[0]
    slices = list(_soon(op))
    buffer = Exchange(op).staged(source, row_major(layout_at(op, source.type).shape))
    for one in slices:
        one.operands[0] = buffer


def _soon(op: ir.OpView) -> Iterator[ir.OpView]:
    """`op` and slices of the same tile behind it, before anything else may take shared memory,
    beside which their buffer would have to stay.
    """
    beside = op.operation.block.operations
    for other in dropwhile(lambda one: one.operation != op.operation, beside):
        if other.operation.name == op.operation.name and other.operands[0] == op.operands[0]:
            if _is_of_others(other):
                yield other
        elif kind_of(other) not in _IN_REGISTERS:
            return


def _is_of_others(op: ir.OpView) -> bool:
    """Whether a slice is of a tile of which other threads hold a part that this one is to have."""
    if not is_tile(op.operands[0]):
        return False
    source = layout_at(op, op.operands[0].type)
    result = layout_at(op, op.results[0].type)
    return subtile(source, result.shape) != result


def insert_slice(op: ir.OpView) -> None:
    """insert_slice of registers that other threads hold => insert_slice of a buffer"""
    source, whole = (layout_at(op, op.operands[at].type) for at in (0, 1))
    if subtile(whole, source.shape) != source:
        op.operands[0] = Exchange(op).staged(op.operands[0], row_major(source.shape))


def print_(op: ir.OpView) -> None:
    """print of tiles => print of buffers, which one thread reads"""
    cx = Exchange(op)
    for at, operand in enumerate(op.operands):
        layout = layout_of(operand.type)
        if layout is not None:
            op.operands[at] = cx.staged(operand, row_major(layout.shape))
