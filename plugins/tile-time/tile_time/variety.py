"""Clusters of one launch that do different amounts of work, and which of them an SM runs.

Causal attention, ragged batches and persistent kernels with a remainder: what one cluster runs says
little of another. The warps' steps of a few clusters are counted; where they differ, more are, as
many as some SMs would run. Handed out in order, they tell which of these SMs ends last; a few of
its clusters, spread over the amounts, stand for all.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tile_time.record import TooLong

if TYPE_CHECKING:
    from tile_sim.machine.group import Group
    from tile_sim.machine.wave import Wave
    from tile_sim.program.flow import Block

#: How many clusters are counted, at most, how many of them for one SM; how many stand for those.
MOST_COUNTED, MOST_TURNS = 256, 16
MOST_KINDS = 4
_GOLDEN = 0.6180339887498949  # multiples of it are spread evenly over the unit interval


class Counter:
    """A recorder that counts the blocks which the warps of each CTA run.

    A cluster may wait for what another one would have written; `most` ends that with TooLong.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.restart()

    def restart(self) -> None:
        self.left = self.most
        self._counts = np.zeros(1, np.int64)  # by CTA of those that run

    def steps(self, first: int, ctas: int) -> int:
        """Blocks that some CTAs, next to one another, have run."""
        return int(self._counts[first : first + ctas].sum())

    def block(self, wave: Wave, block: Block, g: Group) -> None:
        self.left -= len(g.rows)
        if self.left < 0:
            raise TooLong
        counts = np.bincount(g.rows // wave.warps_per_cta)
        first, last = wave.first_cta, wave.first_cta + wave.ctas
        if last > len(self._counts):
            self._counts = np.concatenate([self._counts, np.zeros(last, np.int64)])
        self._counts[first : first + len(counts)] += counts

    def ignore(self, *_: Any, **__: Any) -> None:
        """Nothing to keep."""

    access: Any = ignore
    copy: Any = ignore
    mbarrier: Any = ignore
    bulk: Any = ignore
    product: Any = ignore
    commit: Any = ignore
    columns: Any = ignore


@dataclass(frozen=True)
class Variety:
    """`clusters` are those to record, those with the least steps first; `order` says which of them
    the clusters of an SM are like, from its first one to its last. `count`: how many the busiest SM
    runs, where that is not as many as any other (few large ones, or many small ones); 0 if it is.
    """

    clusters: tuple[int, ...]
    order: tuple[int, ...]
    count: int = 0

    def kind(self, number: int, of: int) -> int:
        """Which recorded cluster the `number`th of an SM's clusters is like, of `of` that run."""
        return self.order[number * len(self.order) // max(of, 1)]

    @property
    def typical(self) -> int:
        """The recorded cluster of a middling amount, by its place in `clusters`."""
        return len(self.clusters) // 2


SAME = Variety((0,), (0,))
#: Steps of each of the given clusters.
Counting = Callable[[Sequence[int]], list[int]]


def variety_of(counting: Counting, known: int, clusters: int, places: int, each: int) -> Variety:
    """What the clusters of a launch differ in.

    `places` clusters run side by side on the GPU, `each` one after the other on its busiest SM;
    `known` are the steps of the first one.
    """
    few = sorted({int(clusters * _GOLDEN), clusters // 2, clusters - 1} - {0})
    counts = [known, *counting(few)] if few else [known]
    if len(set(counts)) == 1:
        return SAME
    if each == 1:  # nobody waits for another one: the longest decides
        return Variety(([0, *few][counts.index(max(counts))],), (0,))
    turns, beside = each, places
    at = range(clusters)
    if clusters > MOST_COUNTED:
        turns = min(each, MOST_TURNS)
        beside = min(MOST_COUNTED // turns, places)
        total = turns * beside
        at = [
            min(int((i + i * _GOLDEN % 1) * clusters / total), clusters - 1) for i in range(total)
        ]
    counts = counting(at)
    busiest = _busiest(counts, beside)
    found = _grouped([counts[i] for i in busiest], list(zip(counts, at, strict=True)))
    return replace(found, count=max(round(len(busiest) * each / turns), 1))


def _busiest(counts: Sequence[int], places: int) -> list[int]:
    """Which of the clusters the place that ends last runs, if each goes to the first free one."""
    ends = [(0, place) for place in range(places)]
    held: list[list[int]] = [[] for _ in range(places)]
    for i, count in enumerate(counts):
        end, place = heapq.heappop(ends)
        held[place].append(i)
        heapq.heappush(ends, (end + count, place))
    return held[max(ends)[1]]


def _grouped(counts: Sequence[int], known: Sequence[tuple[int, int]]) -> Variety:
    """Groups of like amounts among `counts`, those of an SM's clusters; of all clusters that are
    `known`, (amount, number), the one next to a group's mean stands for it.
    """
    by_amount = sorted(range(len(counts)), key=lambda i: (counts[i], i))
    groups = min(MOST_KINDS, len(set(counts)))
    recorded: list[int] = []
    order = [0] * len(counts)
    for g in range(groups):
        members = by_amount[g * len(counts) // groups : (g + 1) * len(counts) // groups]
        mean = sum(counts[i] for i in members) / len(members)
        recorded.append(min(known, key=lambda one: (abs(one[0] - mean), one[1]))[1])
        for i in members:
            order[i] = g
    return Variety(tuple(recorded), tuple(order))
