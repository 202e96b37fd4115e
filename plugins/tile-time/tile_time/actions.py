"""From the steps of a warp to what it issues: runs of chains, unrolled as in the SASS."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from tile_time.graph import PtxGraph
from tile_time.listing import Item, Listing
from tile_time.record import Mbarrier, Note, Step

Notes = dict[int, list[Note]]
_LOOK_AHEAD = 6
_WARP = 32


class Action(NamedTuple):
    """`key` names a list of items (`Plan.items`), `notes` are those of its runs."""

    key: int
    notes: tuple[Notes, ...]


@dataclass
class _Run:
    chain: int
    notes: Notes
    lanes: int


@dataclass
class Plan:
    """The lists of items that actions name, for all warps of a launch."""

    ptx: PtxGraph
    listing: Listing
    items: list[list[Item]] = field(default_factory=list)
    first_run: list[int] = field(default_factory=list)
    _keys: dict[tuple[str, int, int, int], int] = field(default_factory=dict)

    def actions(self, steps: list[Step]) -> list[Action]:
        """What a warp issues, in order."""
        runs = self._together(list(_without_polls(self._runs(steps))))
        found: list[Action] = [self._action("start", -1, 0, 0, ())]
        loops = self.ptx.loops
        before = -1  # the loop of the last chain
        count: dict[int, int] = {}
        at = 0
        while at < len(runs):
            chain = runs[at].chain
            loop = loops.inner[chain]
            self._enter(loop, before, found)
            before = loop
            entry = self.listing.chains.get(chain)
            unroll = entry.unroll if entry else 1
            taken = 1
            while taken < unroll and at + taken < len(runs) and runs[at + taken].chain == chain:
                taken += 1
            notes = tuple(run.notes for run in runs[at : at + taken])
            at += taken
            first = 0 if taken > 1 or unroll == 1 else count.get(chain, 0) % unroll
            count[chain] = count.get(chain, 0) + 1
            found.append(self._action("chain", chain, first, taken, notes))
        return found

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

    def _enter(self, loop: int, before: int, found: list[Action]) -> None:
        """What stands before the loops that `loop` is in and the last chain was not."""
        entered: list[int] = []
        while loop >= 0 and not self.ptx.loops.contains(loop, before):
            entered.append(loop)
            loop = self.ptx.loops.parent[loop]
        for one in reversed(entered):
            if one in self.listing.entered:
                found.append(self._action("enter", one, 0, 0, ()))

    def _action(
        self, what: str, which: int, first: int, taken: int, notes: tuple[Notes, ...]
    ) -> Action:
        key = self._keys.get((what, which, first, taken))
        if key is None:
            key = self._keys[what, which, first, taken] = len(self.items)
            if what != "chain":
                self.items.append(self.listing.entered.get(which, []))
            else:
                chain = self.listing.chains.get(which)
                self.items.append(chain.part(first, taken) if chain else [])
            self.first_run.append(first)
        return Action(key, notes)

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
            if again is not None:
                at = again
                continue
        yield run
        at += 1
