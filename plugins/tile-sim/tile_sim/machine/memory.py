"""Global memory: registered buffers in one flat address space."""

from __future__ import annotations

import bisect
import ctypes
from dataclasses import dataclass, field

import numpy as np

from tile_sim.errors import SimError
from tile_sim.program.layout import HEAP_WINDOW, align_up

Array = np.ndarray
ALIGNMENT = 256
_GUARD = 4096
# The widest element of a view, in bytes.
SKEW = 16


def bytes_at(address: int, size: int) -> Array:
    """The memory of this process at an address, as flat uint8."""
    return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))


@dataclass(eq=False)
class Buffer:
    """`size` bytes at `base`. `data` is a flat uint8 view of the user's array.

    `valid`, where kept, has 1 for each byte that has been written. `skew` is how far a base that is
    a real address lies behind a multiple of `SKEW`; views then begin that much before it, so that
    aligned addresses are whole elements of them.
    """

    name: str
    base: int
    data: Array
    writable: bool = True
    valid: Array | None = None
    skew: int = 0
    _views: dict[str, Array] = field(default_factory=dict)

    @property
    def size(self) -> int:
        return len(self.data)

    @property
    def origin(self) -> int:
        """The address of the first element of a view."""
        return self.base - self.skew

    def view(self, dtype: np.dtype) -> Array:
        """Elements of `dtype` from `origin` on; an incomplete last element is left out."""
        found = self._views.get(dtype.str)
        if found is None:
            data = bytes_at(self.origin, self.size + self.skew) if self.skew else self.data
            whole = len(data) // dtype.itemsize * dtype.itemsize
            found = self._views[dtype.str] = data[:whole].view(dtype)
        return found


class GlobalMemory:
    """Buffers by address. Every access has to lie inside one buffer."""

    def __init__(self) -> None:
        self._bases: list[int] = []
        self._buffers: list[Buffer] = []
        self._next = HEAP_WINDOW

    def place(self, name: str, data: Array, writable: bool = True) -> Buffer:
        """Register `data` (flat uint8) at a fresh aligned address, guard bytes around it."""
        buffer = Buffer(name, self._next, data, writable)
        self._next = align_up(self._next + len(data) + _GUARD, ALIGNMENT)
        self.insert(buffer)
        return buffer

    def map(self, name: str, address: int, size: int, writable: bool = True) -> Buffer:
        """Register memory of this process at its real address.

        Raises SimError (`launch`) where it overlaps a registered buffer.
        """
        at = bisect.bisect_left(self._bases, address + size)
        if at and self._buffers[at - 1].base + self._buffers[at - 1].size > address:
            other = self._buffers[at - 1].name
            raise SimError("launch", f"{name} at {address:#x} overlaps {other!r}")
        data = bytes_at(address, size)
        buffer = Buffer(name, address, data, writable, skew=address % SKEW)
        self.insert(buffer)
        return buffer

    def insert(self, buffer: Buffer) -> None:
        at = bisect.bisect(self._bases, buffer.base)
        self._bases.insert(at, buffer.base)
        self._buffers.insert(at, buffer)

    def remove(self, buffer: Buffer) -> None:
        at = self._buffers.index(buffer)
        del self._bases[at], self._buffers[at]

    def buffer_at(self, address: int) -> Buffer | None:
        at = bisect.bisect_right(self._bases, address) - 1
        if at < 0:
            return None
        buffer = self._buffers[at]
        return buffer if address < buffer.base + max(buffer.size, 1) else None

    def require(self, address: int, size: int) -> Buffer:
        """The buffer that holds `size` bytes at `address`."""
        buffer = self.buffer_at(address)
        if buffer is None or address + size > buffer.base + buffer.size:
            error = SimError("out-of-bounds", self.describe(address, size))
            error.address = address
            raise error
        return buffer

    def describe(self, address: int, size: int) -> str:
        """Why an address is wrong, in terms of the buffers."""
        at = bisect.bisect_right(self._bases, address) - 1
        if at >= 0:
            buffer = self._buffers[at]
            past = address + size - buffer.base - buffer.size
            if past > 0 and past < 1 << 32:
                offset = address - buffer.base
                # So far away, the address may have been made from that of another one.
                far = " the nearest before them," if offset >= 2 * buffer.size else ""
                return (
                    f"{size} bytes at offset {offset} of {buffer.name},{far} "
                    f"which has {buffer.size} bytes, are outside every buffer"
                )
        return f"{size} bytes at {address:#x} are outside every buffer"

    def split(self, addresses: Array, size: int) -> list[tuple[Buffer, Array | None]]:
        """Which buffers `addresses` (uint64, one dimension, not empty) fall into.

        Pairs of a buffer and a bool selection (None: all). Every access of `size` bytes lies
        inside its buffer, else SimError (`out-of-bounds`).
        """
        low, high = int(addresses.min()), int(addresses.max())
        buffer = self.require(low, size)
        if high + size <= buffer.base + buffer.size:
            return [(buffer, None)]
        parts: list[tuple[Buffer, Array | None]] = []
        rest = np.ones(len(addresses), bool)
        while rest.any():
            buffer = self.require(int(addresses[rest].min()), size)
            here = rest & (addresses < np.uint64(buffer.base + buffer.size))
            self.require(int(addresses[here].max()), size)
            parts.append((buffer, here))
            rest &= ~here
        return parts

    def read(self, address: int, size: int) -> bytes:
        """Bytes at an address."""
        buffer = self.require(address, size)
        start = address - buffer.base
        return buffer.data[start : start + size].tobytes()

    def write(self, address: int, data: bytes | Array) -> None:
        raw = np.frombuffer(data, np.uint8) if isinstance(data, bytes) else data
        buffer = self.require(address, len(raw))
        if not buffer.writable:
            raise SimError("read-only", f"{buffer.name!r} cannot be written")
        start = address - buffer.base
        buffer.data[start : start + len(raw)] = raw

    def c_string(self, address: int, limit: int = 1 << 16) -> str:
        """The zero-ended text at an address."""
        buffer = self.require(address, 1)
        start = address - buffer.base
        raw = buffer.data[start : start + limit].tobytes()
        return raw.split(b"\0", 1)[0].decode("utf-8", "replace")
