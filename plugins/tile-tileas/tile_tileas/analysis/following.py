"""Addresses that follow from others: elements in a row of a tile of pointers, in memory, too.

A sum of 32 bits may pass the largest number in the middle of a row, and once it is widened its
addresses part there: so a row has one address only where none of its sums is widened, or where the
mask leaves out what wrapped around. Of numbers that are sign extended, those behind such a place
are negative. So a mask that takes numbers below a bound alone, compared as unsigned ones with one
that is not negative, takes none of them, or none of those in front.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tile_core.mlir import ir
from tile_tileas.analysis.axis import AxisAnalysis
from tile_tileas.analysis.bounds import BoundsAnalysis
from tile_tileas.tile_graph import is_tile, kind_of

_WIDENS = ("arith.extsi", "arith.extui", "arith.index_cast", "nv_tileaa.int_to_ptr")
_BROADCAST = "nv_tileaa.broadcast"
_BELOW, _ABOVE = (6, 7), (8, 9)  # arith.CmpIPredicate: ult, ule; ugt, uge
_ADDRESS_BITS = 64


def following(op: ir.OpView, axis: int, known: AxisAnalysis, bounds: BoundsAnalysis) -> int:
    """How many elements of a load or store through pointers have addresses that follow from that of
    the first, along `axis`, in aligned groups of the tile: of those that the mask lets by.
    """
    run = known[op.base].contiguity[axis]
    if run == 1:
        return 1
    widened = _Row(axis, run, known).widened(op.base)
    bounded = set() if op.mask is None else _bounded(op.mask, bounds)
    return run if widened is not None and widened <= bounded else 1


@dataclass(frozen=True)
class _Row:
    """`run` elements along an axis."""

    axis: int
    run: int
    known: AxisAnalysis

    def widened(self, value: ir.Value) -> set[ir.Value] | None:
        """What was sign extended on the way to a tile, and may be cut in the middle of a row, where
        elements have been in their places since; None if anything else may be.
        """
        found: set[ir.Value] = set()
        seen: set[tuple[ir.Value, bool]] = set()
        stack = [(value, True)]
        while stack:
            now, in_place = stack.pop()
            if (now, in_place) in seen or not self._changes(now):
                continue
            seen.add((now, in_place))
            if isinstance(now.owner, ir.Block) or now.owner.regions:
                return None  # who knows what it was made of
            op = now.owner
            if self._may_cut(op):
                if op.name not in ("arith.extsi", "nv_tileaa.addptr") or not in_place:
                    return None
                found.add(op.operands[-1])
            stays = in_place and kind_of(op) in ("same", "broadcast")
            stack += [(operand, stays) for operand in op.operands]
        return found

    def _may_cut(self, op: ir.OpView) -> bool:
        """Whether it widens what may wrap around in the middle: only rows that begin at multiples
        of their length do not. Of `addptr` that is the offset.
        """
        if op.name not in _WIDENS and not _adds_little(op):
            return False
        info = self.known[op.operands[-1]]
        return info.rank <= self.axis or info.divisibility[self.axis] < self.run

    def _changes(self, value: ir.Value) -> bool:
        if not is_tile(value):
            return False
        info, shape = self.known[value], value.type.shape
        if len(shape) <= self.axis or info.rank != len(shape):
            return True
        return info.constancy[self.axis] < min(self.run, shape[self.axis])


def _adds_little(op: ir.OpView) -> bool:
    """Whether it widens an offset as it adds it to a pointer."""
    if op.name != "nv_tileaa.addptr":
        return False
    element = op.operands[1].type.element_type
    return not isinstance(element, ir.IntegerType) or element.width < _ADDRESS_BITS


def _bounded(mask: ir.Value, bounds: BoundsAnalysis) -> set[ir.Value]:
    """Numbers, and what they were before they were extended, that the mask takes where they are not
    negative alone, element by element.
    """
    found: set[ir.Value] = set()
    seen: set[ir.Value] = set()
    stack = [mask]
    while stack:
        value = stack.pop()
        if value in seen or isinstance(value.owner, ir.Block):
            continue
        seen.add(value)
        op = value.owner
        if op.name in ("arith.andi", _BROADCAST):
            stack += op.operands
        elif op.name == "arith.cmpi":
            found |= _below(op, bounds)
    return found


def _below(op: ir.OpView, bounds: BoundsAnalysis) -> set[ir.Value]:
    """The number that a comparison takes below one that is not negative, and what it was before."""
    predicate = ir.IntegerAttr(op.attributes["predicate"]).value
    if predicate not in (*_BELOW, *_ABOVE):
        return set()
    number, bound = op.operands if predicate in _BELOW else reversed(op.operands)
    return set(_before(number)) if bounds[bound].lo >= 0 else set()


def _before(number: ir.Value) -> Iterator[ir.Value]:
    yield number
    while not isinstance(number.owner, ir.Block) and number.owner.name in (
        _BROADCAST,
        "arith.extsi",
    ):
        number = number.owner.operands[0]
        yield number
