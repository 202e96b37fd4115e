"""Instructions in which the threads of a warp take part together."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tile_sim.errors import SimError
from tile_sim.isa.common import B32, PRED, U32
from tile_sim.machine.group import LANES, Group, merge
from tile_sim.program.decode import Decode, Exec, Getter, Sync, instruction

Array = np.ndarray


def ballot(p: Array) -> Array:
    """Bool `[rows, 32]` to one word a row, `[rows, 1]` uint32."""
    return np.packbits(np.ascontiguousarray(p), axis=1, bitorder="little").view("<u4")


def unballot(words: Array) -> Array:
    """Words `[rows, n]` to bool `[rows, 32]` (n = 1)."""
    return ((words >> LANES.astype(np.uint32)) & np.uint32(1)).astype(bool)


def full(g: Group, value: Array) -> Array:
    return np.broadcast_to(value, (len(g.rows), 32))


def warp_sync(members: Getter, execute: Exec | None, reason: str = "warp") -> Sync:
    """Waits until all threads of the member mask that still live have arrived here."""

    def arrive(new: Group | None, parked: Group | None) -> tuple[Group | None, Group | None]:
        g = merge([x for x in (new, parked) if x is not None])
        wanted = full(g, members(g))
        active = g.active
        here = ballot(active)
        if g.mask is None and (wanted == np.uint32(0xFFFFFFFF)).all():
            return g, None
        mine = (wanted >> LANES.astype(np.uint32)) & np.uint32(1)
        if (active & (mine == 0)).any():
            raise SimError("bad-mask", "a thread is not in its own member mask")
        live = ballot(g.wave.live[g.rows])
        ready = active & ((wanted & live & ~here) == 0)
        if ready.all() or np.array_equal(ready, active):
            return g, None
        return g.part(ready), g.part(active & ~ready)

    return Sync(arrive, execute, reason)


def aligned_sync(execute: Exec | None) -> Sync:
    """`.aligned`: all threads of the warp have to come here together."""

    def arrive(new: Group | None, parked: Group | None) -> tuple[Group | None, Group | None]:
        g = merge([x for x in (new, parked) if x is not None])
        if g.mask is None:
            return g, None
        whole = (g.mask == g.wave.live[g.rows]).all(axis=1)
        if whole.all():
            return g, None
        return g.of_rows(whole), g.of_rows(~whole)

    return Sync(arrive, execute, "aligned")


# --- shuffles -----------------------------------------------------------------------------------


def _shuffle_source(mode: str, lane: Array, b: Array, c: Array) -> tuple[Array, Array]:
    """The source lane and whether it is in range (PTX ISA, `shfl.sync`)."""
    b, clamp = b & 31, c & 31
    segment = (c >> 8) & 31
    low = lane & segment
    high = low | (clamp & ~segment)
    if mode == "up":
        j = lane - b
        return j, j >= high
    if mode == "down":
        j = lane + b
        return j, j <= high
    if mode == "bfly":
        j = lane ^ b
        return j, j <= high
    j = low | (b & ~segment)
    return j, j <= high


@instruction("shfl.sync")
def shfl(cx: Decode) -> Sync:
    mode = cx.one_of("up", "down", "bfly", "idx")
    type_ = cx.type("b32")
    cx.done(5)
    first, second = cx.pair(0)
    put, put_p = cx.put(first, type_), None if second is None else cx.put(second, PRED)
    a, b, c = cx.src(1, type_), cx.src(2, U32), cx.src(3, U32)
    members = cx.src(4, U32)
    lane = LANES[None, :]

    def execute(g: Group) -> None:
        value = full(g, a(g))
        source, inside = _shuffle_source(mode, lane, b(g).astype(np.int64), c(g).astype(np.int64))
        source = full(g, np.where(inside, source, lane))
        put(g, np.take_along_axis(value, source & 31, axis=1))
        if put_p is not None:
            put_p(g, full(g, inside))

    return warp_sync(members, execute)


# --- votes --------------------------------------------------------------------------------------


def _vote(mode: str, p: Array, same: Array) -> Array:
    """`p` and `same` are bool `[rows, 32, 32]`-reducible words: set bits of true and of members."""
    if mode == "all":
        return p == same
    if mode == "any":
        return p != 0
    return (p == same) | (p == 0)


@instruction("vote.sync")
def vote(cx: Decode) -> Sync:
    mode = cx.one_of("all", "any", "uni", "ballot")
    type_ = cx.type("pred b32")
    cx.done(3)
    if (mode == "ballot") != (type_.name == "b32"):
        cx.fail("only .ballot has the type .b32")
    slot, a, members = cx.slot(0, type_), cx.src(1, PRED), cx.src(2, U32)

    def execute(g: Group) -> None:
        wanted = full(g, members(g))
        true = ballot(full(g, a(g)) & g.active) & wanted
        if mode == "ballot":
            g.put(slot, true)
        else:
            g.put(slot, _vote(mode, true, ballot(g.active) & wanted))

    return warp_sync(members, execute)


@instruction("activemask")
def activemask(cx: Decode) -> Exec:
    cx.type("b32")
    cx.done(1)
    slot = cx.slot(0, B32)
    return lambda g: g.put(slot, ballot(g.active))


@instruction("match.any.sync", "match.all.sync")
def match(cx: Decode) -> Sync:
    every = cx.ins.mods[0] == "all"
    type_ = cx.type("b32 b64")
    cx.done(3)
    first, second = cx.pair(0)
    put, put_p = cx.put(first, B32), None if second is None else cx.put(second, PRED)
    a, members = cx.src(1, type_), cx.src(2, U32)

    def execute(g: Group) -> None:
        value, wanted = full(g, a(g)), full(g, members(g))
        equal = value[:, :, None] == value[:, None, :]
        equal &= g.active[:, None, :]
        words = np.packbits(equal, axis=2, bitorder="little").view("<u4")[..., 0] & wanted
        if every:
            agree = words == (wanted & ballot(g.active))
            put(g, np.where(agree, words, np.uint32(0)))
            if put_p is not None:
                put_p(g, agree)
        else:
            put(g, words)

    return warp_sync(members, execute)


# --- reductions ---------------------------------------------------------------------------------

_REDUCTIONS: dict[str, tuple[Callable[..., Array], str]] = {
    "add": (np.add, "u32 s32"),
    "min": (np.minimum, "u32 s32"),
    "max": (np.maximum, "u32 s32"),
    "and": (np.bitwise_and, "b32"),
    "or": (np.bitwise_or, "b32"),
    "xor": (np.bitwise_xor, "b32"),
}


@instruction("redux.sync")
def redux(cx: Decode) -> Sync:
    op = cx.one_of(*_REDUCTIONS)
    magnitude, nan = cx.flag("abs"), cx.flag("NaN")
    fn, allowed = _REDUCTIONS[op]
    type_ = cx.type(f"{allowed} f32" if op in ("min", "max") else allowed)
    cx.done(3)
    if type_.kind == "f":
        fn = {("min", True): np.minimum, ("max", True): np.maximum}.get(
            (op, nan), np.fmin if op == "min" else np.fmax
        )
    slot, a, members = cx.slot(0, type_), cx.src(1, type_), cx.src(2, U32)

    def execute(g: Group) -> None:
        value, wanted = full(g, a(g)), full(g, members(g))
        if magnitude:
            value = np.abs(value)
        result = np.array(value)
        for lane in range(32):
            # Each distinct member mask of a row is one reduction.
            inside = unballot_rows(wanted[:, lane]) & g.active
            leader = g.active[:, lane] & (np.argmax(inside, axis=1) == lane)
            if leader.any():
                result = _reduce_rows(fn, value, inside, leader, result)
        g.put(slot, result)

    return warp_sync(members, execute)


def unballot_rows(words: Array) -> Array:
    return unballot(words[:, None])


def _reduce_rows(
    fn: Callable[..., Array], value: Array, inside: Array, leader: Array, result: Array
) -> Array:
    """Reduce the members of each row that has a leader, lane by lane in order."""
    total, seen = np.zeros(len(value), value.dtype), np.zeros(len(value), bool)
    for lane in range(32):
        here = inside[:, lane]
        total = np.where(here, np.where(seen, fn(total, value[:, lane]), value[:, lane]), total)
        seen |= here
    return np.where(inside & leader[:, None], total[:, None], result)


# --- convergence --------------------------------------------------------------------------------


@instruction("bar.warp.sync", "barrier.warp.sync")
def bar_warp(cx: Decode) -> Sync:
    cx.done(1)
    return warp_sync(cx.src(0, U32), None)


@instruction("elect.sync")
def elect(cx: Decode) -> Sync:
    """One thread of the member mask: the lowest that is there."""
    cx.done(2)
    first, second = cx.pair(0)
    if second is None:
        cx.fail("the destination is d|p")
    put, put_p, members = cx.put(first, B32), cx.put(second, PRED), cx.src(1, U32)

    def execute(g: Group) -> None:
        wanted = full(g, members(g)) & ballot(g.active)
        lowest = wanted & (~wanted + np.uint32(1))
        leader = np.bitwise_count(lowest - np.uint32(1)).astype(np.uint32)
        put(g, leader)
        put_p(g, leader == LANES.astype(np.uint32))

    return warp_sync(members, execute)
