"""`cp.async.bulk`, its reductions and groups."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tile_sim.errors import SimError
from tile_sim.isa.address import Addresses, address
from tile_sim.isa.common import U32
from tile_sim.machine import shared, tma
from tile_sim.machine.asyncs import Awaited, Operation
from tile_sim.machine.globalwatch import Spans
from tile_sim.machine.group import Group
from tile_sim.machine.local import threads
from tile_sim.machine.mapwatch import Use
from tile_sim.machine.monitor import Monitor
from tile_sim.machine.wave import Wave
from tile_sim.program.decode import Decode, Exec, Getter, instruction
from tile_sim.program.types import TYPES

Array = np.ndarray
_SHARED = ("shared::cluster", "shared::cta")
_ROW = 512  # what a recorder is told to be the inner extent of a copy without one
_COMPLETE = "mbarrier::complete_tx::bytes"
REDUCTIONS = ("add", "min", "max", "inc", "dec", "and", "or", "xor")


def lanes_of(g: Group, get: Getter) -> list[int]:
    return [int(v) for v in g.lanes(np.asarray(get(g)))]


def addresses_of(g: Group, compute: Addresses) -> list[int]:
    return [int(v) for v in compute(g)]


def signal(
    wave: Wave,
    cta: int,
    offset: int,
    amount: int,
    filled: Array | None = None,
    load: int | None = None,
) -> None:
    """Complete transaction bytes on the mbarrier of a CTA, for shared bytes `filled` with them by
    the `load` of that number, if they come from global memory.
    """
    place = shared.barrier_place(wave, cta, offset)
    if wave.monitor is not None:
        if filled is not None:
            wave.monitor.async_filled(filled, place)
        if load is not None:
            wave.monitor.globals.loaded(load, place)
        wave.monitor.async_signal(place, wave.async_known)
    wave.mbarriers.complete_tx(place, amount)


def receivers(wave: Wave, row: int, mask: int) -> list[int]:
    """The CTAs of a multicast mask."""
    first = int(wave.cluster_first[row])
    ranks = [r for r in range(16) if mask >> r & 1]
    if not ranks or ranks[-1] >= wave.cluster_size:
        raise SimError("bad-copy", f"multicast mask {mask:#x} in a cluster of {wave.cluster_size}")
    return [first + r for r in ranks]


def _check_size(size: int, *places: int) -> None:
    if size % 16 or any(p % 16 for p in places):
        raise SimError("misaligned", f"bulk copy of {size} bytes: size and addresses need 16 bytes")


@instruction("cp.async.bulk")
def cp_async_bulk(cx: Decode) -> Exec:
    if cx.mods[:1] == ["tensor"]:
        from tile_sim.isa.tensor import cp_async_bulk_tensor

        return cp_async_bulk_tensor(cx)
    if cx.flag("commit_group"):
        cx.done(0)
        return _commit
    if cx.flag("wait_group"):
        return _wait(cx)
    if cx.flag("prefetch"):
        return _prefetch(cx)
    target, source = _take_direction(cx)
    multicast, policy = cx.flag("multicast::cluster"), cx.flag("L2::cache_hint")
    if target == "global":
        masked = cx.flag("cp_mask")
        cx.one_of("bulk_group")
        cx.done(3 + policy + masked)
        return _to_global(cx, None, None, masked)
    cx.one_of(_COMPLETE)
    cx.done(4 + multicast + policy)
    return _to_shared(cx, source, multicast)


def _take_direction(cx: Decode) -> tuple[str, str]:
    """Destination and source spaces, in this order."""
    found = [mod for mod in cx.mods if mod in (*_SHARED, "global")]
    if len(found) != 2 or found[0] == found[1]:
        cx.fail("needs a destination and a source space")
    for mod in found:
        cx.mods.remove(mod)
    return found[0].split("::")[0], found[1].split("::")[0]


def _commit(g: Group) -> None:
    for thread in threads(g):
        g.wave.asyncs.commit_bulk(int(thread))


def _wait(cx: Decode) -> Exec:
    read_only = cx.flag("read")
    cx.done(1)
    left = cx.constant(0)

    def execute(g: Group) -> None:
        for thread in threads(g):
            g.wave.asyncs.wait_bulk(int(thread), left, read_only)

    return execute


def _prefetch(cx: Decode) -> Exec:
    cx.mods.clear()
    address(cx, 0, "global")
    return lambda g: None


def _to_shared(cx: Decode, source: str, multicast: bool) -> Exec:
    """Global or own shared memory to shared memory of the cluster; an mbarrier learns of it."""
    _, to = address(cx, 0, "shared")
    _, of = address(cx, 1, source)
    size = cx.src(2, U32)
    _, bar = address(cx, 3, "shared")
    mask = cx.src(4, TYPES["u16"], wide=True) if multicast else None

    def execute(g: Group) -> None:
        rows = g.lane_rows()
        masks = [None] * len(rows) if mask is None else lanes_of(g, mask)
        items = zip(
            rows, addresses_of(g, to), addresses_of(g, of), lanes_of(g, size),
            addresses_of(g, bar), masks, strict=True,
        )  # fmt: skip
        for row, target, origin, amount, barrier, m in items:
            _check_size(amount, target, origin)
            read = _reader(g.wave, int(row), source, origin, amount)
            place = origin if source == "global" else -1
            _copy_in(g.wave, int(row), target, amount, barrier, m, read, place)

    return execute


def _reader(wave: Wave, row: int, source: str, origin: int, amount: int) -> Callable[[], Array]:
    """What takes the bytes of a bulk copy at the time it happens."""
    if source == "global":
        wave.memory.require(origin, amount)
        return lambda: np.frombuffer(wave.memory.read(origin, amount), np.uint8)
    cta, offset = shared.locate(wave, row, origin, "bulk copy")
    where = shared.flat(wave, cta, offset + np.arange(amount), "bulk copy")
    if wave.monitor is not None:
        wave.monitor.async_read(np.array([row]), where, "bulk copy")
    return lambda: shared.read(wave, where, "bulk copy").copy()


def _copy_in(
    wave: Wave,
    row: int,
    target: int,
    amount: int,
    barrier: int,
    mask: int | None,
    read: Callable[[], Array],
    origin: int,
) -> None:
    cta, offset = shared.locate(wave, row, target, "bulk copy")
    bar_cta, bar_offset = shared.locate(wave, row, barrier, "bulk copy")
    ends = [(cta, bar_cta)]
    if mask is not None:
        ends = [(c, c) for c in receivers(wave, row, mask)]
    span = offset + np.arange(amount)
    if wave.counters is not None:
        wave.counters.moved(wave, amount * len(ends))
    if wave.trace is not None:
        known = [(bar, shared.barrier_place(wave, bar, bar_offset)) for _, bar in ends]
        wave.trace.bulk(wave, row, amount, origin, min(amount, _ROW), known)
    skipped = wave.unmade is not None and wave.skips_copy()
    number = None
    if wave.monitor is not None and origin >= 0:
        spans = _spans(wave, origin, amount)
        number = wave.monitor.globals.load(row, spans, "bulk copy", len(ends))
    for to, bar in ends:
        where = shared.flat(wave, to, span, "bulk copy")
        if wave.unmade is not None:
            wave.unmade.filled(to, offset, amount, origin if origin >= 0 else None)
        if skipped:
            end = _signaller(wave, bar, bar_offset, amount)
            wave.asyncs.issue(row, Operation(end, signals=True))
            continue
        shared.mark_pending(wave, row, where, "bulk copy")
        wave.asyncs.issue(row, _incoming(wave, where, read, (bar, bar_offset, amount), number))


def _spans(wave: Wave, address: int, amount: int, mask: int = 0xFFFF) -> Spans:
    """Bytes of global memory; of each 16 those whose bit is set."""
    buffer = wave.memory.require(address, amount)
    first = address - buffer.origin
    if mask == 0xFFFF:
        return [(buffer, np.array([first]), np.array([amount]))]
    here = np.flatnonzero(mask >> (np.arange(amount) % 16) & 1)
    return [(buffer, first + here, np.ones_like(here))]


def _signaller(wave: Wave, cta: int, barrier: int, amount: int) -> Callable[[], None]:
    return lambda: signal(wave, cta, barrier, amount)


def _incoming(
    wave: Wave,
    where: Array,
    read: Callable[[], Array],
    end: tuple[int, int, int],
    number: int | None,
) -> Operation:
    def write() -> None:
        shared.write(wave, where, read())
        signal(wave, *end, filled=where, load=number)

    return Operation(write, signals=True)


def _to_global(cx: Decode, op: str | None, type_: str | None, masked: bool = False) -> Exec:
    """Own shared memory to global memory, in a bulk group; a mask (the last operand) says which
    bytes of each 16 are written."""
    _, to = address(cx, 0, "global")
    _, of = address(cx, 1, "shared")
    size = cx.src(2, U32)
    mask = cx.src(len(cx.operands) - 1, TYPES["u16"], wide=True) if masked else None

    def execute(g: Group) -> None:
        who, wave = threads(g), g.wave
        skipped = wave.unmade is not None and wave.skips_copy()
        masks = [0xFFFF] * len(who) if mask is None else lanes_of(g, mask)
        items = zip(
            who, g.lane_rows(), addresses_of(g, to), addresses_of(g, of), lanes_of(g, size), masks,
            strict=True,
        )  # fmt: skip
        for thread, row, target, origin, amount, bits in items:
            _check_size(amount, target, origin)
            wave.memory.require(target, amount)
            cta, offset = shared.locate(wave, int(row), origin, "bulk copy")
            if wave.trace is not None:
                wave.trace.bulk(wave, int(row), amount, target, min(amount, _ROW), [])
            if skipped:
                outgoing_nothing(wave, target)
                continue
            span = shared.flat(wave, cta, offset + np.arange(amount), "bulk copy")
            if wave.unmade is not None:
                wave.unmade.sent(span)
            read = _reader(wave, int(row), "shared", origin, amount)
            write = _global_writer(wave, target, op, type_)
            if bits != 0xFFFF:
                write = _masked_writer(wave, target, bits)
            awaited = None
            if wave.monitor is not None:
                spans = _spans(wave, target, amount, bits)
                awaited = stores(wave.monitor, int(row), span, spans, op is not None)
            outgoing(wave, int(thread), span, read, write, awaited)

    return execute


def stores(
    monitor: Monitor,
    row: int,
    source: Array,
    spans: Spans,
    combines: bool,
    again: bool = False,
    use: Use | None = None,
) -> Callable[[Awaited], None]:
    """Tell the checker that a warp copies shared bytes to global memory (`GlobalWatch.store`), by a
    map in `use`; what tells it of waits.
    """
    written = monitor.globals.store(row, spans, combines, again)

    def tell(what: Awaited) -> None:
        if what == "write":
            monitor.globals.stored(row, written)
            return
        monitor.read_awaited(row, source)
        if use is not None:
            monitor.maps.read(use, row)

    return tell


def outgoing(
    wave: Wave,
    thread: int,
    span: Array,
    read: Callable[[], Array],
    write: Callable[[Array], None],
    awaited: Callable[[Awaited], None] | None = None,
) -> None:
    """An operation in the bulk group of a thread: read the shared bytes `span`, later write."""
    taken: list[Array] = []
    if wave.counters is not None:
        wave.counters.moved(wave, span.size)

    def take() -> None:
        taken.append(read())
        if wave.monitor is not None:
            wave.monitor.sources.copy(span, -1)

    if wave.monitor is not None:
        wave.monitor.sources.copy(span, 1)
    operation = Operation(lambda: write(taken.pop()), take, awaited=awaited)
    wave.asyncs.groups(thread).open.append(operation)
    wave.asyncs.issue(thread // 32, operation)


def outgoing_nothing(wave: Wave, target: int) -> None:
    """A copy to memory about `target` whose data are left out: a group has nothing to wait for."""
    if wave.unmade is not None:
        wave.unmade.unsent(target)
    wave.progress += 1


def _masked_writer(wave: Wave, target: int, bits: int) -> Callable[[Array], None]:
    """Writes byte i of each 16 where bit i is set."""

    def write(data: Array) -> None:
        old = np.frombuffer(wave.memory.read(target, len(data)), np.uint8)
        keep = (bits >> (np.arange(len(data)) % 16) & 1).astype(bool)
        wave.memory.write(target, np.where(keep, data, old))

    return write


def _global_writer(
    wave: Wave, target: int, op: str | None, type_: str | None
) -> Callable[[Array], None]:
    def write(data: Array) -> None:
        if op is not None and type_ is not None:
            old = np.frombuffer(wave.memory.read(target, len(data)), np.uint8)
            size = TYPES[type_].bytes
            pair = [np.ascontiguousarray(x).reshape(-1, size) for x in (old, data)]
            data = tma.combine(op, _element(type_), *pair).reshape(-1)
        wave.memory.write(target, data)

    return write


def _element(type_: str) -> str:
    """The tensor element type that a reduction type is done in."""
    return {"b32": "u32", "b64": "u64", "s64": "s64"}.get(type_, type_)


@instruction("cp.reduce.async.bulk")
def cp_reduce_async_bulk(cx: Decode) -> Exec:
    if cx.mods[:1] == ["tensor"]:
        from tile_sim.isa.tensor import cp_reduce_async_bulk_tensor

        return cp_reduce_async_bulk_tensor(cx)
    target, _ = _take_direction(cx)
    op = cx.one_of(*REDUCTIONS)
    cx.flag("noftz")
    policy = cx.flag("L2::cache_hint")
    type_ = cx.type("f16 bf16 b32 u32 s32 b64 u64 s64 f32 f64")
    if target == "global":
        cx.one_of("bulk_group")
        cx.done(3 + policy)
        return _to_global(cx, op, type_.name)
    cx.one_of(_COMPLETE)
    cx.done(4)
    return _reduce_shared(cx, op, type_.name)


def _reduce_shared(cx: Decode, op: str, type_: str) -> Exec:
    """Own shared memory into shared memory of another CTA, element by element."""
    _, to = address(cx, 0, "shared")
    _, of = address(cx, 1, "shared")
    size = cx.src(2, U32)
    _, bar = address(cx, 3, "shared")
    element = TYPES[type_].bytes

    def execute(g: Group) -> None:
        items = zip(
            g.lane_rows(), addresses_of(g, to), addresses_of(g, of), lanes_of(g, size),
            addresses_of(g, bar), strict=True,
        )  # fmt: skip
        wave = g.wave
        for row, target, origin, amount, barrier in items:
            _check_size(amount, target, origin)
            read = _reader(wave, int(row), "shared", origin, amount)
            cta, offset = shared.locate(wave, int(row), target, "bulk reduction")
            where = shared.flat(wave, cta, offset + np.arange(amount), "bulk reduction")
            if wave.counters is not None:
                wave.counters.moved(wave, amount)
            bar_cta, bar_offset = shared.locate(wave, int(row), barrier, "bulk reduction")

            def write(where=where, read=read, end=(bar_cta, bar_offset, amount)) -> None:
                old = shared.read(wave, where, "bulk reduction").reshape(-1, element)
                new = tma.combine(op, _element(type_), old, read().reshape(-1, element))
                shared.write(wave, where, new.reshape(-1))
                signal(wave, *end, filled=where)

            wave.asyncs.issue(int(row), Operation(write, signals=True))

    return execute
