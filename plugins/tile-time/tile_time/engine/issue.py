"""What issuing each kind of instruction does to the warp and to the SM."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from tile_time.engine.memory import Requests
from tile_time.engine.ops import (
    BARRIER,
    FENCE,
    LATENCY,
    NONE,
    PIPES,
    SHARED,
    TENSOR,
    Op,
)
from tile_time.engine.state import Sm, Warp
from tile_time.record import (
    SECTOR,
    Barrier,
    Bulk,
    Commit,
    Global,
    Mbarrier,
    Note,
    Product,
    Shared,
)

if TYPE_CHECKING:
    from tile_time.engine.run import Engine

_TMEM = PIPES.index("tmem")
_WAVEFRONT = 128  # bytes
_NULL = 6.0  # clk until a guarded-off access releases its scoreboard
Handler = Callable[["Engine", Warp, Op, float, Sequence[Note]], bool]


def _release(w: Warp, board: int, t: float, cause: int) -> None:
    if board != NONE and t > w.boards[board]:
        w.boards[board] = t
        w.board_cause[board] = cause


def simple(e: Engine, w: Warp, op: Op, t: float, notes: Sequence[Note]) -> bool:
    _release(w, op.write, t + op.latency, LATENCY)
    _release(w, op.read, t + 2, LATENCY)
    return False


def _load(e: Engine, w: Warp, op: Op, t: float, notes: Sequence[Note]) -> bool:
    r: Requests = e.requests
    sm = w.sm
    done, cause = t + _NULL, LATENCY
    for note in notes:
        if isinstance(note, Shared):
            found = _remote(e, w, op, t, note)
        elif isinstance(note, Global):
            found = _global_load(e, w, op, t, note)
        else:
            found = e.sync(w, op, t, note)
            if found is None:
                return True
        if found[0] > done:
            done, cause = found
    start = r.front(sm, t, 0.0) if notes else t
    _release(w, op.write, done, cause)
    _release(w, op.read, start + 4, SHARED)
    return False


def _global_load(e: Engine, w: Warp, op: Op, t: float, note: Global) -> tuple[float, int]:
    size = e.asked(op, note)
    m = e.machine.memory
    start = e.requests.front(w.sm, t, max(note.lines / op.share, size / m.l1_bandwidth))
    return _through_l1(e, w, op, start, note, size, m.l2_latency)


def _through_l1(
    e: Engine, w: Warp, op: Op, start: float, note: Global, size: float, latency: float
) -> tuple[float, int]:
    """When bytes are there that L1 may have, `latency` of them from L2, and what that waits for."""
    if op.flag:  # not from L1
        return e.requests.fetch(w.sm, start, size, op.pos, latency)
    l1, memory = e.l1_of(w.cta), e.machine.memory
    missing, held = l1.ask(_sectors(op, note))
    found = max(held, (start + latency - memory.l2_latency + memory.l1_latency, LATENCY))
    if missing:
        came = e.requests.fetch(w.sm, start, len(missing) * SECTOR, op.pos, latency)
        l1.fill(missing, came)
        found = max(found, came)
    return found


def _sectors(op: Op, note: Global) -> Iterator[int]:
    """Numbers of the sectors of an instruction's part of an access, one at least."""
    first, count = note.address // SECTOR, len(note.sectors)
    begin = count * op.part // op.share
    end = max(count * (op.part + 1) // op.share, begin + 1)
    return (first + sector for sector in note.sectors[begin:end])


def _remote(e: Engine, w: Warp, op: Op, t: float, note: Shared) -> tuple[float, int]:
    """Shared memory by a generic address: of another CTA where there is a cluster."""
    done, cause = e.requests.shared(w.sm, t, e.asked(op, note) / _WAVEFRONT)
    if len(w.cta.cluster.ctas) > 1:
        done += e.machine.copies.remote_latency - e.machine.memory.shared_latency
    return done, cause


def _store(e: Engine, w: Warp, op: Op, t: float, notes: Sequence[Note]) -> bool:
    end = t
    for note in notes:
        if isinstance(note, Global):
            size = e.asked(op, note)
            turns = max(note.lines / op.share, size / e.machine.memory.shared_bandwidth)
            end = e.requests.front(w.sm, t, turns)
            e.requests.store(w.sm, end, size)
        elif isinstance(note, Shared):
            size = e.asked(op, note)
            end = e.requests.front(w.sm, t, size / _WAVEFRONT)
            e.requests.port(w.sm, end, size)
        elif e.sync(w, op, t, note) is None:
            return True
    _release(w, op.read, end + 8, SHARED if end - t > 16 else LATENCY)
    _release(w, op.write, end + 8, LATENCY)
    return False


def _atomic(e: Engine, w: Warp, op: Op, t: float, notes: Sequence[Note]) -> bool:
    done, cause = t + _NULL, LATENCY
    for note in notes:
        if isinstance(note, Global):
            size = e.asked(op, note)
            start = e.requests.front(w.sm, t, max(note.lines, 1))
            more = e.machine.memory.atomic_latency
            done, cause = e.requests.fetch(w.sm, start, size, op.pos, more)
        elif isinstance(note, Shared):
            done, cause = e.requests.shared(w.sm, t, e.asked(op, note) / _WAVEFRONT)
        elif e.sync(w, op, t, note) is None:
            return True
    _release(w, op.write, done, cause)
    _release(w, op.read, t + 8, LATENCY)
    return False


def _shared_load(e: Engine, w: Warp, op: Op, t: float, notes: Sequence[Note]) -> bool:
    done, cause = t + _NULL, LATENCY
    for note in notes:
        if isinstance(note, Shared):
            done, cause = e.requests.shared(w.sm, t, e.asked(op, note) / _WAVEFRONT)
    _release(w, op.write, done, cause)
    _release(w, op.read, t + 4, LATENCY)
    return False


def _local(e: Engine, w: Warp, op: Op, t: float, notes: Sequence[Note]) -> bool:
    """A spill: whole lines of L1, `amount` sectors a warp."""
    m = e.machine.memory
    start = e.requests.front(w.sm, t, op.amount * 32 / m.l1_bandwidth)
    w.sm.use("spill", op.amount * 32)
    _release(w, op.write, start + m.local_latency, SHARED if start - t > 16 else LATENCY)
    _release(w, op.read, start + 8, LATENCY)
    return False


def _async_copy(e: Engine, w: Warp, op: Op, t: float, notes: Sequence[Note]) -> bool:
    start = t
    for note in notes:
        if isinstance(note, Global):
            size = e.asked(op, note)
            turns = max(note.lines / op.share, size / e.machine.memory.shared_bandwidth)
            start = e.requests.front(w.sm, t, turns)
            latency = e.machine.copies.cp_async_latency
            done, cause = _through_l1(e, w, op, start, note, size, latency)
            w.sm.use("shared", size / e.machine.memory.shared_bandwidth)
            if done > w.copies_open:
                w.copies_open, w.copies_cause = done, cause
    _release(w, op.read, start + 8, LATENCY)
    _release(w, op.write, start + 8, LATENCY)
    return False


def _async_commit(e: Engine, w: Warp, op: Op, t: float, notes: Sequence[Note]) -> bool:
    w.copies.append((max(w.copies_open, t), max(w.copies_read, t), w.copies_cause))
    w.copies_open = w.copies_read = 0.0
    return False


def _scoreboard(e: Engine, w: Warp, op: Op, t: float, notes: Sequence[Note]) -> bool:
    """`DEPBAR.LE SBn, k`: all but k of the committed groups of copies, or a scoreboard."""
    kept = int(op.amount)
    if not w.copies:
        board = int(op.extra)
        _wait_until(w, op, t, w.boards[board], w.board_cause[board])
        return False
    due = w.copies[: len(w.copies) - kept] if kept else w.copies
    for done, read, cause in due:
        _wait_until(w, op, t, read if op.flag else done, cause)
    if due:
        w.copies = w.copies[len(due) :] or [due[-1]]
    return False


def _wait_until(w: Warp, op: Op, t: float, until: float, cause: int) -> None:
    if until > w.time:
        w.way = (w.way, op.key | cause, until - w.time)
        w.time = until


def _wgmma(e: Engine, w: Warp, op: Op, t: float, notes: Sequence[Note]) -> bool:
    """A warp's quarter of a product on the tensor core of its sub-core.

    Operands come through the sub-core's quarter of the shared-memory port, which copies that fill
    other stages use as well.
    """
    sm, sub = w.sm, w.sub
    start = max(t, sm.tensor[sub])
    end = start + op.amount
    quarter = e.machine.memory.shared_bandwidth / e.machine.chip.sub_cores
    used = op.extra + e.requests.filled(sm, start, end) / e.machine.chip.sub_cores
    end = max(end, start + used / quarter)
    sm.tensor[sub] = end
    sm.use("tensor", (end - start) / e.machine.chip.sub_cores)
    sm.use("flops", op.flops)
    sm.use("shared", op.extra / e.machine.memory.shared_bandwidth)
    e.mark(sm, f"tensor {sub}", start, end, op.text)
    w.product_open = end
    if op.flag:
        w.products.append(w.product_open + op.latency)
    _release(w, op.write, end + op.latency, TENSOR)
    _release(w, op.read, end, TENSOR)
    return False


def _warpgroup(e: Engine, w: Warp, op: Op, t: float, notes: Sequence[Note]) -> bool:
    if not op.flag or not w.products:
        return False
    kept = int(op.amount)
    due = w.products[: len(w.products) - kept] if kept else w.products
    if due:
        _wait_until(w, op, t, due[-1], TENSOR)
        w.products = w.products[len(due) :]
    return False


def _bulk(e: Engine, w: Warp, op: Op, t: float, notes: Sequence[Note]) -> bool:
    for note in notes:
        if isinstance(note, Bulk):
            e.bulk(w, op, t, note)
    _release(w, op.read, t + 8, LATENCY)
    _release(w, op.write, t + e.machine.memory.shared_latency, LATENCY)
    return False


def _sync(e: Engine, w: Warp, op: Op, t: float, notes: Sequence[Note]) -> bool:
    """mbarriers, named barriers, commits: True where the warp has to wait for others."""
    _release(w, op.write, t + e.machine.sync.mbarrier_wait, BARRIER)
    _release(w, op.read, t + 4, LATENCY)
    waits = False
    for note in notes:  # all of them: each acts
        waits |= e.sync(w, op, t, note) is None
    return waits


def _cluster(e: Engine, w: Warp, op: Op, t: float, notes: Sequence[Note]) -> bool:
    return e.join_cluster(w, op, t, "WAIT" in op.text)


def _fence(e: Engine, w: Warp, op: Op, t: float, notes: Sequence[Note]) -> bool:
    run = w.notes[op.run] if op.run < len(w.notes) else {}
    if op.guarded and op.pos not in run:
        return False  # a guard that holds for no thread of this warp, as far as the record tells
    _release(w, op.write, t + op.latency, FENCE)
    if op.write == NONE:
        _wait_until(w, op, t, t + op.latency, FENCE)
    _release(w, op.read, t + 4, LATENCY)
    return False


def _tensor_product(e: Engine, w: Warp, op: Op, t: float, notes: Sequence[Note]) -> bool:
    for note in notes:
        if isinstance(note, Product):
            e.tensor_product(w, op, t, note)
    _release(w, op.read, t + 8, LATENCY)
    _release(w, op.write, t + 8, LATENCY)
    return False


def _tensor_move(e: Engine, w: Warp, op: Op, t: float, notes: Sequence[Note]) -> bool:
    """A quarter of the lanes of tensor memory to or from registers."""
    unit = e.machine.tcgen05
    load = op.kind == "tensor_load"
    rate = (unit.load_bandwidth if load else unit.store_bandwidth) / e.machine.chip.sub_cores
    pipes = w.sm.pipes[w.sub]
    start = max(t, pipes[_TMEM])
    pipes[_TMEM] = start + op.amount / max(rate, 1e-9)
    done = pipes[_TMEM] + unit.load_latency
    _release(w, op.write, done, TENSOR)
    _release(w, op.read, pipes[_TMEM], TENSOR)
    return False


def _tensor_copy(e: Engine, w: Warp, op: Op, t: float, notes: Sequence[Note]) -> bool:
    w.sm.tensor_unit = max(t, w.sm.tensor_unit) + e.machine.tcgen05.copy / 4
    w.tensor_end = max(w.tensor_end, w.sm.tensor_unit + e.machine.tcgen05.copy)
    return simple(e, w, op, t, notes)


def _tensor_alloc(e: Engine, w: Warp, op: Op, t: float, notes: Sequence[Note]) -> bool:
    _release(w, op.write, t + e.machine.tcgen05.alloc, LATENCY)
    return False


HANDLERS: dict[str, Handler] = {
    "load": _load,
    "store": _store,
    "atomic": _atomic,
    "shared_load": _shared_load,
    "shared_store": _store,
    "shared_atomic": _atomic,
    "local_load": _local,
    "local_store": _local,
    "async_copy": _async_copy,
    "async_commit": _async_commit,
    "async_arrive": _sync,
    "scoreboard": _scoreboard,
    "wgmma": _wgmma,
    "warpgroup": _warpgroup,
    "bulk": _bulk,
    "mbarrier": _sync,
    "barrier": _sync,
    "cluster_barrier": _cluster,
    "fence": _fence,
    "tensor_product": _tensor_product,
    "tensor_commit": _sync,
    "tensor_load": _tensor_move,
    "tensor_store": _tensor_move,
    "tensor_copy": _tensor_copy,
    "tensor_alloc": _tensor_alloc,
    "synthetic": _sync,
}
SYNCHRONISING = (Mbarrier, Bulk, Product, Commit, Barrier)


def shares(sm: Sm) -> dict[str, Any]:
    return dict(sm.busy)
