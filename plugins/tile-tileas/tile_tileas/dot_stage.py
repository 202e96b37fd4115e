"""Which operands of a `nv_tileas.dot` pass through shared memory, and how they lie there.

The layouts in shared memory are chosen once, by `tileas-allocate-shared`, and written into the
operation: `choose_staging` chooses, `Product.staging` reads.
"""

from __future__ import annotations

from dataclasses import dataclass

from tile_cute.linear import LayoutError, LinearLayout, SharedRoundTrip

from tile_core.mlir import ir
from tile_core.passes import error_at
from tile_tileas.dialect import layout_attr, layout_in, layout_of
from tile_tileas.dot_plan import atom_name, fma_step_of
from tile_tileas.dots import FMA, Fragments, atom_named, grid_of, product_shape
from tile_tileas.fma_plan import FmaPlan
from tile_tileas.scratch import OPERATION_LIMIT, plan_move, storage_bits
from tile_tileas.stages import STAGE_ALIGNMENT, Stage, stage_in, stage_of, turns_bytes


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


@dataclass(frozen=True)
class Staging:
    """How A and B of a dot lie in shared memory; the operation's attribute `staging` says it.

    `plans` are stage and start in bytes of each operand, None for one that comes as fragments.
    `fma` is the plan of a product without tensor cores, whose stages hold a part of K each.
    """

    plans: tuple[tuple[Stage, int] | None, ...]
    fragments: tuple[Fragments, Fragments]
    fma: FmaPlan | None = None

    @property
    def bytes(self) -> int:
        """Shared memory of both operands."""
        ends = [start + stage.bytes for stage, start in filter(None, self.plans)]
        return max(ends, default=0)

    def attribute(self) -> ir.Attribute:
        """`[#nv_tileas.layout<...>, unit]`: the buffer of each operand, unit for none."""
        parts = [layout_attr(p[0].buffer) if p else ir.UnitAttr.get() for p in self.plans]
        return ir.ArrayAttr.get(parts)


def choose_staging(op: ir.OpView | ir.Operation, chip: str) -> Staging:
    """The cheapest staging on `chip` ("sm_90a") of a dot whose layouts are assigned."""
    bits = storage_bits(op.operands[0].type.element_type)
    product = Product(op, _layouts(op), bits, chip)
    if atom_name(op) == FMA:
        step = fma_step_of(op, OPERATION_LIMIT)
        return _of_fma(FmaPlan.of(product.layouts, step, bits))
    wanted, turns = product.fragments(), turns_bytes(chip)
    a, b = (
        None if source == target.whole else stage_of(source, target, bits, turns_bytes=turns).buffer
        for source, target in zip(product.layouts, wanted, strict=False)
    )
    return product.staged_in((a, b))


@dataclass(frozen=True)
class Product:
    """A dot, the layouts of A, B and C, bits of an element in memory, and the chip ("sm_90a")."""

    op: ir.OpView | ir.Operation
    layouts: tuple[LinearLayout, LinearLayout, LinearLayout]
    bits: int
    chip: str

    def staging(self) -> Staging:
        """The staging that the operation's attribute `staging` tells.

        Raises:
            CompileError: there is none, or it does not fit the operands.
        """
        op = self.op
        if "staging" not in op.attributes:
            raise error_at(op, "has no staging layouts; run 'tileas-allocate-shared' before")
        parts = list(ir.ArrayAttr(op.attributes["staging"]))
        a, b = (None if isinstance(part, ir.UnitAttr) else layout_in(part) for part in parts)
        try:
            return self.staged_in((a, b))
        except LayoutError as error:
            raise error_at(op, f"cannot be staged as 'staging' says: {error}") from error

    def staged_in(self, buffers: tuple[LinearLayout | None, LinearLayout | None]) -> Staging:
        """The staging with A and B in `buffers`, None for fragments in registers.

        Raises:
            LayoutError: a buffer does not fit its operand.
        """
        if atom_name(self.op) == FMA:
            a, b = buffers
            if a is None or b is None:
                raise LayoutError("both operands of multiply-adds pass through shared memory")
            return _of_fma(FmaPlan.in_buffers(self.layouts, (a, b), self.bits))
        wanted, turns = self.fragments(), turns_bytes(self.chip)
        plans: list[tuple[Stage, int] | None] = []
        top = 0
        for source, buffer, target in zip(self.layouts, buffers, wanted, strict=False):
            if buffer is None:
                if source != target.whole:
                    raise LayoutError(f"{source} are no fragments, and have no buffer")
                plans.append(None)
                continue
            stage = stage_in(buffer, source, target, self.bits, turns_bytes=turns)
            plans.append((stage, top))
            top += -(-stage.bytes // STAGE_ALIGNMENT) * STAGE_ALIGNMENT
        return Staging(tuple(plans), wanted)

    def fragments(self) -> tuple[Fragments, Fragments]:
        """The fragments of A and B that a product by tensor cores needs.

        Raises:
            CompileError: the accumulator is no tile of the atom.
        """
        a, b, c = self.layouts
        atom, shape = atom_named(atom_name(self.op)), product_shape(a.shape, b.shape)
        grid = grid_of(atom, shape, c.in_size("warp"), c)
        if grid is None:
            raise error_at(self.op, f"has an accumulator that is no tile of {atom}: {c}")
        left, right = (Fragments.of(atom, operand, shape, c.rank, grid) for operand in "ab")
        return left, right


def _of_fma(plan: FmaPlan) -> Staging:
    return Staging(tuple(zip(plan.stages, plan.starts, strict=True)), plan.reads, plan)


def _layouts(op: ir.OpView | ir.Operation) -> tuple[LinearLayout, LinearLayout, LinearLayout]:
    a, b, c = (layout_of(op.operands[at].type) for at in range(3))
    if a is None or b is None or c is None:
        raise error_at(op, "works on a tile without a layout; run 'tileas-assign-layouts' before")
    return a, b, c
