"""`bar`, `barrier`, fences."""

from __future__ import annotations

import numpy as np

from tile_sim.isa.common import PRED, U32
from tile_sim.isa.loadstore import SCOPES
from tile_sim.machine.barriers import NAMED
from tile_sim.machine.group import Group, merge
from tile_sim.machine.orders import order_of
from tile_sim.program.decode import Decode, Exec, Getter, Sync, instruction

Array = np.ndarray


def whole_warps(g: Group) -> tuple[Group | None, Group | None]:
    """Warps of which all live threads are here, and the rest."""
    if g.mask is None:
        return g, None
    whole = (g.mask == g.wave.live[g.rows]).all(axis=1)
    return g.of_rows(whole), g.of_rows(~whole)


class CtaBarrier:
    """The waiting of `bar.sync` and `bar.red`: threads arrive, then wait for the generation."""

    def __init__(
        self, ids: Getter, counts: Getter | None, votes: Getter | None, aligned: bool, waits: bool
    ) -> None:
        self.ids = ids
        self.counts = counts
        self.votes = votes
        self.aligned = aligned
        self.waits = waits

    def _marks(self, g: Group) -> Array:
        """Bool `[warps, 32]`: the thread has arrived and waits here."""
        marks = g.wave.extra.get(self)
        if marks is None:
            marks = g.wave.extra[self] = np.zeros((g.wave.warps, 32), bool)
        return marks

    def arrive(self, new: Group | None, parked: Group | None) -> tuple[Group | None, Group | None]:
        if new is not None and parked is None and self._everyone(new):
            return new, None
        g = merge([x for x in (new, parked) if x is not None])
        marks = self._marks(g)
        fresh = g.part(g.active & ~marks[g.rows])
        if fresh is not None and self.aligned:
            fresh, _ = whole_warps(fresh)
        if fresh is not None:
            marks[fresh.lane_rows(), fresh.lane_ids()] = True
            self._arrive(fresh)
        waiting = g.active & marks[g.rows]
        done = waiting if not self.waits else waiting & g.wave.barriers.passed(g)
        if not done.any():
            return None, g
        passing = g.part(done)
        assert passing is not None
        marks[passing.lane_rows(), passing.lane_ids()] = False
        monitor = g.wave.monitor
        if monitor is not None and self.waits:
            rows, lanes = passing.lane_rows(), passing.lane_ids()
            monitor.cta_pass(passing, g.wave.barriers.barrier_of[rows, lanes])
        return passing, g.part(g.active & ~done)

    def _everyone(self, g: Group) -> bool:
        """All live threads of the wave come at once to an idle barrier: nothing to keep."""
        wave = g.wave
        if len(g.rows) != wave.warps or not self.waits or wave.monitor is not None:
            return False
        if self.counts is not None or self.votes is not None or np.ndim(ids := self.ids(g)):
            return False
        if g.mask is not None and not np.array_equal(g.mask, wave.live):
            return False
        if int(ids) >= NAMED or wave.barriers.arrived[:, int(ids)].any():
            return False
        wave.progress += 1
        return True

    def _arrive(self, g: Group) -> None:
        ids = g.lanes(np.asarray(self.ids(g))).astype(np.int64)
        counts = None if self.counts is None else g.lanes(np.asarray(self.counts(g)))
        votes = None if self.votes is None else g.lanes(np.asarray(self.votes(g)))
        g.wave.barriers.arrive(g, ids, counts, votes)


@instruction("bar", "barrier")
def bar(cx: Decode) -> Sync:
    """`bar{.cta}` is `barrier{.cta}.aligned`."""
    if cx.ins.op == "barrier" and cx.mods[:1] == ["cluster"]:
        from tile_sim.isa.cluster import barrier_cluster

        return barrier_cluster(cx)
    cx.flag("cta")
    aligned = cx.flag("aligned") or cx.ins.op == "bar"
    kind = cx.one_of("sync", "arrive", "red")
    if kind == "red":
        return _reduction(cx, aligned)
    cx.done((1, 2) if kind == "sync" else 2)
    ids = cx.src(0, U32)
    counts = cx.src(1, U32) if len(cx.operands) > 1 else None
    barrier = CtaBarrier(ids, counts, None, aligned, kind == "sync")
    return Sync(barrier.arrive, None, "barrier")


def _reduction(cx: Decode, aligned: bool) -> Sync:
    """`bar.red`: popc, and, or of a predicate over the threads of the barrier."""
    op = cx.one_of("popc", "and", "or")
    cx.type("u32" if op == "popc" else "pred")
    cx.done((3, 4))
    count_at = 2 if len(cx.operands) == 4 else None
    put = cx.put(0, U32 if op == "popc" else PRED)
    ids = cx.src(1, U32)
    counts = cx.src(count_at, U32) if count_at else None
    votes = cx.src(len(cx.operands) - 1, PRED)
    barrier = CtaBarrier(ids, counts, votes, aligned, True)

    def execute(g: Group) -> None:
        state = g.wave.barriers
        cta = g.wave.cta_of[g.rows][:, None]
        which = np.broadcast_to(ids(g), (len(g.rows), 32)).astype(np.int64)
        total, true = state.result[cta, which, 0], state.result[cta, which, 1]
        if op == "popc":
            put(g, true.astype(np.uint32))
        else:
            put(g, true == total if op == "and" else true > 0)

    return Sync(barrier.arrive, execute, "barrier")


# --- fences -------------------------------------------------------------------------------------

# Accesses are sequentially consistent here; only check mode looks at who was to see them.
_FENCES = ("sc", "acq_rel", "acquire", "release")


@instruction("membar", "fence")
def fence(cx: Decode) -> Exec:
    if cx.mods and (cx.mods[0] == "proxy" or "mbarrier_init" in cx.mods[0]):
        from tile_sim.isa.proxy import proxy_fence

        return proxy_fence(cx)
    semantic = "sc"
    if cx.ins.op == "membar":
        scope = cx.one_of("cta", "gl", "gpu", "sys")
    else:
        semantic = cx.one_of(*_FENCES, default="sc")
        cx.prefixed("sync_restrict::")
        scope = cx.option(*SCOPES)
    cx.done(0)
    order = order_of(semantic, scope)
    cx.program.scopes.add(order.scope)

    def execute(g: Group) -> None:
        if g.wave.monitor is not None:
            g.wave.monitor.orders.fence(g.rows, order)

    return execute
