"""Where a warp's registers hold the elements of matrix fragments (PTX ISA, "Matrix Fragments").

With g = lane / 4 and t = lane % 4, and `per` elements in a register, all shapes of `mma.sync`
but the oldest follow one rule for each operand.
"""

from __future__ import annotations

from functools import cache

import numpy as np

Array = np.ndarray
_LANE = np.arange(32)
_G, _T = _LANE // 4, _LANE % 4


def _axes(registers: int, per: int) -> tuple[Array, Array, Array, Array]:
    """g, t, register, element, to broadcast to `[32, registers, per]`."""
    return (
        _G[:, None, None],
        _T[:, None, None],
        np.arange(registers)[None, :, None],
        np.arange(per)[None, None, :],
    )


def _order(row: Array, column: Array, width: int) -> Array:
    """For each matrix position (row major) the position in `[lane, register, element]`."""
    flat = (row * width + column).reshape(-1)
    order = np.empty(len(flat), np.int64)
    order[flat] = np.arange(len(flat))
    return order


@cache
def a_order(m: int, k: int, bits: int) -> tuple[Array, int]:
    """Operand A, `m` by `k`: (order, registers)."""
    width = max(bits, 32)
    per, registers = width // bits, m * k * bits // (32 * width)
    g, t, r, e = _axes(registers, per)
    if m == 16:
        row = g + 8 * (r % 2) + 0 * e
        column = t * per + e + 4 * per * (r // 2)
    else:
        row = g + 0 * (r + e)
        column = t * per + e + 4 * per * r
    return _order(row, column, k), registers


@cache
def b_order(k: int, n: int, bits: int) -> tuple[Array, int]:
    """Operand B, `k` by `n` (8)."""
    width = max(bits, 32)
    per, registers = width // bits, k * n * bits // (32 * width)
    g, t, r, e = _axes(registers, per)
    row = t * per + e + 4 * per * r
    return _order(row, g + 0 * row, n), registers


@cache
def c_order(m: int, n: int, bits: int) -> tuple[Array, int]:
    """Accumulators, `m` by `n` (8), of 16, 32 or 64 bits."""
    width = max(bits, 32)
    per, registers = width // bits, m * n * bits // (32 * width)
    g, t, r, e = _axes(registers, per)
    if per == 2:
        row, column = g + 8 * r + 0 * e, 2 * t + e + 0 * r
    else:
        row, column = g + 8 * (r // 2) + 0 * e, 2 * t + r % 2 + 0 * e
    return _order(row, column, n), registers


# --- mma.m8n8k4 of binary16: four products, one for each pair of quads --------------------------


@cache
def volta_positions(operand: str, row_major: bool) -> tuple[Array, Array, Array]:
    """(which product, row, column) of `[32, elements]` for operand `a`, `b`, `c16` or `c32`."""
    lane = _LANE[:, None]
    upper = np.where(lane < 16, 0, 4)
    elements = 4 if operand in ("a", "b") else 8
    i = np.arange(elements)[None, :]
    product = (lane % 16) // 4 + 0 * i
    low = lane % 4 + 0 * i
    if operand == "a":
        row, column = (low + upper, i + 0 * lane) if row_major else (i + upper, low)
    elif operand == "b":
        row, column = (low, i + upper) if row_major else (i + 0 * lane, low + upper)
    elif operand == "c16":
        row, column = low + upper, i + 0 * lane
    else:
        row = (lane & 1) + (i & 2) + upper
        column = (i & 4) + (lane & 2) + (i & 1)
    return product, row + 0 * i, column + 0 * i
