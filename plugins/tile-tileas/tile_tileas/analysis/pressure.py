"""How many registers the live tiles of a kernel take, before layouts are known.

An estimate: every tile is taken as spread over all threads, and what lies between two operations
as live tiles only. Tiles that are made for free (constants, ranges, splats) and broadcasts, whose
copies share a register, count nothing; small integers take a register each in arithmetic; operands
of a product go to shared memory and end there. Places and flags that are computed of ranges and
scalars alone may count or not: a few registers and distances from there, or one for each element.
Sums of ranges and scalars never do, which have the same distances in all threads.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import prod

from tile_core.mlir import ir
from tile_tileas.analysis.axis import shape_of
from tile_tileas.storage import storage_bits

_FREE = (
    "arith.constant",
    "nv_tileaa.broadcast",
    "nv_tileaa.make_range",
    "nv_tileaa.splat",
    "ub.poison",
)
#: What computes places, addresses and flags.
_OF_PLACES = {
    "arith.addi", "arith.andi", "arith.cmpi", "arith.extsi", "arith.extui", "arith.muli",
    "arith.ori", "arith.subi", "arith.trunci", "nv_tileaa.addptr", "nv_tileaa.assume",
    "nv_tileaa.permute", "nv_tileaa.view",
}  # fmt: skip
#: What sums of ranges, and addresses by them, are made with.
_OF_RUNS = {
    "arith.addi", "arith.extsi", "nv_tileaa.addptr", "nv_tileaa.assume", "nv_tileaa.permute",
    "nv_tileaa.view",
}  # fmt: skip
_MOVES = {
    "nv_tileaa.dot",
    "nv_tileaa.permute",
    "nv_tileaa.store",
    "nv_tileaa.tiled_store",
    "nv_tileaa.view",
}
_LOOPS = ("scf.for", "scf.while")
_LANES = 32
_REGISTER_BITS = 32
_HALF = 16


def peak_registers(
    func: ir.Operation,
    num_warps: int,
    elsewhere: Iterable[ir.Value] = (),
    *,
    with_places: bool = True,
) -> int:
    """Registers per thread of the tiles that are live at once, at most, with `num_warps` warps;
    those `elsewhere` take none, nor places if they do not count.
    """
    peak = Peak(_LANES * num_warps, frozenset(elsewhere), with_places=with_places)
    return peak.region(func.regions[0], {})


class Peak:
    """Walks a function backwards with the tiles that are live, each with its registers."""

    def __init__(
        self,
        threads: int,
        elsewhere: frozenset[ir.Value] = frozenset(),
        *,
        with_places: bool = True,
    ) -> None:
        self.threads, self.elsewhere, self.with_places = threads, elsewhere, with_places
        self._places: dict[ir.Value, bool] = {}
        self._runs: dict[ir.Value, bool] = {}

    def region(self, region: ir.Region, after: dict[ir.Value, int]) -> int:
        """The peak inside of `region` (blocks that follow one another); `after` is live behind."""
        peak = 0
        for block in region.blocks:
            live = dict(after)
            for op in reversed(list(block.operations)):
                peak = max(peak, self.operation(op, live))
        return peak

    def operation(self, op: ir.OpView, live: dict[ir.Value, int]) -> int:
        """The peak of one operation; `live` becomes what is live before it."""
        peak = sum(live.values())
        for result in op.results:
            live.pop(result, None)
        used = list(op.operands)
        if op.operation.name.startswith("scf."):
            outer = list(_from_outside(op))
            inside = dict(live)
            if op.operation.name in _LOOPS:  # the next turn needs them again
                self.add(inside, outer)
            for region in op.regions:
                peak = max(peak, self.region(region, inside))
            used += outer
        self.add(live, used)
        return max(peak, sum(live.values()))

    def add(self, live: dict[ir.Value, int], values: list[ir.Value]) -> None:
        """Count `values` as live from here on."""
        for value in values:
            if value not in live:
                live[value] = self.registers(value)

    def registers(self, value: ir.Value) -> int:
        """Registers of a thread for a value."""
        if not takes_registers(value) or value in self.elsewhere:
            return 0
        if self._is(value, self._runs, _OF_RUNS):
            return 0
        if not self.with_places and self.is_place(value):
            return 0
        return words(value, -(-prod(shape_of(value)) // self.threads))

    def is_place(self, value: ir.Value) -> bool:
        """Whether a tile is computed of ranges and scalars alone: what one element has is that of
        another one, and a distance.
        """
        return self._is(value, self._places, _OF_PLACES)

    def _is(self, value: ir.Value, known: dict[ir.Value, bool], names: set[str]) -> bool:
        """Whether a tile is made by operations of these names of ranges and scalars alone."""
        if not isinstance(value.type, ir.RankedTensorType) or not takes_registers(value):
            return True
        if isinstance(value.owner, ir.Block):
            return False
        if value not in known:
            made = value.owner.name in names
            known[value] = made and all(self._is(one, known, names) for one in value.owner.operands)
        return known[value]


def words(value: ir.Value, each: int) -> int:
    """Registers for `each` elements of a tile."""
    return -(-each * _held_bits(value) // _REGISTER_BITS)


def tile_bits(value: ir.Value) -> int:
    """Bits of registers that all threads together need for a value; 0 for what comes for free."""
    return prod(shape_of(value)) * _held_bits(value) if takes_registers(value) else 0


def used_values(op: ir.OpView | ir.Operation) -> list[ir.Value]:
    """Values the operation needs, those of its regions included."""
    found = list(op.operands)
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                found += used_values(inner)
    return found


def takes_registers(value: ir.Value) -> bool:
    """Whether a value is a tile, and none that comes for free."""
    if not isinstance(value.type, ir.RankedTensorType):
        return False
    return isinstance(value.owner, ir.Block) or value.owner.name not in _FREE


def _held_bits(value: ir.Value) -> int:
    """Bits of a register that an element takes: small integers are packed while they only move,
    and bytes that a product transposes on their way to shared memory are there twice.
    """
    element = value.type.element_type
    bits = storage_bits(element)
    users = {use.owner.operation.name for use in value.uses}
    if isinstance(element, ir.IntegerType) and 1 < element.width < _REGISTER_BITS:
        bits = bits if users <= _MOVES else _REGISTER_BITS
    return max(bits, _HALF) if "nv_tileaa.dot" in users else bits


def _from_outside(op: ir.OpView) -> Iterator[ir.Value]:
    """Values that the regions of `op` use and do not define."""
    inside: set[ir.Value] = set()
    used: list[ir.Value] = []
    _collect(op, inside, used)
    for value in used:
        if value not in inside:
            inside.add(value)  # once each
            yield value


def _collect(op: ir.OpView, inside: set[ir.Value], used: list[ir.Value]) -> None:
    for region in op.regions:
        for block in region.blocks:
            inside.update(block.arguments)
            for inner in block.operations:
                used += inner.operands
                inside.update(inner.results)
                _collect(inner, inside, used)
