"""Which operands of a `nv_tileas.dot` pass through shared memory, and how much of it they take."""

from __future__ import annotations

from tile_cute.linear import LayoutError, LinearLayout, SharedRoundTrip

from tile_core.mlir import ir
from tile_tileas.dialect import layout_of
from tile_tileas.dot_plan import atom_name, fma_step_of, product_of
from tile_tileas.dots import FMA, Fragments, atom_named, grid_of
from tile_tileas.fma_plan import FmaPlan
from tile_tileas.scratch import OPERATION_LIMIT, plan_move, storage_bits
from tile_tileas.stages import stages


def staged_operands(
    op: ir.OpView, wanted: tuple[Fragments, Fragments], limit: int
) -> tuple[bool, bool]:
    """Which of A and B of a product by tensor cores stay in the layout they come in.

    The others are converted before: where that moves registers or lanes alone, where both together
    do not fit into `limit` bytes, and where a loop multiplies by the same tile each time, so that
    the conversion can leave it.
    """
    layouts = [layout_of(op.operands[at].type) for at in range(2)]
    bits = [storage_bits(op.operands[at].type.element_type) for at in range(2)]
    sizes = [0, 0]
    for at, (layout, target, width) in enumerate(zip(layouts, wanted, bits, strict=True)):
        if layout is None or not _through_memory(layout, target.whole, width):
            continue
        grows = target.whole.elements_per_thread > layout.elements_per_thread
        if grows or not _stays_the_same(op, op.operands[at]):
            sizes[at] = layout.size * width // 8
    if sum(sizes) > limit:
        sizes[sizes.index(max(sizes))] = 0
    return 0 < sizes[0] <= limit, 0 < sizes[1] <= limit


def _stays_the_same(op: ir.OpView, operand: ir.Value) -> bool:
    """Whether `op` stands in a loop and `operand` is made before it."""
    loop = op.operation.parent
    while loop is not None and loop.name not in ("scf.for", "scf.while"):
        loop = None if loop.name == "func.func" else loop.parent
    owner = operand.owner
    place = owner.owner.operation if isinstance(owner, ir.Block) else owner.operation
    while loop is not None and place is not None and place != loop:
        place = None if place.name == "func.func" else place.parent
    return loop is not None and place is None


def _through_memory(source: LinearLayout, wanted: LinearLayout, bits: int) -> bool:
    if source == wanted:
        return False
    try:
        return isinstance(plan_move(source, wanted, bits), SharedRoundTrip)
    except LayoutError:
        return True


def dot_scratch_bytes(op: ir.OpView | ir.Operation) -> int:
    """Shared memory of a dot whose layouts are assigned."""
    a, b, c = (layout_of(op.operands[at].type) for at in range(3))
    assert a is not None
    assert b is not None
    assert c is not None
    bits = storage_bits(op.operands[0].type.element_type)
    if atom_name(op) == FMA:
        return FmaPlan.of((a, b, c), fma_step_of(op, OPERATION_LIMIT), bits).bytes
    atom, shape = atom_named(atom_name(op)), product_of(op)
    grid = grid_of(atom, shape, c.in_size("warp"), c)
    assert grid is not None, "layout assignment gives accumulators the atom's layout"
    wanted = tuple(Fragments.of(atom, operand, shape, c.rank, grid) for operand in "ab")
    return stages((a, b), (wanted[0], wanted[1]), bits)[1]
