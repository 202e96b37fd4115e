"""Operands of tensor cores that pass through shared memory inside a `nv_tileas.dot`.

Both operands are stored, then there is one barrier, and fragments are read as the product goes
along K: only those of one step need registers. Operands that come as fragments stay there.
"""

from __future__ import annotations

from functools import lru_cache

from tile_cute.linear import LayoutError, LinearLayout, SharedRoundTrip

from tile_core.mlir import ir
from tile_tileas.dialect import layout_of
from tile_tileas.dot_plan import FMA, atom_name, fma_plan, product_of
from tile_tileas.dots import atom_named, fragment, grid_of
from tile_tileas.scratch import OPERATION_LIMIT, plan_move, storage_bits

_ALIGNMENT = 16

Stage = tuple[SharedRoundTrip, int]  # the plan of an operand, and where its scratch begins


@lru_cache(maxsize=256)
def stage_plan(source: LinearLayout, wanted: LinearLayout, bits: int) -> SharedRoundTrip | None:
    """One pass through shared memory that all warps take part in; None if that is not the way."""
    try:
        plan = plan_move(source, wanted, bits)
    except LayoutError:
        return None
    if not isinstance(plan, SharedRoundTrip) or plan.passes > 1:
        return None
    return None if plan.store.is_guarded or plan.load.is_guarded else plan


def stages(
    sources: tuple[LinearLayout, LinearLayout],
    wanted: tuple[LinearLayout, LinearLayout],
    bits: int,
) -> tuple[tuple[Stage | None, Stage | None], int] | None:
    """What A and B do inside the product (None: they come as wanted), and the bytes it takes.

    None if some operand has to be converted before.
    """
    found: list[Stage | None] = []
    top = 0
    for source, target in zip(sources, wanted, strict=True):
        if source == target:
            found.append(None)
            continue
        plan = stage_plan(source, target, bits)
        if plan is None:
            return None
        found.append((plan, top))
        top += -(-plan.bytes // _ALIGNMENT) * _ALIGNMENT
    return (found[0], found[1]), top


def is_staged(op: ir.OpView, at: int, wanted: LinearLayout) -> bool:
    """Whether A or B (0, 1) of a product by tensor cores may stay in the layout it comes in."""
    layout = layout_of(op.operands[at].type)
    if atom_name(op) == FMA or layout is None:
        return False
    plan = stage_plan(layout, wanted, storage_bits(op.operands[at].type.element_type))
    return plan is not None and 2 * plan.bytes <= OPERATION_LIMIT


def dot_scratch_bytes(op: ir.OpView | ir.Operation) -> int:
    """Shared memory of a dot whose layouts are assigned."""
    if atom_name(op) == FMA:
        return fma_plan(op, OPERATION_LIMIT).bytes
    a, b, c = (layout_of(op.operands[at].type) for at in range(3))
    assert a is not None
    assert b is not None
    assert c is not None
    atom, shape = atom_named(atom_name(op)), product_of(op)
    warps = c.in_size("warp")
    grid = grid_of(atom, shape, warps, c)
    assert grid is not None, "layout assignment gives accumulators the atom's layout"
    wanted = tuple(fragment(atom, operand, shape, c.rank, grid) for operand in "ab")
    found = stages((a, b), (wanted[0], wanted[1]), storage_bits(op.operands[0].type.element_type))
    assert found is not None, "layout assignment converts what cannot be staged"
    return found[1]
