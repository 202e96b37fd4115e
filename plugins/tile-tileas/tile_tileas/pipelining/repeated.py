"""Tiles that several loops load one after the other stay in shared memory from the first one on.

A norm reads its row three times. Of such loads each thread copies what it reads itself, by
cp.async, so that nobody has to meet:

    tile i lies in stage i of one buffer if i < kept, else in stage kept + i mod stages
    first loop     copies all tiles, as many before the first iteration as there are stages for:
                   what a block asks for first it has first, so that blocks of a multiprocessor
                   come to their ends, and begin to store, one after the other
    loops behind   copy those from `kept` on alone, and read the others where they are

Groups of cp.async in the first loop, where P = kept + stages - 1 tiles are copied before it, one
each, and every iteration makes one more: none of the iterations i < kept copies, others tile
i + stages - 1. Before i waits, P + i groups were made. That of tile i is number i, so P - 1 may be
left; where it was copied in the loop, in iteration i - stages + 1, it is number P + i - stages + 1,
and stages - 2 may. From i = kept on the second holds of both.

Right for any number of iterations. Loads are the same if they read the same place of the same view
in the same iterations, and wait for the same token: nothing that the program orders between them
writes what they read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from tile_core.mlir import ir
from tile_tileas.analysis.constants import splat_integer
from tile_tileas.dialect.buffers import Buffer
from tile_tileas.pipelining.filling import Filling, Slot
from tile_tileas.pipelining.multistage import PIPELINED, Fillings, Multistage
from tile_tileas.pipelining.prefetch import Prefetch
from tile_tileas.storage import storage_bits

_LOAD = "nv_tileas.tiled_load"


@dataclass
class Kept:
    """Tiles of one load that stay.

    Attributes:
        first: the load that copies all of them.
        tiles: how many stay.
        buffer: they, then a ring of `ring` stages; None until the first loop is made.
    """

    first: Prefetch
    tiles: int
    ring: int
    buffer: ir.Value | None = None


class Rereading(Multistage):
    """A loop some of whose loads have tiles that stay: `kept`, by the result of the load."""

    def __init__(
        self, loop: ir.OpView, fillings: Fillings, stages: int, kept: Mapping[ir.Value, Kept]
    ) -> None:
        super().__init__(loop, fillings, stages)
        self._kept = kept
        self._held = {value for value, one in kept.items() if one.buffer is not None}
        #: Tiles that are copied before the loop, whose iterations so many copy nothing; 0: stages
        #: of other loads of the loop are filled, too, which are fewer.
        self._at_once = 0
        if not self._held and all(load.load.results[0] in kept for load in self.loads):
            self._at_once = min(one.tiles for one in kept.values())
            self.filled_first += self._at_once

    def _allocate(self, load: Prefetch) -> ir.Value:
        kept = self._kept.get(load.load.results[0])
        if kept is None:
            return super()._allocate(load)
        if kept.buffer is None:
            stages = kept.tiles + kept.ring
            type_ = Buffer(load.buffer.tile, load.buffer.space, stages).type
            i32 = self._at.i32
            attributes = {
                "alignment": ir.IntegerAttr.get(i32, load.alignment),
                PIPELINED: ir.UnitAttr.get(),
            }
            made = self._at.create("nv_tileas.alloc_tensor", [], [type_], attributes)
            kept.buffer = made.result
        assert kept.buffer is not None
        return kept.buffer

    @property
    def _fills_alike(self) -> bool:
        return False

    def _fill_first(self, ahead: int, slot: Slot, places: list[ir.Value]) -> list[ir.Value]:
        """Nothing where all tiles of an iteration have stayed."""
        stays = [value in self._held for value in (load.load.results[0] for load in self.loads)]
        if all(stays) and all(ahead < one.tiles for one in self._kept.values()):
            return places
        return super()._fill_first(ahead, slot, places)

    def _await(self, slot: Slot) -> None:
        if not self._at_once:
            super()._await(slot)
            return
        at = self._at
        early = at.is_less(self.block.arguments[0], at.constant(self._at_once))
        for condition, pending in (
            (early, self.filled_first - 1),
            (at.negated(early), self.ahead - 1),
        ):

            def wait(pending: int = pending) -> list[ir.Value]:
                for filling, _ in self.fillings:
                    filling.wait(at, slot, pending)
                return []

            at.choice(condition, wait)

    def _fetch_next(
        self, slot: Slot, places: list[ir.Value], fillings: Fillings | None = None
    ) -> list[ir.Value]:
        if not self._at_once:
            return super()._fetch_next(slot, places, fillings)
        at, now = self._at, self.block.arguments[0]
        _, is_there = self._later(now, self.ahead)
        late = at.negated(at.is_less(now, at.constant(self._at_once)))
        exists = at.binary("andi", is_there, late)
        refilled = self._refilled(slot)
        return self._fetch(now, self.ahead, refilled, places, again=True, exists=exists)

    def _begin(
        self, filling: Filling, load: Prefetch, slot: Slot, values: Mapping[ir.Value, ir.Value]
    ) -> None:
        begin = super()._begin
        result = load.load.results[0]
        if result not in self._held:
            begin(filling, load, slot, values)
            return
        at, number = self._at, values[self.block.arguments[0]]

        def copy() -> list[ir.Value]:
            begin(filling, load, slot, values)
            return []

        is_there = at.is_less(number, at.constant(self._kept[result].tiles))
        at.choice(at.negated(is_there), copy)

    def _stage(self, load: Prefetch, slot: Slot, number: ir.Value) -> ir.Value:
        result, at = load.load.results[0], self._at
        kept = self._kept.get(result)
        if kept is None:
            return super()._stage(load, slot, number)
        stays = at.is_less(number, at.constant(kept.tiles))
        turning = at.plus(slot.index, kept.tiles)
        place = at.create("arith.select", [stays, number, turning], [at.i32]).result
        return at.view(self._buffers[result], place)


class Repeats:
    """Which loads of a function's loops load tiles again, and what stays of them.

    Loads are remembered by their places, as loops are made anew, one after the other.
    """

    def __init__(self, loops: Sequence[ir.OpView]) -> None:
        self._group = {place: number for number, g in enumerate(_groups(loops)) for place in g}
        self._others = _others(loops, self._group)
        self._kept: dict[int, Kept] = {}
        self._here: dict[ir.Value, int] = {}
        self._number = 0

    def enter(self, number: int, loop: ir.OpView) -> None:
        """Turn to a loop, before anything is changed in it."""
        body = enumerate(loop.regions[0].blocks[0].operations)
        places = {at: op for at, op in body if (number, at) in self._group}
        self._here = {op.results[0]: self._group[number, at] for at, op in places.items()}
        self._number = number

    def held(self, loads: Sequence[Prefetch]) -> dict[ir.Value, Kept]:
        """By results of the loop's loads, tiles that stayed of an earlier one."""
        found = {}
        for load in loads:
            kept = self._kept.get(self._here.get(load.load.results[0], -1))
            if kept is not None and load.private and _as_copied(load, kept.first):
                found[load.load.results[0]] = kept
        return found

    def starts(self, loads: Sequence[Prefetch]) -> list[Prefetch]:
        """Loads of the loop that later ones repeat, and no earlier one has kept tiles of."""
        known = (*self._kept, None)
        return [
            one for one in loads if one.private and self._here.get(one.load.results[0]) not in known
        ]

    def keep(self, load: Prefetch, tiles: int, ring: int) -> Kept:
        """Let tiles of a load stay."""
        kept = self._kept[self._here[load.load.results[0]]] = Kept(load, tiles, ring)
        return kept

    @property
    def bytes_behind(self) -> int:
        """Of one stage of all that loops behind this one load beside what they repeat."""
        return sum(size for number, size in self._others.items() if number > self._number)


#: Which loop of a list, and which operation of its body.
_At = tuple[int, int]


def _groups(loops: Sequence[ir.OpView]) -> list[list[_At]]:
    """Loads of different loops that load the same tiles, in program order: two at least."""
    groups: list[list[_At]] = []
    firsts: list[ir.OpView] = []
    for number, loop in enumerate(loops):
        if not counts_from_zero(loop):
            continue
        for at, load in _loads(loop):
            same = (n for n, first in enumerate(firsts) if is_same(first, load))
            group = next((n for n in same if groups[n][-1][0] != number), None)
            if group is None:
                firsts.append(load)
                groups.append([(number, at)])
            else:
                groups[group].append((number, at))
    return [group for group in groups if len(group) > 1]


def _others(loops: Sequence[ir.OpView], group: Mapping[_At, int]) -> dict[int, int]:
    """By loop that repeats something, the bytes of the tiles that it loads beside that."""
    found: dict[int, int] = {}
    for number, _ in group:
        types = [
            ir.RankedTensorType(load.results[0].type)
            for at, load in _loads(loops[number])
            if (number, at) not in group and isinstance(load.results[0].type, ir.RankedTensorType)
        ]
        found[number] = sum(prod(t.shape) * storage_bits(t.element_type) // 8 for t in types)
    return found


def _loads(loop: ir.OpView) -> list[tuple[int, ir.OpView]]:
    body = enumerate(loop.regions[0].blocks[0].operations)
    return [(at, op) for at, op in body if op.operation.name == _LOAD]


def _as_copied(load: Prefetch, first: Prefetch) -> bool:
    """Whether each thread reads of a load what it copied for another one."""
    return load.layout == first.layout and load.buffer.type == first.buffer.type


def counts_from_zero(loop: ir.OpView) -> bool:
    """Whether iterations of a loop have the numbers 0, 1, 2, ... as i32."""
    lower, _, step = list(loop.operands)[:3]
    is_i32 = lower.type == ir.IntegerType.get_signless(32)
    return is_i32 and splat_integer(lower) == 0 and splat_integer(step) == 1


def is_same(first: ir.OpView, second: ir.OpView) -> bool:
    """Whether a load of a later loop loads what one of an earlier one does, as often."""
    one, two = _loop_of(first).opview, _loop_of(second).opview
    if one.operation.block != two.operation.block:
        return False
    if list(one.operands)[:3] != list(two.operands)[:3]:
        return False
    if _attributes(first) != _attributes(second):
        return False
    if first.results[0].type != second.results[0].type:
        return False
    pairs = zip(first.operands, second.operands, strict=True)
    return len(first.operands) == len(second.operands) and all(
        _is_same_value(a, b, one, two) for a, b in pairs
    )


def _is_same_value(a: ir.Value, b: ir.Value, one: ir.OpView, two: ir.OpView) -> bool:
    """Of both loops' iterations of one number: from outside, or that number."""
    numbers = [loop.regions[0].blocks[0].arguments[0] for loop in (one, two)]
    if a == numbers[0]:
        return b == numbers[1]
    return a == b


def _attributes(op: ir.OpView) -> dict[str, ir.Attribute]:
    return {name: op.attributes[name] for name in op.attributes}


def _loop_of(load: ir.OpView) -> ir.Operation:
    parent = load.operation.parent
    assert parent is not None, "a load of a loop"
    return parent.operation
