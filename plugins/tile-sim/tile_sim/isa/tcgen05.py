"""`tcgen05`: allocation, loads and stores, commits of tensor memory (sm_100a)."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from tile_sim.errors import SimError
from tile_sim.isa.address import Addresses, address
from tile_sim.isa.bulk import lanes_of, receivers
from tile_sim.isa.common import B32, U32
from tile_sim.isa.warp import aligned_sync, full
from tile_sim.machine import shared
from tile_sim.machine.group import LANES, Group, merge
from tile_sim.machine.local import threads
from tile_sim.machine.tensorloads import Load
from tile_sim.machine.tmem import Step
from tile_sim.machine.wave import Wave
from tile_sim.program.decode import Decode, Exec, Sync, instruction
from tile_sim.program.types import TYPES
from tile_sim.ptx.syntax import Address, Name

Array = np.ndarray
_REPEATS = ("x1", "x2", "x4", "x8", "x16", "x32", "x64", "x128")
_SHAPES = ("32x32b", "16x64b", "16x128b", "16x256b", "16x32bx2")


def take_cta_group(cx: Decode) -> int:
    group = cx.prefixed("cta_group::")
    if group not in ("1", "2"):
        cx.fail("needs .cta_group::1 or .cta_group::2")
    return int(group)


# --- allocation ---------------------------------------------------------------------------------


@instruction("tcgen05.alloc")
def alloc(cx: Decode) -> Sync:
    """Waits until the columns are free, then writes their address to shared memory."""
    take_cta_group(cx)
    cx.flag("sync")
    cx.flag("aligned")
    cx.option("shared::cta", "shared")
    cx.flag("b32")
    cx.done(2)
    _, compute = address(cx, 0, "shared")
    columns = cx.src(1, U32)
    whole = aligned_sync(None)

    def arrive(new: Group | None, parked: Group | None) -> tuple[Group | None, Group | None]:
        g, rest = whole.arrive(new, parked)
        if g is None:
            return None, rest
        done = np.zeros(len(g.rows), bool)
        counts = full(g, columns(g))[:, 0]
        targets = np.zeros((len(g.rows), 32), np.uint64)
        targets[g.active] = compute(g)
        for i, row in enumerate(g.rows):
            done[i] = _allocate(g.wave, int(row), int(counts[i]), int(targets[i].max()))
        waiting = [x for x in (g.of_rows(~done), rest) if x is not None]
        return g.of_rows(done), merge(waiting) if waiting else None

    return Sync(arrive, None, "tmem")


def _allocate(wave: Wave, row: int, columns: int, target: int) -> bool:
    cta = int(wave.cta_of[row])
    first = wave.tmem.allocate(cta, columns)
    if first is None:
        return False
    if wave.trace is not None:
        wave.trace.columns(wave, row, columns)
    to, offset = shared.locate(wave, row, target, "tcgen05.alloc")
    place = shared.flat(wave, to, offset + np.arange(4), "tcgen05.alloc")
    if wave.monitor is not None:
        wave.monitor.allocation_write(row, place)
        wave.monitor.tensor.allocated(cta, first, columns)
    shared.write(wave, place, np.frombuffer(np.uint32(first).tobytes(), np.uint8))
    return True


@instruction("tcgen05.dealloc")
def dealloc(cx: Decode) -> Sync:
    take_cta_group(cx)
    cx.flag("sync")
    cx.flag("aligned")
    cx.flag("b32")
    cx.done(2)
    where, columns = cx.src(0, U32), cx.src(1, U32)

    def execute(g: Group) -> None:
        starts, counts = full(g, where(g))[:, 0], full(g, columns(g))[:, 0]
        for row, start, count in zip(g.rows, starts, counts, strict=True):
            cta = int(g.wave.cta_of[row])
            first = int(start) & 0xFFFF
            if g.wave.monitor is not None:
                g.wave.monitor.tensor.released(int(row), cta, first, int(count))
            g.wave.tmem.release(cta, first, int(count))
        if g.wave.scheduler is not None:
            g.wave.scheduler.wake("tmem")

    return aligned_sync(execute)


@instruction("tcgen05.relinquish_alloc_permit")
def relinquish(cx: Decode) -> Sync:
    take_cta_group(cx)
    cx.flag("sync")
    cx.flag("aligned")
    cx.done(0)

    def execute(g: Group) -> None:
        g.wave.tmem.permit[g.wave.cta_of[g.rows]] = False

    return aligned_sync(execute)


# --- loads and stores ---------------------------------------------------------------------------


@cache
def register_places(shape: str, repeat: int, split: int) -> tuple[Array, Array]:
    """Lane and column, relative to the address, of register i of thread T: `[registers, 32]`."""
    t = LANES[None, :]
    if shape == "32x32b":
        i = np.arange(repeat)[:, None]
        return t + 0 * i, i + 0 * t
    if shape == "16x32bx2":
        i = np.arange(repeat)[:, None]
        return t % 16 + 0 * i, i + np.where(t < 16, 0, split)
    if shape == "16x64b":
        i = np.arange(repeat)[:, None]
        return t // 4 + 8 * (t % 2) + 0 * i, t // 2 % 2 + 2 * i
    if shape == "16x128b":
        i = np.arange(2 * repeat)[:, None]
        return t // 4 + 8 * (i % 2), t % 4 + 4 * (i // 2)
    i = np.arange(4 * repeat)[:, None]
    return t // 4 + 8 * (i // 2 % 2), 8 * (i // 4) + 2 * (t % 4) + i % 2


class TensorAccess:
    """The common part of `tcgen05.ld` and `tcgen05.st`."""

    def __init__(self, cx: Decode, packed: str) -> None:
        cx.flag("sync")
        cx.flag("aligned")
        self.shape = cx.one_of(*_SHAPES)
        self.repeat = int(cx.one_of(*_REPEATS)[1:])
        self.packed = cx.flag(packed)
        if not cx.flag("b32"):
            cx.fail("needs .b32")
        self.what = f"tcgen05.{cx.ins.mods[0]}"

    def finish(self, cx: Decode, base: int, registers: int) -> None:
        split = cx.constant(base + 1 if base else 1) if self.shape == "16x32bx2" else 0
        self.lane, self.column = register_places(self.shape, self.repeat, split)
        self.items = cx.vector(registers)
        if self.packed:
            # Each register holds the 16-bit values of two neighbouring columns.
            self.lane, self.column = register_places(self.shape, 2 * self.repeat, split)
        wanted = len(self.lane) // (2 if self.packed else 1)
        if len(self.items) != wanted:
            cx.fail(f"needs {wanted} registers, found {len(self.items)}")
        operand = cx.operand(base)
        if not isinstance(operand, Address) or not isinstance(operand.base, Name):
            cx.fail("needs a tensor memory address [taddr]")
        self.address = cx.src(operand.base, U32)
        self.offset = operand.offset

    def places(self, g: Group) -> tuple[Array, Array, Array]:
        """CTA, lane and column of each register and thread, `[warps, registers, 32]`."""
        if g.mask is not None:
            raise SimError("divergent", f"{self.what} needs all 32 threads of the warp")
        word = full(g, self.address(g)).astype(np.int64) + self.offset
        if (word != word[:, :1]).any():
            raise SimError("tmem", f"{self.what}: the address differs between threads of a warp")
        lane, column = word[:, 0] >> 16 & 0xFFFF, word[:, 0] & 0xFFFF
        warp = g.wave.warpid[g.rows][:, 0].astype(np.int64) % 4
        wrong = (lane // 32 != warp) | (lane % 32 % 16 != 0)
        wrong |= (lane % 32 != 0) & (self.shape == "32x32b")
        if wrong.any():
            which = int(np.flatnonzero(wrong)[0])
            raise SimError(
                "tmem",
                f"{self.what}: lane {int(lane[which])} from warp {int(warp[which])} of its "
                f"warpgroup, which may only access lanes {int(warp[which]) * 32} and up",
            )
        cta = g.wave.cta_of[g.rows]
        width = int(self.column.max()) + 1
        for one, first in zip(cta, column, strict=True):
            g.wave.tmem.require(int(one), int(first), width, self.what)
        return (
            np.broadcast_to(cta[:, None, None], (len(cta), *self.lane.shape)),
            lane[:, None, None] + self.lane,
            column[:, None, None] + self.column,
        )


@instruction("tcgen05.ld")
def tcgen05_ld(cx: Decode) -> Sync:
    """The registers hold the values after `tcgen05.wait::ld`; see `TensorLoads`."""
    access = TensorAccess(cx, "pack::16b")
    cx.done((2, 3))
    access.finish(cx, 1, 0)
    slots = [cx.slot(item, B32) for item in access.items]
    registers = frozenset(cx.reg(item, B32).index for item in access.items)
    cx.program.tensor_loaded |= registers

    def execute(g: Group) -> None:
        cta, lane, column = access.places(g)
        tmem = g.wave.tmem

        def read(which: Array) -> Array:
            values = tmem.read(cta[which], lane[which], column[which], access.what)
            if not access.packed:
                return values
            return values[:, 0::2] & np.uint32(0xFFFF) | values[:, 1::2] << np.uint32(16)

        load = Load(g.rows, slots, registers, read)
        if g.wave.monitor is not None:
            watch = g.wave.monitor.tensor
            items = zip(g.rows.tolist(), cta, lane, column, strict=True)
            load.cells = {row: watch.load(row, *where) for row, *where in items}
        g.wave.tensor_loads.issue(load)

    return aligned_sync(execute)


@instruction("tcgen05.st")
def tcgen05_st(cx: Decode) -> Sync:
    access = TensorAccess(cx, "unpack::16b")
    cx.done((2, 3))
    registers = len(cx.operands) - 1
    access.finish(cx, 0, registers)
    gets = [cx.src(item, B32) for item in access.items]

    def execute(g: Group) -> None:
        values = np.stack([full(g, get(g)) for get in gets], axis=1)
        if access.packed:
            pair = np.stack([values & np.uint32(0xFFFF), values >> np.uint32(16)], axis=2)
            values = pair.reshape(len(values), -1, 32)
        places = access.places(g)
        if g.wave.monitor is not None:
            for row, *where in zip(g.rows.tolist(), *places, strict=True):
                g.wave.monitor.tensor.store(row, *where)
        g.wave.tmem.write(*places, values)

    return aligned_sync(execute)


@instruction("tcgen05.wait::ld", "tcgen05.wait::st")
def wait(cx: Decode) -> Sync:
    cx.flag("sync")
    cx.flag("aligned")
    cx.done(0)
    loads = cx.ins.mods[0] == "wait::ld"

    def execute(g: Group) -> None:
        if loads:
            g.wave.tensor_loads.wait(g.rows)
        elif g.wave.monitor is not None:
            g.wave.monitor.tensor.stored(g.rows)

    return aligned_sync(execute)


@instruction("tcgen05.fence::before_thread_sync", "tcgen05.fence::after_thread_sync")
def fence(cx: Decode) -> Exec:
    """Says nothing about values: check mode wants it where threads take turns."""
    cx.done(0)
    before = cx.ins.mods[0] == "fence::before_thread_sync"

    def execute(g: Group) -> None:
        if g.wave.monitor is None:
            return
        clocks = g.wave.monitor.clocks
        fenced = clocks.before_thread_sync if before else clocks.after_thread_sync
        fenced(np.asarray(g.rows))

    return execute


# --- commit -------------------------------------------------------------------------------------


@instruction("tcgen05.commit")
def commit(cx: Decode) -> Exec:
    """An arrival on an mbarrier when this thread's earlier asynchronous work is done."""
    take_cta_group(cx)
    cx.one_of("mbarrier::arrive::one")
    cx.option("shared::cluster", "shared::cta", "shared")
    multicast = cx.flag("multicast::cluster")
    if not cx.flag("b64"):
        cx.fail("needs .b64")
    cx.done(1 + multicast)
    _, bar = address(cx, 0, "shared")
    mask = cx.src(1, TYPES["u16"], wide=True) if multicast else None

    def execute(g: Group) -> None:
        masks = [None] * g.count() if mask is None else lanes_of(g, mask)
        items = zip(threads(g), g.lane_rows(), _words(g, bar), masks, strict=True)
        for thread, row, barrier, m in items:
            cta, offset = shared.locate(g.wave, int(row), barrier, "tcgen05.commit")
            # A mask without a CTA signals nobody; without `.multicast` there is no mask.
            ends = [cta] if m is None else receivers(g.wave, int(row), m) if m else []
            places = [shared.barrier_place(g.wave, end, offset) for end in ends]
            if g.wave.trace is not None:
                g.wave.trace.commit(g.wave, int(row), places)
            monitor = g.wave.monitor
            known = None if monitor is None else monitor.clocks.snapshot(int(row), committed=True)
            g.wave.tmem.issue(int(thread), Step(_arrival(g.wave, places, known), commit=True))

    return execute


def _words(g: Group, compute: Addresses) -> list[int]:
    return [int(v) for v in compute(g)]


def _arrival(wave: Wave, places: list[int], known: Array | None) -> Callable[[], None]:
    def run() -> None:
        for place in places:
            if wave.monitor is not None:
                wave.monitor.async_signal(place, known)
            one = np.array([1])
            wave.mbarriers.change(np.array([place]), one, np.array([0]), None)

    return run
