"""Stages filled by tensor maps: one thread issues, and everybody waits on the stage's mbarrier.

Each stage has a barrier of one arrival: the thread that issues the copies says how many bytes they
bring. Threads that read stages themselves do so by another proxy than copies; the fence between
their reads and the meeting after which a stage is filled again is `tileas-insert-barriers`' affair.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tile_core.mlir import ir
from tile_tileas.access import BY_TMA, AccessPlan
from tile_tileas.analysis.bounds import BoundsAnalysis
from tile_tileas.dialect.buffers import Buffer
from tile_tileas.pipelining.filling import Place, Slot
from tile_tileas.pipelining.multistage import is_inside_loop
from tile_tileas.pipelining.prefetch import Prefetch
from tile_tileas.pipelining.writer import Writer
from tile_tileas.tma.barriers import BarrierPlace
from tile_tileas.tma.copies import TileCopy


class TmaLoads:
    """Loads of one loop that tensor maps can copy: `copies` by the tiles that they give."""

    def __init__(self, func: ir.Operation, loop: ir.OpView, bounds: BoundsAnalysis) -> None:
        self.copies: dict[ir.Value, TileCopy] = {}
        self._place = BarrierPlace(func, again=is_inside_loop(loop))
        self._bounds = bounds

    def takes(self, load: ir.OpView, buffer: Buffer) -> bool:
        """Whether the access is planned so, and `buffer` is made of boxes."""
        plan = AccessPlan.of(load)
        if plan is None or plan.copy != BY_TMA:
            return False
        copy = TileCopy.of(load, buffer, self._bounds)
        if isinstance(copy, str):
            return False
        self.copies[load.results[0]] = copy
        return True

    def aligned(self, load: Prefetch) -> Prefetch:
        """The load with stages that start where patterns of its copies do."""
        copy = self.copies[load.load.results[0]]
        return replace(load, alignment=max(load.alignment, copy.boxes.alignment))

    @property
    def overhead(self) -> int:
        """Bytes beside the stages: barriers, and what stages leave to start where they have to."""
        return max((copy.boxes.alignment for copy in self.copies.values()), default=0)

    def filling(self) -> Tma:
        """What copies them."""
        return Tma(self.copies, self._place)


class Tma:
    """Copies of the loads of one loop; `copies` has each by its tile."""

    name = "tma"
    phased = True

    def __init__(self, copies: Mapping[ir.Value, TileCopy], place: BarrierPlace) -> None:
        self._copies = copies
        self._place = place
        self._barrier: ir.Value | None = None
        self._first = next(iter(copies))

    @property
    def _bytes(self) -> int:
        return sum(copy.bytes for copy in self._copies.values())

    def prepare(self, at: Writer, stages: int) -> None:
        """Barriers in their first phase, seen by all threads and by copies."""
        self._barrier = self._place.made(at, stages)
        at.fence("mbarrier_init")
        at.sync()

    def fill(self, at: Writer, load: Prefetch, into: ir.Value, slot: Slot, place: Place) -> None:
        """One thread begins the copies; with the first it says what all of them bring."""
        assert self._barrier is not None, "prepared"
        old, barrier = load.load, (self._barrier, slot.index)
        if old.results[0] == self._first:
            size = {"bytes": ir.IntegerAttr.get(at.i32, self._bytes)}
            at.create("nv_tileas.barrier_expect", [*barrier], [], size)
        coords = [place.of(value) for value in old.coords]
        self._copies[old.results[0]].load(at, place.of(old.view), coords, into, barrier)

    def close(self, at: Writer, slot: Slot) -> None:
        """Nothing: a barrier completes when its bytes are there."""

    def wait(self, at: Writer, slot: Slot, pending: int) -> None:
        """Until the stage has its bytes."""
        assert self._barrier is not None, "prepared"
        assert slot.phase is not None, "phased"
        operands = [self._barrier, slot.index, slot.phase]
        at.create("nv_tileas.barrier_wait", operands)

    def finish(self, at: Writer) -> None:
        """Nobody waits any more."""
        assert self._barrier is not None, "prepared"
        self._place.done(at, self._barrier)
