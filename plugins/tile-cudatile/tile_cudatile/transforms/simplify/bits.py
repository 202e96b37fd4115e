"""Bitwise operations and shifts."""

from __future__ import annotations

from tile_cudatile.transforms.simplify.expressions import (
    OPPOSITE,
    Expr,
    Space,
    claims,
    inverse_of,
    known,
    overflow,
)
from tile_cudatile.transforms.simplify.registry import simplifies

#: How many operands of nested conjunctions or disjunctions are looked at.
_MOST_TERMS = 16
_DUAL = {"andi": "ori", "ori": "andi"}


def _terms(expr: Expr, name: str) -> list[Expr]:
    """The operands of nested operations of one kind, in order, each once."""
    found: list[Expr] = []
    waiting = [expr]
    while waiting:
        term = waiting.pop()
        if term.name == name and len(found) + len(waiting) < _MOST_TERMS:
            waiting += term.operands[::-1]
        elif term not in found:
            found.append(term)
    return found


def _opposed(left: list[Expr], right: list[Expr]) -> bool:
    return any(inverse_of(a) in right for a in left) or any(inverse_of(b) in left for b in right)


def _ones(expr: Expr) -> int:
    return (1 << expr.width) - 1


@simplifies("andi", "ori")
def neutral_bits(space: Space, expr: Expr) -> Expr | None:
    """x & 0 => 0, x & -1 => x, x | 0 => x, x | -1 => -1"""
    left, right = expr.operands
    number = known(right)
    if number is None:
        return None
    neutral, final = (_ones(expr), 0) if expr.name == "andi" else (0, _ones(expr))
    return left if number == neutral else right if number == final else None


@simplifies("andi", "ori")
def repeated_terms(space: Space, expr: Expr) -> Expr | None:
    """x & x => x, (x & y) & x => x & y, (x & y) & (x & z) => (x & y) & z, and with |"""
    left, right = (_terms(operand, expr.name) for operand in expr.operands)
    for first, second, kept in ((left, right, 0), (right, left, 1)):
        rest = [term for term in second if term not in first]
        if not rest:
            return expr.operands[kept]
        if len(rest) == 1 and len(second) > 1:
            return space.like(expr, expr.name, expr.operands[kept], rest[0])
    return None


@simplifies("andi", "ori")
def opposed_terms(space: Space, expr: Expr) -> Expr | None:
    """x & ~x => 0, (x & y) & ~x => 0, x | ~x => -1"""
    left, right = (_terms(operand, expr.name) for operand in expr.operands)
    if not _opposed(left, right):
        return None
    return space.number(expr, 0 if expr.name == "andi" else -1)


@simplifies("andi", "ori")
def absorbed_terms(space: Space, expr: Expr) -> Expr | None:
    """x & (x | y) => x, x & (~x | y) => x & y, (x & y) | (x & ~y) => x, and the other way"""
    dual = _DUAL[expr.name]
    for x, other in (expr.operands, expr.operands[::-1]):
        if other.name != dual:
            continue
        parts = _terms(other, dual)
        if any(term in parts for term in _terms(x, expr.name)):
            return x
        for part, rest in (other.operands, other.operands[::-1]):
            if inverse_of(part) is x or inverse_of(x) is part:
                return space.like(expr, expr.name, x, rest)
    left, right = expr.operands
    if left.name == right.name == dual:
        for x, y in (left.operands, left.operands[::-1]):
            for same, inverse in (right.operands, right.operands[::-1]):
                if x is same and (inverse_of(inverse) is y or inverse_of(y) is inverse):
                    return x
    return None


@simplifies("andi", "ori", "xori")
def merged_masks(space: Space, expr: Expr) -> Expr | None:
    """(x & c1) & c2 => x & (c1 & c2), and with | and ^"""
    left, right = expr.operands
    outer = known(right)
    inner = known(left.operands[1]) if left.name == expr.name else None
    if outer is None or inner is None:
        return None
    merged = {"andi": inner & outer, "ori": inner | outer, "xori": inner ^ outer}[expr.name]
    return space.like(expr, expr.name, left.operands[0], space.number(expr, merged))


@simplifies("xori")
def cancelled_bits(space: Space, expr: Expr) -> Expr | None:
    """x ^ 0 => x, x ^ x => 0, x ^ ~x => -1, (x ^ y) ^ y => x"""
    left, right = expr.operands
    if known(right) == 0:
        return left
    if left is right:
        return space.number(expr, 0)
    if inverse_of(left) is right or inverse_of(right) is left:
        return space.number(expr, -1)
    for x, y in ((left, right), (right, left)):
        if x.name == "xori" and y in x.operands:
            return x.operands[1] if x.operands[0] is y else x.operands[0]
    return None


@simplifies("xori")
def inverted_comparison(space: Space, expr: Expr) -> Expr | None:
    """not (x < y) => x >= y, with every predicate"""
    inner = inverse_of(expr)
    if inner is None or inner.name != "cmpi":
        return None
    predicate, signedness = inner.attrs
    attrs = (OPPOSITE[str(predicate)], signedness)
    return space.like(expr, "cmpi", *inner.operands, attrs=attrs)


@simplifies("shli", "shri")
def no_shift(space: Space, expr: Expr) -> Expr | None:
    """x << 0 => x, 0 << x => 0, and to the right"""
    value, amount = expr.operands
    return value if known(amount) == 0 or known(value) == 0 else None


@simplifies("shli", "shri")
def merged_shifts(space: Space, expr: Expr) -> Expr | None:
    """(x << c1) << c2 => x << (c1 + c2), or 0 where nothing is left; and to the right

    Both amounts must be less than the width, otherwise the value is not specified.
    """
    inner, width = expr.operands[0], expr.width
    if inner.name != expr.name or (expr.name == "shri" and inner.attrs != expr.attrs):
        return None
    first, second = known(inner.operands[1]), known(expr.operands[1])
    if first is None or second is None or first >= width or second >= width:
        return None
    attrs, amount = expr.attrs, first + second
    if amount >= width:
        if attrs[0] != "signed":
            return space.number(expr, 0)
        amount = width - 1
    if expr.name == "shli":
        both = [a and b for a, b in zip(claims(inner), claims(expr), strict=True)]
        attrs = overflow(*both)
    return space.like(expr, expr.name, inner.operands[0], space.number(expr, amount), attrs=attrs)
