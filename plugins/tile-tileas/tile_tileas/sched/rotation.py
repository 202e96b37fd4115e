"""Counters of a loop that go around a ring: which stage of a buffer an iteration works on.

In iteration n a place is `(begin + n * step + offset) mod stages`, `begin` being what the loop
started with: a number, or the loop's argument itself where that is not known.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tile_core.mlir import ir
from tile_tileas.analysis.constants import splat_integer

_REMAINDERS = ("arith.remui", "arith.remsi")
_EQ, _LESS = 0, (2, 6)  # arith.CmpIPredicate: eq; slt, ult


@dataclass(frozen=True)
class Place:
    """A stage of a ring by its iteration; `step` is 0 for one that stays."""

    begin: int | ir.Value
    offset: int = 0
    step: int = 0

    def comparable(self, other: Place) -> bool:
        """Whether both are counted from the same."""
        if self.step != other.step:
            return False
        if isinstance(self.begin, int) and isinstance(other.begin, int):
            return True
        return self.begin == other.begin

    def ahead_of(self, other: Place) -> int:
        """Stages from `other`, which is comparable, to this one, in the same iteration."""
        known = isinstance(self.begin, int) and isinstance(other.begin, int)
        return self.offset - other.offset + (self.begin - other.begin if known else 0)  # pyright: ignore[reportOperatorIssue]


class Rotation:
    """The places of values in the body of a loop (`block`), for rings of any size."""

    def __init__(self, block: ir.Block) -> None:
        loop = block.owner
        self._begins: Mapping[ir.Value, ir.Value] = {}
        self._yields: Mapping[ir.Value, ir.Value] = {}
        if isinstance(loop, ir.OpView | ir.Operation) and loop.operation.name == "scf.for":
            arguments = list(block.arguments)[1:]
            self._begins = dict(zip(arguments, list(loop.operands)[3:], strict=True))
            end = list(block.operations)[-1]
            self._yields = dict(zip(arguments, end.operands, strict=True))

    def place(self, value: ir.Value, stages: int) -> Place | None:
        """The place that a number is, modulo `stages`; None if that is not known."""
        constant = splat_integer(value)
        if constant is not None:
            return Place(constant)
        argument, offset = _counted(value, stages)
        if argument not in self._begins:
            return None
        base, step = _counted(self._yields[argument], stages)
        if base != argument:
            return None
        first = splat_integer(self._begins[argument])
        return Place(argument if first is None else first, offset, step)


def _counted(value: ir.Value, stages: int) -> tuple[ir.Value, int]:
    """A value as (another one, what is added to it), modulo `stages`.

    Beneath zero, remainders are those of the type's size: right for powers of two alone.
    """
    offset, below = 0, stages & (stages - 1) == 0
    while True:
        found = _wrapped(value, stages)
        within = found is not None
        found = found or _added(value)
        if found is None or (found[1] < 0 and not within and not below):
            return value, offset
        value, offset = found[0], offset + found[1]


def _added(value: ir.Value) -> tuple[ir.Value, int] | None:
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.name not in ("arith.addi", "arith.subi"):
        return None
    by = splat_integer(owner.operands[1])
    if by is None:
        return None
    return owner.operands[0], by if owner.name == "arith.addi" else -by


def _wrapped(value: ir.Value, stages: int) -> tuple[ir.Value, int] | None:
    """x mod stages, and by comparison (a ? b : c being a select):

    x == stages ? 0 : x; x < stages ? x : x - stages; x == 0 ? stages - 1 : x - 1.
    """
    owner = value.owner
    if isinstance(owner, ir.Block):
        return None
    if owner.name in _REMAINDERS and splat_integer(owner.operands[1]) == stages:
        return owner.operands[0], 0
    if owner.name != "arith.select":
        return None
    flag, then, other = owner.operands
    test = flag.owner
    if isinstance(test, ir.Block) or test.name != "arith.cmpi":
        return None
    predicate = ir.IntegerAttr(test.attributes["predicate"]).value
    tested, limit = test.operands[0], splat_integer(test.operands[1])
    if predicate in _LESS and limit == stages and then == tested:
        lowered = _added(other)
        return (tested, 0) if lowered == (tested, -stages) else None
    if predicate != _EQ or limit is None:
        return None
    at_limit = splat_integer(then)
    if limit == stages and at_limit == 0 and other == tested:
        return tested, 0
    if limit == 0 and at_limit is not None and _added(other) == (tested, -1):
        return (tested, -1) if at_limit == stages - 1 else None
    return None
