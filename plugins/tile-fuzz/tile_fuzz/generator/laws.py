"""Laws of composition: bodies of reductions and scans that give one result in every order.

Each is associative and has an identity. Reductions may also change the order of elements, so that
theirs have to be commutative as well.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from tile_cudatile.evaluator.formats import FLOATS
from tile_cudatile.ops.constraints import BASE_FLOATS, INTS
from tile_cudatile.tree import Value
from tile_cudatile.types import I1, I32, Scalar

from tile_fuzz.generator.maker import TRUTH, Maker, element, tile

#: Size of the numbers of a law that is `small` (the rule "small" of arrays).
LARGEST = 4
#: From accumulators and elements, in that order, to new accumulators.
Combine: TypeAlias = Callable[[Maker, Sequence[Value], Sequence[Value]], list[Value]]


@dataclass(frozen=True)
class Law:
    """A law over one operand per entry of `identities`.

    All are of one element type, but for the last where `last` is another. `small` says that
    operands have to be small whole numbers, since rounding depends on the order. Identities are
    numbers, of which integers are taken modulo the width. `adds` says that results grow with the
    number of elements.
    """

    combine: Combine
    identities: tuple[float, ...]
    commutative: bool = True
    small: bool = False
    last: Scalar | None = None
    adds: bool = False

    def kinds(self, kind: Scalar) -> list[Scalar]:
        """The element types of the operands, the first of `kind`."""
        found = [kind] * len(self.identities)
        return found if self.last is None else [*found[:-1], self.last]


def _binary(name: str, **attrs: str | bool) -> Combine:
    def combine(maker: Maker, left: Sequence[Value], right: Sequence[Value]) -> list[Value]:
        return [maker.emit(name, [left[0], right[0]], left[0].type, **attrs)]

    return combine


def _shifted(inner: Combine, name: str, amount: int) -> Combine:
    """The same law seen through a bijection that is its own inverse (x ^ c, c - x)."""

    def through(maker: Maker, value: Value) -> Value:
        constant = maker.constant(tile(value), amount)
        return maker.emit(name, [constant, value], value.type)

    def combine(maker: Maker, left: Sequence[Value], right: Sequence[Value]) -> list[Value]:
        a, b = ([through(maker, v) for v in side] for side in (left, right))
        return [through(maker, v) for v in inner(maker, a, b)]

    return combine


def _circle(maker: Maker, left: Sequence[Value], right: Sequence[Value]) -> list[Value]:
    """a + b + ab."""
    (a,), (b,) = left, right
    total = maker.emit("addi", [a, b], a.type)
    return [maker.emit("addi", [total, maker.emit("muli", [a, b], a.type)], a.type)]


def _affine(maker: Maker, left: Sequence[Value], right: Sequence[Value]) -> list[Value]:
    """x -> ax + b, then x -> cx + d."""
    (a, b), (c, d) = left, right
    moved = maker.emit("addi", [maker.emit("muli", [b, c], a.type), d], a.type)
    return [maker.emit("muli", [a, c], a.type), moved]


def _first(maker: Maker, left: Sequence[Value], right: Sequence[Value]) -> list[Value]:
    """The first element that is not zero."""
    (a,), (b,) = left, right
    zero = maker.constant(tile(a), 0)
    empty = _compare(maker, "equal", a, zero)
    return [maker.emit("select", [empty, b, a], a.type)]


def _compare(maker: Maker, predicate: str, a: Value, b: Value) -> Value:
    if element(a).is_float:
        return maker.emit(
            "cmpf", [a, b], TRUTH, comparison_predicate=predicate, comparison_ordering="ordered"
        )
    return maker.emit("cmpi", [a, b], TRUTH, comparison_predicate=predicate, signedness="signed")


def _branch_to_larger(maker: Maker, left: Sequence[Value], right: Sequence[Value]) -> list[Value]:
    """The larger number, by an `if`."""
    (a,), (b,) = left, right
    sides = tuple(maker.region([], lambda v=v: ("yield", [v])) for v in (a, b))
    return [maker.emit("if", [_compare(maker, "greater_than", a, b)], a.type, regions=sides)]


def _largest_of(maker: Maker, left: Sequence[Value], right: Sequence[Value]) -> list[Value]:
    """The largest number, and of equals the one whose second number is least."""
    (a, i), (b, j) = left, right
    larger, equal = (_compare(maker, p, a, b) for p in ("greater_than", "equal"))
    before = _compare(maker, "less_than", i, j)
    tie = maker.emit("andi", [equal, before], TRUTH)
    take = maker.emit("ori", [larger, tie], TRUTH)
    return [maker.emit("select", [take, x, y], x.type) for x, y in ((a, b), (i, j))]


def _beside(first: Law, second: Law) -> Law:
    """Two laws of one operand each, side by side."""

    def combine(maker: Maker, left: Sequence[Value], right: Sequence[Value]) -> list[Value]:
        return [
            *first.combine(maker, left[:1], right[:1]),
            *second.combine(maker, left[1:], right[1:]),
        ]

    return Law(
        combine,
        (*first.identities, *second.identities),
        first.commutative and second.commutative,
        first.small or second.small,
        adds=first.adds or second.adds,
    )


_LAST_INDEX = (1 << 31) - 1


def _integer_laws(kind: Scalar) -> list[Law]:
    high = (1 << (kind.width - 1)) - 1
    add = _binary("addi")
    return [
        Law(add, (0,)),
        Law(_binary("muli"), (1,)),
        Law(_binary("andi"), (-1,)),
        Law(_binary("ori"), (0,)),
        Law(_binary("xori"), (0,)),
        Law(_binary("maxi", signedness="signed"), (-high - 1,)),
        Law(_binary("mini", signedness="signed"), (high,)),
        Law(_binary("maxi", signedness="unsigned"), (0,)),
        Law(_binary("mini", signedness="unsigned"), (-1,)),
        Law(_circle, (0,)),
        Law(_shifted(add, "xori", 5), (5,)),
        Law(_shifted(_binary("muli"), "subi", 3), (2,)),
        Law(_first, (0,), commutative=False),
        Law(_affine, (1, 0), commutative=False),
        Law(_largest_of, (-high - 1, high)),
        Law(_largest_of, (-high - 1, _LAST_INDEX), last=I32),
        Law(_branch_to_larger, (-high - 1,)),
    ]


def _real_laws() -> list[Law]:
    infinity = float("inf")
    return [
        Law(_binary("addf", rounding_mode="nearest_even"), (0,), small=True, adds=True),
        Law(_binary("maxf", propagate_nan=True), (-infinity,)),
        Law(_binary("minf", propagate_nan=True), (infinity,)),
        Law(_binary("maxf"), (-infinity,), small=True),
        Law(_binary("minf"), (infinity,), small=True),
        Law(_largest_of, (-infinity, _LAST_INDEX), small=True, last=I32),
        Law(_branch_to_larger, (-infinity,), small=True),
    ]


_TRUTHS = [Law(_binary("andi"), (1,)), Law(_binary("ori"), (0,)), Law(_binary("xori"), (0,))]

LAWS: dict[Scalar, list[Law]] = {
    I1: _TRUTHS,
    **{kind: _integer_laws(kind) for kind in INTS if kind != I1},
    **{kind: _real_laws() for kind in BASE_FLOATS},
}


def draw(maker: Maker, kind: Scalar, commutative: bool, extent: int) -> Law:
    """A law for `extent` elements of a type, of which small ones are at most `LARGEST`."""
    known = [law for law in LAWS[kind] if law.commutative or not commutative]
    if kind.is_float and extent * LARGEST > 1 << FLOATS[kind].precision:  # sums would be rounded
        known = [law for law in known if not law.adds]
    law = maker.rng.choice(known)
    if len(law.identities) == 1 and maker.chance(0.25):
        others = [other for other in known if len(other.identities) == 1]
        return _beside(law, maker.rng.choice(others))
    return law
