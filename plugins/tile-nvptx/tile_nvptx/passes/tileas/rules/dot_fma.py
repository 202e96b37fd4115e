"""Products without tensor cores: fused multiply-adds of operands in shared memory."""

from __future__ import annotations

from tile_cute.linear import subtile_registers
from tile_tileas.dots import product_shape

from tile_core.mlir import ir
from tile_nvptx.passes.tileas.rules.dot_operands import Staged, product_of
from tile_nvptx.passes.tileas.ruleset import text
from tile_nvptx.passes.tileas.thread.build import Builder
from tile_nvptx.passes.tileas.thread.state import Kernel
from tile_nvptx.passes.tileas.thread.types import element_of, vector_of

#: Steps along K that share the computation of an address.
_STEPS_AT_ONCE = 4


class FmaProduct:
    """A product without tensor cores.

    A and B go to shared memory, a part of K at a time. Each thread then walks along K: it reads
    the rows and columns that its accumulator needs and multiplies. f16, bf16 and smaller floats
    are multiplied and accumulated in f32, and rounded once.
    """

    def __init__(self, op: ir.OpView, cx: Kernel) -> None:
        self.op, self.cx, self.b = op, cx, Builder(cx)
        product = product_of(op, cx)
        self.layouts = product.layouts
        self.shape = product_shape(self.layouts[0].shape, self.layouts[1].shape)
        plan = product.staging().fma
        assert plan is not None, "the atom of the operation is 'fma'"
        self.plan = plan
        self.result = element_of(op.operands[2].type)
        narrow = isinstance(self.result, ir.FloatType) and self.result.width < 32
        self.kind = ir.F32Type.get() if narrow else self.result

    def run(self) -> ir.Value:
        """The new accumulator."""
        total = self._cast(self.op.operands[2], self.kind)
        for part in range(self.shape[3] // self.plan.step):
            if part:
                self.b.barrier()
            operands = [self._write(at, part) for at in (0, 1)]
            self.b.barrier()
            total = self._walk(operands, total)
        return self._cast(total, self.result)

    def _write(self, at: int, part: int) -> Staged:
        """Store what threads hold of operand `at` in a part of K."""
        layout, shape = self.layouts[at], self.plan.parts[at]
        axis = layout.rank - (2 if at else 1)
        start = [part * self.plan.step if dim == axis else 0 for dim in range(layout.rank)]
        value = self.b.shuffle(self.op.operands[at], subtile_registers(layout, shape, start))
        stage, reads = self.plan.stages[at], self.plan.reads[at]
        return Staged.of(self.op, self.cx, value, stage, reads, self.plan.starts[at])

    def _walk(self, operands: list[Staged], total: ir.Value) -> ir.Value:
        """total + A B over the part of K that lies in shared memory."""
        at_once = min(_STEPS_AT_ONCE, self.plan.step)
        bounds = [self.b.constant(value) for value in (0, self.plan.step, at_once)]
        loop = self.cx.create("scf.for", [*bounds, total], [total.type], regions=1)
        body = loop.regions[0].blocks.append(self.b.i32, total.type)
        with self.cx.at(ir.InsertionPoint(body)):
            k, so_far = body.arguments
            pairs = zip(*(o.steps_from(self.cx, k, at_once) for o in operands), strict=True)
            for pair in pairs:
                left, right = (self._cast(x, self.kind, at) for at, x in enumerate(pair))
                so_far = self._multiply(left, right, so_far)
            self.cx.create("scf.yield", [so_far])
        return loop.result

    def _multiply(self, left: ir.Value, right: ir.Value, total: ir.Value) -> ir.Value:
        if isinstance(self.kind, ir.FloatType):
            operands = [left, right, total]
            return self.cx.create("llvm.intr.fma", operands, [total.type]).result
        return self.b.binary("addi", total, self.b.binary("muli", left, right))

    def _cast(self, value: ir.Value, kind: ir.Type, at: int = 2) -> ir.Value:
        """`value` with elements of `kind`; integers of operand `at` by its signedness."""
        before = element_of(value.type)
        if before == kind:
            return value
        if isinstance(kind, ir.FloatType):
            name = "arith.extf" if before.width < kind.width else "arith.truncf"
        else:
            signed = text(self.op, f"signedness_{'ab'[at]}") == "signed"
            name = "arith.extsi" if signed else "arith.extui"
        type_ = vector_of(value.type.shape[0], kind)
        return self.cx.create(name, [value], [type_]).result
