"""Local memory at fixed places: parameters of calls."""

from __future__ import annotations

import numpy as np

from tile_sim.machine.group import Group

Array = np.ndarray


def threads(g: Group) -> Array:
    """The thread number in the wave of each active lane."""
    return g.lane_rows() * 32 + g.lane_ids()


def copy_local(g: Group, source: int, target: int, size: int) -> None:
    """Copy `size` bytes within the local memory of each active thread, state included."""
    space = g.wave.local
    who = threads(g)
    for store in (space.bytes, space.state):
        rows = store.reshape(-1, space.stride)
        rows[who, target : target + size] = rows[who, source : source + size]


def read_local(g: Group, offset: int, dtype: str) -> Array:
    """A value at a fixed place of local memory, for each active thread."""
    kind = np.dtype(dtype)
    rows = g.wave.local.bytes.reshape(-1, g.wave.local.stride)
    raw = np.ascontiguousarray(rows[threads(g), offset : offset + kind.itemsize])
    return raw.view(kind).reshape(-1)


def write_local(g: Group, offset: int, values: Array) -> None:
    """Write a value at a fixed place of local memory, for each active thread."""
    rows = g.wave.local.bytes.reshape(-1, g.wave.local.stride)
    size = values.dtype.itemsize
    who = threads(g)
    rows[who, offset : offset + size] = (
        np.ascontiguousarray(values).view(np.uint8).reshape(-1, size)
    )
    state = g.wave.local.state.reshape(-1, g.wave.local.stride)
    state[who, offset : offset + size] = 1
