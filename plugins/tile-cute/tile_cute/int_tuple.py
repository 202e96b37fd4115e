"""Hierarchical int tuples: the shapes, strides and coordinates of CuTe.

A leaf is an int, a number known at run time only (`Dynamic`) or, among strides, a `Basis` (`4@1`:
four steps along mode 1). Coordinates unpack colexicographically: the leftmost leaf is the fastest.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from math import gcd
from typing import Any, TypeGuard

from tile_cute.errors import LayoutError


@dataclass(frozen=True)
class Basis:
    """`count` steps along the mode at `path`: a stride of a layout into coordinates."""

    count: int | Fraction
    path: tuple[int, ...]

    def __mul__(self, factor: "int | Dynamic") -> "Basis":
        if isinstance(factor, Dynamic):
            raise LayoutError(f"cannot scale {self} by {factor}, which is known at run time only")
        count = self.count * factor
        return Basis(int(count) if count == int(count) else count, self.path)

    __rmul__ = __mul__

    def __str__(self) -> str:
        return "@".join(map(str, (self.count, *self.path)))


@dataclass(frozen=True)
class Dynamic:
    """A number known at run time only, a multiple of `divby`: `?`, or `?{div=8}`.

    Equal as parts of a type; that says nothing about the numbers, so the algebra never compares
    two of them.
    """

    divby: int = 1

    def __post_init__(self) -> None:
        if self.divby < 1:
            raise LayoutError(f"a number cannot be a multiple of {self.divby}")

    def __mul__(self, factor: "int | Dynamic") -> "int | Dynamic":
        if isinstance(factor, Dynamic):
            return Dynamic(self.divby * factor.divby)
        if not isinstance(factor, int):
            return NotImplemented
        return Dynamic(self.divby * abs(factor)) if factor else 0

    __rmul__ = __mul__

    def __add__(self, term: "int | Dynamic") -> "Dynamic":
        return Dynamic(gcd(self.divby, term.divby if isinstance(term, Dynamic) else term))

    __radd__ = __add__
    __sub__ = __add__
    __rsub__ = __add__

    #: Whether arithmetic gives numbers that code can use, and not just another unknown one.
    computes = False

    def rounded_up(self, divisor: int) -> "Dynamic":
        """self / divisor, rounded up."""
        return Dynamic(self.divby // divisor if self.divby % divisor == 0 else 1)

    def over(self, divisor: "int | Dynamic") -> "Dynamic":
        """self / divisor, rounded down."""
        return self.rounded_up(divisor) if isinstance(divisor, int) else Dynamic()

    def under(self, dividend: int) -> "Dynamic":
        """dividend / self, rounded down."""
        return Dynamic()

    def remainder(self, divisor: "int | Dynamic") -> "int | Dynamic":
        """self % divisor."""
        return 0 if isinstance(divisor, int) and self.divby % divisor == 0 else Dynamic()

    def remainder_of(self, dividend: int) -> "int | Dynamic":
        """dividend % self."""
        return Dynamic()

    def __str__(self) -> str:
        return "?" if self.divby == 1 else f"?{{div={self.divby}}}"


Leaf = int | Basis
Extent = int | Dynamic
IntTuple = (
    Any  # int | Dynamic | Basis | tuple[IntTuple, ...]; Python's types cannot say it usefully
)


def is_tuple(value: object) -> TypeGuard[tuple[IntTuple, ...]]:
    return isinstance(value, tuple)


def text(value: IntTuple) -> str:
    """`(4,(2,3))`; a tuple of one element keeps its parentheses."""
    if is_tuple(value):
        return "(" + ",".join(map(text, value)) + ")"
    return "_" if value is None else str(value)


def flatten(value: IntTuple) -> tuple[Leaf, ...]:
    """The leaves from left to right."""
    if is_tuple(value):
        return tuple(leaf for item in value for leaf in flatten(item))
    return (value,)


def unflatten(leaves: Sequence[Any], profile: IntTuple) -> IntTuple:
    """The leaves arranged like `profile`."""
    stream = iter(leaves)
    return transform(lambda _: next(stream), profile)


def transform(function: Callable[..., Any], *values: IntTuple) -> IntTuple:
    """Apply a function leaf by leaf; LayoutError unless the tuples are congruent."""
    if any(map(is_tuple, values)):
        if not all(map(is_tuple, values)) or len(set(map(len, values))) != 1:
            raise LayoutError(f"{' and '.join(map(text, values))} are not congruent")
        return tuple(transform(function, *items) for items in zip(*values, strict=True))
    return function(*values)


def rank(value: IntTuple) -> int:
    return len(value) if is_tuple(value) else 1


def depth(value: IntTuple) -> int:
    """Levels of nesting; 0 for a leaf."""
    return 1 + max(map(depth, value), default=0) if is_tuple(value) else 0


def modes(value: IntTuple) -> tuple[IntTuple, ...]:
    return value if is_tuple(value) else (value,)


def is_static(value: IntTuple) -> bool:
    """Whether all leaves are known now."""
    return not any(isinstance(leaf, Dynamic) for leaf in flatten(value))


def extent(value: IntTuple) -> Extent:
    """Product of all leaves, which may be known at run time only."""
    return reduce(lambda total, leaf: total * leaf, flatten(value), 1)  # type: ignore[operator]


def size(value: IntTuple) -> int:
    """Product of all leaves; LayoutError if it is known at run time only."""
    product = extent(value)
    if isinstance(product, Dynamic):
        raise LayoutError(f"the size of {text(value)} is known at run time only")
    return product


def congruent(left: IntTuple, right: IntTuple) -> bool:
    """Same tree."""
    if is_tuple(left) and is_tuple(right):
        return len(left) == len(right) and all(map(congruent, left, right))
    return not is_tuple(left) and not is_tuple(right)


def weakly_congruent(coarse: IntTuple, fine: IntTuple) -> bool:
    """Same tree where a leaf of `coarse` may stand for a subtree of `fine`."""
    if not is_tuple(coarse):
        return True
    return is_tuple(fine) and len(coarse) == len(fine) and all(map(weakly_congruent, coarse, fine))


def prefix_product(shape: IntTuple, start: int = 1) -> IntTuple:
    """Compact column-major strides: each leaf the product of the leaves left of it."""
    strides = []
    for leaf in flatten(shape):
        strides.append(start)
        start *= leaf  # type: ignore[assignment]
    return unflatten(strides, shape)


def add(left: IntTuple, right: IntTuple) -> IntTuple:
    """Sum of indices; steps along modes add up to coordinates."""
    if isinstance(left, Extent) and isinstance(right, Extent):
        return left + right
    if left == 0:
        return right
    if right == 0:
        return left
    a, b = _as_coordinate(left), _as_coordinate(right)
    if not is_tuple(a) or not is_tuple(b):
        raise LayoutError(f"cannot add {text(left)} and {text(right)}: they differ in kind")
    length = max(len(a), len(b))
    a, b = a + (0,) * (length - len(a)), b + (0,) * (length - len(b))
    return tuple(map(add, a, b))


def _as_coordinate(value: IntTuple) -> IntTuple:
    return _placed(value.count, value.path) if isinstance(value, Basis) else value


def _placed(number: IntTuple, path: tuple[int, ...]) -> IntTuple:
    """The coordinate that has a number at one place."""
    for mode in reversed(path):
        number = (0,) * mode + (number,)
    return number


def _along(number: Dynamic, step: Basis) -> IntTuple:
    """A number that is known at run time only, times a step along a mode."""
    if not isinstance(step.count, int):
        raise LayoutError(f"cannot scale {step} by {number}, which is known at run time only")
    return _placed(number * step.count, step.path)


def crd2idx(coord: IntTuple, shape: IntTuple, stride: IntTuple) -> IntTuple:
    """Index of a coordinate. An int for a subtree is unpacked, the last leaf unreduced.

    Unknown (`?`) where that would need numbers known at run time only.
    """
    if is_tuple(coord):
        if not is_tuple(shape) or len(coord) != len(shape):
            raise LayoutError(f"coordinate {text(coord)} does not fit shape {text(shape)}")
        return reduce(add, map(crd2idx, coord, shape, stride), 0)
    if not is_tuple(shape):
        if isinstance(coord, Dynamic) and isinstance(stride, Basis):
            return _along(coord, stride)
        return coord * stride
    if not _divisible(coord, shape[:-1]):
        if any(isinstance(leaf, Basis) for leaf in flatten(stride)):
            raise LayoutError(f"cannot unpack {text(coord)} over {text(shape)} at run time")
        return Dynamic()
    total: IntTuple = 0
    for place, (part, step) in enumerate(zip(shape, stride, strict=True)):
        if place == len(shape) - 1:
            return add(total, crd2idx(coord, part, step))
        coord, here = divided(coord, extent(part))
        total = add(total, crd2idx(here, part, step))
    return total


def _divisible(coord: Extent, shape: IntTuple) -> bool:
    """Whether a coordinate can be unpacked over a shape, now or by code."""
    return all(not isinstance(n, Dynamic) or n.computes for n in (coord, *flatten(shape)))


def divided(left: Extent, right: Extent) -> tuple[Extent, Extent]:
    """(quotient rounded down, remainder)."""
    if isinstance(left, Dynamic):
        return left.over(right), left.remainder(right)
    if isinstance(right, Dynamic):
        return right.under(left), right.remainder_of(left)
    return divmod(left, right)


def idx2crd(index: int, shape: IntTuple) -> IntTuple:
    """Coordinate of a colexicographic index, in the tree of `shape`."""
    leaves = []
    for leaf in flatten(shape):
        index, here = divmod(index, leaf)  # type: ignore[operator]
        leaves.append(here)
    return unflatten(leaves, shape)


def ceil_div(left: IntTuple, right: IntTuple) -> IntTuple:
    """Leaf by leaf; an int on the right consumes the leaves of a tuple from the left."""
    return _divide(left, right, "ceil")


def shape_div(left: IntTuple, right: IntTuple, mode: str = "exact") -> IntTuple:
    """`left / right` where one divides the other (then at least 1); modes exact, ceil, floor."""
    if mode not in ("exact", "ceil", "floor"):
        raise LayoutError(f"shape_div has no mode '{mode}'; use exact, ceil or floor")
    return _divide(left, right, mode)


def _divide(left: IntTuple, right: IntTuple, mode: str) -> IntTuple:
    if is_tuple(left) and is_tuple(right):
        if len(right) > len(left):
            raise LayoutError(f"cannot divide {text(left)} by {text(right)}: too many modes")
        rest = left[len(right) :]
        return tuple(_divide(a, b, mode) for a, b in zip(left, right, strict=False)) + rest
    if not is_tuple(left):
        return _divide_leaf(extent(left), extent(right), mode)
    parts = []
    for part in left:
        parts.append(_divide(part, right, mode))
        right = _divide(right, extent(part), mode)
    return tuple(parts)


def quotient(left: Extent, right: int) -> Extent:
    """left / right, rounded up."""
    if isinstance(left, int):
        return -(-left // right)
    return left.rounded_up(right)


def _divide_leaf(left: Extent, right: Extent, mode: str) -> Extent:
    if right == 0:
        raise LayoutError(f"cannot divide {left} by 0")
    if isinstance(left, Dynamic) or isinstance(right, Dynamic):
        if mode == "floor" and any(isinstance(n, Dynamic) and n.computes for n in (left, right)):
            raise LayoutError("shape_div: what is at least 1 is not computed at run time")
        return _divide_unknown(left, right, mode)
    if mode == "ceil":
        return -(-left // right)
    if mode == "floor":
        return max(1, left // right)
    if left % right == 0:
        return left // right
    if right % left == 0:
        return 1
    raise LayoutError(f"shape_div: neither of {left} and {right} divides the other")


def _divide_unknown(left: Extent, right: Extent, mode: str) -> Extent:
    if right == 1:
        return left
    exact = isinstance(left, Dynamic) and isinstance(right, int) and left.divby % right == 0
    if mode == "exact" and not exact:
        raise LayoutError(
            f"shape_div: whether one of {left} and {right} divides the other is not known"
        )
    if isinstance(right, int):
        return quotient(left, right) if mode == "ceil" else divided(left, right)[0]
    if mode == "ceil":
        return divided(left + (right - 1), right)[0]
    return divided(left, right)[0]


def _unknown_mod(left: Extent, right: Extent) -> Extent:
    return divided(left, right)[1]


def _if_known(
    known: Callable[[int, int], int], unknown: Callable[[Extent, Extent], Extent]
) -> Callable[[Extent, Extent], Extent]:
    def apply(left: Extent, right: Extent) -> Extent:
        if isinstance(left, int) and isinstance(right, int):
            return known(left, right)
        return unknown(left, right)

    return apply


_ARITHMETIC: dict[str, Callable[[Extent, Extent], Extent]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": _if_known(lambda a, b: a // b, lambda a, b: _divide_unknown(a, b, "floor")),
    "mod": _if_known(lambda a, b: a % b, _unknown_mod),
}


def arithmetic(operation: str, left: IntTuple, right: IntTuple) -> IntTuple:
    """Leaf-wise add, sub, mul, div or mod of congruent tuples, an int applying to every leaf."""
    function = _ARITHMETIC[operation]
    if operation in ("div", "mod") and 0 in flatten(right):
        raise LayoutError(f"{text(right)} has a zero divisor")
    if is_tuple(left) and not is_tuple(right):
        return transform(lambda leaf: function(leaf, right), left)
    if is_tuple(right) and not is_tuple(left):
        return transform(lambda leaf: function(size(left), leaf), right)
    return transform(function, left, right)


def select_kept(coord: IntTuple, value: IntTuple) -> tuple[IntTuple, ...]:
    """The parts of `value` at which `coord` is free (`None`): what a slice keeps."""
    if coord is None:
        return (value,)
    if not is_tuple(coord):
        return ()
    return tuple(
        kept for c, v in zip(coord, modes(value), strict=True) for kept in select_kept(c, v)
    )


def select_fixed(coord: IntTuple, value: IntTuple) -> tuple[IntTuple, ...]:
    """The parts of `value` at which `coord` is given: what a dice keeps."""
    if coord is None:
        return ()
    if not is_tuple(coord):
        return (value,)
    return tuple(
        kept for c, v in zip(coord, modes(value), strict=True) for kept in select_fixed(c, v)
    )


def zeros_for_free(coord: IntTuple) -> IntTuple:
    """The coordinate with 0 wherever it is free."""
    if coord is None:
        return 0
    return tuple(map(zeros_for_free, coord)) if is_tuple(coord) else coord
