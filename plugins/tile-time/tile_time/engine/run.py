"""The event loop: clusters of CTAs on their SMs, warp by warp, in order of time."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tile_core.machines import Machine
from tile_time.actions import Action
from tile_time.engine.issue import HANDLERS, SYNCHRONISING, simple
from tile_time.engine.memory import L1, Requests, Traffic
from tile_time.engine.ops import (
    BARRIER,
    CAUSES,
    ISSUE,
    LATENCY,
    LAUNCH,
    NONE,
    PIPE,
    PIPES,
    TENSOR,
    Op,
)
from tile_time.engine.state import Cluster, Cta, Named, Phase, Sm, Warp, Way, summed
from tile_time.record import Barrier, Bulk, Commit, Mbarrier, Note, Product, bytes_of
from tile_time.variety import Variety

_MMA = PIPES.index("mma")
#: The scoreboards of each mask of them.
_BOARDS = tuple(tuple(n for n in range(6) if mask >> n & 1) for mask in range(64))
_NONE: tuple[Note, ...] = ()


def _with(ops: Sequence[Op], extra: Sequence[Op]) -> list[Op]:
    """Ops of runs, each behind the others of its run."""
    last = {op.run: n for n, op in enumerate(ops)}
    behind: dict[int, list[Op]] = {}
    for op in extra:
        behind.setdefault(last.get(op.run, len(ops) - 1), []).append(op)
    found = list(behind.get(-1, ()))
    for n, op in enumerate(ops):
        found += [op, *behind.get(n, ())]
    return found


@dataclass
class Load:
    """What runs: the actions of each warp of each CTA of a cluster, and the ops of each key."""

    kinds: Sequence[Sequence[Sequence[Sequence[Action]]]]  # [kind of cluster][cta][warp]
    variety: Variety  # which kind the clusters of an SM are
    ops: Sequence[Sequence[Op]]  # by key of an action
    #: (Run, position) of the notes that the ops of a key take, or that other ones do.
    handled: Sequence[frozenset[tuple[int, int]]]
    merged: Sequence[frozenset[tuple[int, int]]]  # those of other ones
    made_as: Mapping[int, str]  # kinds of accesses that no SASS is found for, by position
    resident: int  # clusters at a time
    clusters: int  # altogether


@dataclass
class Outcome:
    """When each cluster ended, what the SM's parts did, and the critical path."""

    ends: list[float]
    cycles: float
    busy: dict[str, float]
    path: dict[int, float]  # line << 4 | cause -> clk
    issued: int
    forced: int  # waits that nothing ended
    unmade: frozenset[int]  # positions of accesses that no SASS is found for
    marks: list[tuple[str, str, float, float]]  # row, name, start, end


@dataclass
class Engine:
    """Runs a load on one SM (or one for each CTA of a cluster)."""

    machine: Machine
    load: Load
    traffic: Traffic
    active: float  # SMs at work
    l1: float  # bytes of it for a CTA
    mhz: float
    marking: float = 0.0  # clk of the trace
    most: float = float("inf")  # instructions to issue
    heap: list[tuple[float, int, Any]] = field(default_factory=list)
    ends: list[float] = field(default_factory=list)
    marks: list[tuple[str, str, float, float]] = field(default_factory=list)
    issued: int = 0
    forced: int = 0
    bytes: dict[int, float] = field(default_factory=dict)  # asked for, by position
    ended: Counter[int] = field(default_factory=Counter)  # how often, by the id of warps' actions
    unmade: set[int] = field(default_factory=set)  # positions of accesses without SASS

    def __post_init__(self) -> None:
        self.requests = Requests(self.machine, self.traffic)
        size = len(self.load.kinds[0])
        self.sms = [Sm(self.machine, self.active, self.mhz) for _ in range(size)]
        self._l1: dict[int, L1] = {}
        self._serial = 0
        self._started = 0
        self.live: set[Warp] = set()
        self._last: Warp | None = None

    # --- the loop ---------------------------------------------------------------------------

    def run(self) -> Outcome:
        for _ in range(min(self.load.resident, self.load.clusters)):
            self._start(self._claim(), 0.0, None)
        while (self.heap or self.live) and self.issued < self.most:
            if not self.heap:
                self._force()
                continue
            t, _, what = heapq.heappop(self.heap)
            while isinstance(what, Warp):
                following = self._go(what, t)
                if following is None or self.issued >= self.most:
                    break
                t, _, what = following
            else:
                what(t)
        return self._outcome()

    def later(self, t: float, what: Warp | Callable[[float], None]) -> None:
        self._serial += 1
        heapq.heappush(self.heap, (t, self._serial, what))

    def _instead(self, t: float, what: Warp) -> tuple[float, int, Any]:
        """Put off to `t`; what is to be done first."""
        self._serial += 1
        return heapq.heappushpop(self.heap, (t, self._serial, what))

    def _claim(self) -> int:
        """The number of the next cluster, which nobody else starts."""
        self._started += 1
        return self._started - 1

    def _start(self, number: int, t: float, way: Way) -> None:
        """A cluster takes a free place."""
        cluster = Cluster(number, start=t)
        delay = self.machine.launch.cta
        kind = self.load.variety.kind(cluster.number, self.load.clusters)
        for place, warps in enumerate(self.load.kinds[kind]):
            cta = Cta(place, cluster, self.sms[place])
            cluster.ctas.append(cta)
            cta.left = len(warps)
            for w, actions in enumerate(warps):
                begin = t + delay
                # Residents do not stand on the same sub-core with the same warp.
                sub = (w + cluster.number * len(warps)) % int(self.machine.chip.sub_cores)
                warp = Warp(cta, w, sub, cta.sm, actions, begin, (way, LAUNCH, delay))
                cta.warps.append(warp)
                self.live.add(warp)
                self.later(begin, warp)
        cluster.left = len(cluster.ctas)

    def _go(self, w: Warp, t: float) -> tuple[float, int, Any] | None:
        """Issue what the warp can until something else comes first, which is returned; None where
        the warp ends or waits."""
        heap, sub, boards = self.heap, w.sub, w.boards
        slot, pipes = w.sm.slot, w.sm.pipes[sub]
        while True:
            if w.at >= len(w.ops) and not self._advance(w):
                self._finish(w, max(t, w.time))
                return None
            op = w.ops[w.at]
            when, cause = w.time, LATENCY
            for n in _BOARDS[op.wait]:
                if boards[n] > when:
                    when, cause = boards[n], w.board_cause[n]
            if slot[sub] > when:
                when, cause = slot[sub], ISSUE
            if op.pipe >= 0 and pipes[op.pipe] > when:
                when, cause = pipes[op.pipe], TENSOR if op.pipe == _MMA else PIPE
            if when > t:
                if heap and heap[0][0] < when:
                    return self._instead(when, w)
                t = when
            w.at += 1
            if self._issue(w, op, t, cause):
                return None
            if w.time > t:
                t = w.time
            if heap and heap[0][0] < t:
                return self._instead(t, w)

    def _issue(self, w: Warp, op: Op, t: float, cause: int) -> bool:
        """True where the warp stops and is woken by something else."""
        self.issued += 1
        if w.time < self.marking:
            self._mark_warp(w, op, t, cause)
        # What was waited for, the issue itself, and the rest of the stall: one part of the way.
        w.way = (w.way, op.key, t - w.time, cause, op.stall)
        w.time = t + op.stall
        w.sm.slot[w.sub] = t + 1.0
        if op.pipe >= 0:
            pipes = w.sm.pipes[w.sub]
            pipes[op.pipe] = max(t, pipes[op.pipe]) + op.gap
            if op.pipe == _MMA:
                self.mark(w.sm, f"tensor {w.sub}", t, t + op.gap, op.text)
                w.sm.use("tensor", op.gap / self.machine.chip.sub_cores)
                w.sm.use("flops", op.flops)
        handler = HANDLERS.get(op.kind)
        if handler is None:  # most instructions
            return (op.write != NONE or op.read != NONE) and simple(self, w, op, t, _NONE)
        notes: Sequence[Note] = _NONE
        if w.notes and op.pos >= 0 and op.run < len(w.notes):
            notes = w.notes[op.run].get(op.pos, _NONE)
        return handler(self, w, op, t, notes)

    def _advance(self, w: Warp) -> bool:
        """The next action; notes that no instruction takes are handled by ops of their own."""
        while True:
            w.action += 1
            if w.action >= len(w.actions):
                return False
            action = w.actions[w.action]
            ops = self.load.ops[action.key]
            extra = self._left_over(action)
            w.ops = _with(ops, extra) if extra else ops
            w.notes, w.at = action.notes, 0
            if w.ops:
                return True

    def _left_over(self, action: Action) -> list[Op]:
        handled = self.load.handled[action.key]
        found: list[Op] = []
        for run, notes in enumerate(action.notes):
            found += [
                self._alone(pos, run, several)
                for pos, several in notes.items()
                if (run, pos) not in handled
            ]
        return found

    def _alone(self, pos: int, run: int, notes: Sequence[Note]) -> Op:
        """What does that which no SASS is found for: it asks for its bytes, and nobody waits."""
        kind = "synthetic"
        if not isinstance(notes[0], SYNCHRONISING):
            kind = self.load.made_as.get(pos, kind)
            self.unmade.add(pos)
        return Op(kind, -1, 0.0, 0.0, 1, 0, NONE, NONE, 0, "", pos, run, 1)

    def asked(self, op: Op, note: Note) -> float:
        """Bytes that an instruction asks for, of those of an access its part."""
        size = bytes_of(note) / op.share
        self.bytes[op.pos] = self.bytes.get(op.pos, 0.0) + size
        return size

    def _finish(self, w: Warp, t: float) -> None:
        w.done = True
        self.ended[id(w.actions)] += 1
        self.live.discard(w)
        w.time = t
        if self._last is None or t >= self._last.time:
            self._last = w
        w.cta.left -= 1
        cluster = w.cta.cluster
        self._check_named(w.cta)
        self._complete_cluster(cluster)
        if w.cta.left == 0:
            self._l1.pop(id(w.cta), None)
            cluster.left -= 1
        if cluster.left == 0 and cluster.end == 0.0:
            cluster.end = t
            self.ends.append(t)
            if self._started < self.load.clusters:
                free = t + self.machine.launch.exit
                way = (w.way, LAUNCH, self.machine.launch.exit)
                # Claimed now: another cluster may end before this place is free.
                following = self._claim()
                self.later(free, lambda now: self._start(following, now, way))

    def _force(self) -> None:
        """Nothing can go on though warps wait: a wait that the model does not understand ends."""
        self.forced += 1
        w = min(self.live, key=lambda w: (w.time, w.cta.number, w.number))
        for cta in w.cta.cluster.ctas:
            for named in (*cta.named.values(), w.cta.cluster.joined):
                named.waiting = [x for x in named.waiting if x[0] is not w]
            for phase in cta.phases.values():
                phase.waiting = [x for x in phase.waiting if x[0] is not w]
        self.later(w.time, w)

    def least_clk(self, scale: float) -> float:
        """What DRAM takes for `scale` times the bytes of this run. The pace of few clusters may be
        smaller: what they store waits in L2 for its turn.
        """
        dram = self.sms[0].dram
        return self.sms[0].busy.get("DRAM", 0.0) * scale / dram.rate

    def _outcome(self) -> Outcome:
        sm = self.sms[0]
        if self.live:  # it was ended: what is there now counts
            self._last = max(self.live, key=lambda w: (w.time, -w.cta.number, -w.number))
        end = self._last.time if self.live and self._last else max(self.ends, default=0.0)
        drained = max(end, sm.l2_port, sm.l2.free, sm.dram.free)
        path = summed(self._last.way if self._last else None)
        return Outcome(
            self.ends, drained, dict(sm.busy), path, self.issued, self.forced,
            frozenset(self.unmade), self.marks,
        )  # fmt: skip

    def l1_of(self, cta: Cta) -> L1:
        found = self._l1.get(id(cta))
        if found is None:
            found = self._l1[id(cta)] = L1(self.l1)
        return found

    def mark(self, sm: Sm, row: str, start: float, end: float, name: str) -> None:
        if start < self.marking and sm is self.sms[0]:
            self.marks.append((row, name, start, end))

    def _mark_warp(self, w: Warp, op: Op, t: float, cause: int) -> None:
        """What a warp waits for, and the instruction that it issues then."""
        row = f"block {w.cta.cluster.number} warp {w.number}"
        if t > w.time:
            self.mark(w.sm, row, w.time, t, f"waits: {CAUSES[cause]}")
        self.mark(w.sm, row, t, t + op.stall, op.text or op.kind)

    # --- synchronisation --------------------------------------------------------------------

    def sync(self, w: Warp, op: Op, t: float, note: Note) -> tuple[float, int] | None:
        """What an instruction that synchronises does; None where the warp has to wait."""
        if isinstance(note, Mbarrier):
            return self._mbarrier(w, op, t, note)
        if isinstance(note, Barrier):
            return self._barrier(w, op, t, note)
        if isinstance(note, Commit):
            self._commit(w, op, t, note)
        elif isinstance(note, Bulk):
            self.bulk(w, op, t, note)
        elif isinstance(note, Product):
            self.tensor_product(w, op, t, note)
        return t, LATENCY

    def _phase(self, w: Warp, cta: int, place: int) -> Phase:
        ctas = w.cta.cluster.ctas
        phases = ctas[cta % len(ctas)].phases
        found = phases.get(place)
        if found is None:
            found = phases[place] = Phase(1, 1)
        return found

    def _mbarrier(self, w: Warp, op: Op, t: float, note: Mbarrier) -> tuple[float, int] | None:
        if note.what == "init":
            ctas = w.cta.cluster.ctas
            ctas[note.cta % len(ctas)].phases[note.place] = Phase(note.value, note.value)
            return t, LATENCY
        phase = self._phase(w, note.cta, note.place)
        if note.what == "wait":
            if phase.phase != note.value or not note.extra:
                return t, LATENCY
            phase.waiting.append((w, op, t))
            return None
        if note.what == "copies":
            self._copies_arrive(w, t, phase, note)
            return t, LATENCY
        delay = self.machine.sync.mbarrier_arrive if note.what == "arrive" else 0.0
        count = note.value if note.what == "arrive" else 0
        phase.tx += note.extra
        if count:
            way = (w.way, op.key | BARRIER, t + delay - w.time)
            self.later(t + delay, lambda now: self._change(phase, count, 0, now, way))
        return t, LATENCY

    def _copies_arrive(self, w: Warp, t: float, phase: Phase, note: Mbarrier) -> None:
        """The threads of a warp arrive when their copies are done."""
        done = max([t, w.copies_open, *(c[0] for c in w.copies[-1:])])
        if not note.extra:
            phase.pending += note.value  # without .noinc the count is raised first
        way = (w.way, w.copies_cause, done - w.time)
        self.later(done, lambda now: self._change(phase, note.value, 0, now, way))

    def _change(self, phase: Phase, arrivals: int, completed: int, t: float, way: Way) -> None:
        """Arrivals and completed bytes; the phase may end."""
        phase.pending -= arrivals
        phase.tx -= completed
        if phase.pending > 0 or phase.tx != 0:
            return
        phase.phase ^= 1
        phase.pending = phase.expected
        waiting, phase.waiting = phase.waiting, []
        more = self.machine.sync.mbarrier_wait
        for w, op, _ in waiting:
            self._wake(w, op, t + more, (way, op.key | BARRIER, more))

    def _wake(self, w: Warp, op: Op, t: float, way: Way) -> None:
        """A warp goes on at `t`, by the way of who let it."""
        w.way = way
        w.time = max(t, w.time)
        self.later(w.time, w)

    def _barrier(self, w: Warp, op: Op, t: float, note: Barrier) -> tuple[float, int] | None:
        named = w.cta.named.setdefault(note.number, Named())
        named.arrived += 32
        if t >= named.last:  # its way reaches to the end of its stall
            named.last, named.way = t, (w.way, op.key | BARRIER, t - w.time)
        if not op.flag:
            named.waiting.append((w, note.threads, op))
        self._complete_named(w.cta, named, note.threads)
        return (t, LATENCY) if op.flag else None

    def _complete_named(self, cta: Cta, named: Named, threads: float) -> None:
        need = threads or 32 * cta.left
        if named.arrived < need:
            return
        warps = named.arrived // 32
        delay = self.machine.sync.bar_base + self.machine.sync.bar_per_warp * warps
        waiting, named.waiting, named.arrived = named.waiting, [], 0
        for w, _, op in waiting:
            self._wake(w, op, named.last + delay, (named.way, op.key | BARRIER, delay))
        named.last, named.way = 0.0, None

    def _check_named(self, cta: Cta) -> None:
        """A warp that ends is not waited for."""
        if cta.left:
            for named in cta.named.values():
                if named.waiting and not named.waiting[0][1]:
                    self._complete_named(cta, named, 0)

    def join_cluster(self, w: Warp, op: Op, t: float, waits: bool) -> bool:
        """Arrive at the barrier of the cluster, or wait for the generation arrived at."""
        joined = w.cta.cluster.joined
        if waits:
            if w.joined < joined.generation:
                late = joined.opened - w.time
                if late > 0:
                    w.way, w.time = (joined.way, op.key | BARRIER, 0.0), joined.opened
                return False
            joined.waiting.append((w, 0.0, op))
            return True
        w.joined = joined.generation
        joined.arrived += 1
        if t >= joined.last:
            joined.last, joined.way = t, (w.way, op.key | BARRIER, t - w.time)
        self._complete_cluster(w.cta.cluster)
        return False

    def _complete_cluster(self, cluster: Cluster) -> None:
        joined = cluster.joined
        if not joined.arrived or joined.arrived < sum(cta.left for cta in cluster.ctas):
            return
        delay = self.machine.sync.cluster_barrier
        joined.generation += 1
        joined.opened = joined.last + delay
        joined.way = (joined.way, BARRIER, delay)
        waiting, joined.waiting, joined.arrived, joined.last = joined.waiting, [], 0, 0.0
        for w, _, op in waiting:
            self._wake(w, op, joined.opened, joined.way)

    # --- asynchronous engines ---------------------------------------------------------------

    def bulk(self, w: Warp, op: Op, t: float, note: Bulk) -> None:
        """A bulk or tensor copy that the warp starts."""
        sm = w.sm
        self.asked(op, note)
        if not note.ends:
            read, done = self.requests.copy_out(sm, t, note.size, note.inner)
            w.copies_open, w.copies_read = max(w.copies_open, done), max(w.copies_read, read)
            self.mark(sm, "copy engine", t, read, op.text)
            return
        if note.address < 0:
            done, cause = t + self.machine.copies.tma_latency, LATENCY
        else:
            done, cause = self.requests.copy_in(sm, t, note.size, note.inner, op.pos)
            done -= self.machine.sync.mbarrier_wait  # the latency is that until a waiter goes on
        self.mark(sm, "copy engine", t, done, op.text)
        way = (w.way, op.key | cause, done - w.time)
        for cta, place in note.ends:
            phase = self._phase(w, cta, place)
            self.later(done, lambda now, p=phase: self._change(p, 0, note.size, now, way))

    def tensor_product(self, w: Warp, op: Op, t: float, note: Product) -> None:
        unit = self.machine.tcgen05
        ctas = 2 if note.pair else 1
        clk = unit.clk(note.m, note.n, ctas, note.a_in_tensor_memory)
        idle = t > w.sm.tensor_unit
        start = max(t, w.sm.tensor_unit) + (unit.burst if idle else 0.0)
        sms = self.sms[w.cta.number & ~1 :][:2] if note.pair else [w.sm]
        for sm in sms:
            sm.tensor_unit = start + clk
            sm.use("tensor", clk)
            sm.use("flops", 2.0 * note.m * note.n * note.k / len(sms))
        self.mark(w.sm, "tensor", start, start + clk, op.text)
        w.tensor_end = start + clk + unit.visible(ctas, note.a_in_tensor_memory)
        w.tensor_way = (w.way, op.key | TENSOR, w.tensor_end - w.time)

    def _commit(self, w: Warp, op: Op, t: float, note: Commit) -> None:
        # The machine's numbers reach to when a waiter goes on.
        done = max(t, w.tensor_end - self.machine.sync.mbarrier_wait)
        known = w.tensor_end > t
        way = w.tensor_way if known else w.way
        way = (way, op.key | TENSOR, done - (w.tensor_end if known else w.time))
        for cta, place in note.ends:
            phase = self._phase(w, cta, place)
            self.later(done, lambda now, p=phase: self._change(p, 1, 0, now, way))
