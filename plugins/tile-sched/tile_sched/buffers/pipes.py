"""Which producers of a value reach which consumer, and the pipe that they share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tile_core.sched.dsu import DisjointSets


@dataclass(frozen=True)
class Member:
    """An operation that makes, or makes anew, the value `raw`; `reads` if it takes its old one."""

    op: int
    raw: str
    stage: int
    order: int
    reads: bool = False


@dataclass(frozen=True)
class Pipe:
    """One ring: `producers` by (stage, order), the first of which is canonical."""

    raw: str
    producers: tuple[int, ...]
    consumer: int
    depth: int  # slots by the stages it spans

    @property
    def canonical(self) -> int | None:
        """The producer that the ring is named after; None if it has none."""
        return self.producers[0] if self.producers else None


@dataclass(frozen=True)
class Solved:
    """The pipes of one consumer; `trivial` where nothing produces what it takes."""

    pipes: tuple[Pipe, ...]
    trivial: bool = False


def solve(raw: str, consumer: Member, producers: Sequence[Member]) -> Solved:
    """Group the producers of `raw` that reach `consumer`, each group into one pipe.

    A producer that takes the value as it was before belongs with the one that made it; one that
    does not starts a value of its own. Groups come by their earliest (stage, order).
    """
    work = sorted((p for p in producers if p.raw == raw), key=lambda p: (p.stage, p.order, p.op))
    if not work:
        return Solved((Pipe(raw, (), consumer.op, 1),), trivial=True)
    sets = DisjointSets()
    for before, member in pairwise(work):
        if member.reads:
            sets.union(member.op, before.op)
    groups: dict[int, list[Member]] = {}
    for member in work:
        groups.setdefault(sets.find(member.op), []).append(member)
    pipes = tuple(
        Pipe(
            raw,
            tuple(member.op for member in members),
            consumer.op,
            max(1, consumer.stage - members[0].stage + 1),
        )
        for members in groups.values()
    )
    return Solved(pipes)


def names(pipes: Sequence[Pipe]) -> Mapping[Pipe, str]:
    """`Pipe_<N>` by a counter in order."""
    return {pipe: f"Pipe_{at}" for at, pipe in enumerate(pipes)}
