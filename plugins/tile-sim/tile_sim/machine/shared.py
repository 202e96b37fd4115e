"""Shared memory seen by asynchronous operations: bytes of one CTA."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tile_sim.errors import SimError
from tile_sim.machine.access import BARRIER, PENDING, UNWRITTEN, WRITTEN
from tile_sim.program.layout import RANK_SHIFT, SHARED_START, SHARED_WINDOW

if TYPE_CHECKING:
    from tile_sim.machine.wave import Wave

Array = np.ndarray
POISON = 0xA7
_OFFSET = (1 << RANK_SHIFT) - 1


def locate(wave: Wave, row: int, address: int, what: str) -> tuple[int, int]:
    """(CTA of the wave, offset) of a shared address as the threads of warp `row` see it."""
    if address >> 32 == SHARED_WINDOW >> 32:
        address &= 0xFFFFFFFF
    rank, offset = address >> RANK_SHIFT, address & _OFFSET
    if rank >= wave.cluster_size:
        raise SimError("out-of-bounds", f"{what}: {address:#x} is in no CTA of the cluster")
    return int(wave.cluster_first[row]) + rank, offset


def flat(wave: Wave, cta: int, offsets: Array, what: str) -> Array:
    """Flat byte indices; every offset has to lie in the CTA's shared memory."""
    low, high = int(offsets.min(initial=SHARED_START)), int(offsets.max(initial=SHARED_START))
    if low < SHARED_START or high >= max(wave.shared.size, SHARED_START + 1):
        raise SimError(
            "out-of-bounds",
            f"{what}: bytes {low} to {high} of shared memory, which is {SHARED_START} to "
            f"{wave.shared.size}",
        )
    return cta * wave.shared.stride + offsets


def mark_pending(wave: Wave, row: int, where: Array, what: str) -> None:
    """Poison bytes that an asynchronous operation, started by warp `row`, will write."""
    if wave.monitor is not None:
        wave.monitor.async_write(row, where, what)
    state = wave.shared.state
    old = state[where]
    if (old == BARRIER).any():
        raise SimError("mbarrier", f"{what} overwrites a live mbarrier object")
    if (old == PENDING).any():
        raise SimError("pending", f"{what} writes where another copy is still pending")
    state[where] = PENDING
    wave.shared.bytes[where] = POISON


def write(wave: Wave, where: Array, data: Array) -> None:
    wave.shared.bytes[where] = data
    wave.shared.state[where] = WRITTEN


def read(wave: Wave, where: Array, what: str) -> Array:
    """Bytes that have to be there."""
    if wave.check_uninitialised:
        state = wave.shared.state[where]
        if (state == PENDING).any():
            raise SimError("pending", f"{what} reads shared memory that a copy has yet to fill")
        if (state == UNWRITTEN).any():
            raise SimError("uninitialised", f"{what} reads shared memory that was never written")
    return wave.shared.bytes[where]


def barrier_place(wave: Wave, cta: int, offset: int) -> int:
    """The word index of an mbarrier."""
    if offset % 8:
        raise SimError("misaligned", f"mbarrier at offset {offset} is not 8-byte aligned")
    if offset >= SHARED_START and offset + 7 < wave.shared.size:
        return (cta * wave.shared.stride + offset) // 8
    return int(flat(wave, cta, np.array([offset, offset + 7]), "mbarrier")[0]) // 8
