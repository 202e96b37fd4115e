"""Divisions, remainders and high products. Their divisors are not zero: that is undefined."""

from __future__ import annotations

from tile_cudatile.transforms.simplify.expressions import (
    Expr,
    Space,
    as_number,
    claims,
    fits,
    known,
)
from tile_cudatile.transforms.simplify.registry import simplifies


@simplifies("divi")
def simple_divisor(space: Space, expr: Expr) -> Expr | None:
    """x / 1 => x, x / -1 => -x, 0 / x => 0, x / x => 1"""
    value, divisor = expr.operands
    number = as_number(divisor, expr.attrs[0])
    if number == 1 or known(value) == 0:
        return value
    if number == -1:
        return space.like(expr, "negi", value)
    return space.number(expr, 1) if value is divisor and expr.width > 1 else None


@simplifies("remi")
def simple_modulus(space: Space, expr: Expr) -> Expr | None:
    """x % 1 => 0, x % -1 => 0, 0 % x => 0, x % x => 0"""
    value, divisor = expr.operands
    number = as_number(divisor, expr.attrs[0])
    if number in (1, -1) or known(value) == 0 or value is divisor:
        return space.number(expr, 0)
    return None


def _exact_factor(expr: Expr) -> Expr | None:
    """x if a division is of x * y by y, where the product did not wrap around."""
    value, divisor = expr.operands
    if value.name != "muli" or not claims(value)[expr.attrs[0] == "unsigned"]:
        return None
    left, right = value.operands
    return left if right is divisor else right if left is divisor else None


@simplifies("divi")
def quotient_of_product(space: Space, expr: Expr) -> Expr | None:
    """(x * y) / y => x, if the product does not overflow"""
    return _exact_factor(expr)


@simplifies("remi")
def remainder_of_product(space: Space, expr: Expr) -> Expr | None:
    """(x * y) % y => 0, if the product does not overflow"""
    return None if _exact_factor(expr) is None else space.number(expr, 0)


@simplifies("divi")
def merged_divisors(space: Space, expr: Expr) -> Expr | None:
    """(x / c1) / c2 => x / (c1 * c2), both positive and rounded alike

    Rounding down (up, to zero) twice is rounding down (up, to zero) once. If the product of the
    divisors cannot be held, all quotients to zero and of unsigned numbers downwards are 0.
    """
    inner, signedness = expr.operands[0], expr.attrs[0]
    if inner.name != "divi" or inner.attrs != expr.attrs:
        return None
    first, second = (
        as_number(inner.operands[1], signedness),
        as_number(expr.operands[1], signedness),
    )
    if first is None or second is None or first <= 0 or second <= 0:
        return None
    product = first * second
    if not fits(product, expr.width, signedness):
        if expr.attrs[1] != "zero" or (signedness == "signed" and product == 1 << expr.width - 1):
            return None
        return space.number(expr, 0)
    divisor = space.number(expr, product)
    return space.like(expr, "divi", inner.operands[0], divisor, attrs=expr.attrs)


@simplifies("remi")
def repeated_modulus(space: Space, expr: Expr) -> Expr | None:
    """(x % y) % y => x % y"""
    value, divisor = expr.operands
    same = value.name == "remi" and value.attrs == expr.attrs and value.operands[1] is divisor
    return value if same else None


@simplifies("mulhii")
def high_half_of_little(space: Space, expr: Expr) -> Expr | None:
    """The high half of x * 0 and of x * 1 is 0."""
    return space.number(expr, 0) if known(expr.operands[1]) in (0, 1) else None
