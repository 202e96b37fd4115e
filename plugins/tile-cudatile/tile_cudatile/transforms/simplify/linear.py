"""Sums, differences, products and negations. All of it holds modulo any power of two."""

from __future__ import annotations

from dataclasses import dataclass

from tile_cudatile.transforms.simplify.expressions import (
    Expr,
    Space,
    claims,
    fits,
    inverse_of,
    known,
    overflow,
    signed,
)
from tile_cudatile.transforms.simplify.registry import simplifies


def _is(expr: Expr, number: int) -> bool:
    bits = known(expr)
    return bits is not None and bits == number & ((1 << expr.width) - 1)


@dataclass(frozen=True)
class _Offset:
    """`base + number`; the promises that the sum made, for the signed and unsigned number."""

    base: Expr
    bits: int
    signed_number: int
    unsigned_number: int
    signed_fits: bool
    unsigned_fits: bool


def _offset(expr: Expr) -> _Offset:
    """`expr` as a constant distance from something else; from itself at worst."""
    if expr.named("addi", "subi"):
        bits = known(expr.operands[1])
        if bits is not None:
            signed_fits, unsigned_fits = claims(expr)
            sign = 1 if expr.name == "addi" else -1
            number = sign * signed(bits, expr.width)
            # The distance of a difference is negative, which no unsigned number is.
            unsigned_fits = unsigned_fits and sign > 0
            return _Offset(expr.operands[0], sign * bits, number, bits, signed_fits, unsigned_fits)
    return _Offset(expr, 0, 0, 0, True, True)


@simplifies("addi", "subi")
def no_offset(space: Space, expr: Expr) -> Expr | None:
    """x + 0, x - 0 => x"""
    return expr.operands[0] if _is(expr.operands[1], 0) else None


@simplifies("addi", "subi")
def merged_offsets(space: Space, expr: Expr) -> Expr | None:
    """(x + c1) + c2 => x + (c1 + c2), and with minus

    The result does not overflow if neither sum did: it is the second one.
    """
    inner = _offset(expr.operands[0])
    if known(expr.operands[1]) is None or inner.base is expr.operands[0]:
        return None
    outer, width = _offset(expr), expr.width
    total = inner.signed_number + outer.signed_number
    counted = inner.unsigned_number + outer.unsigned_number
    flags = overflow(
        inner.signed_fits and outer.signed_fits and fits(total, width, "signed"),
        inner.unsigned_fits and outer.unsigned_fits and fits(counted, width, "unsigned"),
    )
    sum_ = space.number(expr, inner.bits + outer.bits)
    return space.like(expr, "addi", inner.base, sum_, attrs=flags)


@simplifies("subi")
def difference_of_offsets(space: Space, expr: Expr) -> Expr | None:
    """(x + c1) - (x + c2) => c1 - c2"""
    left, right = map(_offset, expr.operands)
    return space.number(expr, left.bits - right.bits) if left.base is right.base else None


@simplifies("addi", "subi")
def reversed_constant(space: Space, expr: Expr) -> Expr | None:
    """(c1 - x) + c2 => (c1 + c2) - x, and with minus"""
    left, right = expr.operands
    number, inner = known(right), left.operands
    if number is None or left.name != "subi" or known(inner[0]) is None:
        return None
    first = known(inner[0])
    assert first is not None
    total = first + number if expr.name == "addi" else first - number
    return space.like(expr, "subi", space.number(expr, total), inner[1])


@simplifies("subi")
def constant_minus_offset(space: Space, expr: Expr) -> Expr | None:
    """c2 - (x + c1) => (c2 - c1) - x, and c2 - (c1 - x) => x + (c2 - c1)"""
    number, right = known(expr.operands[0]), expr.operands[1]
    if number is None:
        return None
    inner = _offset(right)
    if inner.base is not right:
        return space.like(expr, "subi", space.number(expr, number - inner.bits), inner.base)
    first = known(right.operands[0]) if right.name == "subi" else None
    if first is None:
        return None
    return space.like(expr, "addi", right.operands[1], space.number(expr, number - first))


@simplifies("addi")
def sum_with_negation(space: Space, expr: Expr) -> Expr | None:
    """x + -y => x - y"""
    for x, y in (expr.operands, expr.operands[::-1]):
        if y.name == "negi":
            return space.like(expr, "subi", x, y.operands[0])
    return None


@simplifies("addi")
def sum_with_difference(space: Space, expr: Expr) -> Expr | None:
    """(x - y) + y => x"""
    for difference, y in (expr.operands, expr.operands[::-1]):
        if difference.name == "subi" and difference.operands[1] is y:
            return difference.operands[0]
    return None


@simplifies("addi")
def sum_with_inverse(space: Space, expr: Expr) -> Expr | None:
    """x + ~x => -1, and ~x + 1 => -x"""
    left, right = expr.operands
    if inverse_of(left) is right or inverse_of(right) is left:
        return space.number(expr, -1)
    plain = inverse_of(left)
    return space.like(expr, "negi", plain) if plain is not None and _is(right, 1) else None


@simplifies("subi")
def difference_from_zero(space: Space, expr: Expr) -> Expr | None:
    """0 - x => -x"""
    if not _is(expr.operands[0], 0):
        return None
    flags = overflow(claims(expr)[0], False)
    return space.like(expr, "negi", expr.operands[1], attrs=flags)


@simplifies("subi")
def difference_with_negation(space: Space, expr: Expr) -> Expr | None:
    """x - -y => x + y"""
    left, right = expr.operands
    return space.like(expr, "addi", left, right.operands[0]) if right.name == "negi" else None


@simplifies("subi")
def difference_with_sum(space: Space, expr: Expr) -> Expr | None:
    """(x + y) - y => x, x - (x + y) => -y, x - (x - y) => y, (x - y) - x => -y"""
    left, right = expr.operands
    if left.name == "addi" and right in left.operands:
        return left.operands[1] if left.operands[0] is right else left.operands[0]
    if right.name == "addi" and left in right.operands:
        rest = right.operands[1] if right.operands[0] is left else right.operands[0]
        return space.like(expr, "negi", rest)
    if right.name == "subi" and right.operands[0] is left:
        return right.operands[1]
    if left.name == "subi" and left.operands[0] is right:
        return space.like(expr, "negi", left.operands[1])
    return None


@simplifies("negi")
def negation_of_negation(space: Space, expr: Expr) -> Expr | None:
    """-(-x) => x, and -(x - y) => y - x"""
    (inner,) = expr.operands
    if inner.name == "negi":
        return inner.operands[0]
    return space.like(expr, "subi", *inner.operands[::-1]) if inner.name == "subi" else None


@simplifies("muli")
def simple_factor(space: Space, expr: Expr) -> Expr | None:
    """x * 0 => 0, x * 1 => x, x * -1 => -x"""
    left, right = expr.operands
    if _is(right, 0):
        return right
    if _is(right, 1):
        return left
    if not _is(right, -1):
        return None
    return space.like(expr, "negi", left, attrs=overflow(claims(expr)[0], False))


@simplifies("muli")
def merged_factors(space: Space, expr: Expr) -> Expr | None:
    """(x * c1) * c2 => x * (c1 * c2)"""
    left, right = expr.operands
    factor = known(right)
    inner = known(left.operands[1]) if left.name == "muli" else None
    if factor is None or inner is None:
        return None
    width = expr.width
    both = [a and b for a, b in zip(claims(left), claims(expr), strict=True)]
    flags = overflow(
        both[0] and fits(signed(inner, width) * signed(factor, width), width, "signed"),
        both[1] and fits(inner * factor, width, "unsigned"),
    )
    product = space.number(expr, inner * factor)
    return space.like(expr, "muli", left.operands[0], product, attrs=flags)


@simplifies("muli", "negi")
def sign_of_product(space: Space, expr: Expr) -> Expr | None:
    """-x * -y => x * y, -x * c => x * -c, -(x * c) => x * -c"""
    if expr.name == "negi":
        (inner,) = expr.operands
        number = known(inner.operands[1]) if inner.name == "muli" else None
        if number is None:
            return None
        return space.like(expr, "muli", inner.operands[0], space.number(expr, -number))
    left, right = expr.operands
    if left.name != "negi":
        return None
    if right.name == "negi":
        return space.like(expr, "muli", left.operands[0], right.operands[0])
    number = known(right)
    if number is None:
        return None
    return space.like(expr, "muli", left.operands[0], space.number(expr, -number))


@simplifies("absi")
def magnitude(space: Space, expr: Expr) -> Expr | None:
    """abs(abs x) => abs x, abs(-x) => abs x, abs(zext x) => zext x"""
    (inner,) = expr.operands
    if inner.name == "absi" or (inner.name == "exti" and inner.attrs[0] == "unsigned"):
        return inner
    return space.like(expr, "absi", inner.operands[0]) if inner.name == "negi" else None
