"""`mbarrier.*` and `cp.async.mbarrier.arrive`."""

from __future__ import annotations

import numpy as np

from tile_sim.errors import SimError
from tile_sim.isa.address import Addresses, address
from tile_sim.isa.common import B64, PRED, U32
from tile_sim.isa.loadstore import SCOPES
from tile_sim.machine.access import parts
from tile_sim.machine.copies import Arrival
from tile_sim.machine.group import Group
from tile_sim.program.decode import Decode, Exec, Getter, instruction
from tile_sim.ptx.syntax import Address

Array = np.ndarray
_U8 = np.dtype("<u8")
_SPACES = ("shared", "shared::cta", "shared::cluster")


def take_shared(cx: Decode) -> str:
    """The barrier's space: shared, or generic when it is not said."""
    return "shared" if cx.option(*_SPACES) else "generic"


def places(g: Group, space: str, where: Array) -> Array:
    """The word indices of barriers at addresses (active lanes)."""
    out = np.zeros(len(where), np.int64)
    for part in parts(g, space, where, 8, _U8):
        if part.space != "shared":
            raise SimError("mbarrier", f"an mbarrier lies in shared memory, not {part.space}")
        out[slice(None) if part.pick is None else part.pick] = part.index
    return out


def _take_common(cx: Decode) -> None:
    """Ordering, scope, and the `.b64` at the end."""
    cx.option("relaxed", "acquire", "release")
    cx.option(*SCOPES)
    if not cx.flag("b64"):
        cx.fail("needs .b64")


def _lanes(g: Group, get: Getter | None, default: int) -> Array:
    if get is None:
        return np.full(g.count(), default, np.int64)
    return g.lanes(np.asarray(get(g))).astype(np.int64)


def _record(g: Group, what: str, at: Array, counts: Array, extra: Array) -> None:
    if g.wave.trace is not None:
        g.wave.trace.mbarrier(g.wave, what, g.lane_rows(), at, counts, extra)


@instruction("mbarrier.init")
def init(cx: Decode) -> Exec:
    space = take_shared(cx)
    _take_common(cx)
    cx.done(2)
    where, compute = address(cx, 0, space)
    count = cx.src(1, U32)

    def execute(g: Group) -> None:
        at, counts = places(g, where, compute(g)), _lanes(g, count, 0)
        g.wave.mbarriers.init(at, counts)
        _record(g, "init", at, counts, counts)
        if g.wave.monitor is not None:
            g.wave.monitor.mbarrier_init(g, at)

    return execute


@instruction("mbarrier.inval")
def inval(cx: Decode) -> Exec:
    space = take_shared(cx)
    _take_common(cx)
    cx.done(1)
    where, compute = address(cx, 0, space)
    return lambda g: g.wave.mbarriers.invalidate(places(g, where, compute(g)))


@instruction("mbarrier.arrive", "mbarrier.arrive_drop")
def arrive(cx: Decode) -> Exec:
    """`{state,} [bar] {, tx} {, count}`; the state is the word before the arrival."""
    drop = cx.ins.mods[0] == "arrive_drop"
    expect = cx.flag("expect_tx")
    no_complete = cx.flag("noComplete")
    space = take_shared(cx)
    _take_common(cx)
    cx.done((1, 2, 3))
    first = 0 if isinstance(cx.operand(0), Address) else 1
    slot = cx.slot(0, B64) if first and not cx.is_sink(0) else None
    where, compute = address(cx, first, space)
    rest = [cx.src(i, U32) for i in range(first + 1, len(cx.operands))]
    tx = rest.pop(0) if expect and rest else None
    if expect and tx is None:
        cx.fail("needs the number of bytes")
    count = rest.pop(0) if rest else None
    if no_complete and count is None:
        cx.fail("needs a count")

    def execute(g: Group) -> None:
        counts, bytes_ = _lanes(g, count, 1), _lanes(g, tx, 0)
        at = places(g, where, compute(g))
        phases = g.wave.mbarriers.completed[at]
        before = g.wave.mbarriers.change(at, counts, bytes_, counts if drop else None)
        _record(g, "arrive", at, counts, bytes_)
        if g.wave.monitor is not None:
            g.wave.monitor.mbarrier_arrive(g, at, phases)
        if slot is not None:
            g.spread(slot, before)

    return execute


@instruction("mbarrier.expect_tx", "mbarrier.complete_tx")
def transaction(cx: Decode) -> Exec:
    sign = 1 if cx.ins.mods[0] == "expect_tx" else -1
    space = take_shared(cx)
    _take_common(cx)
    cx.done(2)
    where, compute = address(cx, 0, space)
    amount = cx.src(1, U32)

    def execute(g: Group) -> None:
        tx = sign * _lanes(g, amount, 0)
        at = places(g, where, compute(g))
        g.wave.mbarriers.change(at, np.zeros_like(tx), tx, None)
        _record(g, "expect", at, np.zeros_like(tx), tx)
        if g.wave.monitor is not None:
            g.wave.monitor.mbarrier_used(g, at)

    return execute


@instruction("mbarrier.test_wait", "mbarrier.try_wait")
def test_wait(cx: Decode) -> Exec:
    """True when the phase of the parity (or of the state) is complete; never blocks here: a
    thread that fails yields when it loops."""
    by_parity = cx.flag("parity")
    space = take_shared(cx)
    _take_common(cx)
    cx.done((3, 4))
    slot = cx.slot(0, PRED)
    where, compute = address(cx, 1, space)
    phase = cx.src(2, U32 if by_parity else B64)

    def execute(g: Group) -> None:
        value = g.lanes(np.asarray(phase(g))).astype(np.uint64)
        parity = (value & np.uint64(1)) if by_parity else value >> np.uint64(62) & np.uint64(1)
        at = places(g, where, compute(g))
        done = g.wave.mbarriers.passed(at, parity.astype(np.int64))
        g.wave.polled = True
        _record(g, "wait", at, parity.astype(np.int64), done)
        if g.wave.monitor is not None:
            g.wave.monitor.mbarrier_wait(g, at, done)
        g.spread(slot, done)

    return execute


@instruction("mbarrier.pending_count")
def pending_count(cx: Decode) -> Exec:
    """From the state that an arrival returned."""
    cx.type("b64")
    cx.done(2)
    slot, a = cx.slot(0, U32), cx.src(1, B64)
    return lambda g: g.put(slot, (a(g) & np.uint64((1 << 20) - 1)).astype(np.uint32))


@instruction("cp.async.mbarrier.arrive")
def copy_arrive(cx: Decode) -> Exec:
    """Arrive when this thread's earlier `cp.async` copies are done.

    Without `.noinc` the pending count is raised first, so that the arrival is a net nothing.
    """
    noinc = cx.flag("noinc")
    space = take_shared(cx)
    _take_common(cx)
    cx.done(1)
    where, compute = address(cx, 0, space)
    return _copy_arrive(where, compute, noinc)


def _copy_arrive(where: str, compute: Addresses, noinc: bool) -> Exec:
    def execute(g: Group) -> None:
        at = places(g, where, compute(g))
        barriers = g.wave.mbarriers
        if not noinc:
            barriers.raise_pending(at)

        threads = g.lane_rows() * 32 + g.lane_ids()
        monitor = g.wave.monitor
        tell = None if monitor is None else monitor.copies.arrival(g, at)

        def fire(due: Array) -> None:
            which = at[due]
            one = np.ones(len(which), np.int64)
            barriers.change(which, one, np.zeros_like(one), None)
            if tell is not None:
                tell()

        _record(g, "copies", at, np.full(len(at), int(noinc)), np.zeros(len(at), np.int64))
        g.wave.copies.issue_arrival(Arrival(threads, fire, np.zeros(len(at), bool)))

    return execute
