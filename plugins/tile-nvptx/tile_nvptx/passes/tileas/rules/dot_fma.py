"""Products without tensor cores: fused multiply-adds of operands in shared memory."""

from __future__ import annotations

from tile_tileas.dots import product_shape
from tile_tileas.fma_plan import fma_reads

from tile_core.mlir import ir
from tile_core.passes import error_at
from tile_nvptx.passes.tileas.rules.buffers import is_buffer
from tile_nvptx.passes.tileas.rules.dot_operands import Staged, shape_before
from tile_nvptx.passes.tileas.ruleset import text
from tile_nvptx.passes.tileas.thread.build import Builder
from tile_nvptx.passes.tileas.thread.state import Kernel, tile_layout
from tile_nvptx.passes.tileas.thread.types import element_of, vector_of

#: Steps along K that share the computation of an address.
_STEPS_AT_ONCE = 4


class FmaProduct:
    """A product without tensor cores.

    Each thread walks along K: it reads the rows and columns that its accumulator needs from the
    buffers and multiplies. f16, bf16 and smaller floats are multiplied and accumulated in f32, and
    rounded once.
    """

    def __init__(self, op: ir.OpView, cx: Kernel) -> None:
        self.op, self.cx, self.b = op, cx, Builder(cx)
        if not all(is_buffer(cx, value) for value in list(op.operands)[:2]):
            raise error_at(
                op, "multiplies registers; run 'tileas-materialize-convert-layout' before"
            )
        shape = product_shape(*(shape_before(cx, value) for value in list(op.operands)[:2]))
        self.step = shape[3]
        self.result = element_of(op.operands[2].type)
        narrow = isinstance(self.result, ir.FloatType) and self.result.width < 32
        self.kind = ir.F32Type.get() if narrow else self.result

    def run(self) -> ir.Value:
        """The new accumulator."""
        total = self._cast(self.op.operands[2], self.kind)
        wanted = fma_reads(tile_layout(self.cx, self.op.operands[2]), self.step)
        operands = [
            Staged.of(self.op, self.cx, value, reads)
            for value, reads in zip(self.op.operands, wanted, strict=False)
        ]
        return self._cast(self._walk(operands, total), self.result)

    def _walk(self, operands: list[Staged], total: ir.Value) -> ir.Value:
        """total + A B."""
        at_once = min(_STEPS_AT_ONCE, self.step)
        bounds = [self.b.constant(value) for value in (0, self.step, at_once)]
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
