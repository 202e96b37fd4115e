"""Memory of this process that raw parameters point into."""

from __future__ import annotations

import struct
from pathlib import Path

from tile_sim.machine.parameters import RawBuffer

_MAPS = Path("/proc/self/maps")


def mappings_of(parameters: bytes) -> list[RawBuffer]:
    """The mappings that 8-byte values in `parameters` lie in, where nothing better is known.

    A program that launches through the driver itself passes addresses without their extents.
    """
    values = {value for (value,) in struct.iter_unpack("<Q", parameters[: len(parameters) & ~7])}
    found = []
    for line in _MAPS.read_text().splitlines():
        extent, access, *_ = line.split()
        first, stop = (int(part, 16) for part in extent.split("-"))
        if access.startswith("rw") and any(first <= value < stop for value in values):
            found.append(RawBuffer(first, stop - first, "memory of the process"))
    return found
