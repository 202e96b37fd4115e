"""Runs as a process of its own: reads code and parameters, calls the code, writes them back.

Started by `tile_sim.peer.process` without site and environment, so it imports the standard library
alone. The formats of request and reply are those of that module.
"""

from __future__ import annotations

import ctypes
import mmap
import struct
import sys
from typing import Any, BinaryIO

_PARAMETERS = 1 << 16


def _exactly(stream: BinaryIO, size: int) -> bytes:
    data = stream.read(size)
    if len(data) != size:
        sys.exit(0)
    return data


def _load(image: bytes, relocations: bytes, start: int) -> Any:
    """A function of executable memory that holds the image."""
    memory = mmap.mmap(-1, max(len(image), 1), prot=mmap.PROT_READ | mmap.PROT_WRITE | 4)
    memory.write(image)
    base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    for offset, target in struct.iter_unpack("<QQ", relocations):
        memory[offset : offset + 8] = struct.pack("<Q", base + target)
    kind = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 4)
    return kind(base + start), memory


def main() -> None:
    stdin, stdout = sys.stdin.buffer, sys.stdout.buffer
    loaded: dict[tuple[bytes, bytes, int], Any] = {}
    while True:
        sizes = struct.unpack("<IIIIQ", _exactly(stdin, 24))
        image, relocations, parameters = (_exactly(stdin, size) for size in sizes[:3])
        key = (image, relocations, sizes[3])
        if key not in loaded:
            loaded[key] = _load(*key)
        # Room behind the parameters: a callback that writes past their end shall not break this.
        room = ctypes.create_string_buffer(_PARAMETERS + len(parameters) + 64)
        address = -(-ctypes.addressof(room) // 64) * 64
        ctypes.memmove(address, parameters, len(parameters))
        context = (ctypes.c_uint64 * 8)(0, sizes[4])
        result = loaded[key][0](0, ctypes.addressof(context), 0, address)
        stdout.write(struct.pack("<iI", result, len(parameters)))
        stdout.write(ctypes.string_at(address, len(parameters)))
        stdout.flush()


main()
