"""Loops whose loads have stages of their own, waited for and filled anew each in its place.

As `Multistage`, but that nobody meets where an iteration begins: stages are read by products that
somebody waits for in the body.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tile_core.mlir import ir
from tile_tileas.pipelining.filling import Slot
from tile_tileas.pipelining.multistage import Fillings, Multistage


@dataclass(frozen=True)
class Spot:
    """Where one filling has its place in a body: it is waited for before `read`, and its stage of
    the iteration before is filled anew behind `free`. Loads of such loops carry nothing.
    """

    read: ir.OpView
    free: ir.OpView


class Spotted(Multistage):
    """One `scf.for`; `spots` are those of the fillings, in their order."""

    def __init__(
        self, loop: ir.OpView, fillings: Fillings, stages: int, spots: Sequence[Spot]
    ) -> None:
        super().__init__(loop, fillings, stages)
        assert not self.carried, "loads carry nothing"
        self._spots = spots

    @property
    def _meets_in_each_step(self) -> bool:
        return False

    def _step(self, slot: Slot, places: list[ir.Value]) -> list[ir.Value]:
        at = self._at
        for load in self.loads:
            self._read(load, slot)
        for spot, (filling, loads) in zip(self._spots, self.fillings, strict=True):
            at.move(ir.InsertionPoint(spot.read))
            filling.wait(at, slot, self.ahead - 1)
            at.move(ir.InsertionPoint.after(spot.free))
            self._fetch_next(slot, [], [(filling, loads)])
        return places
