"""Which operations pass data through shared memory, and how much of it they need."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from tile_cute.linear import (
    LayoutError,
    LinearLayout,
    Plan,
    SharedRoundTrip,
    plan_conversion,
    slice_dim,
    subtile,
)

from tile_core.mlir import ir
from tile_core.passes import error_at
from tile_tileas.analysis.axis import element_bytes
from tile_tileas.dialect import layout_of
from tile_tileas.scans import scan_bytes

#: Pointers are held as addresses.
POINTER_BITS = 64
#: Shared memory that one operation may use, in bytes: what every GPU gives without opting in.
OPERATION_LIMIT = 48 * 1024


@dataclass(frozen=True)
class ReductionPlan:
    """How a reduction folds: registers first, then lanes, then warps through shared memory.

    `lane_bits` and `warp_bits` are the bits of those indices that run along the axis.
    """

    source: LinearLayout
    result: LinearLayout
    lane_bits: tuple[int, ...]
    warp_bits: tuple[int, ...]

    @property
    def partials(self) -> int:
        """Warps that hold a part of each result."""
        return 1 << len(self.warp_bits)


def plan_reduction(source: LinearLayout, axis: int) -> ReductionPlan | None:
    """The plan, or None if lanes or warps run along the axis and another one at once."""
    bits: dict[str, tuple[int, ...]] = {}
    for space in ("lane", "warp"):
        bases, free = source.bases[space], source.free_mask(space)
        along = []
        for bit, basis in enumerate(bases):
            mixed = any(value for dim, value in enumerate(basis) if dim != axis)
            if basis[axis] and (mixed or free >> bit & 1):
                return None
            if basis[axis]:
                along.append(bit)
        bits[space] = tuple(along)
    if any(
        b[axis] and any(v for d, v in enumerate(b) if d != axis) for b in source.bases["register"]
    ):
        return None
    return ReductionPlan(source, slice_dim(source, axis), bits["lane"], bits["warp"])


def storage_bits(type_: ir.Type) -> int:
    """Bits that one element takes in registers and shared memory; at least a byte."""
    width = getattr(type_, "width", POINTER_BITS)
    return max(8, 1 << (width - 1).bit_length())  # tf32 counts 19 bits and takes 32


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
    src, dst = _layout(op, source), _layout(op, result)
    try:
        return plan_move(src, dst, storage_bits(source.element_type))
    except LayoutError as error:
        raise error_at(op, f"cannot be done: {error}") from error


def result_bytes(value: ir.Value) -> int:
    """Shared memory through which threads hear what one of them has found; 0 if none needs to."""
    if not any(True for _ in value.uses):
        return 0
    layout = layout_of(value.type)
    if layout is None:
        return storage_bits(value.type) // 8
    copies = layout.free_mask("lane") or layout.free_mask("warp")
    return slice_bytes(value.type) if copies else 0


def read_once_bytes(op: ir.OpView | ir.Operation) -> int:
    """Shared memory of an ordered load whose elements several threads hold.

    One of them reads each: memory may change between two ordered reads.
    """
    if ir.StringAttr(op.attributes["mem_semantic"]).value == "weak":
        return 0
    layout = layout_of(op.results[0].type)
    if layout is not None:
        return 0 if layout.is_injective else slice_bytes(op.results[0].type)
    return storage_bits(op.results[0].type) // 8


def slice_bytes(type_: ir.Type) -> int:
    """Shared memory that a tile takes when a slice is read back from there."""
    return prod(type_.shape) * storage_bits(type_.element_type) // 8


def _layout(op: ir.OpView | ir.Operation, type_: ir.Type) -> LinearLayout:
    layout = layout_of(type_)
    if layout is None:
        raise error_at(op, "works on a tile without a layout; run 'tileas-assign-layouts' before")
    return layout


def scratch_bytes(op: ir.OpView | ir.Operation) -> int:
    """Shared memory that the operation needs while it runs; 0 if it needs none.

    That of a dot follows from its staging (`tile_tileas.dot_stage`).
    """
    if op.name == "nv_tileas.convert_layout":
        plan = conversion_plan(op)
        return plan.bytes if isinstance(plan, SharedRoundTrip) else 0
    if op.name == "nv_tileaa.alloca":
        return POINTER_BITS // 8
    if op.name == "nv_tileaa.print":
        return sum(_aligned(slice_bytes(v.type)) for v in op.operands if layout_of(v.type))
    if op.name in ("nv_tileas.atomic_rmw", "nv_tileas.atomic_cas", "nv_tileas.multimem"):
        return result_bytes(op.results[0])
    if op.name in ("nv_tileas.load", "nv_tileas.tiled_load"):
        return read_once_bytes(op)
    if op.name == "nv_tileas.extract_slice":
        source, result = (layout_of(v.type) for v in (op.operands[0], op.results[0]))
        assert source is not None
        assert result is not None
        picks = subtile(source, result.shape) == result
        return 0 if picks else slice_bytes(op.operands[0].type)
    if op.name == "nv_tileas.insert_slice":
        source, whole = (layout_of(v.type) for v in (op.operands[0], op.operands[1]))
        assert source is not None
        assert whole is not None
        picks = subtile(whole, source.shape) == source
        return 0 if picks else slice_bytes(op.operands[0].type)
    if op.name in ("nv_tileas.scan", "nv_tileas.scan_mixed"):
        layout, axis = _layout(op, op.operands[0].type), ir.IntegerAttr(op.attributes["axis"]).value
        return sum(
            _aligned(scan_bytes(layout, axis, storage_bits(operand.type.element_type)))
            for operand in op.operands
        )
    if op.name in ("nv_tileas.reduce", "nv_tileas.reduce_mixed"):
        layout = _layout(op, op.operands[0].type)
        plan = plan_reduction(layout, ir.IntegerAttr(op.attributes["axis"]).value)
        assert plan is not None, "layout assignment keeps reductions plannable"
        if not plan.warp_bits:
            return 0
        return sum(
            _aligned(plan.result.size * plan.partials * element_bytes(operand.type.element_type))
            for operand in op.operands
        )
    return 0


def _aligned(size: int) -> int:
    return -(-size // 16) * 16
