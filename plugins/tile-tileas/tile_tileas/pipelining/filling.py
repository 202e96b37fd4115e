"""The seam of pipelined loops: how the stages of buffers are filled and waited for.

A filling is one way of copying (cp.async, TMA, ...) at work for one loop, which may have several:

    prepare                       once, before the first copy
    fill of iterations 0 .. ahead-1, each in a branch that is taken if there is such an iteration;
        close behind the branch, taken or not
    for i:
        wait                      stage i is there for the thread that waits
        one sync of the agent     it is there for all, and nobody reads the stage refilled next
        reclaim                   nor does another block that copies go to
        fill of iteration i+ahead, in its branch; close
        the body
    finish                        once, behind the loop
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from tile_core.mlir import ir
from tile_tileas.pipelining.prefetch import Prefetch
from tile_tileas.pipelining.writer import Writer


@dataclass(frozen=True)
class Slot:
    """The stage of an iteration: `index` (i32) into the buffers, and how often (modulo two) the
    ring has been gone around before (i32), if some filling of the loop is `phased`.
    """

    index: ir.Value
    phase: ir.Value | None = None


def following(at: Writer, slot: Slot, stages: int) -> Slot:
    """The slot of the next iteration, of so many stages."""
    if stages == 1:
        turn = slot.phase and at.binary("xori", slot.phase, at.constant(1))
        return Slot(at.constant(0), turn)
    bumped = at.plus(slot.index, 1)
    index = at.select(bumped, stages, at.constant(0), bumped)
    if slot.phase is None:
        return Slot(index)
    turned = at.binary("xori", slot.phase, at.constant(1))
    return Slot(index, at.select(bumped, stages, turned, slot.phase))


@dataclass(frozen=True)
class Place:
    """What values of the loop's body are in the iteration that is loaded."""

    values: Mapping[ir.Value, ir.Value]

    def of(self, value: ir.Value) -> ir.Value:
        """The value there; values from outside of the loop are themselves."""
        return self.values.get(value, value)


class Filling(Protocol):
    """One way of copying, for one loop. `phased`: its waits need the phase of a stage."""

    name: str
    phased: bool

    def prepare(self, at: Writer, stages: int, ahead: int) -> None:
        """What must be there before the first copy, such as barriers; so many stages are filled
        before the loop.
        """
        ...

    def reclaim(self, at: Writer, slot: Slot) -> None:
        """Inside of the loop, before a stage is filled that all threads of the block have read."""
        ...

    def fill(self, at: Writer, load: Prefetch, into: ir.Value, slot: Slot, place: Place) -> None:
        """Begin to copy the tile of `load` into `into`, the stage `slot` of its buffer."""
        ...

    def close(self, at: Writer, slot: Slot) -> None:
        """The copies of an iteration have begun, or there is no such iteration."""
        ...

    def wait(self, at: Writer, slot: Slot, pending: int) -> None:
        """Until the copies of all iterations but the last `pending` ones have landed."""
        ...

    def finish(self, at: Writer) -> None:
        """Behind the loop."""
        ...
