"""Structured sparsity: half of A's elements are kept, 4 bits of metadata a chunk say which.

In a chunk of a row two elements of four are kept (one of two with 32-bit types, two pairs of four
with 4-bit ones). The metadata are two indices of 2 bits, low bits first, or for 32-bit types one
of two patterns. PTX ISA, "Sparse matrix storage" of mma, wgmma and tcgen05.
"""

from __future__ import annotations

import numpy as np

from tile_sim.errors import SimError

Array = np.ndarray
# Patterns of two different indices; in increasing order; those that wgmma and tcgen05 list.
DISTINCT = frozenset(i | j << 2 for i in range(4) for j in range(4) if i != j)
ORDERED = frozenset(code for code in DISTINCT if code & 3 < code >> 2)
LISTED = ORDERED | {0b0110}
_HALVES = {0b0100: 0, 0b1110: 1}


def chunk_elements(bits: int) -> int:
    """Columns of the full matrix that 4 bits of metadata describe."""
    return {32: 2, 4: 8}.get(bits, 4)


def expand(packed: Array, codes: Array, bits: int, legal: frozenset[int]) -> tuple[Array, Array]:
    """A with its zeros, and which elements were kept.

    `packed` is `[..., k / 2]`, `codes` `[..., chunks]`; both results `[..., k]`. Raises SimError
    (`bad-metadata`) for a pattern that is not `legal`.
    """
    places = _places(codes, bits, legal)
    width, group = (2, 1) if bits == 32 else (4, 2 if bits == 4 else 1)
    shape = (*codes.shape, width, group)
    full, kept = np.zeros(shape), np.zeros(shape, bool)
    values = packed.reshape(*codes.shape, places.shape[-1], group)
    np.put_along_axis(full, places[..., None], values, axis=-2)
    np.put_along_axis(kept, np.broadcast_to(places[..., None], values.shape), True, axis=-2)
    return full.reshape(*codes.shape[:-1], -1), kept.reshape(*codes.shape[:-1], -1)


def _places(codes: Array, bits: int, legal: frozenset[int]) -> Array:
    wanted = frozenset(_HALVES) if bits == 32 else legal
    for code in np.unique(codes).tolist():
        if code not in wanted:
            raise SimError("bad-metadata", f"metadata {code:#06b}: {_fault(code, bits)}")
    wide = codes.astype(np.int64)
    if bits == 32:
        return (wide == 0b1110).astype(np.int64)[..., None]
    return np.stack([wide & 3, wide >> 2], axis=-1)


def _fault(code: int, bits: int) -> str:
    if bits == 32:
        return "32-bit types know 0b1110 and 0b0100 only"
    if code & 3 == code >> 2:
        return "the two indices of a chunk are equal"
    return "the two indices of a chunk are out of order"


def multiply(left: Array, kept: Array, right: Array) -> Array:
    """`left @ right` over the kept elements of `left` `[..., m, k]`; `right` is `[..., k, n]`.

    The elements left out select nothing of B, so that an infinity there has no effect.
    """
    if np.isfinite(right).all():
        return np.matmul(left, right)
    terms = left[..., :, :, None] * right[..., None, :, :]
    return np.where(kept[..., :, :, None], terms, 0.0).sum(axis=-2)
