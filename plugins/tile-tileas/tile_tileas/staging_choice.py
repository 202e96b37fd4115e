"""Which operands of a product stay in the layout they come in, to pass through shared memory."""

from __future__ import annotations

from tile_cute.linear import LayoutError, LinearLayout, SharedRoundTrip

from tile_core.mlir import ir
from tile_tileas.dialect import layout_of
from tile_tileas.dots import Fragments
from tile_tileas.moves import plan_move
from tile_tileas.storage import storage_bits


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
        if layout is None or not passes_through_memory(layout, target.whole, width):
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


def passes_through_memory(source: LinearLayout, wanted: LinearLayout, bits: int) -> bool:
    """Whether elements of `bits` bits leave their warps on the way from one layout to another."""
    if source == wanted:
        return False
    try:
        return isinstance(plan_move(source, wanted, bits), SharedRoundTrip)
    except LayoutError:
        return True
