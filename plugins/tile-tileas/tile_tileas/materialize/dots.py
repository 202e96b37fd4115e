"""Operands of products that pass through shared memory: how they lie there is chosen here."""

from __future__ import annotations

from collections.abc import Callable

from tile_cute.linear import LinearLayout, subtile

from tile_core.mlir import ir
from tile_core.passes import error_at
from tile_core.target import Target
from tile_tileas.access import TMA, AccessPlan
from tile_tileas.analysis.orders import axis_in_memory
from tile_tileas.analysis.tile_views import erase_unused
from tile_tileas.dialect import distributed
from tile_tileas.dot_plan import atom_name, family_of, fma_step_of, warps_of
from tile_tileas.dots import FMA, SCALED_FAMILY, Fragments, atom_named, fragment, product_shape
from tile_tileas.fma_plan import FmaPlan
from tile_tileas.materialize.exchange import Exchange
from tile_tileas.materialize.shared_operands import stored_already, tensor_level, warpgroup_level
from tile_tileas.mma.families import TENSOR, WARPGROUP
from tile_tileas.moves import layout_at
from tile_tileas.stages import staging_layout, turns_bytes
from tile_tileas.storage import BUFFER_ALIGNMENT, OPERATION_LIMIT, storage_bits
from tile_tileas.tma.element_types import is_rounding

#: Operations behind which a tile is the same data.
_SAME_DATA = ("nv_tileas.view", "nv_tileaa.permute")


def dot(op: ir.OpView, target: Target) -> None:
    """dot => dot of buffers, where operands are no fragments; "fma" a part of K at a time"""
    _FORMS[family_of(op)](op, [layout_at(op, op.operands[at].type) for at in range(3)], target)


def _warp_level(op: ir.OpView, layouts: list[LinearLayout], target: Target) -> None:
    """What is no fragment goes through the buffer from which fragments are read best; where an
    earlier product has stored it so, through that one.
    """
    bits = storage_bits(op.operands[0].type.element_type)
    wanted = fragments_of(op, layouts)
    cx, turns = Exchange(op), turns_bytes(target.chip)
    for at, held in enumerate(wanted):
        if layouts[at] != held.whole:
            along = _brought_along(op.operands[at])
            buffer = staging_layout(layouts[at], held, bits, turns_bytes=turns, brought_along=along)
            tile = op.operands[at]
            stored = stored_already(tile, buffer, op, BUFFER_ALIGNMENT)
            op.operands[at] = cx.staged(tile, buffer) if stored is None else stored
            erase_unused(tile)


def _brought_along(tile: ir.Value) -> int | None:
    """The axis of an operand of the rows that a tensor map brings, which rounds them at most; None
    if none is to bring it, or some axis before the last two is that of the rows.
    """
    axis, value = axis_in_memory(tile), tile
    while not isinstance(value.owner, ir.Block):
        op = value.owner.opview if isinstance(value.owner, ir.Operation) else value.owner
        if op.operation.name not in _SAME_DATA and not is_rounding(op):
            plan = AccessPlan.of(op)
            mapped = plan is not None and plan.copy == TMA
            return axis if mapped and axis is not None and axis >= tile.type.rank - 2 else None
        value = op.operands[0]
    return None


def fragments_of(op: ir.OpView, layouts: list[LinearLayout]) -> tuple[Fragments, Fragments]:
    """The fragments of A and B that a product by tensor cores needs.

    Raises:
        CompileError: the accumulator is no tile of the atom.
    """
    a, b, c = layouts
    atom, shape = atom_named(atom_name(op)), product_shape(a.shape, b.shape)
    grid = warps_of(op)
    if fragment(atom, "c", shape, c.rank, grid) != c:
        raise error_at(op, f"has an accumulator that is no tile of {atom}: {c}")
    left, right = (Fragments.of(atom, operand, shape, c.rank, grid) for operand in "ab")
    return left, right


def _multiply_adds(op: ir.OpView, layouts: list[LinearLayout], target: Target) -> None:
    """Parts of K, one after the other through two buffers; sums in f32 if there are several."""
    bits = storage_bits(op.operands[0].type.element_type)
    step = fma_step_of(op, OPERATION_LIMIT)
    plan = FmaPlan.of(tuple(layouts), step, bits)
    cx, parts = Exchange(op), product_shape(layouts[0].shape, layouts[1].shape)[3] // step
    total, type_ = op.operands[2], op.results[0].type
    narrow = parts > 1 and isinstance(type_.element_type, ir.FloatType)
    narrow = narrow and type_.element_type.width < 32
    if narrow:
        total = _cast(cx, total, ir.F32Type.get())
    attributes = {name: op.attributes[name] for name in op.attributes}
    buffers = [cx.buffer(_part_type(op, at, plan), plan.buffers[at]) for at in (0, 1)]
    for number in range(parts):
        for at, buffer in enumerate(buffers):
            cx.store(_part(cx, op, at, plan, number, layouts[at]), buffer)
        operands = [*buffers, total]
        total = cx.create("nv_tileas.dot", operands, [total.type], attributes).result
    if narrow:
        total = _cast(cx, total, type_.element_type)
    op.results[0].replace_all_uses_with(total)
    op.operation.erase()


def _cast(cx: Exchange, value: ir.Value, element: ir.Type) -> ir.Value:
    type_ = ir.RankedTensorType.get(value.type.shape, element, value.type.encoding)
    return cx.create("nv_tileaa.fp_to_fp", [value], [type_]).result


def _part_type(op: ir.OpView, at: int, plan: FmaPlan) -> ir.RankedTensorType:
    return ir.RankedTensorType.get(plan.parts[at], op.operands[at].type.element_type)


def _part(
    cx: Exchange, op: ir.OpView, at: int, plan: FmaPlan, number: int, layout: LinearLayout
) -> ir.Value:
    """What threads hold of operand `at` in part `number` of K."""
    if plan.parts[at] == layout.shape:
        return op.operands[at]
    held = subtile(layout, plan.parts[at])
    assert held is not None, "layout assignment keeps parts of K in threads"
    axis = layout.rank - (2 if at else 1)
    indices = [cx.index(number if dim == axis else 0) for dim in range(layout.rank)]
    type_ = distributed(_part_type(op, at, plan), held)
    return cx.create("nv_tileas.extract_slice", [op.operands[at], *indices], [type_]).result


_FORMS: dict[str, Callable[[ir.OpView, list[LinearLayout], Target], None]] = {
    FMA: _multiply_adds,
    "mma.sync": _warp_level,
    SCALED_FAMILY: _warp_level,
    TENSOR: tensor_level,
    WARPGROUP: warpgroup_level,
}
