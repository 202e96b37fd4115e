"""Leaves out masks where a whole tile is inside of them.

    for i:  x = select(rows >= columns, y, z)
    =>
    for i:  x = the least row >= the largest column ? y : select(rows >= columns, y, z)

A program that masks in each iteration, as one of causal attention or of a triangular matrix, needs
it in the few on the edge alone, and compares each element in all. Rows and columns that are ranges
beside numbers of the block have known ends: a comparison of those, of 64 bits, decides.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tile_cudatile.attrs import Attr, element_count
from tile_cudatile.locations import Location
from tile_cudatile.transforms.loop_join import has_products
from tile_cudatile.transforms.rewrite import (
    constant_number,
    copied_op,
    drop_dead,
    make,
    needed,
    number_of,
)
from tile_cudatile.tree import Block, Module, Op, Region, Value
from tile_cudatile.types import I1, I64, Scalar, Tile

#: Elements from which on a mask costs more than the branch around it.
_LEAST_ELEMENTS = 1024
#: What masks are made of (`_comparisons`, `_range`).
_OF_MASKS = ("addi", "andi", "assume", "broadcast", "cmpi", "constant", "iota", "reshape", "subi")
#: Operations behind one another that are looked through: what is longer has no known ends.
_DEEPEST, _BYTE = 12, 8
_SCALAR, _TRUTH = Tile((), I64), Tile((), I1)
#: Predicates, and whether the larger side is the left one, and equal numbers are inside.
_ORDERS = {
    "greater_than": (True, False),
    "greater_than_or_equal": (True, True),
    "less_than": (False, False),
    "less_than_or_equal": (False, True),
}


def skip_masks(module: Module) -> list[Op]:
    """Puts masks in loops of products into branches, in place; returns the selections."""
    found: list[Op] = []
    for entry in module.entries:
        selections = [one for loop in _loops(entry.body) for one in _in_loop(loop)]
        if selections:
            drop_dead(entry.body)
            module.layout = None
        found += selections
    return found


def _loops(region: Region) -> Iterator[Op]:
    return (op for op in region.walk() if op.name == "for" and has_products(op))


def _in_loop(loop: Op) -> Iterator[Op]:
    """Selections of the loop's body that are left out where they change nothing."""
    block = loop.regions[0].block
    ops: list[Op] = []
    for op in block.ops:
        branch = _branch(op, ops) if op.name == "select" else None
        ops += branch or [op]
        if branch:
            yield op
    block.ops = ops


def _branch(op: Op, before: list[Op]) -> list[Op] | None:
    """What gives the result of a selection, with the selection in a branch; None where ends of its
    mask are not known. `before` is what comes before it in its block.
    """
    condition, then, _ = op.values()
    type_ = op.result.type
    assert isinstance(type_, Tile)
    if element_count(type_.shape) < _LEAST_ELEMENTS:
        return None
    comparisons = list(_comparisons(condition))
    if not comparisons or None in comparisons:
        return None
    scalars = _Scalars(op.loc)
    outside = [flag for one in comparisons if one for flag in scalars.outside(one)]
    if not outside:
        return None
    flag = scalars.any_of(outside)
    values: dict[Value, Value] = {}
    made = [copied_op(one, values) for one in _mask_of(condition, before)]
    masked = copied_op(op, values)
    arms = [
        Region([Block((), [*ops, make("yield", ((given,),), (), op.loc)])])
        for ops, given in (([*made, masked], masked.result), ([], then))
    ]
    branch = make("if", (flag,), [type_], op.loc, (arms[0], arms[1]))
    op.results[0].owner = branch
    branch.results = op.results
    return [*scalars.ops, branch]


def _mask_of(condition: Value, before: list[Op]) -> list[Op]:
    """Those of `before` that make tiles of the mask; numbers of the block stay what they are, which
    memory may have given.
    """
    return needed([op for op in before if op.name in _OF_MASKS], [condition])


@dataclass(frozen=True)
class _Range:
    """What elements of a tile lie between: numbers of the block, those with -1 taken off, and from
    `low` to `high` more.
    """

    terms: tuple[tuple[Value, int], ...]
    low: int
    high: int
    width: int

    def plus(self, other: _Range, sign: int) -> _Range:
        ends = sorted((sign * other.low, sign * other.high))
        terms = self.terms + tuple((value, sign * each) for value, each in other.terms)
        return _Range(terms, self.low + ends[0], self.high + ends[1], self.width)


@dataclass(frozen=True)
class _Comparison:
    """An element is inside if that of `large` is larger, or as large if `equal`."""

    large: _Range
    small: _Range
    equal: bool


def _comparisons(condition: Value, deep: int = _DEEPEST) -> Iterator[_Comparison | None]:
    """The comparisons that all must hold; None for what is none whose ends are known."""
    owner = condition.owner
    if deep == 0:
        yield None
    elif isinstance(owner, Op) and owner.name == "andi":
        for operand in owner.values():
            yield from _comparisons(operand, deep - 1)
    elif isinstance(owner, Op) and owner.name in ("broadcast", "reshape"):
        yield from _comparisons(owner.values()[0], deep - 1)
    else:
        yield _comparison(owner) if isinstance(owner, Op) and owner.name == "cmpi" else None


def _comparison(op: Op) -> _Comparison | None:
    order = _ORDERS.get(str(op.attrs["comparison_predicate"]))
    left, right = (_range(value) for value in op.values())
    if order is None or op.attrs["signedness"] != "signed" or left is None or right is None:
        return None
    if not (left.terms or right.terms):
        return None  # the same in each iteration
    is_left, equal = order
    return _Comparison(*((left, right) if is_left else (right, left)), equal)


def _range(value: Value, deep: int = _DEEPEST) -> _Range | None:
    """Between what the elements of a tile lie; None if nobody knows."""
    type_, owner = value.type, value.owner
    assert isinstance(type_, Tile)
    element = type_.element
    if (
        not isinstance(element, Scalar)
        or element.is_float
        or not _BYTE <= element.width < I64.width
    ):
        return None
    constant = number_of(value)
    if constant is not None:
        return _Range((), constant, constant, element.width)
    if not type_.shape:
        return _Range(((value, 1),), 0, 0, element.width)
    if not isinstance(owner, Op) or deep == 0:
        return None
    if owner.name == "iota":
        return _Range((), 0, type_.shape[0] - 1, element.width)
    if owner.name in ("broadcast", "reshape", "assume"):
        return _range(owner.values()[0], deep - 1)
    if owner.name not in ("addi", "subi"):
        return None
    left, right = (_range(operand, deep - 1) for operand in owner.values())
    if left is None or right is None:
        return None
    return left.plus(right, 1 if owner.name == "addi" else -1)


class _Scalars:
    """Arithmetic of 64 bits on numbers of the block."""

    def __init__(self, loc: Location) -> None:
        self.loc, self.ops = loc, []
        self._wide: dict[Value, Value] = {}
        self._sums: dict[tuple[tuple[Value, int], ...], Value] = {}

    def outside(self, one: _Comparison) -> list[Value]:
        """Flags, of which one is set if an element may be outside of the mask: the ends say so, or
        an element is beyond the numbers of its type, where it begins anew.
        """
        large, small = one.large, one.small
        least = self._sum(large.terms, large.low)
        most = self._sum(small.terms, small.high)
        order = "less_than" if one.equal else "less_than_or_equal"
        flags = [self._compared(least, order, most)]
        for side in (large, small):
            if side.low == side.high == 0 and len(side.terms) == 1 and side.terms[0][1] == 1:
                continue  # a number of its type
            half = 1 << (side.width - 1)
            if side.terms:
                ends = ((side.low, "less_than", -half), (side.high, "greater_than", half - 1))
                flags += [
                    self._compared(self._sum(side.terms, end), order, self._constant(limit))
                    for end, order, limit in ends
                ]
        return flags

    def any_of(self, flags: list[Value]) -> Value:
        """Whether one of them is set."""
        first, *others = flags
        for other in others:
            first = self._made("ori", (first, other), _TRUTH)
        return first

    def _sum(self, terms: tuple[tuple[Value, int], ...], number: int) -> Value:
        if terms not in self._sums:
            total = self._constant(0)
            for value, sign in terms:
                name = "addi" if sign == 1 else "subi"
                total = self._made(name, (total, self._widened(value)), _SCALAR)
            self._sums[terms] = total
        return self._made("addi", (self._sums[terms], self._constant(number)), _SCALAR)

    def _widened(self, value: Value) -> Value:
        if value not in self._wide:
            self._wide[value] = self._made("exti", (value,), _SCALAR, signedness="signed")
        return self._wide[value]

    def _compared(self, left: Value, predicate: str, right: Value) -> Value:
        return self._made(
            "cmpi", (left, right), _TRUTH, comparison_predicate=predicate, signedness="signed"
        )

    def _constant(self, number: int) -> Value:
        self.ops.append(constant_number(_SCALAR, number, self.loc))
        return self.ops[-1].result

    def _made(self, name: str, operands: tuple[Value, ...], type_: Tile, **attrs: Attr) -> Value:
        self.ops.append(make(name, operands, [type_], self.loc, (), **attrs))
        return self.ops[-1].result
