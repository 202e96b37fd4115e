"""Stages filled by tensor maps: one thread issues, and everybody waits on the stage's mbarrier.

Each stage has a barrier of one arrival: the thread that issues the copies says how many bytes they
bring. Threads that read stages themselves do so by another proxy than copies; the fence between
their reads and the meeting after which a stage is filled again is `tileas-insert-barriers`' affair.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from tile_core.mlir import ir
from tile_tileas.access import TMA, AccessPlan
from tile_tileas.analysis.bounds import BoundsAnalysis
from tile_tileas.analysis.views import tiled_view
from tile_tileas.cluster.cutting import IN_ALL_CTAS
from tile_tileas.dialect.barriers import COPIER, LEADER, PAIR, WITH_WARP, in_teams
from tile_tileas.dialect.buffers import Buffer
from tile_tileas.kernel_spec import num_ctas
from tile_tileas.pipelining.filling import Place, Slot
from tile_tileas.pipelining.multistage import is_inside_loop
from tile_tileas.pipelining.prefetch import Prefetch
from tile_tileas.pipelining.writer import Writer
from tile_tileas.tma.barriers import BarrierPlace
from tile_tileas.tma.copies import Shared, TileCopy
from tile_tileas.tma.refusals import map_axes, map_numbers, not_on_host


class TmaLoads:
    """Loads of one loop that tensor maps can copy: `copies` by the tiles that they give."""

    def __init__(self, func: ir.Operation, loop: ir.OpView, bounds: BoundsAnalysis) -> None:
        self.copies: dict[ir.Value, TileCopy] = {}
        self._everywhere: set[ir.Value] = set()
        self._func, self._again = func, is_inside_loop(loop)
        self._ctas = num_ctas(func)
        self._bounds = bounds

    def takes(self, load: ir.OpView, buffer: Buffer) -> bool:
        """Whether the access is planned so, and `buffer` is made of boxes."""
        plan = AccessPlan.of(load)
        if plan is None or plan.copy != TMA:
            return False
        copy = TileCopy.of(load, buffer, self._bounds)
        if isinstance(copy, str) or copy.bytes % copy.boxes.alignment:
            return False  # stages lie one behind the other, and each has to start where a box may
        self.copies[load.results[0]] = copy
        if IN_ALL_CTAS in load.attributes:
            self._everywhere.add(load.results[0])
        return True

    def aligned(self, load: Prefetch) -> Prefetch:
        """The load with stages that start where patterns of its copies do."""
        copy = self.copies[load.load.results[0]]
        return replace(load, alignment=max(load.alignment, copy.boxes.alignment))

    @property
    def overhead(self) -> int:
        """Bytes beside the stages: barriers, and what stages leave to start where they have to."""
        return max((copy.boxes.alignment for copy in self.copies.values()), default=0)

    @property
    def are_made_by_kernel(self) -> bool:
        """Whether a block makes some of the maps before its first copy, as a launch cannot."""
        return any(not_on_host(_numbers(tile), self._func) for tile in self.copies)

    @property
    def _place(self) -> BarrierPlace:
        return BarrierPlace(self._func, again=self._again)

    def part(
        self, loads: Sequence[Prefetch], readers: int = 0, *, copier: bool = False, teams: int = 1
    ) -> Tma:
        """What copies these loads for one block, with barriers of their own; `readers`, `copier`
        and `teams` as `Tma`.
        """
        tiles = [load.load.results[0] for load in loads]
        copies = {tile: self.copies[tile] for tile in tiles}
        return Tma(copies, self._place, readers=readers, copier=copier, teams=teams)

    @property
    def is_shared(self) -> bool:
        """Whether blocks of a cluster copy into each other's stages."""
        return bool(self._shared_copies())

    def apart(self, readers: int, *, pair: bool = False, together: bool = False) -> Tma:
        """What copies them in an agent of its own, for `readers` warps of another one; for products
        of a `pair` each block what it has of them. `together`: tiles that all blocks of a cluster
        have whole in parts, to all.
        """
        shared = self._shared_copies() if together else {}
        copies = {**self.copies, **shared}
        ctas = self._ctas if shared else 1
        return Tma(copies, self._place, ctas, frozenset(shared), readers, apart=True, pair=pair)

    def filling(
        self, readers: int = 0, *, pair: bool = False, copier: bool = False, once: bool = False
    ) -> Tma:
        """What copies them: tiles that all blocks of a cluster have whole in parts, to all; for
        products of a `pair` each block what it has of them. `copier`: as `Tma`. `once`: barriers
        are made where the kernel begins, and go on through all runs of the loop.
        """
        place = BarrierPlace(self._func, again=self._again and not once)
        if pair:
            assert not self.is_shared, "each block of a pair has its own part"
            return Tma(dict(self.copies), place, self._ctas, pair=True, copier=copier)
        shared = self._shared_copies()
        copies = {**self.copies, **shared}
        return Tma(copies, place, self._ctas, frozenset(shared), readers, copier=copier)

    def _shared_copies(self) -> dict[ir.Value, TileCopy]:
        """Each block's part of the tiles that all blocks of a cluster have whole."""
        return {
            tile: divided
            for tile, copy in self.copies.items()
            if self._ctas > 1
            and tile in self._everywhere
            and (divided := copy.divided(self._ctas)) is not None
        }


class Tma:
    """Copies of the loads of one loop; `copies` has each by its tile.

    Of a cluster of `ctas` blocks each brings a part of the tiles in `shared` to all of them. As
    copies of others arrive in its memory, a stage is filled again when all blocks have read it:

        sync                  this block has
        arrive in cluster     the thread that issues copies says so to each block, its own included
        wait                  .. until all have

    For products that a `pair` of blocks makes together, bytes of both arrive at the first one's
    barrier, where its leader waits; that a stage has been read is what the products say, to both.
    """

    name = "tma"
    phased = True

    def __init__(
        self,
        copies: Mapping[ir.Value, TileCopy],
        place: BarrierPlace,
        ctas: int = 1,
        shared: Collection[ir.Value] = (),
        readers: int = 0,
        *,
        apart: bool = False,
        pair: bool = False,
        copier: bool = False,
        teams: int = 1,
    ) -> None:
        """`readers`: warps that say by themselves when they have read a stage (`release`); 0 if all
        threads have met before a stage is filled again. `apart`: another agent copies than reads;
        each goes round the stages by itself, and the barriers last as long as the kernel; products
        of all blocks say so that have a shared stage. `copier`:
        a thread of its own begins copies, and not the one that waits for them. `teams`: of several,
        the first thread of each waits for copies, and products of each say what they have read.
        """
        assert apart or not (shared and readers), "blocks of a cluster are told where threads meet"
        self._copies = copies
        self._place = place
        self._barrier: ir.Value | None = None
        self._first = next(iter(copies))
        self._ctas, self._shared = ctas, shared
        self._read: ir.Value | None = None
        self._cluster: Shared | None = None
        self._ahead = 0
        self._readers = readers
        self._empty: ir.Value | None = None
        self._apart = apart
        self._to_threads = False
        self._shares = False
        self._pair = pair
        self._of_pair: dict[str, ir.Attribute] = {PAIR: ir.UnitAttr.get()} if pair else {}
        self._of_teams: dict[str, ir.Attribute] = in_teams(teams)
        self._readers = teams if teams > 1 else self._readers
        copies_alone = {COPIER: ir.UnitAttr.get(), **self._of_teams}
        self._by: dict[str, ir.Attribute] = copies_alone if copier else {}

    @property
    def _bytes(self) -> int:
        """Bytes of a stage, of both blocks for a pair."""
        return sum(copy.bytes for copy in self._copies.values()) * (1 + self._pair)

    def prepare(self, at: Writer, stages: int, ahead: int) -> None:
        """Barriers in their first phase, seen by all threads and by copies."""
        if self._apart:
            self._barrier = self._place.made_once(at, stages, 1)
            self._empty = self._place.made_once(at, stages, self._readers * self._ctas)
            self._divide(at)
            return
        self._barrier = self._place.made(at, stages)
        if self._readers:
            self._empty = self._place.made(at, stages, self._readers)
        if not self._shared:
            self._place.seen(at, in_cluster=self._pair)
            return
        self._read, self._ahead = self._place.made(at, stages, self._ctas), ahead
        self._divide(at)
        self._place.seen(at, in_cluster=True)

    def _divide(self, at: Writer) -> None:
        """Which part of what blocks share this one copies."""
        if not self._shared:
            return
        rank = at.create("nv_tileas.cta_rank", [], [at.i32]).result
        mask = at.constant((1 << self._ctas) - 1, ir.IntegerType.get_signless(16))
        self._cluster = Shared(self._ctas, rank, mask)

    def share(self, other: Tma) -> None:
        """Have the stages of another one, and its barriers, in turns with it: it is the one that
        prepares and finishes.
        """
        self._barrier, self._empty, self._shares = other._barrier, other._empty, True

    def reclaim(self, at: Writer, slot: Slot) -> None:
        """Until every block of the cluster has read the stage, if they copy into each other's; or
        every warp, if those say so.
        """
        assert slot.phase is not None, "phased"
        how = {LEADER: ir.UnitAttr.get(), WITH_WARP: ir.UnitAttr.get()}
        if self._empty is not None:
            before = at.binary("xori", slot.phase, at.constant(1))
            at.create("nv_tileas.barrier_wait", [self._empty, slot.index, before], [], how)
        if self._read is None:
            return
        ctas = {"ctas": ir.IntegerAttr.get(at.i32, self._ctas)}
        at.create("nv_tileas.barrier_arrive_in_cluster", [self._read, slot.index], [], ctas)
        # Nobody arrives for stages that are filled before the loop: of those, the second filling
        # is the first one that is waited for.
        before = at.is_less(slot.index, at.constant(self._ahead))
        turned = at.create("arith.extui", [before], [at.i32]).result
        phase = at.binary("xori", slot.phase, turned)
        at.create("nv_tileas.barrier_wait", [self._read, slot.index, phase], [], how)

    def fill(self, at: Writer, load: Prefetch, into: ir.Value, slot: Slot, place: Place) -> None:
        """One thread begins the copies; with the first it says what all of them bring."""
        assert self._barrier is not None, "prepared"
        old, barrier = load.load, (self._barrier, slot.index)
        self._to_threads |= load.to_threads
        tile = old.results[0]
        if tile == self._first:
            size = {"bytes": ir.IntegerAttr.get(at.i32, self._bytes), **self._of_pair, **self._by}
            at.create("nv_tileas.barrier_expect", [*barrier], [], size)
        coords = [place.of(value) for value in old.coords]
        shared = self._cluster if tile in self._shared else None
        view = place.of(old.view)
        self._copies[tile].load(
            at, view, coords, into, barrier, shared, {**self._of_pair, **self._by}
        )

    def close(self, at: Writer, slot: Slot) -> None:
        """Nothing: a barrier completes when its bytes are there."""

    def wait(self, at: Writer, slot: Slot, pending: int, *, leader: bool = False) -> None:
        """Until the stage has its bytes."""
        assert self._barrier is not None, "prepared"
        assert slot.phase is not None, "phased"
        operands = [self._barrier, slot.index, slot.phase]
        alone = {LEADER: ir.UnitAttr.get(), **self._of_teams} if self._pair or leader else {}
        at.create("nv_tileas.barrier_wait", operands, [], {**alone, **self._of_pair})

    def await_read(self, at: Writer, slot: Slot) -> None:
        """Until products of all teams have read the stage of an iteration; each one of them is
        waited for, by the thread that copies.
        """
        assert slot.phase is not None, "phased"
        how: dict[str, ir.Attribute] = {LEADER: ir.UnitAttr.get(), **self._by}
        at.create("nv_tileas.barrier_wait", [self.emptied, slot.index, slot.phase], [], how)

    def to_fill(self, at: Writer) -> Slot:
        """The slot whose turn it is for the agent that copies."""
        return self._next(at, self._empty)

    def to_read(self, at: Writer) -> Slot:
        """The slot whose turn it is for the agent that reads."""
        return self._next(at, self._barrier)

    def release_next(self, at: Writer) -> None:
        """Each warp has read the stage whose turn it is to be given back."""
        self.release(at, self._next(at, self._empty).index)

    def _next(self, at: Writer, barrier: ir.Value | None) -> Slot:
        assert self._apart, "others know their slots"
        assert barrier is not None, "prepared"
        return Slot(*at.create("nv_tileas.barrier_next", [barrier], [at.i32, at.i32]).results)

    @property
    def emptied(self) -> ir.Value:
        """The barriers at which readers of stages arrive."""
        assert self._empty is not None, "there are readers that say so"
        return self._empty

    @property
    def is_read_by_threads(self) -> bool:
        """Whether threads read some of the stages, and not products alone."""
        return self._to_threads

    @property
    def is_apart(self) -> bool:
        """Whether another agent copies than reads."""
        return self._apart

    def release(self, at: Writer, stage: ir.Value) -> None:
        """Each warp has read a stage, for good."""
        assert self._empty is not None, "there are readers that say so"
        if self._to_threads:
            # They read by another proxy than copies write by.
            at.fence("async")
        how = {"by": ir.StringAttr.get("warp"), "kind": ir.StringAttr.get("generic")}
        at.create("nv_tileas.barrier_arrive", [self._empty, stage], [], how)

    def finish(self, at: Writer) -> None:
        """Nobody waits any more."""
        if self._apart or self._shares:
            return
        made = [self._barrier, self._read, self._empty]
        self._place.done(at, [barrier for barrier in made if barrier is not None])


def _numbers(tile: ir.Value) -> list[ir.Value]:
    """The values that the map is made of by which a tile is loaded."""
    load = tile.owner
    assert not isinstance(load, ir.Block), "some operation loads it"
    record = tiled_view(load.operation.opview.view)
    return map_numbers(record.memref, map_axes(record))
