"""What a `nv_tileas.dot` needs: where its operands live, where its warps stand, parts of K."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tile_cute.linear import LinearLayout, subtile

from tile_core.mlir import ir
from tile_core.passes import error_at
from tile_tileas.analysis.axis import shape_of
from tile_tileas.dialect import layout_of
from tile_tileas.dialect.buffers import Buffer
from tile_tileas.dots import (
    FMA,
    SCALED_FAMILY,
    Fragments,
    atom_named,
    fma_step,
    fragment,
    grid_of,
    in_steps,
    preferred_grid,
    product_shape,
    scale_fragment,
)
from tile_tileas.mma.families import TENSOR, WARPGROUP
from tile_tileas.mma.tensor import TensorPlan
from tile_tileas.mma.tier import Planned, Warps
from tile_tileas.mma.tiers import planned_tensor, tier_of
from tile_tileas.mma.warpgroup import planned_warpgroups
from tile_tileas.staging_choice import passes_through_memory, staged_operands
from tile_tileas.storage import BUFFER_ALIGNMENT, OPERATION_LIMIT, storage_bits
from tile_tileas.strategies.spread import spread
from tile_tileas.tile_graph import is_free

#: How many warps stand along B, M and N, as layouts are assigned.
WARPS = "warps"
#: On a dot whose sums are kept outside of the tensor cores, which round them more than f32 does.
PROMOTES = "promotes"
#: On a dot of warpgroups that nobody waits for where it stands.
IN_FLIGHT = "in_flight"
#: Of a wait for a product: a stage that this has read is filled anew at once, and what it gives is
#: read where it is used, behind that.
FREES = "frees"
#: Of a wait for a product: the branch that alone uses what it gives, and gives that or what it
#: makes of it, writes the latter over it, so that all that follows reads it as without a branch.
IN_PLACE = "in_place"
#: Of a buffer in tensor memory: it takes the place of the sum of the product that its loop awaits
#: first, which nobody reads any more when it is filled.
OVER = "over"
#: On a `dot_wait` behind a product that has been waited for, and with it all before.
DONE = "done"
#: On a `dot_wait`: how many products that began behind its own may still be in flight (0 without).
PENDING = "pending"


@dataclass(frozen=True)
class Homes:
    """The layouts in which a product takes its operands.

    None for A or B stands for shared memory: the operand stays in the layout that it comes in, and
    is stored. `warps` is None where the accumulator's layout says all there is to say. `scales` are
    those of A and B, of instructions that take them.
    """

    a: LinearLayout | None
    b: LinearLayout | None
    c: LinearLayout
    warps: Warps | None = None
    scales: tuple[LinearLayout, ...] = ()


def operand_homes(op: ir.OpView, wanted: LinearLayout, num_warps: int, max_shared: int) -> Homes:
    """Where operands of a dot live whose result is wanted in the layout `wanted`.

    Raises:
        CompileError: not even one row of K fits into shared memory.
    """
    return _HOMES[family_of(op)](op, wanted, num_warps, max_shared)


def atom_name(op: ir.OpView | ir.Operation) -> str:
    """The atom of a dot: an instruction of one of the tiers of `mma`."""
    return ir.StringAttr(op.attributes["atom"]).value


def family_of(op: ir.OpView | ir.Operation) -> str:
    """The tier of a dot: "fma", "mma.sync", ..."""
    return tier_of(atom_name(op)).family


def warps_of(op: ir.OpView | ir.Operation) -> Warps:
    """How many warps stand along B, M and N.

    Raises:
        CompileError: nobody has said so.
    """
    if WARPS not in op.attributes:
        raise error_at(op, f"has no '{WARPS}'; run 'tileas-assign-layouts' before")
    batch, m, n = ir.DenseI32ArrayAttr(op.attributes[WARPS])
    return batch, m, n


def product_of(op: ir.OpView | ir.Operation) -> tuple[int, int, int, int]:
    """(B, M, N, K) of a dot of tiles."""
    return product_shape(shape_of(op.operands[0]), shape_of(op.operands[2]))


# -- multiply-adds ---------------------------------------------------------------------------------


def fma_step_of(op: ir.OpView | ir.Operation, limit: int) -> int:
    """How much of K of a dot by "fma" goes through `limit` bytes of shared memory at once.

    Raises:
        CompileError: not even one row of K fits.
    """
    shape, size = product_of(op), storage_bits(op.operands[0].type.element_type) // 8
    step = fma_step(shape, size, limit - BUFFER_ALIGNMENT)
    if not step:
        raise error_at(op, f"cannot pass {shape} (B, M, N, K) through {limit} bytes of memory")
    return step


def _multiply_adds(op: ir.OpView, wanted: LinearLayout, num_warps: int, max_shared: int) -> Homes:
    """The accumulator may be anything, and A and B stay as they come unless they would not fit
    into shared memory at once.
    """
    step = fma_step_of(op, OPERATION_LIMIT)
    a = _in_parts(op.operands[0], -1, step, num_warps)
    return Homes(a, _in_parts(op.operands[1], -2, step, num_warps), wanted)


def _in_parts(value: ir.Value, axis: int, step: int, num_warps: int) -> LinearLayout:
    shape = shape_of(value)
    axis += len(shape)
    layout = layout_of(value.type)
    part = tuple(step if dim == axis else extent for dim, extent in enumerate(shape))
    if layout is not None and subtile(layout, part) is not None:
        return layout
    row_major = tuple(reversed(range(len(shape))))
    return in_steps(spread(part, num_warps, row_major, 1), axis, shape[axis])


# -- warp-level MMAs -------------------------------------------------------------------------------


def _fragments(op: ir.OpView, wanted: LinearLayout, num_warps: int, max_shared: int) -> Homes:
    """The accumulator stays as wanted if that is a tile of the atom. A and B are fragments, but
    for those that go through shared memory.
    """
    atom, shape, rank = atom_named(atom_name(op)), product_of(op), len(shape_of(op.operands[0]))
    grid = grid_of(atom, shape, num_warps, wanted) or preferred_grid(atom, shape, num_warps)
    a, b = (Fragments.of(atom, operand, shape, rank, grid) for operand in "ab")
    staged = staged_operands(op, (a, b), max_shared)
    left, right = (
        None if through and not is_free(value) else held.whole
        for through, value, held in zip(staged, op.operands, (a, b), strict=False)
    )
    scaled = "ab" if atom.row.scale else ""
    scales = tuple(scale_fragment(atom, operand, shape, rank, grid) for operand in scaled)
    return Homes(left, right, fragment(atom, "c", shape, rank, grid), grid, scales)


# -- warpgroup-level MMAs --------------------------------------------------------------------------


def _warpgroups(op: ir.OpView, wanted: LinearLayout, num_warps: int, max_shared: int) -> Homes:
    """B is in shared memory; A, too, unless it comes as fragments or nearly so."""
    shape = product_of(op)
    plan = planned_warpgroups(Planned(atom_name(op), shape, 2, num_warps))
    a, layout = op.operands[0], layout_of(op.operands[0].type)
    bits = storage_bits(a.type.element_type)
    near = layout is None or not passes_through_memory(layout, plan.a_fragment, bits)
    left = plan.a_fragment if (near or is_free(a)) and not plan.along_m else None
    return Homes(left, None, plan.accumulator, plan.warps)


# -- products in tensor memory ---------------------------------------------------------------------


def tensor_plan_of(op: ir.OpView | ir.Operation, num_warps: int) -> TensorPlan:
    """The plan of a dot whose accumulator is in tensor memory while it is made."""
    a, c = (_shape(op.operands[at]) for at in (0, 2))
    return planned_tensor(Planned(atom_name(op), product_shape(a, c), 2, num_warps))


def _shape(value: ir.Value) -> tuple[int, ...]:
    buffer = Buffer.of(value.type)
    return shape_of(value) if buffer is None else tuple(buffer.shape)


def _in_tensor_memory(
    op: ir.OpView, wanted: LinearLayout, num_warps: int, max_shared: int
) -> Homes:
    """A and B are in shared memory. The result is read as wanted, if tensor memory is read so."""
    plan = tensor_plan_of(op, num_warps)
    return Homes(None, None, wanted if wanted == plan.rows else plan.fragments)


_HOMES: dict[str, Callable[[ir.OpView, LinearLayout, int, int], Homes]] = {
    FMA: _multiply_adds,
    "mma.sync": _fragments,
    SCALED_FAMILY: _fragments,
    TENSOR: _in_tensor_memory,
    WARPGROUP: _warpgroups,
}
