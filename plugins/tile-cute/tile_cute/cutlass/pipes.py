"""Pipes: rings of stages that producers fill and consumers empty, and what each step does.

A stage has two mbarriers: `full`, at which producers arrive, and `empty`, at which consumers do.
All cursors begin at index 0, phase 0. A wait for parity p ends once the phase of that parity is
complete, so that a producer waits for the other parity: of a new barrier that one counts as
complete, and the first round goes through.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from tile_cute.cutlass.numbers import Numbers
from tile_cute.errors import LayoutError

N = TypeVar("N")

FULL, EMPTY = "full", "empty"


@dataclass(frozen=True)
class Step:
    """One step of the handshake.

    Attributes:
        barrier: `FULL` or `EMPTY`, the one of the cursor's stage.
        waits: the step waits, else it arrives.
        flipped: it waits for the parity that the cursor's phase is not.
    """

    barrier: str
    waits: bool
    flipped: bool = False


#: Step -> what it does; `try_` forms do the same once and say how it went.
HANDSHAKE: dict[str, Step] = {
    "producer_acquire": Step(EMPTY, waits=True, flipped=True),
    "producer_commit": Step(FULL, waits=False),
    "consumer_wait": Step(FULL, waits=True),
    "consumer_release": Step(EMPTY, waits=False),
}

#: Fields of a cursor.
CURSOR = ("index", "phase", "count")


def advance(n: Numbers[N], stages: int, cursor: dict[str, N]) -> dict[str, N]:
    """The cursor at the next stage: behind the last stage comes the first, in the other phase."""
    one = n.constant(1)
    index = n.add(cursor["index"], one)
    wraps = n.equal(index, n.constant(stages))
    return {
        "index": n.select(wraps, n.constant(0), index),
        "phase": n.select(wraps, n.xor(cursor["phase"], one), cursor["phase"]),
        "count": n.add(cursor["count"], one),
    }


# --- who takes part ------------------------------------------------------------------------------

#: How producers share stages. "cooperative": all fill each; "warp_specialized": there is one, and
#: one consumer; "strided_urem" and "strided_udiv": one fills a stage, number index % producers, or
#: index / (stages / producers); "cluster": all fill each, in every block of the cluster, and
#: consumers of all blocks read it.
EXECUTORS = ("cooperative", "warp_specialized", "strided_urem", "strided_udiv", "cluster")
STRIDED = ("strided_urem", "strided_udiv")


@dataclass(frozen=True)
class Shape:
    """Who takes part in a pipe; a participant is a warp.

    Attributes:
        producers, consumers: numbers of warps of the block, in order.
        ctas: blocks of the cluster whose consumers read a stage.
    """

    stages: int
    producers: tuple[int, ...]
    consumers: tuple[int, ...]
    executor: str = "cooperative"
    ctas: int = 1

    def check(self) -> None:
        """LayoutError for participants that the executor cannot have."""
        if self.executor not in EXECUTORS:
            raise LayoutError(f"expects an executor of {', '.join(EXECUTORS)}")
        if self.executor == "warp_specialized" and len(self.producers + self.consumers) != 2:
            raise LayoutError("expects one producer and one consumer of 'warp_specialized'")
        if self.executor == "strided_udiv" and self.stages % len(self.producers):
            raise LayoutError(
                f"expects stages in equal parts, but got {self.stages} for "
                f"{len(self.producers)} producers"
            )
        if self.ctas > 1 and self.executor != "cluster":
            raise LayoutError(f"expects executor 'cluster' for {self.ctas} blocks")

    def arrivals(self) -> tuple[int, int]:
        """How many arrivals complete a phase of the full and of the empty barrier."""
        full = 1 if self.executor in STRIDED else len(self.producers)
        return full, len(self.consumers) * self.ctas

    def filler(self, n: Numbers[N], index: N) -> N:
        """Which of the producers fills a stage, where it is one alone."""
        count = len(self.producers)
        if self.executor == "strided_urem":
            return n.rem(index, n.constant(count))
        return n.div(index, n.constant(self.stages // count))

    def producer_mask(self, n: Numbers[N], index: N) -> N:
        """Bit per warp: the producers that fill a stage."""
        if self.executor not in STRIDED:
            return n.constant(mask_of(self.producers))
        filler = self.filler(n, index)
        mask = n.constant(1 << self.producers[0])
        for place, warp in enumerate(self.producers[1:], 1):
            chosen = n.equal(filler, n.constant(place))
            mask = n.select(chosen, n.constant(1 << warp), mask)
        return mask


def mask_of(warps: tuple[int, ...]) -> int:
    """A bit for each warp."""
    return sum(1 << warp for warp in warps)


# --- ordered sequences ---------------------------------------------------------------------------


def sequence_slot(n: Numbers[N], length: int, index: N, group: N) -> N:
    """The barrier for which a group waits at a stage, of depth x length barriers."""
    return n.add(n.mul(index, n.constant(length)), group)


def next_group(n: Numbers[N], length: int, group: N) -> N:
    """The group whose turn comes behind: a group arrives for that one, never for itself."""
    following = n.add(group, n.constant(1))
    return n.select(n.equal(following, n.constant(length)), n.constant(0), following)


def first_phase(n: Numbers[N], group: N) -> N:
    """The first group need not wait for anybody: it begins one phase ahead."""
    return n.equal(group, n.constant(0))
