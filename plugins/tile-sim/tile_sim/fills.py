"""How arrays of a launch are filled: rules by name, the same numbers for the same seed everywhere.

Arrays are in memory form: one element each, formats that NumPy has no type for as their bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
from tile_cudatile.evaluator.formats import FLOATS, dtype_of, memory_bytes
from tile_cudatile.types import F8E5M3FNU, F8E8M0FNU, I1, I4, TF32, Scalar

#: Whole numbers that `random` gives integers are below this.
_RANDOM_BELOW = 100


def zeros(rng: np.random.Generator, element: Scalar, count: int) -> np.ndarray:
    """Bytes of zero."""
    del rng
    return np.zeros(count, held(element))


def small(rng: np.random.Generator, element: Scalar, count: int) -> np.ndarray:
    """Whole numbers from -4 to 4 (powers of two for formats of those); sums are exact."""
    if element == F8E8M0FNU:
        return rng.integers(125, 130, count).astype(np.uint8).view(ml_dtypes.float8_e8m0fnu)
    if element == F8E5M3FNU:
        return (rng.integers(14, 18, count) << 3).astype(np.uint8)
    low = 0 if element == I1 else -4
    return rng.integers(low, 2 if element == I1 else 5, count).astype(held(element))


def positive(rng: np.random.Generator, element: Scalar, count: int) -> np.ndarray:
    """As `small`, from 0 on, as scales of blocks are."""
    found = small(rng, element, count)
    if element in (F8E8M0FNU, F8E5M3FNU):
        return found
    return np.abs(found).astype(found.dtype)


def bits(rng: np.random.Generator, element: Scalar, count: int) -> np.ndarray:
    """Any number that the format has, special ones often."""
    size = memory_bytes(element)
    raw = rng.integers(0, 256, (count, size), dtype=np.uint8)
    if element == I1:
        return (raw[:, 0] & 1).astype(np.bool_)
    if element == F8E5M3FNU:
        return raw[:, 0]
    if element.is_float:
        return _floats(rng, element, raw)
    return _integers(rng, element, raw)


def _floats(rng: np.random.Generator, element: Scalar, raw: np.ndarray) -> np.ndarray:
    count, dtype = len(raw), dtype_of(element)
    found = raw.view(dtype)[:, 0].copy()
    if element == TF32:
        found = (found.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)
    if element == F8E8M0FNU:
        return found
    with np.errstate(all="ignore"):
        ordinary = rng.normal(0, 2, count)
        if element == TF32:
            ordinary = np.round(ordinary * 256) / 256
        whole = rng.integers(-8, 9, count)
        choice = rng.integers(0, 10, count)
        found = np.where(choice < 5, ordinary.astype(dtype), found)
        found = np.where((choice >= 5) & (choice < 8), whole.astype(dtype), found)
    largest = FLOATS[element].largest
    return _sprinkled(rng, found, [0.0, -0.0, 1.0, -1.0, largest, -largest])


def _integers(rng: np.random.Generator, element: Scalar, raw: np.ndarray) -> np.ndarray:
    if element == I4:
        return raw[:, 0] & np.uint8(15)
    dtype = dtype_of(element)
    found = raw.view(dtype)[:, 0].copy()
    near = rng.integers(-8, 9, len(raw)).astype(dtype)
    found = np.where(rng.random(len(raw)) < 0.4, near, found)
    high = 1 << (element.width - 1)
    return _sprinkled(rng, found, [0, 1, -1, high - 1, -high, -high + 1])


def _sprinkled(rng: np.random.Generator, values: np.ndarray, special: list[Any]) -> np.ndarray:
    """Some of the values replaced by special ones."""
    at = rng.random(len(values)) < 0.1
    chosen = rng.integers(0, len(special), len(values))
    with np.errstate(all="ignore"):
        table = np.asarray(special).astype(values.dtype)
    return np.where(at, table[chosen], values).astype(values.dtype)


def held(element: Scalar) -> Any:
    """What arrays of an element are made of: its memory form."""
    return np.uint8 if element in (F8E5M3FNU, I4) else dtype_of(element)


def ones(rng: np.random.Generator, element: Scalar, count: int) -> np.ndarray:
    """All one."""
    del rng
    return np.ones(count, held(element))


def arange(rng: np.random.Generator, element: Scalar, count: int) -> np.ndarray:
    """0, 1, 2, ..."""
    del rng
    with np.errstate(all="ignore"):
        return np.arange(count).astype(held(element))


def uniform(rng: np.random.Generator, element: Scalar, count: int) -> np.ndarray:
    """From 0 to 1; integers from 0 to 99."""
    if not element.is_float:
        return rng.integers(0, 2 if element == I1 else _RANDOM_BELOW, count).astype(held(element))
    return rng.random(count).astype(held(element))


def normal(rng: np.random.Generator, element: Scalar, count: int) -> np.ndarray:
    """Normally distributed, mean 0, deviation 1."""
    return rng.standard_normal(count).astype(held(element))


Fill = Callable[[np.random.Generator, Scalar, int], np.ndarray]
#: Rule as `--arg` spells it -> what fills an array by it.
FILLS: dict[str, Fill] = {
    "zeros": zeros,
    "ones": ones,
    "arange": arange,
    "random": uniform,
    "normal": normal,
    "small": small,
    "positive": positive,
    "bits": bits,
}
