"""Indices of layouts at run time, as i32 arithmetic: only strides and extents are known."""

from __future__ import annotations

from collections.abc import Sequence

from tile_cute.layout import Layout
from tile_cute.swizzle import Swizzle

from tile_core.insertion import Inserter
from tile_core.mlir import ir


class Offsets:
    """Makes arithmetic where an inserter stands; values are i32."""

    def __init__(self, at: Inserter) -> None:
        self._at = at
        self.i32 = ir.IntegerType.get_signless(32)

    def constant(self, value: int) -> ir.Value:
        """An i32."""
        attribute = ir.IntegerAttr.get(self.i32, value)
        return self._at.create("arith.constant", [], [self.i32], {"value": attribute}).result

    def number(self, value: ir.Value) -> ir.Value:
        """An index or integer as i32."""
        if isinstance(value.type, ir.IndexType):
            return self._at.create("arith.index_cast", [value], [self.i32]).result
        if isinstance(value.type, ir.IntegerType) and value.type.width > 32:
            return self._at.create("arith.trunci", [value], [self.i32]).result
        if isinstance(value.type, ir.IntegerType) and value.type.width < 32:
            return self._at.create("arith.extui", [value], [self.i32]).result
        return value

    def sum(self, parts: Sequence[ir.Value]) -> ir.Value:
        """All of them; 0 of none."""
        if not parts:
            return self.constant(0)
        total = parts[0]
        for part in parts[1:]:
            total = self._two("arith.addi", total, part)
        return total

    def times(self, value: ir.Value, factor: int) -> ir.Value:
        """A value times a constant."""
        return value if factor == 1 else self._with("arith.muli", value, factor)

    def digit(self, value: ir.Value, step: int, extent: int) -> ir.Value:
        """value / step % extent."""
        if step != 1:
            value = self._with("arith.divui", value, step)
        return self._with("arith.remui", value, extent)

    def index(self, layout: Layout, coordinate: ir.Value) -> ir.Value:
        """The index at a coordinate of one mode; its last extent is open, as CuTe has it."""
        leaves = layout.int_leaves()
        parts, step = [], 1
        for place, (extent, stride) in enumerate(leaves):
            last = place == len(leaves) - 1
            if last:
                digit = coordinate if step == 1 else self._with("arith.divui", coordinate, step)
            else:
                digit = self.digit(coordinate, step, extent)
            if stride:
                parts.append(self.times(digit, stride))
            step *= extent
        return self.sum(parts)

    def swizzled(self, swizzle: Swizzle, index: ir.Value) -> ir.Value:
        """The swizzle of an index: some of its bits, exclusively or-ed to others."""
        if swizzle.is_identity:
            return index
        bits = self._with("arith.andi", index, swizzle.source_mask)
        shift = swizzle.shift
        name = "arith.shrui" if shift >= 0 else "arith.shli"
        return self._two("arith.xori", index, self._with(name, bits, abs(shift)))

    def _with(self, name: str, value: ir.Value, number: int) -> ir.Value:
        return self._two(name, value, self.constant(number))

    def _two(self, name: str, left: ir.Value, right: ir.Value) -> ir.Value:
        return self._at.create(name, [left, right], [self.i32]).result
