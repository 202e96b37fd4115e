"""The zero-column mask of `tcgen05.mma.ws`: which columns of B count as zero, and a shift of B.

PTX ISA, "Zero-column mask descriptor". Its table and its examples disagree about what the two
span fields count; this follows the examples (and the names, and what CUTLASS writes for
convolutions): `use span` + 1 columns are taken from B, then `skip span` + 1 are zeros.
"""

from __future__ import annotations

import numpy as np

from tile_sim.errors import SimError

Array = np.ndarray
_RESERVED = 7 << 36 | 3 << 62
# The largest shift that the instruction descriptor announces, by its bits 30-31.
MAX_SHIFTS = (0, 8, 16, 32)


def _field(word: int, low: int, bits: int) -> int:
    return word >> low & ((1 << bits) - 1)


def source_columns(word: int, m: int, n: int, announced: int) -> Array:
    """For each of the N columns of a product the column of B, or -1 for zeros.

    `announced` is the shift that the instruction descriptor allows. Raises SimError
    (`bad-descriptor`).
    """
    if word & _RESERVED:
        raise SimError("bad-descriptor", f"zero-column mask {word:#018x} has reserved bits set")
    shift = _field(word, 56, 6)
    most = 16 if m == 32 else 32
    if shift > min(most, announced):
        reason = f"at most {most} with M {m}, and {announced} by the instruction descriptor"
        raise SimError("bad-descriptor", f"zero-column mask shifts by {shift}: {reason}")
    column = np.arange(n)
    if not _field(word, 39, 1):
        return column + shift
    parts = 128 // m
    zeros = np.concatenate([_sub_mask(word, part, n // parts) for part in range(parts)])
    return np.where(zeros, -1, column + shift)


def _sub_mask(word: int, part: int, columns: int) -> Array:
    """Whether each column of one sub-mask counts as zero."""
    skipped, used = _field(word, 40, 8) + 1, _field(word, 48, 8) + 1
    start, zeros_first = _field(word, 8 * part, 8), _field(word, 32 + part, 1)
    first = skipped if zeros_first else used
    if start >= first:
        raise SimError(
            "bad-descriptor",
            f"zero-column mask: start count {start} of sub-mask {part} is not inside its first "
            f"span of {first} columns",
        )
    place = (np.arange(columns) + start) % (skipped + used)
    return place < skipped if zeros_first else place >= used
