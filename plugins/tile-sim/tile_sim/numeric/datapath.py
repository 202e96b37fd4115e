"""Which lanes of tensor memory rows of a `tcgen05.mma` use (PTX ISA, "Data path layout
organization", layouts A to G).

Banks are groups of lanes: each holds all the rows for its share of the columns. What a product
reads from tensor memory (A, sparsity metadata) has to be there for each bank.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

Array = np.ndarray


@dataclass(frozen=True)
class Datapath:
    """The layout of the `rows` rows of one CTA. `lanes_legal`: lanes the addresses may name."""

    name: str
    rows: int
    banks: int
    lanes_legal: tuple[int, ...] = (0,)

    def lanes(self, bank: int) -> Array:
        """The lane of each row."""
        row = np.arange(self.rows)
        if len(self.lanes_legal) > 1:
            return row % 16 + row // 16 * 32
        return row + bank * self.rows


_FULL = {"A": Datapath("A", 128, 1), "D": Datapath("D", 128, 1)}
_HALF = {"C": Datapath("C", 64, 1, (0, 16)), "F": Datapath("F", 64, 1, (0, 16))}
_BANKED = {"B": Datapath("B", 64, 2), "E": Datapath("E", 64, 2), "G": Datapath("G", 32, 4)}
LAYOUTS = {**_FULL, **_HALF, **_BANKED}


def choose(m: int, group: int, sparse: bool, stationary: bool) -> Datapath:
    """The layout of an M x N product; M is one that the instruction has."""
    if group == 2:
        name = "A" if m == 256 else "C" if sparse else "B"
    elif stationary:
        name = {32: "G", 64: "E", 128: "D"}[m]
    else:
        name = {64: "F", 128: "D"}[m]
    return LAYOUTS[name]
