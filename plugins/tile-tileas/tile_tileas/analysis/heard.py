"""Who has heard of which accesses: all threads where they meet, one where others arrive for it.

A barrier whose turns are counted passes on what is known where its phase ends. Where every thread
arrives and the block's first one alone waits, what all did comes before what that thread does.
Where that thread then begins products, and all wait for their end, it comes before what all do.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from tile_tileas.analysis.pieces import Piece


@dataclass
class Accesses:
    """What threads may have read and written, and barriers whose turn some may be waiting for."""

    reads: set[Piece] = field(default_factory=set)
    writes: set[Piece] = field(default_factory=set)
    awaited: set[Piece] = field(default_factory=set)

    def _sets(self) -> tuple[set[Piece], ...]:
        return self.reads, self.writes, self.awaited

    def copy(self) -> Accesses:
        return Accesses(*map(set, self._sets()))

    def clear(self) -> None:
        for one in self._sets():
            one.clear()

    def keep(self, others: Accesses) -> None:
        """Those that are among `others`, too."""
        for mine, more in zip(self._sets(), others._sets(), strict=True):
            mine &= more

    def join(self, others: Accesses) -> bool:
        """Add `others`; whether there was one that is new."""
        before = [len(one) for one in self._sets()]
        for mine, more in zip(self._sets(), others._sets(), strict=True):
            mine |= more
        return before != [len(one) for one in self._sets()]


@dataclass
class Unheard:
    """Accesses since all threads met, by who may not have heard of them.

    Attributes:
        any_thread: nothing orders them before what any thread does next.
        first_thread: nothing orders them before what the block's first thread does next.
        since: by a barrier, those that its last phase does not come behind.
    """

    any_thread: Accesses = field(default_factory=Accesses)
    first_thread: Accesses = field(default_factory=Accesses)
    since: dict[Piece, Accesses] = field(default_factory=dict)

    def _all(self) -> list[Accesses]:
        return [self.any_thread, self.first_thread, *self.since.values()]

    def copy(self) -> Unheard:
        since = {barrier: one.copy() for barrier, one in self.since.items()}
        return Unheard(self.any_thread.copy(), self.first_thread.copy(), since)

    def join(self, other: Unheard) -> bool:
        """What may have been in either; whether that is more than before."""
        grown = self.any_thread.join(other.any_thread)
        grown |= self.first_thread.join(other.first_thread)
        for barrier in list(self.since):
            if barrier in other.since:
                grown |= self.since[barrier].join(other.since[barrier])
            else:  # nothing is known there
                del self.since[barrier]
                grown = True
        return grown

    def add(
        self,
        reads: Iterable[Piece] = (),
        writes: Iterable[Piece] = (),
        awaited: Iterable[Piece] = (),
    ) -> None:
        """Threads do these now."""
        new = Accesses(set(reads), set(writes), set(awaited))
        for one in self._all():
            one.join(new)

    def met(self) -> None:
        """All threads have met."""
        for one in self._all():
            one.clear()

    def all_arrive(self, barrier: Piece) -> None:
        """Every thread arrives: a phase that comes behind all so far."""
        self.since[barrier] = Accesses()

    def first_arrives(self, barrier: Piece) -> None:
        """The first thread arrives: a phase that comes behind what it has heard of."""
        self.since[barrier] = self.first_thread.copy()

    def wait_in_team(self, barrier: Piece, teams: set[Piece], *, first_alone: bool) -> None:
        """All threads, or the first one of each team alone, wait for the last phase of its team's
        barrier. It says what that team did, and so nothing of memory, which others work on, too;
        but of turns of `teams`' barriers, nobody else waits for those.
        """
        passed_on = self.since.get(barrier)
        if passed_on is not None:
            for one in (self.first_thread, *([] if first_alone else [self.any_thread])):
                one.awaited -= teams - passed_on.awaited

    def wait(self, barrier: Piece, *, first_alone: bool) -> None:
        """All threads, or the first one alone, wait for the barrier's last phase."""
        passed_on = self.since.get(barrier)
        if passed_on is not None:
            self.first_thread.keep(passed_on)
            if not first_alone:
                self.any_thread.keep(passed_on)
