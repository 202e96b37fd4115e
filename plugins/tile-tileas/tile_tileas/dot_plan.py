"""What a `nv_tileas.dot` needs: layouts of its operands, and parts of K for multiply-adds."""

from __future__ import annotations

from collections.abc import Callable

from tile_cute.linear import LinearLayout, subtile

from tile_core.mlir import ir
from tile_core.passes import error_at
from tile_tileas.analysis.axis import shape_of
from tile_tileas.dots import (
    Fragments,
    atom_named,
    fma_step,
    fragment,
    grid_of,
    in_steps,
    preferred_grid,
    product_shape,
)
from tile_tileas.storage import BUFFER_ALIGNMENT, storage_bits

Spread = Callable[[tuple[int, ...]], LinearLayout]


def atom_name(op: ir.OpView | ir.Operation) -> str:
    """The atom of a dot: a registry name or "fma"."""
    return ir.StringAttr(op.attributes["atom"]).value


def product_of(op: ir.OpView | ir.Operation) -> tuple[int, int, int, int]:
    """(B, M, N, K) of a dot."""
    return product_shape(shape_of(op.operands[0]), shape_of(op.operands[1]))


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


def fma_layouts(
    op: ir.OpView, wanted: LinearLayout, limit: int, spread: Spread
) -> tuple[LinearLayout, LinearLayout, LinearLayout]:
    """Layouts of A, B and C (and the result) of a dot by "fma" whose result is wanted in `wanted`.

    The accumulator may be anything, and A and B stay as they come unless they would not fit into
    shared memory at once.
    """
    step = fma_step_of(op, limit)
    return _in_parts(op.a, -1, step, spread), _in_parts(op.b, -2, step, spread), wanted


def dot_fragments(
    op: ir.OpView, wanted: LinearLayout, num_warps: int
) -> tuple[Fragments, Fragments, LinearLayout]:
    """Fragments of A and B and the layout of C (and the result) of a dot by an MMA.

    The accumulator stays as wanted if that is a tile of the atom.
    """
    atom, shape, rank = atom_named(atom_name(op)), product_of(op), len(shape_of(op.a))
    grid = grid_of(atom, shape, num_warps, wanted) or preferred_grid(atom, shape, num_warps)
    a, b = (Fragments.of(atom, operand, shape, rank, grid) for operand in "ab")
    return a, b, fragment(atom, "c", shape, rank, grid)


def _in_parts(value: ir.Value, axis: int, step: int, spread: Spread) -> LinearLayout:
    from tile_tileas.dialect import layout_of

    shape = shape_of(value)
    axis += len(shape)
    layout = layout_of(value.type)
    part = tuple(step if dim == axis else extent for dim, extent in enumerate(shape))
    if layout is not None and subtile(layout, part) is not None:
        return layout
    return in_steps(spread(part), axis, shape[axis])
