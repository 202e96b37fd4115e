"""Casts, and operations that only move elements."""

from __future__ import annotations

from tile_cudatile.transforms.simplify.expressions import (
    Expr,
    Space,
    claims,
    element_type,
    known,
    overflow,
)
from tile_cudatile.transforms.simplify.registry import simplifies


def _bits(expr: Expr) -> int:
    return element_type(expr.type).width


@simplifies("exti")
def repeated_extension(space: Space, expr: Expr) -> Expr | None:
    """ext (ext x) => ext x, by the signedness of the inner one if it is unsigned"""
    (inner,) = expr.operands
    if inner.name != "exti" or (inner.attrs[0] == "signed" != expr.attrs[0]):
        return None
    return space.like(expr, "exti", inner.operands[0], attrs=inner.attrs)


@simplifies("exti")
def extended_truncation(space: Space, expr: Expr) -> Expr | None:
    """ext (trunc x) => x, if the truncation loses nothing that the extension does not restore"""
    (inner,) = expr.operands
    if inner.name != "trunci" or inner.operands[0].type != expr.type:
        return None
    return inner.operands[0] if claims(inner)[expr.attrs[0] == "unsigned"] else None


@simplifies("trunci")
def truncated_extension(space: Space, expr: Expr) -> Expr | None:
    """trunc (ext x) => x, trunc x or ext x, by their widths"""
    (inner,) = expr.operands
    if inner.name != "exti":
        return None
    source = inner.operands[0]
    if _bits(source) == _bits(expr):
        return source
    if _bits(source) < _bits(expr):
        return space.like(expr, "exti", source, attrs=inner.attrs)
    return space.like(expr, "trunci", source)


@simplifies("trunci")
def repeated_truncation(space: Space, expr: Expr) -> Expr | None:
    """trunc (trunc x) => trunc x"""
    (inner,) = expr.operands
    if inner.name != "trunci":
        return None
    both = [a and b for a, b in zip(claims(inner), claims(expr), strict=True)]
    return space.like(expr, "trunci", inner.operands[0], attrs=overflow(*both))


@simplifies("trunci")
def truncated_mask(space: Space, expr: Expr) -> Expr | None:
    """trunc (x & c) => trunc x, if the mask keeps all bits that remain"""
    (inner,) = expr.operands
    mask = known(inner.operands[1]) if inner.name == "andi" else None
    low = (1 << _bits(expr)) - 1
    if mask is None or mask & low != low:
        return None
    return space.like(expr, "trunci", inner.operands[0])


@simplifies("reshape", "broadcast", "permute")
def unmoved(space: Space, expr: Expr) -> Expr | None:
    """Moving elements to where they are."""
    (source,) = expr.operands
    if expr.name == "permute":
        (permutation,) = expr.attrs
        assert isinstance(permutation, tuple)
        return source if permutation == tuple(range(len(permutation))) else None
    return source if source.type == expr.type else None


@simplifies("reshape", "broadcast", "permute")
def moved_twice(space: Space, expr: Expr) -> Expr | None:
    """reshape (reshape x) => reshape x, and with broadcast and permute"""
    (inner,) = expr.operands
    if inner.name != expr.name:
        return None
    attrs = expr.attrs
    if expr.name == "permute":
        outer, first = expr.attrs[0], inner.attrs[0]
        assert isinstance(outer, tuple)
        assert isinstance(first, tuple)
        attrs = (tuple(first[i] for i in outer),)
    return space.like(expr, expr.name, inner.operands[0], attrs=attrs)
