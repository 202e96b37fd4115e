"""Plans of conversions between layouts."""

from __future__ import annotations

from tile_cute.linear import LayoutError, LinearLayout, Plan, plan_conversion

from tile_core.mlir import ir
from tile_core.passes import error_at
from tile_tileas.dialect import layout_of
from tile_tileas.storage import OPERATION_LIMIT, storage_bits


def plan_move(src: LinearLayout, dst: LinearLayout, bits: int) -> Plan:
    """The plan that takes elements of `bits` bits from `src` to `dst` within OPERATION_LIMIT.

    All warps take part in every pass if that fits; else passes are given to some warps each.

    Raises:
        LayoutError: the layouts cannot be converted at all.
    """
    try:
        return plan_conversion(src, dst, bits, max_smem=OPERATION_LIMIT)
    except LayoutError:
        return plan_conversion(src, dst, bits, max_smem=OPERATION_LIMIT, guarded=True)


def conversion_plan(op: ir.OpView | ir.Operation) -> Plan:
    """The plan of a `nv_tileas.convert_layout`.

    Raises:
        CompileError: there is none.
    """
    source, result = op.operands[0].type, op.results[0].type
    src, dst = layout_at(op, source), layout_at(op, result)
    try:
        return plan_move(src, dst, storage_bits(source.element_type))
    except LayoutError as error:
        raise error_at(op, f"cannot be done: {error}") from error


def layout_at(op: ir.OpView | ir.Operation, type_: ir.Type) -> LinearLayout:
    """The layout of a tile that `op` works on; an error if it has none."""
    layout = layout_of(type_)
    if layout is None:
        raise error_at(op, "works on a tile without a layout; run 'tileas-assign-layouts' before")
    return layout
