"""`st.async` and `red.async`, which signal an mbarrier of the cluster, and `st.bulk`."""

from __future__ import annotations

import numpy as np

from tile_sim.errors import SimError
from tile_sim.isa.address import address
from tile_sim.isa.bulk import addresses_of, signal
from tile_sim.machine import shared
from tile_sim.machine.asyncs import Operation
from tile_sim.machine.group import Group
from tile_sim.machine.wave import Wave
from tile_sim.program.decode import Decode, Exec, instruction
from tile_sim.program.types import TYPES

Array = np.ndarray
_COMPLETE = "mbarrier::complete_tx::bytes"
_REDUCE = {
    "add": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "inc": lambda a, b: np.where(a >= b, a.dtype.type(0), a + a.dtype.type(1)),
    "dec": lambda a, b: np.where((a == 0) | (a > b), b, a - a.dtype.type(1)),
}


def _take(cx: Decode) -> None:
    for word in ("async", "weak", "relaxed", "cluster", "shared::cluster"):
        cx.flag(word)
    cx.one_of(_COMPLETE)


def st_async(cx: Decode) -> Exec:
    _take(cx)
    count = int(cx.one_of("v2", "v4", default="v1")[1:])
    type_ = cx.type("b32 b64 u32 u64 s32 s64 f32 f64")
    cx.done(3)
    _, to = address(cx, 0, "shared")
    items = cx.vector(1)
    if len(items) != count:
        cx.fail(f"needs a vector of {count}")
    gets = [cx.src(item, type_) for item in items]
    _, bar = address(cx, 2, "shared")

    def execute(g: Group) -> None:
        values = np.stack([g.lanes(np.asarray(get(g))) for get in gets], axis=1)
        raw = np.ascontiguousarray(values).view(np.uint8)
        for i, (row, target, barrier) in enumerate(
            zip(g.lane_rows(), addresses_of(g, to), addresses_of(g, bar), strict=True)
        ):
            where = _place(g.wave, int(row), target, raw.shape[1])
            shared.mark_pending(g.wave, int(row), where, "st.async")
            end = (*shared.locate(g.wave, int(row), barrier, "st.async"), raw.shape[1])
            _issue_store(g.wave, int(row), where, raw[i], end)

    return execute


def _place(wave: Wave, row: int, target: int, size: int) -> Array:
    cta, offset = shared.locate(wave, row, target, "asynchronous store")
    return shared.flat(wave, cta, offset + np.arange(size), "asynchronous store")


def _issue_store(
    wave: Wave, row: int, where: Array, data: Array, end: tuple[int, int, int]
) -> None:
    def write() -> None:
        shared.write(wave, where, data)
        signal(wave, *end, filled=where)

    wave.asyncs.issue(row, Operation(write, signals=True))


def red_async(cx: Decode) -> Exec:
    _take(cx)
    fn = _REDUCE[cx.one_of(*_REDUCE)]
    type_ = cx.type("b32 u32 s32 u64")
    cx.done(3)
    _, to = address(cx, 0, "shared")
    get = cx.src(1, type_)
    _, bar = address(cx, 2, "shared")
    dtype = type_.dtype

    def execute(g: Group) -> None:
        wave, values = g.wave, g.lanes(np.asarray(get(g)))
        for row, target, barrier, value in zip(
            g.lane_rows(), addresses_of(g, to), addresses_of(g, bar), values, strict=True
        ):
            where = _place(wave, int(row), target, dtype.itemsize)
            end = (*shared.locate(wave, int(row), barrier, "red.async"), dtype.itemsize)

            def write(where=where, value=value, end=end) -> None:
                old = shared.read(wave, where, "red.async").view(dtype)
                new = np.asarray(fn(old, np.array([value], dtype)), dtype)
                shared.write(wave, where, new.view(np.uint8))
                signal(wave, *end, filled=where)

            wave.asyncs.issue(int(row), Operation(write, signals=True))

    return execute


@instruction("st.bulk")
def st_bulk(cx: Decode) -> Exec:
    """Zeros to own shared memory: `[address], bytes, 0`."""
    cx.flag("weak")
    cx.option("shared::cta", "shared")
    cx.done(3)
    _, to = address(cx, 0, "shared")
    size = cx.src(1, TYPES["u64"])
    if cx.constant(2) != 0:
        cx.fail("the value has to be 0")

    def execute(g: Group) -> None:
        sizes = g.lanes(np.asarray(size(g)))
        for row, target, amount in zip(g.lane_rows(), addresses_of(g, to), sizes, strict=True):
            if target % 8 or amount % 8:
                raise SimError("misaligned", "st.bulk needs 8-byte aligned address and size")
            where = _place(g.wave, int(row), target, int(amount))
            shared.write(g.wave, where, np.zeros(int(amount), np.uint8))

    return execute
