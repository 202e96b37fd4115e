"""Loads and stores of groups of threads in every space.

An access is split into parts, each a flat array of elements with an index for each lane. What is
wrong with an address is found here: bounds, alignment, reads of what was never written.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tile_sim.errors import SimError
from tile_sim.machine.group import Group
from tile_sim.program.layout import (
    LOCAL_WINDOW,
    RANK_SHIFT,
    SHARED_START,
    SHARED_WINDOW,
)

Array = np.ndarray
U64 = np.uint64
UNWRITTEN, WRITTEN, PENDING, BARRIER = 0, 1, 2, 3
# What check mode fills memory with: float32 and bfloat16 3.4e38, float16 NaN, large as an integer.
UNWRITTEN_BYTE = 0x7F


@dataclass(slots=True)
class Part:
    """Lanes `pick` (None: all) of an access find their elements at `index` of `data`.

    `state` has the same shape as `data`: each byte UNWRITTEN, WRITTEN or PENDING (None: not kept).
    `base` is the address of the first element, for global memory.
    """

    data: Array
    index: Array
    pick: Array | None
    state: Array | None
    space: str
    writable: bool = True
    name: str = ""
    base: int = 0


class Space:
    """Byte storage with state, seen as elements of any type: shared or local memory."""

    def __init__(self, name: str, owners: int, size: int, fill: int = 0) -> None:
        self.name = name
        self.size = size
        self.stride = max(-(-size // 1024) * 1024, 1024) if name == "shared" else size
        whole = owners * self.stride
        # Of zeros, those that nobody touches take no memory.
        self.bytes = np.full(whole, fill, np.uint8) if fill else np.zeros(whole, np.uint8)
        self.state = np.zeros(owners * self.stride, np.uint8)
        self._views: dict[str, tuple[Array, Array]] = {}

    def view(self, dtype: np.dtype) -> tuple[Array, Array]:
        """Data as `dtype`, and its state as unsigned integers of the same width."""
        found = self._views.get(dtype.str)
        if found is None:
            state = self.state.view(f"<u{dtype.itemsize}")
            found = self._views[dtype.str] = (self.bytes.view(dtype), state)
        return found


def _ones(width: int) -> int:
    return int.from_bytes(b"\1" * width, "little")


WRITTEN_WORD = {n: np.array(_ones(n), f"<u{n}")[()] for n in (1, 2, 4, 8)}


def parts(g: Group, space: str, address: Array, width: int, dtype: np.dtype) -> Iterator[Part]:
    """Split an access of `width` bytes a lane at `address` (active lanes, uint64).

    Raises SimError: `misaligned`, `out-of-bounds`, `bad-address`.
    """
    if width > 1:
        wrong = address & U64(width - 1)
        if wrong.any():
            where = int(address[wrong != 0][0])
            raise SimError(
                "misaligned", f"{width} bytes at {where:#x} ({space}) need {width}-byte alignment"
            )
    if space == "shared":
        yield _shared(g, address, width, dtype, None)
    elif space == "local":
        yield _local(g, address, width, dtype, None)
    elif space == "generic":
        yield from _generic(g, address, width, dtype)
    else:
        yield from _global(g, address, width, dtype, None)


def _generic(g: Group, address: Array, width: int, dtype: np.dtype) -> Iterator[Part]:
    window = address >> U64(32)
    shared = window == U64(SHARED_WINDOW >> 32)
    local = window == U64(LOCAL_WINDOW >> 32)
    low = address & U64(0xFFFFFFFF)
    other = ~(shared | local)
    for here, make in ((shared, _shared), (local, _local)):
        if here.any():
            pick = None if here.all() else here
            yield make(g, low if pick is None else low[here], width, dtype, pick)
    if other.any():
        pick = None if other.all() else other
        yield from _global(g, address if pick is None else address[other], width, dtype, pick)


def _global(
    g: Group, address: Array, width: int, dtype: np.dtype, outer: Array | None
) -> Iterator[Part]:
    memory = g.wave.memory
    shift = U64(dtype.itemsize.bit_length() - 1)
    try:
        touched = memory.split(address, width)
    except SimError as error:
        error.block = _block_of(g, address, outer, error.address)
        raise
    for buffer, here in touched:
        mine = address if here is None else address[here]
        index = ((mine - U64(buffer.origin)) >> shift).view(np.int64)
        pick = here
        if outer is not None:
            pick = outer.copy()
            if here is not None:
                pick[outer] = here
        state = None if buffer.valid is None else buffer.valid.view(f"<u{dtype.itemsize}")
        data, base = buffer.view(dtype), buffer.origin
        yield Part(data, index, pick, state, "global", buffer.writable, buffer.name, base)


def _block_of(
    g: Group, addresses: Array, outer: Array | None, wrong: int | None
) -> tuple[int, int, int] | None:
    """The tile block of the first lane that has an address."""
    if wrong is None:
        return None
    rows = g.lane_rows() if outer is None else g.lane_rows()[outer]
    row = int(rows[np.flatnonzero(addresses == U64(wrong))[0]])
    x, y, z = (int(n) for n in g.wave.coordinates[g.wave.cta_of[row]])
    return x, y, z


def _shared(g: Group, address: Array, width: int, dtype: np.dtype, pick: Array | None) -> Part:
    wave = g.wave
    space = wave.shared
    rows = g.lane_rows() if pick is None else g.lane_rows()[pick]
    rank = address >> U64(RANK_SHIFT)
    offset = address & U64((1 << RANK_SHIFT) - 1)
    bad = (rank >= wave.cluster_size) | (offset < SHARED_START) | (offset + width > space.size)
    if bad.any():
        raise SimError("out-of-bounds", _shared_message(wave, int(address[bad][0]), width))
    cta = wave.cluster_first[rows] + rank.view(np.int64)
    flat = cta * space.stride + offset.view(np.int64)
    data, state = space.view(dtype)
    return Part(data, flat >> (dtype.itemsize.bit_length() - 1), pick, state, "shared")


def _shared_message(wave: object, address: int, width: int) -> str:
    size = getattr(wave, "shared").size - SHARED_START  # noqa: B009
    rank, offset = address >> RANK_SHIFT, address & ((1 << RANK_SHIFT) - 1)
    return (
        f"{width} bytes at shared address {address:#x} (CTA rank {rank}, offset "
        f"{offset - SHARED_START} from the first variable) are outside the {size} bytes "
        f"of shared memory"
    )


def _local(g: Group, address: Array, width: int, dtype: np.dtype, pick: Array | None) -> Part:
    space = g.wave.local
    if int(address.max(initial=0)) + width > space.size:
        where = int(address.max())
        raise SimError(
            "out-of-bounds",
            f"{width} bytes at local address {where:#x} are outside {space.size} bytes",
        )
    thread = g.lane_rows() * 32 + g.lane_ids()
    if pick is not None:
        thread = thread[pick]
    flat = thread * space.stride + address.view(np.int64)
    data, state = space.view(dtype)
    return Part(data, flat >> (dtype.itemsize.bit_length() - 1), pick, state, "local")


def check_written(part: Part, index: Array, word: Any) -> None:
    """Reads need bytes that have been written, and not by something still on its way."""
    if part.state is None:
        return
    state = part.state[index]
    bad = state != word
    if not bad.any():
        return
    value = int(state[bad][0])
    states = {value >> 8 * i & 0xFF for i in range(word.nbytes)}
    if states <= {WRITTEN, BARRIER}:
        return
    pending = PENDING in states
    kind = "pending" if pending else "uninitialised"
    what = "still being written by an asynchronous operation" if pending else "never written"
    raise SimError(kind, f"read of {part.space} memory that was {what}")


def load(g: Group, space: str, address: Array, dtype: np.dtype, count: int) -> list[Array]:
    """`count` consecutive elements for each active lane: `count` arrays of one dimension."""
    out: list[Array] | None = None
    size = dtype.itemsize
    for part in parts(g, space, address, size * count, dtype):
        g.wave.observe("read", g, part, count)
        found = []
        for i in range(count):
            index = part.index + i if i else part.index
            if g.wave.check_uninitialised:
                check_written(part, index, WRITTEN_WORD[size])
            found.append(part.data[index])
        if part.pick is None:
            return found
        if out is None:
            out = [np.zeros(len(address), dtype) for _ in range(count)]
        for whole, piece in zip(out, found, strict=True):
            whole[part.pick] = piece
    return out or []


def store(g: Group, space: str, address: Array, dtype: np.dtype, values: list[Array]) -> None:
    """Write consecutive elements (arrays over the active lanes) at each address."""
    size = dtype.itemsize
    g.wave.progress += 1
    for part in parts(g, space, address, size * len(values), dtype):
        if not part.writable:
            raise SimError("read-only", f"write to {part.name!r}, which is read-only")
        picked = values if part.pick is None else [value[part.pick] for value in values]
        g.wave.observe_write(g, part, picked)
        if g.wave.unmade is not None and g.wave.unmade.spares(part, len(values)):
            continue
        for i, value in enumerate(picked):
            index = part.index + i if i else part.index
            part.data[index] = value
            if part.state is not None:
                _reject_barriers(part, index)
                part.state[index] = WRITTEN_WORD[size]


def same_values(part: Part, values: list[Array]) -> tuple[Part, Array]:
    """A store without the lanes that write the same as a lane before them, and which of the
    others write what is there already."""
    new = [np.asarray(value).astype(part.data.dtype, copy=False) for value in values]
    silent = np.ones(len(part.index), bool)
    for i, value in enumerate(new):
        silent &= _as_bits(value) == _as_bits(part.data[part.index + i])
    return without_repeats(part, new), silent[_first_lanes(part, new)]


def without_repeats(part: Part, values: list[Array]) -> Part:
    """An access without the lanes that have place and values of a lane before them."""
    keep = _first_lanes(part, values)
    if keep.all():
        return part
    pick = np.flatnonzero(keep)
    if part.pick is not None:
        pick = np.flatnonzero(part.pick)[pick]
    return replace(part, index=part.index[keep], pick=pick)


def _first_lanes(part: Part, values: list[Array]) -> Array:
    """Which lanes are no repeats."""
    _, first, which = np.unique(part.index, return_index=True, return_inverse=True)
    first = first[which.reshape(-1)]
    repeats = first != np.arange(len(first))
    for value in values:
        bits = _as_bits(value)
        repeats &= bits == bits[first]
    return ~repeats


def _as_bits(values: Array) -> Array:
    """Values as integers: a NaN is what it is."""
    return np.ascontiguousarray(values).view(f"<u{values.dtype.itemsize}")


def _reject_barriers(part: Part, index: Array) -> None:
    """An mbarrier is only changed by mbarrier instructions until it is invalidated."""
    assert part.state is not None
    old = part.state[index]
    if part.space == "shared" and ((old & old.dtype.type(2)) != 0).any():
        byte = int(old[(old & old.dtype.type(2)) != 0][0]) & 0xFF
        if byte == BARRIER:
            raise SimError("mbarrier", "store to a live mbarrier object")
        raise SimError("pending", "store to shared memory that a pending copy will write")
