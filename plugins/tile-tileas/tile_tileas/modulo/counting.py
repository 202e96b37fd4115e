"""Iterations of an `scf.for`: how many there are, and its induction variable in each."""

from __future__ import annotations

from tile_core.insertion import Inserter
from tile_core.mlir import ir

_SLT, _ULT, _UGE = 2, 6, 9  # arith.CmpIPredicate


class Counting:
    """Values of one loop's type, made where its inserter stands.

    The last iteration is found by an unsigned division, since the distance of two signed bounds
    may be larger than any signed number of their type. What depends on it is meant for code that
    runs only if there is an iteration.
    """

    def __init__(self, inserter: Inserter, loop: ir.OpView) -> None:
        self._in = inserter
        self.lower, self.upper, self.step = list(loop.operands)[:3]
        self.type = self.lower.type
        self._unsigned = "unsignedCmp" in loop.attributes
        self._bounds = [_constant(value) for value in (self.lower, self.upper, self.step)]
        #: Iterations less one, where there is one: a number, or a value once it is needed.
        self._rest: int | ir.Value | None = None
        self.trips = self._trips()
        if self.trips is not None and self.trips > 0:
            self._rest = self.trips - 1

    def _trips(self) -> int | None:
        lower, upper, step = self._bounds
        if lower is None or upper is None or step is None or step <= 0:
            return None
        if self._unsigned and min(lower, upper) < 0:
            return None
        return max(0, -(-(upper - lower) // step))

    def at_least(self, number: int) -> ir.Value | None:
        """Whether there are `number` (1 or more) iterations, as i1; None: it is known that so."""
        if self.trips is not None and self.trips >= number:
            return None
        some = self._compare(_ULT if self._unsigned else _SLT, self.lower, self.upper)
        if number == 1:
            return some
        enough = self._compare(_UGE, self._last(), self._number(number - 1))
        return self._in.create("arith.andi", [some, enough], [some.type]).result

    def kernel_end(self, fewer: int) -> ir.Value:
        """The upper bound for `fewer` iterations less; the lower one if there are no more."""
        lower, upper, step = self._bounds
        if self.trips is not None and lower is not None and upper is not None and step is not None:
            return self._number(upper - fewer * step if self.trips > fewer else lower)
        more = self._compare(_UGE, self._last(), self._number(fewer))
        before = self._binary("subi", self.upper, self._steps(fewer))
        return self._in.create("arith.select", [more, before, self.lower], [self.type]).result

    def first(self, at: int) -> ir.Value:
        """The induction variable of iteration `at`."""
        return self.later(self.lower, at)

    def later(self, now: ir.Value, steps: int) -> ir.Value:
        """The induction variable `steps` iterations after `now`."""
        return self._binary("addi", now, self._steps(steps)) if steps else now

    def from_last(self, before: int) -> ir.Value:
        """The induction variable `before` iterations before the last one."""
        way = self._binary("muli", self._last(), self.step)
        last = self._binary("addi", self.lower, way)
        return self._binary("subi", last, self._steps(before)) if before else last

    def _last(self) -> ir.Value:
        """Iterations less one."""
        if isinstance(self._rest, int):
            return self._number(self._rest)
        if self._rest is None:
            distance = self._binary("subi", self.upper, self.lower)
            inner = self._binary("subi", distance, self._number(1))
            self._rest = self._binary("divui", inner, self.step)
        return self._rest

    def _steps(self, count: int) -> ir.Value:
        step = self._bounds[2]
        if step is not None:
            return self._number(step * count)
        return self._binary("muli", self.step, self._number(count)) if count > 1 else self.step

    def _number(self, value: int) -> ir.Value:
        """A constant; modulo the type's size, as its arithmetic is."""
        bits = 64 if isinstance(self.type, ir.IndexType) else ir.IntegerType(self.type).width
        half = 1 << (bits - 1)
        wrapped = (value + half) % (2 * half) - half
        attribute = {"value": ir.IntegerAttr.get(self.type, wrapped)}
        return self._in.create("arith.constant", [], [self.type], attribute).result

    def _binary(self, name: str, left: ir.Value, right: ir.Value) -> ir.Value:
        return self._in.create(f"arith.{name}", [left, right], [self.type]).result

    def _compare(self, predicate: int, left: ir.Value, right: ir.Value) -> ir.Value:
        number = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), predicate)
        i1 = ir.IntegerType.get_signless(1)
        return self._in.create("arith.cmpi", [left, right], [i1], {"predicate": number}).result


def _constant(value: ir.Value) -> int | None:
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.name != "arith.constant":
        return None
    attribute = owner.attributes["value"]
    return attribute.value if isinstance(attribute, ir.IntegerAttr) else None
