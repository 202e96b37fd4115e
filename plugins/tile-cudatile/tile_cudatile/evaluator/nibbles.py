"""f4E2M1FN in memory: element 2k in the low half of byte k, element 2k + 1 in the high half."""

from __future__ import annotations

import numpy as np

from tile_cudatile.evaluator.formats import Array, dtype_of
from tile_cudatile.evaluator.memory import Memory
from tile_cudatile.types import F4E2M1FN, I8


def load_nibbles(memory: Memory, base: int, offsets: Array, what: str) -> Array:
    """The elements at element offsets from byte address `base`."""
    cells = memory.load(base + offsets // 2, I8, what).view(np.uint8)
    return (cells >> (offsets % 2 * 4).astype(np.uint8) & np.uint8(15)).view(dtype_of(F4E2M1FN))


def store_nibbles(memory: Memory, base: int, offsets: Array, values: Array, what: str) -> None:
    """Writes elements; the other half of each byte stays."""
    patterns = np.ascontiguousarray(values).reshape(offsets.shape).view(np.uint8) & np.uint8(15)
    for half in (0, 1):
        picked = offsets % 2 == half
        addresses = base + offsets[picked] // 2
        old = memory.load(addresses, I8, what).view(np.uint8)
        keep = np.uint8(0xF0 if half == 0 else 0x0F)
        new = (old & keep) | patterns[picked] << np.uint8(4 * half)
        memory.store(addresses, new.view(np.int8), I8, what)
