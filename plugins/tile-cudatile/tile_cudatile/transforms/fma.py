"""Fused multiply-add."""

from __future__ import annotations

from typing import Any

from tile_cudatile.transforms.folds import product_first
from tile_cudatile.transforms.rewrite import Place, Rewriter, make
from tile_cudatile.tree import Module, Op, Value


def fuse(rewriter: Rewriter, op: Op, place: Place) -> bool:
    """addf (mulf a, b), c => fma a, b, c, and subf with c negated

    The product must have no other use and the same rounding and handling of denormals. Changes
    results: the product is not rounded any more.
    """
    product, addend = op.operands
    assert isinstance(product, Value)
    assert isinstance(addend, Value)
    owner = product.owner
    if not isinstance(owner, Op) or owner.name != "mulf" or rewriter.uses[product] != 1:
        return False
    attrs = ("rounding_mode", "flush_to_zero")
    if any(owner.attrs.get(name) != op.attrs.get(name) for name in attrs):
        return False
    if op.name == "subf":
        place.before.append(make("negf", (addend,), [addend.type], op.loc))
        addend = place.before[-1].result
    kept: dict[str, Any] = {name: op.attrs[name] for name in attrs if name in op.attrs}
    fused = make("fma", (*owner.operands, addend), [op.result.type], op.loc, **kept)
    rewriter.replace(op.result, fused.result)
    place.again(fused)
    return True


def fuse_fma(module: Module) -> int:
    """Fuses products and sums; returns how many patterns applied."""
    module.layout = None
    patterns = {"addf": (product_first, fuse), "subf": (fuse,)}
    return sum(Rewriter(entry.body, patterns).run() for entry in module.entries)
