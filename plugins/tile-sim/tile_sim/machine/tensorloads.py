"""`tcgen05.ld` results that are still on their way to registers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from tile_sim.machine.group import Group
    from tile_sim.machine.wave import Wave

Array = np.ndarray
_RANDOM_RATE = 0.3


@dataclass(eq=False)
class Load:
    """One `tcgen05.ld` of several warps.

    `read(positions)` gives the values `[warps, registers, 32]` of the warps at some positions of
    `rows`; `registers` are the indices of the registers behind `slots`; `cells` is what check mode
    knows of each warp's part of it.
    """

    rows: Array
    slots: list[int]
    registers: frozenset[int]
    read: Callable[[Array], Array]
    place: int = -1
    delivered: bool = False
    cells: dict[int, Array] = field(default_factory=dict)


class TensorLoads:
    """Pending loads: tensor memory is read at `wait::ld`, or at once under `early`.

    The PTX ISA makes registers valid at the wait. Hardware guards them itself: an instruction that
    uses one waits for it. So does this class; check mode reports such a use where `strict` is set.
    """

    def __init__(self, wave: Wave, schedule: str, strict: bool) -> None:
        self.wave = wave
        self.schedule = schedule
        self.strict = strict
        self.items: list[Load] = []

    def issue(self, load: Load) -> None:
        if self._at_once():
            self._deliver(load, np.ones(len(load.rows), bool))
            load.delivered = True
        if self.wave.monitor is not None:
            # Whatever the schedule, a use before the wait is looked for.
            load.place = self.wave.monitor.place()
        elif load.delivered:
            return
        self.items.append(load)

    def _at_once(self) -> bool:
        if self.schedule == "random":
            return bool(self.wave.rng.random() < _RANDOM_RATE)
        return self.schedule == "early"

    def wait(self, rows: Array) -> None:
        self._settle(self.items, rows)

    def used(self, g: Group, registers: frozenset[int]) -> None:
        """An instruction names some of the registers that loads may be on their way to."""
        found = [load for load in self.items if not load.registers.isdisjoint(registers)]
        for load in self._settle(found, g.rows) if found else ():
            if self.strict and self.wave.monitor is not None:
                self.wave.monitor.used_before_wait(load.place)

    def _settle(self, loads: list[Load], rows: Array) -> list[Load]:
        """Deliver what is due to some warps; the loads of which something was."""
        wanted = np.zeros(self.wave.warps, bool)
        wanted[rows] = True
        settled = []
        for load in loads:
            due = wanted[load.rows]
            if not due.any():
                continue
            settled.append(load)
            if not load.delivered:
                self._deliver(load, due)
            for row in load.rows[due].tolist() if load.cells else ():
                self.wave.monitor.tensor.loaded(load.cells.pop(row))
            self._keep(load, ~due)
        self.items = [load for load in self.items if len(load.rows)]
        return settled

    def _deliver(self, load: Load, due: Array) -> None:
        values = load.read(np.flatnonzero(due))
        rows = load.rows[due]
        for i, slot in enumerate(load.slots):
            self.wave.slots[slot][rows] = values[:, i]

    def _keep(self, load: Load, left: Array) -> None:
        """Only some warps of a load still wait."""
        positions, read = np.flatnonzero(left), load.read
        load.rows = load.rows[left]
        load.read = lambda which: read(positions[which])
