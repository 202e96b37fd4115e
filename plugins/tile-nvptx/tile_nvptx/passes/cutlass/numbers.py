"""`Numbers` of generated code: what `tile_cute.cutlass` computes, as operations of arith."""

from __future__ import annotations

from tile_core.insertion import Inserter
from tile_core.mlir import ir
from tile_nvptx.passes.tileas.thread.build import Builder

_EQ, _ULT = 0, 6  # arith.CmpIPredicate


class Emitted:
    """Unsigned arithmetic of `bits` bits where `cx` inserts; conditions are i1."""

    def __init__(self, cx: Inserter, bits: int = 32) -> None:
        self.cx = cx
        self.b = Builder(cx)
        self.type = ir.IntegerType.get_signless(bits)

    def constant(self, value: int) -> ir.Value:
        return self.b.constant(value, self.type)

    def number(self, value: ir.Value) -> ir.Value:
        """A value, or a condition, in as many bits."""
        width = ir.IntegerType(value.type).width
        if width == self.type.width:
            return value
        name = "arith.extui" if width < self.type.width else "arith.trunci"
        return self.cx.create(name, [value], [self.type]).result

    def _two(self, name: str, left: ir.Value, right: ir.Value) -> ir.Value:
        return self.b.binary(name, self.number(left), self.number(right))

    def add(self, left: ir.Value, right: ir.Value) -> ir.Value:
        return self._two("addi", left, right)

    def sub(self, left: ir.Value, right: ir.Value) -> ir.Value:
        return self._two("subi", left, right)

    def mul(self, left: ir.Value, right: ir.Value) -> ir.Value:
        return self._two("muli", left, right)

    def div(self, left: ir.Value, right: ir.Value) -> ir.Value:
        return self._two("divui", left, right)

    def rem(self, left: ir.Value, right: ir.Value) -> ir.Value:
        return self._two("remui", left, right)

    def xor(self, left: ir.Value, right: ir.Value) -> ir.Value:
        return self._two("xori", left, right)

    def least(self, left: ir.Value, right: ir.Value) -> ir.Value:
        return self._two("minui", left, right)

    def most(self, left: ir.Value, right: ir.Value) -> ir.Value:
        return self._two("maxui", left, right)

    def less(self, left: ir.Value, right: ir.Value) -> ir.Value:
        return self.b.compare(_ULT, self.number(left), self.number(right))

    def equal(self, left: ir.Value, right: ir.Value) -> ir.Value:
        return self.b.compare(_EQ, self.number(left), self.number(right))

    def select(self, condition: ir.Value, then: ir.Value, otherwise: ir.Value) -> ir.Value:
        flag = condition
        if ir.IntegerType(flag.type).width > 1:
            flag = self.b.compare(1, flag, self.b.constant(0, flag.type))
        operands = [flag, self.number(then), self.number(otherwise)]
        return self.cx.create("arith.select", operands, [self.type]).result
