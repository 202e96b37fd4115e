"""What a `nv_tileas.dot` needs: layouts of its operands, and shared memory for multiply-adds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tile_cute.linear import LinearLayout

from tile_core.mlir import ir
from tile_core.passes import error_at
from tile_tileas.analysis.axis import shape_of
from tile_tileas.dots import (
    Fragments,
    atom_named,
    fits_step,
    fma_step,
    fragment,
    grid_of,
    in_steps,
    preferred_grid,
    product_shape,
)

Spread = Callable[[tuple[int, ...]], LinearLayout]

_ALIGNMENT = 16


def atom_name(op: ir.OpView | ir.Operation) -> str:
    """The atom of a dot: a registry name or "fma"."""
    return ir.StringAttr(op.attributes["atom"]).value


def product_of(op: ir.OpView | ir.Operation) -> tuple[int, int, int, int]:
    """(B, M, N, K) of a dot."""
    return product_shape(shape_of(op.operands[0]), shape_of(op.operands[1]))


@dataclass(frozen=True)
class FmaPlan:
    """How a product without tensor cores goes through shared memory, `step` of K at a time.

    Of each part A lies there as [step, B, M] and behind it B as [step, B, N].
    """

    shape: tuple[int, int, int, int]  # B, M, N, K
    step: int
    operand_bytes: int

    @property
    def b_offset(self) -> int:
        """Where B begins, in bytes."""
        batch, m, _, _ = self.shape
        return -(-batch * m * self.step * self.operand_bytes // _ALIGNMENT) * _ALIGNMENT

    @property
    def bytes(self) -> int:
        """Shared memory that both parts need."""
        batch, _, n, _ = self.shape
        return self.b_offset + batch * n * self.step * self.operand_bytes


def plan_fma(
    op: ir.OpView | ir.Operation, shape: tuple[int, int, int, int], width: int, limit: int
) -> FmaPlan:
    """The plan of a product of (B, M, N, K) of elements of `width` bits in `limit` bytes.

    Raises:
        CompileError: not even one row of K fits.
    """
    size = max(1, (1 << (width - 1).bit_length()) // 8)  # tf32 counts 19 bits, and takes 32
    step = fma_step(shape, size, limit - _ALIGNMENT)
    if not step:
        raise error_at(op, f"cannot pass {shape} (B, M, N, K) through {limit} bytes of memory")
    return FmaPlan(shape, step, size)


def fma_plan(op: ir.OpView | ir.Operation, limit: int) -> FmaPlan:
    """The plan of a dot by "fma" that uses at most `limit` bytes of shared memory."""
    return plan_fma(op, product_of(op), op.operands[0].type.element_type.width, limit)


def fma_layouts(
    op: ir.OpView, wanted: LinearLayout, limit: int, spread: Spread
) -> tuple[LinearLayout, LinearLayout, LinearLayout]:
    """Layouts of A, B and C (and the result) of a dot by "fma" whose result is wanted in `wanted`.

    The accumulator may be anything, and A and B stay as they come unless they would not fit into
    shared memory at once.
    """
    step = fma_plan(op, limit).step
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
    if layout is not None and fits_step(layout, axis, step):
        return layout
    part = tuple(step if dim == axis else extent for dim, extent in enumerate(shape))
    return in_steps(spread(part), axis, shape[axis])
