"""Shared-memory matrix descriptors of wgmma and tcgen05 (PTX ISA, "Matrix Descriptor").

A matrix is MN (rows of A or columns of B) by K. In units of bytes, with 16-byte chunks:

K-major: row r, byte b of the row. No swizzle: 8 rows of 16 bytes are contiguous, the next chunk
along K is LBO away, the next 8 rows SBO away. Swizzled by S bytes: 8 rows of S bytes are
contiguous, the next 8 rows SBO away.

MN-major: byte b along MN, row k. No swizzle: 8 k-rows of 16 bytes are contiguous, the next 8 k are
LBO away, the next chunk along MN is SBO away. Swizzled by S bytes: 8 k-rows of S bytes are
contiguous, the next 8 k SBO away, the next S bytes along MN LBO away.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from tile_sim.errors import SimError

Array = np.ndarray


@dataclass(frozen=True)
class Layout:
    """The part of a descriptor that is no address. `span` is the swizzle in bytes (16: none),
    `atom` the bytes that stay together."""

    leading: int
    stride: int
    span: int
    base_offset: int = 0
    atom: int = 16


_WGMMA_SPAN = {0: 16, 1: 128, 2: 64, 3: 32}
_TCGEN_SPAN = {0: (16, 16), 1: (128, 32), 2: (128, 16), 4: (64, 16), 6: (32, 16)}


def decode_wgmma(word: int) -> tuple[int, Layout]:
    """(start address, layout): address 0-13, LBO 16-29, SBO 32-45, base offset 49-51, swizzle
    62-63; addresses and offsets in units of 16 bytes."""
    if word & ((3 << 14) | (3 << 30) | (7 << 46) | (1023 << 52)):
        raise SimError("bad-descriptor", f"matrix descriptor {word:#018x} has reserved bits set")
    leading, stride = (word >> 16 & 0x3FFF) << 4, (word >> 32 & 0x3FFF) << 4
    layout = Layout(leading, stride, _WGMMA_SPAN[word >> 62 & 3], word >> 49 & 7)
    return (word & 0x3FFF) << 4, layout


def decode_tcgen05(word: int) -> tuple[int, Layout]:
    """As `decode_wgmma`, with 0b001 in bits 46-48, the LBO mode in 52 and the swizzle in 61-63."""
    if word >> 46 & 7 != 1:
        raise SimError("bad-descriptor", f"descriptor {word:#018x}: bits 46-48 have to be 0b001")
    if word >> 52 & 1:
        raise SimError("bad-descriptor", "absolute leading-dimension addresses are not supported")
    if word & ((3 << 14) | (3 << 30) | (255 << 53)):
        raise SimError("bad-descriptor", f"matrix descriptor {word:#018x} has reserved bits set")
    mode = word >> 61 & 7
    if mode not in _TCGEN_SPAN:
        raise SimError("bad-descriptor", f"descriptor {word:#018x}: swizzle mode {mode}")
    span, atom = _TCGEN_SPAN[mode]
    leading, stride = (word >> 16 & 0x3FFF) << 4, (word >> 32 & 0x3FFF) << 4
    return (word & 0x3FFF) << 4, Layout(leading, stride, span, word >> 49 & 7, atom)


@cache
def byte_offsets(layout: Layout, rows: int, row_bytes: int, k_major: bool) -> Array:
    """Offsets from the start, before the swizzle: `[rows, row_bytes]`.

    K-major: rows along MN, bytes along K. MN-major: rows along K, bytes along MN.
    """
    row, byte = np.arange(rows)[:, None], np.arange(row_bytes)[None, :]
    span = layout.span
    inner = byte % span + row % 8 * span
    along_row, along_rows = byte // span, row // 8
    if k_major:
        # Swizzled rows hold the whole K extent of an instruction; wider ones run on linearly.
        if span > 16:
            return along_rows * layout.stride + row % 8 * span + byte
        return inner + along_row * layout.leading + along_rows * layout.stride
    if span > 16:
        return inner + along_row * layout.leading + along_rows * layout.stride
    return inner + along_row * layout.stride + along_rows * layout.leading


def swizzle(address: Array, layout: Layout) -> Array:
    """The physical address: line bits (7 and up) are xored into the chunk bits."""
    if layout.span == 16:
        return address
    line = (address >> 7) - layout.base_offset
    if layout.atom == 32:
        return address ^ ((line & 3) << 5)
    return address ^ ((line & (layout.span // 16 - 1)) << 4)
