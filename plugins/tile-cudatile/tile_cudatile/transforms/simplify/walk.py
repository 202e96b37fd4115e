"""Operations to expressions and back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from tile_cudatile.attrs import Attr, Dense, storage_bytes
from tile_cudatile.locations import Location
from tile_cudatile.transforms.rewrite import drop_dead, make, replaced
from tile_cudatile.transforms.simplify.expressions import (
    LIFTED,
    Expr,
    Space,
    element_type,
)
from tile_cudatile.transforms.simplify.registry import RULES
from tile_cudatile.tree import Block, Module, Op, Region, Value
from tile_cudatile.types import I1, I4, Tile

#: Regions that see nothing of what is computed around them, except constants.
_CLOSED = ("reduce", "scan")


@dataclass
class Simplified:
    """What was done: operations replaced, and how often each rule applied."""

    replaced: int = 0
    fired: Counter[str] = field(default_factory=Counter)


def simplify(module: Module) -> int:
    """Simplifies `module` in place; returns how many operations were replaced."""
    return simplify_counted(module).replaced


def simplify_counted(module: Module) -> Simplified:
    """As `simplify`, and tells which rules applied."""
    found = Simplified()
    for entry in module.entries:
        walk = _Walk()
        walk.region(entry.body)
        found.replaced += walk.replaced
        found.fired += walk.space.fired
        if walk.replaced:
            module.layout = None
            drop_dead(entry.body)
    return found


class _Walk:
    """One kernel, in program order: operands are simplified before what uses them."""

    def __init__(self) -> None:
        self.space = Space(RULES)
        self.replaced = 0
        self._meaning: dict[Value, Expr] = {}
        self._values: dict[Value, Value] = {}
        self._homes: list[dict[Expr, Value]] = []  # of the blocks around, innermost last

    def region(self, region: Region) -> None:
        """All blocks of a region."""
        for block in region.blocks:
            self._homes.append({})
            self._block(block)
            self._homes.pop()

    def _block(self, block: Block) -> None:
        ops, block.ops = block.ops, []
        for op in ops:
            op.operands = replaced(op.operands, self._values)
            if self._is_lifted(op):
                self._lifted(op, block)
                continue
            block.ops.append(op)
            if op.name in _CLOSED:
                self._closed(op.regions)
            else:
                for region in op.regions:
                    self.region(region)

    def _closed(self, regions: Iterable[Region]) -> None:
        homes, self._homes = self._homes, []
        meaning = self._meaning
        self._meaning = {v: e for v, e in meaning.items() if e.bits is not None}
        for region in regions:
            self.region(region)
        self._homes, self._meaning = homes, meaning

    @staticmethod
    def _is_lifted(op: Op) -> bool:
        if op.name == "constant":
            return _pattern(op) is not None
        return op.name in LIFTED and isinstance(op.result.type, Tile)

    def _expression(self, value: Value) -> Expr:
        found = self._meaning.get(value)
        if found is None:
            found = self._meaning[value] = self.space.leaf(value)
        return found

    def _lifted(self, op: Op, block: Block) -> None:
        found, original = self._meanings(op)
        self._meaning[op.result] = found
        home = self._home(found)
        if home is None and found is original:
            self._homes[-1][found] = op.result
            block.ops.append(op)
            return
        if home is None:
            home = self._written(found, op.loc, block)
        self._values[op.result] = home
        self.replaced += 1

    def _meanings(self, op: Op) -> tuple[Expr, Expr]:
        """The simplest expression for an operation, and the operation as an expression."""
        space, type_ = self.space, op.result.type
        if op.name == "constant":
            bits = _pattern(op)
            assert bits is not None
            found = space.constant(type_, bits)
            return found, found
        operands = [self._expression(value) for value in op.values()]
        attrs = [op.attrs[name] for name in LIFTED[op.name]]
        found = space.make(op.name, type_, operands, attrs)
        return found, space.build(op.name, type_, operands, attrs)

    def _home(self, expr: Expr) -> Value | None:
        """A value that is computed already, can be used here, and is what `expr` is."""
        if expr.leaf is not None:
            return expr.leaf
        forms = [expr]
        if expr.attrs and "overflow" in LIFTED[expr.name] and expr.attrs != ("none",):
            # The same without promises is as good; not the other way round.
            forms.append(self.space.build(expr.name, expr.type, expr.operands, ("none",)))
        return next((h[e] for e in forms for h in reversed(self._homes) if e in h), None)

    def _written(self, expr: Expr, loc: Location, block: Block) -> Value:
        """Operations that compute `expr`, at the end of `block`; those that are missing."""
        home = self._home(expr)
        if home is not None:
            return home
        if expr.bits is not None:
            op = make("constant", (), [expr.type], loc, value=_constant(expr.type, expr.bits))
        else:
            operands = [self._written(operand, loc, block) for operand in expr.operands]
            attrs: dict[str, Any] = dict(zip(LIFTED[expr.name], expr.attrs, strict=True))
            op = make(expr.name, operands, [expr.type], loc, **attrs)
        block.ops.append(op)
        self._homes[-1][expr] = op.result
        self._meaning[op.result] = expr
        return op.result


def _pattern(op: Op) -> int | None:
    """The pattern that all elements of a constant have; None if they differ."""
    data = op.attrs["value"]
    assert isinstance(data, Dense)
    element = element_type(data.type)
    if element == I1:
        return _truth_pattern(data)
    if element == I4:
        return None
    size = storage_bytes(element)
    first = data.data[:size]
    if not data.is_splat and data.data != first * (len(data.data) // size):
        return None
    return int.from_bytes(first, "little")


def _truth_pattern(data: Dense) -> int | None:
    if data.is_splat:
        return data.data[0] & 1
    count = 1
    for extent in data.type.shape:
        count *= extent
    bits = int.from_bytes(data.data, "little") & ((1 << count) - 1)
    return 0 if bits == 0 else 1 if bits == (1 << count) - 1 else None


def _constant(type_: object, bits: int) -> Attr:
    assert isinstance(type_, Tile)
    element = element_type(type_)
    if element == I1:
        return Dense(type_, b"\xff" if bits else b"\x00")
    return Dense(type_, bits.to_bytes(storage_bytes(element), "little"))


__all__ = ["Simplified", "simplify", "simplify_counted"]
