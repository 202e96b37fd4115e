"""Tiles in memory: bits of an element, bytes of a tile, the plain order."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tile_cute.linear import LinearLayout

from tile_core.mlir import ir

#: Pointers are held as addresses.
POINTER_BITS = 64
#: Shared memory that one operation may use, in bytes: what every GPU gives without opting in.
OPERATION_LIMIT = 48 * 1024
#: Where buffers begin, in bytes: one row of banks, so that plans count conflicts right.
BUFFER_ALIGNMENT = 128


def storage_bits(type_: ir.Type) -> int:
    """Bits that one element takes in registers and shared memory; at least a byte."""
    width = getattr(type_, "width", POINTER_BITS)
    return max(8, 1 << (width - 1).bit_length())  # tf32 counts 19 bits and takes 32


def tile_bytes(type_: ir.RankedTensorType) -> int:
    """Shared memory of a whole tile."""
    return prod(type_.shape) * storage_bits(type_.element_type) // 8


def row_major(shape: Sequence[int]) -> LinearLayout:
    """A tile in memory (offset -> tile), the last axis fastest."""
    bits = prod(shape).bit_length() - 1
    return LinearLayout.from_flat({"offset": [1 << bit for bit in range(bits)]}, tuple(shape))
