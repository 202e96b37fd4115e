"""`tcgen05.ld` results that are still on their way to registers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from tile_sim.machine.wave import Wave

Array = np.ndarray
_POISON = np.uint32(0x7FA5C0DE)


class TensorLoads:
    """Pending loads of each warp: delivered at `wait::ld`, or at once under `early`."""

    def __init__(self, wave: Wave, schedule: str) -> None:
        self.wave = wave
        self.schedule = schedule
        self.items: list[tuple[Array, list[int], Array]] = []

    def issue(self, rows: Array, slots: list[int], values: Array) -> None:
        """`values` are `[warps, registers, 32]`."""
        at_once = self.schedule == "early"
        for i, slot in enumerate(slots):
            self.wave.slots[slot][rows] = values[:, i] if at_once else _POISON
        if not at_once:
            self.items.append((rows, slots, values))

    def wait(self, rows: Array) -> None:
        wanted = np.zeros(self.wave.warps, bool)
        wanted[rows] = True
        left = []
        for item_rows, slots, values in self.items:
            due = wanted[item_rows]
            for i, slot in enumerate(slots):
                self.wave.slots[slot][item_rows[due]] = values[due, i]
            if not due.all():
                left.append((item_rows[~due], slots, values[~due]))
        self.items = left
