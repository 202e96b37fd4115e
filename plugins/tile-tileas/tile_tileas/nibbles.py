"""Numbers of four bits that were bytes: two of a byte, the first in its lower half.

`unpack` of a tile of bytes is written with what there is for tiles: both halves of each byte, side
by side, as numbers of four bits. A product that reads such numbers packed wants the bytes.
"""

from __future__ import annotations

from collections.abc import Sequence

from tile_core.mlir import ir
from tile_tileas.analysis.axis import shape_of
from tile_tileas.analysis.constants import splat_integer

_VIEWS = ("nv_tileaa.view", "nv_tileas.view")
_CATS = ("nv_tileaa.cat", "nv_tileas.cat")
_PERMUTE, _BITCAST = "nv_tileaa.permute", "nv_tileaa.bitcast"
_HALF = 4


def bytes_along_k(value: ir.Value, *, turned: bool) -> ir.Value | None:
    """The tile of bytes that `value` was unpacked from, so that the two numbers of a byte lie next
    to each other along its last axis, or, where it is `turned`, along the last axis but one; None
    if it was not unpacked so.
    """
    if turned:
        op = _made_by(value, (_PERMUTE,))
        if op is None:
            return None
        order = list(ir.DenseI32ArrayAttr(op.attributes["permutation"]))
        rank = len(order)
        if order != [*range(rank - 2), rank - 1, rank - 2]:
            return None
        value = op.operands[0]
    if shape_of(value)[-1] % 2:
        return None
    return _unpacked(_unviewed(value))


def _made_by(value: ir.Value, names: Sequence[str]) -> ir.Operation | None:
    owner = value.owner
    if isinstance(owner, ir.Block):
        return None
    made = owner if isinstance(owner, ir.Operation) else owner.operation
    return made if made.name in names else None


def _unviewed(value: ir.Value) -> ir.Value:
    """The same elements in the shape in which they were made."""
    while (op := _made_by(value, _VIEWS)) is not None:
        value = op.operands[0]
    return value


def _unpacked(value: ir.Value) -> ir.Value | None:
    """bitcast(cat(low halves of x, high halves of x)) => x"""
    cast = _made_by(value, (_BITCAST,))
    if cast is None:
        return None
    cat = _made_by(_unviewed(cast.operands[0]), _CATS)
    if cat is None or ir.IntegerAttr(cat.attributes["axis"]).value != 1:
        return None
    sides = list(cat.operands)
    if len(sides) != 2 or any(list(shape_of(side))[1:] != [1] for side in sides):
        return None
    low, high = (_half(_unviewed(side), start) for side, start in zip(sides, (0, 4), strict=True))
    return low if low is not None and low == high else None


def _half(value: ir.Value, start: int) -> ir.Value | None:
    """trunci(shrui(x, start)) => x, of bytes to numbers of four bits"""
    narrowed = _made_by(value, ("arith.trunci",))
    if narrowed is None or value.type.element_type.width != _HALF:
        return None
    moved = _made_by(narrowed.operands[0], ("arith.shrui",))
    source = narrowed.operands[0] if moved is None else moved.operands[0]
    shift = 0 if moved is None else splat_integer(moved.operands[1])
    return source if shift == start and source.type.element_type.width == 2 * _HALF else None
