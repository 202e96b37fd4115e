"""Kernel arguments as they are spelled on a command line.

`f32=1.5` a scalar; `f32[128,64]=random` an array filled by rule (`zeros`, `ones`, `arange`,
`random`, `normal`, or a number); `@file.npy` an array from a file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from tile_sim.errors import SimError

_ARRAY = re.compile(r"(\w+)\[([\d,\s]*)\](?:=(.*))?$")
_SCALAR = re.compile(r"(\w+)=(.+)$")
_NAMES = {
    "i1": "bool", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "u8": "uint8",
    "u16": "uint16", "u32": "uint32", "u64": "uint64", "f16": "float16", "f32": "float32",
    "f64": "float64",
}  # fmt: skip
_NARROW = {
    "bf16": "bfloat16", "f8e4m3": "float8_e4m3fn", "f8e5m2": "float8_e5m2",
    "f8e8m0": "float8_e8m0fnu", "f4e2m1": "float4_e2m1fn",
}  # fmt: skip


def dtype_of(name: str) -> np.dtype:
    """A NumPy type (of ml_dtypes for narrow formats) by its short name."""
    if name in _NARROW:
        import ml_dtypes

        return np.dtype(getattr(ml_dtypes, _NARROW[name]))
    if name not in _NAMES:
        known = ", ".join((*_NAMES, *_NARROW))
        raise SimError("argument", f"unknown type {name!r}; there are: {known}")
    return np.dtype(_NAMES[name])


def _fills(rng: np.random.Generator) -> dict[str, Callable[[tuple[int, ...]], np.ndarray]]:
    return {
        "zeros": np.zeros,
        "ones": np.ones,
        "arange": lambda shape: np.arange(int(np.prod(shape))).reshape(shape),
        "random": rng.random,
        "normal": rng.standard_normal,
    }


def parse_argument(text: str, rng: np.random.Generator) -> np.ndarray | np.generic:
    """The value of one `--arg`.

    Raises SimError (`argument`) for what cannot be read.
    """
    if text.startswith("@"):
        return _from_file(text[1:])
    array = _ARRAY.match(text)
    if array:
        shape = tuple(int(n) for n in array[2].split(",") if n.strip())
        return _filled(dtype_of(array[1]), shape, array[3] or "zeros", rng)
    scalar = _SCALAR.match(text)
    if scalar is None:
        raise SimError("argument", f"{text!r} is not TYPE=VALUE, TYPE[SHAPE]=FILL or @FILE.npy")
    dtype = dtype_of(scalar[1])
    value = _number(scalar[2])
    with np.errstate(over="ignore"):
        return np.array(value).astype(dtype)[()]


def _from_file(path: str) -> np.ndarray:
    if not Path(path).is_file():
        raise SimError("argument", f"no file {path!r}")
    try:
        return np.load(path, allow_pickle=False)
    except ValueError as error:
        raise SimError("argument", f"{path!r} is no NumPy file: {error}") from None


def _filled(
    dtype: np.dtype, shape: tuple[int, ...], rule: str, rng: np.random.Generator
) -> np.ndarray:
    fill = _fills(rng).get(rule)
    values = fill(shape) if fill else np.full(shape, _number(rule))
    return np.ascontiguousarray(np.asarray(values).astype(dtype))


def _number(text: str) -> int | float:
    try:
        return int(text, 0)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        raise SimError("argument", f"{text!r} is not a number") from None


def parse_extent(text: str) -> tuple[int, int, int]:
    """`X`, `X,Y` or `X,Y,Z`."""
    try:
        numbers = [int(part) for part in text.replace("x", ",").split(",")]
    except ValueError:
        numbers = []
    if not 1 <= len(numbers) <= 3:
        raise SimError("argument", f"{text!r} is not an extent such as 8, 8,4 or 8,4,2")
    x, y, z = numbers + [1] * (3 - len(numbers))
    return x, y, z


def names_of(values: Sequence[np.ndarray | np.generic], shapes: bool) -> list[str]:
    """What errors call the flat arguments: by the number of the `--arg` that they come from."""
    found: list[str] = []
    for i, value in enumerate(values):
        found.append(f"argument {i}")
        if shapes and isinstance(value, np.ndarray):
            parts = [f"{what} {axis}" for what in ("size", "stride") for axis in range(value.ndim)]
            found += [f"{part} of argument {i}" for part in parts]
    return found


def with_shape(values: Sequence[np.ndarray | np.generic]) -> list[np.ndarray | np.generic]:
    """Arguments as cuTile's kernels take them: each array followed by its shape and its strides
    in elements, as 32-bit integers."""
    flat: list[np.ndarray | np.generic] = []
    for value in values:
        flat.append(value)
        if isinstance(value, np.ndarray):
            strides = [stride // value.itemsize for stride in value.strides]
            flat += [np.int32(n) for n in (*value.shape, *strides)]
    return flat
