"""Products of warpgroups: wgmma on buffers in shared memory, A from registers where it is there."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product

from tile_cute.atoms.descriptors import SmemOperand, hopper_descriptor
from tile_cute.atoms.types import BITS
from tile_cute.errors import LayoutError
from tile_cute.linear.layout import log2
from tile_tileas.dialect.dot import from_row_of
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
from tile_nvptx.passes.tileas.rules.dot_bytes import along_k
from tile_nvptx.passes.tileas.rules.dot_operands import shape_before
from tile_nvptx.passes.tileas.ruleset import rules
from tile_nvptx.passes.tileas.thread.build import Builder
from tile_nvptx.passes.tileas.thread.state import LANE_BITS, Kernel, tile_layout
from tile_nvptx.passes.tileas.thread.types import count_of, element_of, vector_of

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
        a, b, total = self.op.operands
        operands = [self._left(a), self._descriptor(b, self.b, 1)]
        if PROMOTES in self.op.attributes:
            return self._promoted(operands, total)
        made = self.product()
        return self._multiply(made, operands, None if _is_zero(total) else total)

    def _left(self, a: ir.Value) -> ir.Value:
        """A's descriptor, or its fragments."""
        if self.a is not None:
            return self._descriptor(a, self.a, 0)
        fragments = self.plan.a_fragment
        layout = tile_layout(self.cx, self.op.operands[0])
        return a if layout == fragments else along_k(self.cx, a, fragments)

    def _promoted(self, operands: list[ir.Value], total: ir.Value) -> ir.Value:
        """`total` + A B, added outside of the tensor cores: one atom of the tile at a time, whose
        sums alone take registers beside `total`.
        """
        build, made = Builder(self.cx), self.product()
        along_m, along_n, _ = made.counts
        part = replace(made, counts=(1, 1, made.counts[2]))
        size = count_of(total.type) // (along_m * along_n)
        sums: list[ir.Value] = []
        for m, n in product(range(along_m), range(along_n)):
            own = self._operands_of(operands, m, n)
            first = len(sums) * size
            before = build.shuffle(total, list(range(first, first + size)))
            sums.append(build.binary("addf", before, self._multiply(part, own, None)))
        return build.concat(sums)

    def _operands_of(self, operands: list[ir.Value], m: int, n: int) -> list[ir.Value]:
        """A and B of the atom that is number `m` along M, `n` along N."""
        build, (a, b), steps = Builder(self.cx), operands, self.plan.steps
        if self.a is not None:
            a = build.with_constant("addi", a, self.a.start(m * steps[0], 0) >> _UNIT_BITS)
        elif self.plan.counts[0] > 1:
            size = count_of(a.type) // self.plan.counts[0]
            a = build.shuffle(a, list(range(m * size, (m + 1) * size)))
        return [a, build.with_constant("addi", b, self.b.start(n * steps[1], 0) >> _UNIT_BITS)]

    def _multiply(
        self, made: WarpgroupProduct, operands: list[ir.Value], total: ir.Value | None
    ) -> ir.Value:
        """`total` + A B, or A B alone."""
        made = replace(made, fresh=total is None)
        operands = [*operands, *([] if total is None else [total])]
        routine = issue(made) if IN_FLIGHT in self.op.attributes else multiply(made)
        result = vector_of(made.accumulators.elements, element_of(self.op.operands[2].type))
        return self.cx.state.helpers.call(self.cx, *routine, operands, result).result

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
            from_row=from_row_of(self.op),
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
    if at == 0 and layout not in (plan.a_fragment, plan.a_read):
        raise error_at(
            op,
            f"has an operand that is neither fragments nor a buffer: {layout}; run "
            "'tileas-materialize-convert-layout' before",
        )
    return None
