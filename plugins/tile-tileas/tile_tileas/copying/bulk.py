"""Stages filled by bulk copies: one thread begins a copy for each run, and all wait on the stage's
mbarrier.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tile_cute.linear import strided

from tile_core.mlir import ir
from tile_tileas.access import BULK, AccessPlan
from tile_tileas.analysis.caches import handed_on
from tile_tileas.analysis.views import TiledView, tiled_view
from tile_tileas.copying.rows import Runs, runs_of
from tile_tileas.dialect import distributed
from tile_tileas.dialect.buffers import Buffer, async_token
from tile_tileas.dialect.staging import subtile_layout
from tile_tileas.pipelining.filling import Place, Slot
from tile_tileas.pipelining.multistage import is_inside_loop
from tile_tileas.pipelining.prefetch import Prefetch
from tile_tileas.pipelining.writer import Writer
from tile_tileas.tma.barriers import BarrierPlace


@dataclass(frozen=True)
class RunCopy:
    """The runs of one tile, the type of the part of a stage that holds one, and what copies say to
    L2.
    """

    view: TiledView
    runs: Runs
    part: ir.Type
    hints: Mapping[str, ir.Attribute]

    @property
    def bytes(self) -> int:
        """Of all runs."""
        return self.runs.bytes * len(self.runs.origins)

    def load(
        self,
        at: Writer,
        coords: Sequence[ir.Value],
        base: ir.Value,
        into: ir.Value,
        barrier: Sequence[ir.Value],
    ) -> None:
        """Copies of the tile at `coords` to `into`; `barrier` and its stage get the bytes."""
        start = self._start(at, coords)
        size = {
            "bytes": ir.IntegerAttr.get(at.i32, self.runs.bytes),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 1, 1, 1]),
            **self.hints,
        }
        for origin in self.runs.origins:
            offset = start
            for axis, by in enumerate(origin):
                if by:
                    step = at.binary("muli", self._stride(at, axis), at.constant(by, at.i64))
                    offset = at.binary("addi", offset, step)
            source = at.create("nv_tileaa.addptr", [base, offset], [base.type]).result
            operands = [source, self._part(at, into, origin), *barrier]
            at.create("nv_tileas.async_copy", operands, [async_token()], size)

    def _start(self, at: Writer, coords: Sequence[ir.Value]) -> ir.Value:
        """Where the tile begins behind the view's base, in elements."""
        found = at.constant(0, at.i64)
        for axis, coord in enumerate(coords):
            first = at.binary("muli", at.wide(coord), at.constant(self.view.steps[axis], at.i64))
            moved = at.binary("muli", first, self._stride(at, axis))
            found = at.binary("addi", found, moved)
        return found

    def _stride(self, at: Writer, axis: int) -> ir.Value:
        stride = self.view.memref.strides[self.view.dim_map[axis]]
        return at.constant(stride, at.i64) if isinstance(stride, int) else at.wide(stride)

    def _part(self, at: Writer, into: ir.Value, origin: tuple[int, ...]) -> ir.Value:
        if into.type == self.part:
            return into
        pairs = zip(origin, self.runs.extents, strict=True)
        indices = [at.constant(start // extent) for start, extent in pairs]
        operands = [into, at.constant(0), *indices]
        return at.create("nv_tileas.buffer_view", operands, [self.part]).result


def run_copy(load: ir.OpView, plan: AccessPlan, buffer: Buffer) -> RunCopy | None:
    """The copies of a load to `buffer`; None if that does not hold its runs one by one."""
    view = tiled_view(load.view)
    runs = runs_of(view, plan.order)
    layout = None if buffer.layout is None else subtile_layout(buffer.layout, runs.extents)
    if layout is None or layout != strided(runs.extents, plan.order):
        return None
    plain = ir.RankedTensorType.get(runs.extents, view.memref.element)
    held = ir.RankedTensorType(distributed(plain, layout))
    return RunCopy(view, runs, Buffer(held, buffer.space, 1).type, handed_on(load))


class BulkLoads:
    """Loads of one loop that bulk copies make: `copies` by the tiles that they give."""

    #: Bytes beside the stages: their barriers.
    overhead = 128

    def __init__(self, func: ir.Operation, again: bool) -> None:
        self.copies: dict[ir.Value, RunCopy] = {}
        self._place = BarrierPlace(func, again=again)

    @staticmethod
    def of_loop(func: ir.Operation, loop: ir.OpView) -> BulkLoads:
        """For the loads of a loop, which may itself run again."""
        return BulkLoads(func, is_inside_loop(loop))

    def takes(self, load: ir.OpView, buffer: Buffer) -> bool:
        """Whether the access is planned so, and `buffer` holds its runs."""
        plan = AccessPlan.of(load)
        if plan is None or plan.copy != BULK:
            return False
        copy = run_copy(load, plan, buffer)
        if copy is not None:
            self.copies[load.results[0]] = copy
        return copy is not None

    def filling(self) -> Bulk:
        """What copies them."""
        return Bulk(self.copies, self._place)


class Bulk:
    """Copies of the loads of one loop, each by its tile."""

    name = "bulk"
    phased = True

    def __init__(self, copies: Mapping[ir.Value, RunCopy], place: BarrierPlace) -> None:
        self._copies, self._place = copies, place
        self._first = next(iter(copies))
        self._barrier: ir.Value | None = None

    def prepare(self, at: Writer, stages: int, ahead: int) -> None:
        """Barriers in their first phase, seen by all threads and by copies."""
        self._barrier = self._place.made(at, stages)
        self._place.seen(at)

    def reclaim(self, at: Writer, slot: Slot) -> None:
        """Nothing: a thread fills stages of its own block."""

    def fill(self, at: Writer, load: Prefetch, into: ir.Value, slot: Slot, place: Place) -> None:
        """One thread begins the copies; with the first it says what all of them bring."""
        assert self._barrier is not None, "prepared"
        old, barrier = load.load, (self._barrier, slot.index)
        tile = old.results[0]
        if tile == self._first:
            size = sum(copy.bytes for copy in self._copies.values())
            expected = {"bytes": ir.IntegerAttr.get(at.i32, size)}
            at.create("nv_tileas.barrier_expect", [*barrier], [], expected)
        copy = self._copies[tile]
        coords = [place.of(value) for value in old.coords]
        # The view may be of an iteration; what it is made of then is that of another one, too.
        view = tiled_view(place.of(old.view))
        moved = replace(copy, view=view)
        moved.load(at, coords, view.memref.base, into, barrier)

    def close(self, at: Writer, slot: Slot) -> None:
        """Nothing: a barrier completes when its bytes are there."""

    def wait(self, at: Writer, slot: Slot, pending: int) -> None:
        """Until the stage has its bytes."""
        assert self._barrier is not None, "prepared"
        assert slot.phase is not None, "phased"
        at.create("nv_tileas.barrier_wait", [self._barrier, slot.index, slot.phase])

    def finish(self, at: Writer) -> None:
        """Nobody waits any more."""
        assert self._barrier is not None, "prepared"
        self._place.done(at, [self._barrier])
