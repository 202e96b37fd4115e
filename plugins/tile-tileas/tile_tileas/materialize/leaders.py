"""What one thread finds out for all that hold an element: results of ordered loads and atomics.

The operation gets the attribute `leader`: the leader of an element alone has its result. What it
has goes through a buffer to the others.
"""

from __future__ import annotations

from tile_cute.linear import LinearLayout

from tile_core.mlir import ir
from tile_tileas.analysis.tokens import is_weak
from tile_tileas.dialect import distributed, layout_of
from tile_tileas.kernel_spec import num_warps
from tile_tileas.materialize.exchange import Exchange
from tile_tileas.storage import row_major

LEADER = "leader"
_LANE_BITS = 5


def ordered_load(op: ir.OpView) -> None:
    """A load whose elements several threads hold: memory may change between two ordered reads"""
    layout = layout_of(op.results[0].type)
    if not is_weak(op) and (layout is None or not layout.is_injective):
        _broadcast(op, op.results[0])


def atomic(op: ir.OpView) -> None:
    """An atomic operation, whose result only the acting thread gets"""
    result = op.results[0]
    layout = layout_of(result.type)
    copies = layout is None or layout.free_mask("lane") or layout.free_mask("warp")
    if copies and any(True for _ in result.uses):
        _broadcast(op, result)


def alloca(op: ir.OpView) -> None:
    """One thread allocates; both pointers go to all"""
    for result in op.results:
        if any(True for _ in result.uses):
            _broadcast(op, result)


def _broadcast(op: ir.OpView, result: ir.Value) -> None:
    """Let all threads have what leaders found."""
    op.attributes[LEADER] = ir.UnitAttr.get()
    cx = Exchange(op, behind=True)
    layout, type_ = layout_of(result.type), result.type
    if layout is not None:
        buffer = cx.buffer(type_, row_major(layout.shape))
        first = cx.store(result, buffer)
        result.replace_all_uses_except(cx.load(buffer, type_), first)
        return
    tile = _one_element(op, type_)
    first = cx.create("nv_tileaa.splat", [result], [tile])
    found = cx.load(cx.staged(first.result, row_major([1])), tile)
    scalar = cx.create("nv_tileaa.extract", [found], [type_]).result
    result.replace_all_uses_except(scalar, first)


def _one_element(op: ir.OpView, element: ir.Type) -> ir.Type:
    """A tile of one element, of which every thread holds a copy."""
    func = op.operation
    while func.name != "func.func":
        assert func.parent is not None
        func = func.parent.operation
    warp_bits = num_warps(func).bit_length() - 1
    layout = LinearLayout({"lane": [(0,)] * _LANE_BITS, "warp": [(0,)] * warp_bits}, (1,))
    return distributed(ir.RankedTensorType.get([1], element), layout)
