"""Findings of check mode as they are told: one for each line of a program and kind.

An operation on a tile becomes many instructions, and what is wrong with it shows at each of them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field

from tile_sim.errors import Where
from tile_sim.machine.monitor import Finding


@dataclass
class LineFinding:
    """Findings of one kind between the same lines of a program, of which the first speaks for all.

    Attributes:
        count: accesses that showed it.
        places: the instructions, where they are known.
    """

    first: Finding
    count: int = 0
    places: set[Where | None] = field(default_factory=set)

    @property
    def instructions(self) -> int:
        """At how many instructions it was found."""
        return len(self.places)

    def __str__(self) -> str:
        times = f"{self.count} times" if self.count > 1 else ""
        if self.instructions > 1:
            times += f"; the first of {self.instructions} instructions of this line"
        return f"{self.first.text}{f' [{times}]' if times else ''}"


def by_line(findings: Iterable[Finding]) -> list[LineFinding]:
    """The findings, those of one kind and the same lines together, in the order of the first."""
    found: dict[Hashable, LineFinding] = {}
    for one in findings:
        key = (one.kind, _line(one.where), _line(one.other))
        if one.where is None or one.where.source is None:
            key = (*key, one.message)  # nobody knows what belongs together
        line = found.setdefault(key, LineFinding(one))
        line.count += one.count
        line.places.add(one.where)
    return list(found.values())


def _line(where: Where | None) -> Hashable:
    """A line of the program; of the PTX where that is all there is."""
    if where is None or where.source is None:
        return where
    return where.source.rpartition(":")[0]
