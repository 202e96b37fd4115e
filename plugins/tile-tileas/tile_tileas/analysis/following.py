"""Addresses that follow from others: elements in a row of a tile of pointers, in memory, too.

A sum of 32 bits may pass the largest number in the middle of a row, and once it is widened its
addresses part there: so a row has one address only where none of its sums is widened, or where the
mask leaves out what wrapped around. Of numbers that are sign extended, those behind such a place
are negative. So a mask that takes numbers below a bound alone, compared as unsigned ones with one
that is not negative, takes none of them, or none of those in front.
"""

from __future__ import annotations

from collections.abc import Iterator

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
    bounded = set() if op.mask is None else _bounded(op.mask, bounds)
    widened = _Widened(axis, run, known)
    return run if widened.of(op.base) and widened.moved <= bounded else 1


class _Widened:
    """What may be cut along a run, as it was widened on the way to a tile."""

    def __init__(self, axis: int, run: int, known: AxisAnalysis) -> None:
        self._axis, self._run, self._known = axis, run, known
        #: Sign extended numbers whose elements are where those of the tile are.
        self.moved: set[ir.Value] = set()

    def of(self, value: ir.Value, in_place: bool = True) -> bool:
        """Whether all that is widened and may be cut is in `moved`; not where elements come to
        other places behind it.
        """
        if not self._changes(value):
            return True
        if isinstance(value.owner, ir.Block) or value.owner.regions:
            return False  # who knows what it was made of
        op = value.owner
        if op.name in _WIDENS or _adds_little(op):
            return self._keeps(op, in_place)
        in_place = in_place and kind_of(op) in ("same", "broadcast")
        return all(self.of(operand, in_place) for operand in op.operands)

    def _keeps(self, op: ir.OpView, in_place: bool) -> bool:
        number = op.operands[-1]  # of `addptr` the offset
        if self._known[number].divisibility[self._axis] >= self._run:
            return True
        if op.name not in ("arith.extsi", "nv_tileaa.addptr") or not in_place:
            return False
        self.moved.add(number)
        return all(self.of(operand, in_place) for operand in op.operands)

    def _changes(self, value: ir.Value) -> bool:
        if not is_tile(value):
            return False
        shape = value.type.shape
        same_rank = len(shape) > self._axis and self._known[value].rank == len(shape)
        return not same_rank or self._known[value].constancy[self._axis] < min(
            self._run, shape[self._axis]
        )


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
    stack = [mask]
    while stack:
        value = stack.pop()
        if isinstance(value.owner, ir.Block):
            continue
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
