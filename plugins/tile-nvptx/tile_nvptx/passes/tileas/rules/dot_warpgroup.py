"""Products of warpgroups: wgmma on buffers in shared memory, A from registers where it is there."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tile_cute.atoms.descriptors import SmemOperand, hopper_descriptor
from tile_cute.atoms.types import BITS
from tile_cute.errors import LayoutError
from tile_cute.linear.layout import log2
from tile_tileas.dot_plan import DONE, IN_FLIGHT, PENDING, PROMOTES, atom_name, warps_of
from tile_tileas.dots import product_shape
from tile_tileas.mma.operands import read_operand
from tile_tileas.mma.tier import Planned
from tile_tileas.mma.warpgroup import WARPS, WarpgroupPlan, planned_warpgroups

from tile_core.mlir import ir
from tile_core.passes import error_at
from tile_nvptx.passes.tileas.device.warpgroup_mma import (
    Accumulators,
    WarpgroupProduct,
    issue,
    multiply,
    wait,
    written,
)
from tile_nvptx.passes.tileas.rules.buffers import is_buffer, layout_in_memory
from tile_nvptx.passes.tileas.rules.dot_operands import shape_before
from tile_nvptx.passes.tileas.ruleset import rules
from tile_nvptx.passes.tileas.thread.build import Builder
from tile_nvptx.passes.tileas.thread.state import LANE_BITS, Kernel, tile_layout
from tile_nvptx.passes.tileas.thread.types import element_of

#: Descriptors count in 16 bytes.
_UNIT_BITS = 4
#: The bits of an address that they take (PTX ISA, "Matrix descriptor").
_ADDRESSES = (1 << 14) - 1
#: Element of an accumulator -> its PTX type.
_KINDS = {"f32": "f32", "f16": "f16", "i32": "s32"}


def warpgroup_product(op: ir.OpView, cx: Kernel) -> ir.Value:
    """dot {wgmma} => fence, wgmma of all atoms of a warpgroup, commit, wait"""
    return _Warpgroups.of(op, cx).run()


@rules.on("nv_tileas.dot_wait")
def dot_wait(op: ir.OpView, cx: Kernel) -> ir.Value:
    """dot_wait => wgmma.wait_group, with the accumulators passed through; `done`: those alone"""
    source, *reads = op.operands
    element = element_of(source.type)
    kind = _KINDS[str(element)]
    held = Accumulators(kind, source.type.shape[0] * element.width // 32, str(element))
    if DONE in op.attributes:
        routine = written(held, [str(value.type) for value in reads])
    else:
        pending = ir.IntegerAttr(op.attributes[PENDING]).value if PENDING in op.attributes else 0
        routine = wait(held, pending, [str(value.type) for value in reads])
    return cx.state.helpers.call(cx, *routine, [source, *reads], source.type).result


@dataclass
class _Warpgroups:
    """C + A B of one product."""

    op: ir.OpView
    cx: Kernel
    plan: WarpgroupPlan
    a: SmemOperand | None  # None: fragments
    b: SmemOperand

    @staticmethod
    def of(op: ir.OpView, cx: Kernel) -> _Warpgroups:
        layout = tile_layout(cx, op.operands[2])
        shapes = (shape_before(cx, value) for value in list(op.operands)[:2])
        shape = product_shape(*shapes)
        planned = Planned(atom_name(op), shape, layout.rank, cx.state.num_warps)
        try:
            plan = planned_warpgroups(planned, warps_of(op))
        except LayoutError as error:
            raise error_at(op, f"has no code: {error}") from error
        if plan.accumulator != layout:
            raise error_at(op, f"has an accumulator that is no tile of {plan.atom}: {layout}")
        b = _in_memory(op, cx, plan, 1)
        if b is None:
            raise error_at(op, f"has an operand B that is no buffer, which {plan.atom} reads")
        return _Warpgroups(op, cx, plan, _in_memory(op, cx, plan, 0), b)

    def run(self) -> ir.Value:
        """The new accumulator."""
        total = self.op.operands[2]
        if PROMOTES not in self.op.attributes:
            return self._multiply(total, fresh=_is_zero(total))
        return Builder(self.cx).binary("addf", total, self._multiply(total, fresh=True))

    def _multiply(self, total: ir.Value, *, fresh: bool) -> ir.Value:
        """`total` + A B, or A B alone."""
        a, b, _ = self.op.operands
        made = replace(self.product(), fresh=fresh)
        operands = [
            a if self.a is None else self._descriptor(a, self.a, 0),
            self._descriptor(b, self.b, 1),
        ]
        operands += [] if fresh else [total]
        helpers = self.cx.state.helpers
        routine = issue(made) if IN_FLIGHT in self.op.attributes else multiply(made)
        return helpers.call(self.cx, *routine, operands, total.type).result

    def product(self) -> WarpgroupProduct:
        """What one warpgroup does."""
        a, _, c = self.op.operands
        return WarpgroupProduct(
            self.plan.atom,
            self.plan.counts,
            self.plan.steps,
            self.a,
            self.b,
            str(element_of(c.type)),
            "" if self.a is not None else str(element_of(a.type)),
        )

    def _descriptor(self, base: ir.Value, operand: SmemOperand, axis: int) -> ir.Value:
        """i64: the descriptor of the first atom of the thread's warpgroup, of A (0) or B (1)."""
        b = Builder(self.cx)
        groups = self.plan.grid[0] * self.plan.grid[1]
        steps = [operand.start(self.plan.origin(1 << bit)[axis], 0) for bit in range(log2(groups))]
        place = self.cx.create("llvm.ptrtoint", [base], [b.i32]).result
        moved = self.cx.state.linear(self.cx, [0] * (LANE_BITS + log2(WARPS)) + steps)
        if moved is not None:
            place = b.binary("addi", place, moved)
        # The address of a block's shared memory has the number of the block in its cluster above.
        units = b.with_constant("shrui", place, _UNIT_BITS)
        units = b.with_constant("andi", units, _ADDRESSES)
        i64 = ir.IntegerType.get_signless(64)
        wide = self.cx.create("arith.extui", [units], [i64]).result
        fields = hopper_descriptor(0, operand)
        signed = fields - (1 << 64) if fields >> 63 else fields
        attribute = {"value": ir.IntegerAttr.get(i64, signed)}
        constant = self.cx.create("arith.constant", [], [i64], attribute).result
        return self.cx.create("arith.ori", [wide, constant], [i64]).result


def _is_zero(value: ir.Value) -> bool:
    """Whether an accumulator is a constant of zeros: products then begin without one."""
    if isinstance(value.owner, ir.Block) or value.owner.name != "arith.constant":
        return False
    held = value.owner.attributes["value"]
    if not isinstance(held, ir.DenseElementsAttr) or not held.is_splat:
        return False
    number = ir.FloatAttr if isinstance(element_of(value.type), ir.FloatType) else ir.IntegerAttr
    return number(held.get_splat_value()).value == 0


def _in_memory(op: ir.OpView, cx: Kernel, plan: WarpgroupPlan, at: int) -> SmemOperand | None:
    """How an operand is found in its buffer; None for fragments."""
    value, row = op.operands[at], plan.atom.row
    if is_buffer(cx, value):
        bits = BITS[row.a if at == 0 else row.b]
        try:
            return read_operand(layout_in_memory(cx, value), "ab"[at], bits)
        except LayoutError as error:
            raise error_at(op, f"cannot read a buffer: {error}") from error
    layout = tile_layout(cx, value)
    if at == 0 and layout != plan.a_fragment:
        raise error_at(
            op,
            f"has an operand that is neither fragments nor a buffer: {layout}; run "
            "'tileas-materialize-convert-layout' before",
        )
    return None
