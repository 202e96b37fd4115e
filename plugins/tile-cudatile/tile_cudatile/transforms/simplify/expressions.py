"""Integer expressions as plain, interned records: what the simplifier reasons about.

An expression stands for the value of one operation of a program, or for a value that is not
looked into (a leaf). Two expressions are the same object exactly if they are built alike, so
identity is equality, and a common subexpression exists once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from tile_cudatile.ops.constraints import INTS
from tile_cudatile.tree import Value
from tile_cudatile.types import I1, Scalar, Tile, Type

#: Operations that are looked into, with the attributes that tell two of them apart.
LIFTED: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("addi", "subi", "muli", "negi", "shli", "trunci"), ("overflow",)),
    **dict.fromkeys(("maxi", "mini", "shri", "remi", "exti"), ("signedness",)),
    **dict.fromkeys(
        ("absi", "andi", "ori", "xori", "mulhii", "select", "reshape", "broadcast", "iota"), ()
    ),
    "divi": ("signedness", "rounding"),
    "cmpi": ("comparison_predicate", "signedness"),
    "permute": ("permutation",),
}
COMMUTATIVE = frozenset(("addi", "muli", "mulhii", "andi", "ori", "xori", "maxi", "mini"))
#: A comparison with its operands exchanged.
SWAPPED = {
    "equal": "equal",
    "not_equal": "not_equal",
    "less_than": "greater_than",
    "less_than_or_equal": "greater_than_or_equal",
    "greater_than": "less_than",
    "greater_than_or_equal": "less_than_or_equal",
}
#: A comparison that holds exactly where the other does not.
OPPOSITE = {
    "equal": "not_equal",
    "not_equal": "equal",
    "less_than": "greater_than_or_equal",
    "less_than_or_equal": "greater_than",
    "greater_than": "less_than_or_equal",
    "greater_than_or_equal": "less_than",
}


@dataclass(frozen=True, eq=False)
class Expr:
    """An operation by its name, its operands and `attrs`, or with `leaf` any value.

    Constants, of which only those are looked into whose elements are alike, hold the pattern of
    their elements in `bits`. `number` tells expressions apart in the order they were made.
    """

    number: int
    name: str
    type: Type
    operands: tuple[Expr, ...] = ()
    attrs: tuple[object, ...] = ()
    bits: int | None = None
    leaf: Value | None = None

    @property
    def width(self) -> int:
        """Bits of an element; of integers only."""
        assert isinstance(self.type, Tile)
        assert isinstance(self.type.element, Scalar)
        return self.type.element.width

    def named(self, *names: str) -> bool:
        """Whether it is one of these operations."""
        return self.name in names


def is_integer(type_: Type) -> bool:
    """Tiles of i1 to i64. (4-bit numbers have no constants.)"""
    return isinstance(type_, Tile) and type_.element in INTS


def element_type(type_: Type) -> Scalar:
    """The element type of a tile of numbers."""
    assert isinstance(type_, Tile)
    assert isinstance(type_.element, Scalar)
    return type_.element


def known(expr: Expr) -> int | None:
    """The pattern of an integer constant."""
    return expr.bits if is_integer(expr.type) else None


def signed(bits: int, width: int) -> int:
    """A pattern read as a signed number."""
    return bits - (1 << width) if bits >> (width - 1) else bits


def as_number(expr: Expr, signedness: object) -> int | None:
    """An integer constant, read by signedness."""
    bits = known(expr)
    return signed(bits, expr.width) if bits is not None and signedness == "signed" else bits


def limits(width: int, signedness: object) -> tuple[int, int]:
    """The smallest and the largest number."""
    if signedness == "signed":
        return -(1 << (width - 1)), (1 << (width - 1)) - 1
    return 0, (1 << width) - 1


def fits(value: int, width: int, signedness: object) -> bool:
    """Whether a number can be held."""
    low, high = limits(width, signedness)
    return low <= value <= high


_CLAIMS = {
    "none": (False, False),
    "no_signed_wrap": (True, False),
    "no_unsigned_wrap": (False, True),
    "no_wrap": (True, True),
}
_OVERFLOW = {claims: name for name, claims in _CLAIMS.items()}


def claims(expr: Expr) -> tuple[bool, bool]:
    """Whether an operation says that it wraps around neither as signed nor as unsigned."""
    return _CLAIMS[str(expr.attrs[0])]


def overflow(signed_fits: bool, unsigned_fits: bool) -> tuple[str]:
    """The inverse of `claims`, as attributes."""
    return (_OVERFLOW[signed_fits, unsigned_fits],)


#: Gives a simpler expression of the same value, or None if it does not apply. Must not depend on
#: a value where the given expression does not, nor promise more about overflow.
Rule: TypeAlias = Callable[["Space", Expr], Expr | None]

#: How deep rules may call for the simplification of what they make, before it is taken as it is.
DEEPEST = 24


class Space:
    """All expressions of a program."""

    def __init__(self, rules: Mapping[str, Sequence[Rule]]) -> None:
        self.fired: Counter[str] = Counter()
        self._rules = rules
        self._interned: dict[tuple[object, ...], Expr] = {}
        self._simplest: dict[Expr, Expr] = {}
        self._depth = 0

    def leaf(self, value: Value) -> Expr:
        """A value that is not looked into."""
        return self._intern("", value.type, (), (), None, value)

    def constant(self, type_: Type, number: int) -> Expr:
        """All elements `number`, modulo their width."""
        bits = number & ((1 << element_type(type_).width) - 1)
        return self._intern("constant", type_, (), (), bits, None)

    def make(
        self, name: str, type_: Type, operands: Sequence[Expr], attrs: Sequence[object] = ()
    ) -> Expr:
        """The simplest known expression for an operation on simplified operands."""
        built = self.build(name, type_, operands, attrs)
        found = self._simplest.get(built)
        if found is None:
            found = self._simplest[built] = self._simplified(built)
        return found

    def build(
        self, name: str, type_: Type, operands: Sequence[Expr], attrs: Sequence[object] = ()
    ) -> Expr:
        """The operation itself, its operands in a fixed order where that is free."""
        if name in COMMUTATIVE or name == "cmpi":
            first, second = operands
            if (first.bits is not None, first.number) > (second.bits is not None, second.number):
                operands = (second, first)
                if name == "cmpi":
                    attrs = (SWAPPED[str(attrs[0])], attrs[1])
            if name == "cmpi" and attrs[0] in ("equal", "not_equal"):
                attrs = (attrs[0], "signed")
        return self._intern(name, type_, tuple(operands), tuple(attrs), None, None)

    def _intern(
        self,
        name: str,
        type_: Type,
        operands: tuple[Expr, ...],
        attrs: tuple[object, ...],
        bits: int | None,
        leaf: Value | None,
    ) -> Expr:
        key = (name, type_, operands, attrs, bits, leaf)
        found = self._interned.get(key)
        if found is None:
            number = len(self._interned)
            found = Expr(number, name, type_, operands, attrs, bits, leaf)
            self._interned[key] = found
        return found

    def _simplified(self, built: Expr) -> Expr:
        if self._depth >= DEEPEST:
            return built
        self._depth += 1
        try:
            for rule in self._rules.get(built.name, ()):
                found = rule(self, built)
                if found is not None:
                    self.fired[rule.__name__] += 1
                    return found
            return built
        finally:
            self._depth -= 1

    # Shorthands of the rules.

    def like(self, expr: Expr, name: str, *operands: Expr, attrs: Sequence[object] = ()) -> Expr:
        """An operation with the type of `expr`; one that may overflow says nothing about it."""
        if not attrs and "overflow" in LIFTED[name]:
            attrs = ("none",)
        return self.make(name, expr.type, operands, attrs)

    def number(self, expr: Expr, value: int) -> Expr:
        """A constant of the type of `expr`."""
        return self.constant(expr.type, value)

    def inverted(self, expr: Expr) -> Expr:
        """All bits of `expr` turned."""
        return self.like(expr, "xori", expr, self.number(expr, -1))


def inverse_of(expr: Expr) -> Expr | None:
    """What `expr` turns all bits of (`xori x, -1`)."""
    if expr.name == "xori" and known(expr.operands[1]) == (1 << expr.width) - 1:
        return expr.operands[0]
    return None


def is_truth(type_: Type) -> bool:
    """Tiles of i1."""
    return isinstance(type_, Tile) and type_.element == I1
