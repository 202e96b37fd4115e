"""From the steps of a warp to what it issues: runs of chains, unrolled as in the SASS."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tile_time.graph import PtxGraph
from tile_time.listing import Item, Listing
from tile_time.record import Mbarrier, Note, Step, bytes_of

Notes = dict[int, list[Note]]
_LOOK_AHEAD = 6
_WARP = 32


class Action(NamedTuple):
    """`key` names a list of items (`Plan.items`), `notes` are those of its runs."""

    key: int
    notes: tuple[Notes, ...]


class Placed(NamedTuple):
    """An item, and which of its action's runs it belongs to."""

    item: Item
    run: int


class _Piece(NamedTuple):
    """What a chain issues at once: its runs from `first` on, of the copies in the SASS."""

    chain: int
    first: int
    taken: int
    notes: tuple[Notes, ...]


@dataclass(slots=True)
class _Run:
    chain: int
    notes: Notes
    lanes: int


@dataclass
class Plan:
    """The lists of items that actions name, for all warps of a launch; `merged` has for each list
    the accesses, as (run, position), that items of other places make.

    An action is what a warp issues along a way without a way back: the pieces of several chains in
    the order of the SASS, since ptxas moves instructions between blocks, above all where it made
    predicates of branches.
    """

    ptx: PtxGraph
    listing: Listing
    items: list[list[Placed]] = field(default_factory=list)
    merged: list[frozenset[tuple[int, int]]] = field(default_factory=list)
    _keys: dict[Any, int] = field(default_factory=dict)
    _parts: dict[tuple[int, int, int], list[Item]] = field(default_factory=dict)

    def actions(self, steps: list[Step]) -> list[Action]:
        """What a warp issues, in order."""
        runs = self._together(list(_without_polls(self._runs(steps))))
        found: list[Action] = [self._entered(-1)]
        held: list[_Piece] = []  # since the last action
        reached: dict[int, int] = {}  # the last copy of each chain among them
        before = -1  # the loop of the last chain
        for piece in self._pieces(runs):
            loop = self._loop(self.ptx.loops.inner[piece.chain])
            again = reached.get(piece.chain, -1) >= piece.first
            if held and (loop != before or again or self._goes_back(held[-1], piece)):
                found.append(self._action(held))
                held, reached = [], {}
            if loop != before:
                found += self._enter(loop, before)
            before = loop
            held.append(piece)
            reached[piece.chain] = piece.first
        if held:
            found.append(self._action(held))
        return found

    def _goes_back(self, last: _Piece, piece: _Piece) -> bool:
        """Whether `piece` begins the next turn of a loop of which `last` is not the first part."""
        place = self.ptx.place_of
        return place[piece.chain] < place[last.chain] and piece.first <= last.first

    def _loop(self, loop: int) -> int:
        """The loop of PTX, or the one around it, that is one in the SASS, too."""
        while loop >= 0 and loop not in self.listing.loops:
            loop = self.ptx.loops.parent[loop]
        return loop

    def _pieces(self, runs: list[_Run]) -> Iterator[_Piece]:
        """Runs of one chain that are copies of one body in the SASS are issued together."""
        count: dict[int, int] = {}
        at = 0
        while at < len(runs):
            chain = runs[at].chain
            unroll = self.unroll_of(chain)
            taken = 1
            while taken < unroll and at + taken < len(runs) and runs[at + taken].chain == chain:
                taken += 1
            first = 0 if taken > 1 or unroll == 1 else count.get(chain, 0) % unroll
            count[chain] = count.get(chain, 0) + 1
            yield _Piece(chain, first, taken, tuple(run.notes for run in runs[at : at + taken]))
            at += taken

    def _together(self, runs: list[_Run]) -> list[_Run]:
        """Diverged threads meet again where no loop is: what they ran there at several times is
        issued once, when the last of them come."""
        last: dict[int, int] = {}
        for n, run in enumerate(runs):
            if self.ptx.loops.inner[run.chain] < 0:
                last[run.chain] = n
        kept: list[_Run] = []
        for n, run in enumerate(runs):
            end = last.get(run.chain, n)
            if end == n or run.lanes == _WARP:
                kept.append(run)
                continue
            later = runs[end]
            later.notes = {
                pos: [*run.notes.get(pos, ()), *later.notes.get(pos, ())]
                for pos in (*run.notes, *(p for p in later.notes if p not in run.notes))
            }
        return kept

    def _enter(self, loop: int, before: int) -> Iterator[Action]:
        """What stands before the loops that `loop` is in and the last chain was not."""
        entered: list[int] = []
        while loop >= 0 and not self.ptx.loops.contains(loop, before):
            entered.append(loop)
            loop = self.ptx.loops.parent[loop]
        for one in reversed(entered):
            if one in self.listing.entered:
                yield self._entered(one)

    def _entered(self, loop: int) -> Action:
        """What entering a loop issues; -1: what a kernel starts with."""
        key = self._keys.get(loop)
        if key is None:
            key = self._keys[loop] = len(self.items)
            self.items.append([Placed(item, 0) for item in self.listing.entered.get(loop, [])])
            self.merged.append(frozenset())
        return Action(key, ())

    def _action(self, pieces: list[_Piece]) -> Action:
        name = tuple(piece[:3] for piece in pieces)
        key = self._keys.get(name)
        if key is None:
            key = self._keys[name] = len(self.items)
            placed: list[Placed] = []
            merged: set[tuple[int, int]] = set()
            runs = 0
            for piece in pieces:
                first = runs - piece.first
                placed += [Placed(item, first + item.made.copy) for item in self._items(piece)]
                merged |= self._merged(piece, first)
                runs += piece.taken
            placed.sort(key=lambda one: self.listing.rank[one.item.index])
            self.items.append(placed)
            self.merged.append(frozenset(merged))
        return Action(key, tuple(notes for piece in pieces for notes in piece.notes))

    def _items(self, piece: _Piece) -> list[Item]:
        found = self._parts.get(piece[:3])
        if found is None:
            chain = self.listing.chains.get(piece.chain)
            found = chain.part(piece.first, piece.taken) if chain else []
            self._parts[piece[:3]] = found
        return found

    def _merged(self, piece: _Piece, first: int) -> set[tuple[int, int]]:
        chain = self.listing.chains.get(piece.chain)
        if chain is None:
            return set()
        copies = range(piece.first, piece.first + piece.taken)
        return {(first + copy, pos) for pos, copy in chain.merged if copy in copies}

    def unroll_of(self, chain: int) -> int:
        entry = self.listing.chains.get(chain)
        return entry.unroll if entry else 1

    def _runs(self, steps: list[Step]) -> Iterator[_Run]:
        """Steps of one chain, from its head on, are one run."""
        current: _Run | None = None
        for step in steps:
            chain = self.ptx.chain_of[step.block]
            if current is not None and chain == current.chain and step.block != chain:
                for pos, notes in (step.notes or {}).items():
                    current.notes.setdefault(pos, []).extend(notes)
                continue
            if current is not None:
                yield current
            current = _Run(chain, dict(step.notes or {}), step.lanes)
        if current is not None:
            yield current


def _failed(run: _Run) -> bool:
    """Whether the run asked an mbarrier that was not complete."""
    return any(
        isinstance(note, Mbarrier) and note.what == "wait" and not note.extra
        for notes in run.notes.values()
        for note in notes
    )


def _accesses(run: _Run) -> bool:
    """Whether the run asked for memory."""
    return any(bytes_of(note) for notes in run.notes.values() for note in notes)


def _without_polls(runs: Iterator[_Run]) -> Iterator[_Run]:
    """Drop the turns of a loop that asks until an mbarrier is complete, but for the last one.

    How often a loop polls is the simulator's own business; the model lets it wait once.
    """
    held = list(runs)
    at = 0
    while at < len(held):
        run = held[at]
        if _failed(run):
            again = next(
                (
                    n
                    for n in range(at + 1, min(at + 1 + _LOOK_AHEAD, len(held)))
                    if held[n].chain == run.chain
                ),
                None,
            )
            if again is not None and not any(map(_accesses, held[at:again])):
                at = again
                continue
        yield run
        at += 1
