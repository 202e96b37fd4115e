"""Numbers that code computes: what the algebra of layouts takes for `?`.

The rules of `tile_cute.infer` give the type of what an operation makes. With these numbers in the
place of unknown ones they give the numbers of its value, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tile_cute import int_tuple as it
from tile_cute.layout import Layout
from tile_cute.swizzle import ComposedLayout
from tile_cute.values import TUPLE_KINDS, Operand, Value, View

from tile_core.diagnostics import CompileError
from tile_core.insertion import Inserter
from tile_core.mlir import ir


@dataclass(frozen=True, eq=False)
class Number(it.Dynamic):
    """An i32 or i64; an operation of both is one of i64, which an i32 is signed for.

    Attributes:
        value: the number.
        at: where arithmetic is inserted.
    """

    value: ir.Value = None  # type: ignore[assignment]
    at: Inserter = None  # type: ignore[assignment]
    computes = True

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def __mul__(self, factor: it.Extent) -> it.Extent:  # type: ignore[override]
        if isinstance(factor, int) and factor in (0, 1):
            return self if factor else 0
        known = factor.divby if isinstance(factor, it.Dynamic) else abs(factor)
        return self._made("arith.muli", self, factor, self.divby * known)

    __rmul__ = __mul__

    def __add__(self, term: it.Extent) -> it.Dynamic:
        if isinstance(term, int) and term == 0:
            return self
        return self._made("arith.addi", self, term, super().__add__(term).divby)

    __radd__ = __add__

    def __sub__(self, term: it.Extent) -> it.Dynamic:  # type: ignore[override]
        return self._made("arith.subi", self, term, super().__add__(term).divby)

    def __rsub__(self, term: it.Extent) -> it.Dynamic:  # type: ignore[override]
        return self._made("arith.subi", term, self, super().__add__(term).divby)

    def rounded_up(self, divisor: int) -> it.Dynamic:
        if divisor == 1:
            return self
        known = super().rounded_up(divisor).divby
        raised = self if self.divby % divisor == 0 else self + (divisor - 1)
        return self._made("arith.divui", raised, divisor, known)

    def over(self, divisor: it.Extent) -> it.Dynamic:
        if divisor == 1:
            return self
        return self._made("arith.divui", self, divisor, super().over(divisor).divby)

    def under(self, dividend: int) -> it.Dynamic:
        return self._made("arith.divui", dividend, self, 1)

    def remainder(self, divisor: it.Extent) -> it.Extent:
        if isinstance(divisor, int) and self.divby % divisor == 0:
            return 0
        return self._made("arith.remui", self, divisor, 1)

    def remainder_of(self, dividend: int) -> it.Extent:
        return self._made("arith.remui", dividend, self, 1)

    def _made(self, name: str, left: it.Extent, right: it.Extent, known: int) -> Number:
        sides = [constant(self.at, n, self.value.type) if isinstance(n, int) else _value(n)
                 for n in (left, right)]  # fmt: skip
        i64 = ir.IntegerType.get_signless(64)
        if sides[0].type != sides[1].type:
            sides = [wide(self.at, side) for side in sides]
        kind = i64 if sides[0].type == i64 else sides[0].type
        return Number(known, self.at.create(name, sides, [kind]).result, self.at)


def _value(number: it.Dynamic) -> ir.Value:
    if not isinstance(number, Number):
        raise CompileError("needs a number that is not computed here")
    return number.value


def constant(at: Inserter, number: int, type_: ir.Type) -> ir.Value:
    """A constant of a type."""
    attribute = {"value": ir.IntegerAttr.get(type_, number)}
    return at.create("arith.constant", [], [type_], attribute).result


def wide(at: Inserter, value: ir.Value) -> ir.Value:
    """An integer or index as i64; integers are signed."""
    i64 = ir.IntegerType.get_signless(64)
    if value.type == i64:
        return value
    name = "arith.index_cast" if isinstance(value.type, ir.IndexType) else "arith.extsi"
    return at.create(name, [value], [i64]).result


def filled(operand: Operand, numbers: Sequence[Number]) -> Operand:
    """What a type describes, with numbers in the place of unknown ones, from left to right.

    Raises:
        CompileError: a kind of value that is only known as a whole.
    """
    if not numbers:
        return operand
    stream = iter(numbers)

    def tree(value: it.IntTuple) -> it.IntTuple:
        return it.transform(lambda leaf: _next(leaf, stream), value)

    def layout(source: Layout | ComposedLayout) -> Layout | ComposedLayout:
        if isinstance(source, ComposedLayout):
            return source.map_outer(lambda outer: Layout(tree(outer.shape), tree(outer.stride)))
        return Layout(tree(source.shape), tree(source.stride))

    if isinstance(operand, View):
        return View(operand.element, operand.space, layout(operand.layout))
    if isinstance(operand, Value) and operand.kind in TUPLE_KINDS:
        return Value(operand.kind, tree(operand.value))
    if isinstance(operand, Value) and operand.kind in ("layout", "composed_layout", "coord_tensor"):
        return Value(operand.kind, layout(operand.value))
    raise CompileError(f"cannot have numbers that are known at run time only: {operand}")


def _next(leaf: object, stream) -> object:  # type: ignore[no-untyped-def]
    if isinstance(leaf, it.Dynamic):
        found = next(stream)
        return Number(leaf.divby, found.value, found.at)
    return leaf


def unknown(operand: Operand) -> list[it.Dynamic]:
    """The unknown numbers of what a type describes, from left to right."""
    value = operand.layout if isinstance(operand, View) else getattr(operand, "value", ())
    if isinstance(value, ComposedLayout):
        value = value.outer
    if isinstance(value, Layout):
        value = (value.shape, value.stride)
    return [leaf for leaf in it.flatten(value) if isinstance(leaf, it.Dynamic)]
