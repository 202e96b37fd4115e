"""Kernel arguments as they are spelled on the command line of every verb that launches one.

f32=1.5                 a scalar
f32[128,64]=random      an array, filled by a rule (`tile_sim.fills.FILLS`) or with a number
f32[128,64]=normal@7    the same with a seed; without, it is `--seed` and the argument's number
~f32[128,64]            a result that is an approximation: compared with a tolerance
@file.npy, ~@file.npy   an array from a file
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from tile_sim.errors import SimError

_ARRAY = re.compile(r"(\w+)\[([\d,\s]*)\](?:=([^@]*)(?:@(\d+))?)?$")
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


#: Spellings of types -> what the language calls their elements.
ELEMENTS = {
    **{name: name for name in ("i1", "i4", "i8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64")},
    **{f"u{width}": f"i{width}" for width in (8, 16, 32, 64)},
    "tf32": "tf32", "f8e4m3": "f8E4M3FN", "f8e4m3fn": "f8E4M3FN", "f8e5m2": "f8E5M2",
    "f8e8m0": "f8E8M0FNU", "f8e8m0fnu": "f8E8M0FNU", "f4e2m1": "f4E2M1FN", "f4e2m1fn": "f4E2M1FN",
    "fnv8e5m3fnu": "fnv8E5M3FNU",
}  # fmt: skip
#: Elements whose memory is bytes or words of another type.
_HELD = {"i4": "uint8", "fnv8e5m3fnu": "uint8", "tf32": "float32"}


@dataclass(frozen=True)
class Spec:
    """One argument as it is spelled; `shape` is None for scalars and files."""

    text: str
    type: str = ""
    shape: tuple[int, ...] | None = None
    fill: str = "zeros"
    seed: int | None = None
    value: int | float = 0
    exact: bool = True
    file: str | None = None


def dtype_of(name: str) -> np.dtype:
    """A NumPy type (of ml_dtypes for narrow formats) by its short name."""
    name = name.lower()
    known = {**_NARROW, "f8e4m3fn": "float8_e4m3fn", "f8e8m0fnu": "float8_e8m0fnu",
             "f4e2m1fn": "float4_e2m1fn"}  # fmt: skip
    if name in known:
        import ml_dtypes

        return np.dtype(getattr(ml_dtypes, known[name]))
    found = {**_NAMES, **_HELD}.get(name)
    if found is None:
        types = ", ".join((*_NAMES, *_HELD, *_NARROW))
        raise SimError("argument", f"unknown type {name!r}; there are: {types}")
    return np.dtype(found)


def parse_spec(text: str) -> Spec:
    """What one `--arg` says.

    Raises SimError (`argument`) for what cannot be read.
    """
    exact, rest = not text.startswith("~"), text.removeprefix("~")
    if rest.startswith("@"):
        array = _from_file(rest[1:])
        return Spec(text, _name_of(array.dtype), array.shape, exact=exact, file=rest[1:])
    array = _ARRAY.match(rest)
    if array:
        dtype_of(array[1])
        shape = tuple(int(n) for n in array[2].split(",") if n.strip())
        seed = None if array[4] is None else int(array[4])
        spec = Spec(text, array[1].lower(), shape, array[3] or "zeros", seed, exact=exact)
        _check_fill(spec)
        return spec
    scalar = _SCALAR.match(rest)
    if scalar is None or not exact:
        raise SimError(
            "argument",
            f"{text!r} is not TYPE=VALUE, TYPE[SHAPE]=RULE, TYPE[SHAPE]=RULE@SEED or @FILE.npy",
        )
    dtype_of(scalar[1])
    return Spec(text, scalar[1].lower(), value=_number(scalar[2]))


def _check_fill(spec: Spec) -> None:
    from tile_sim.fills import FILLS

    if spec.fill in FILLS:
        return
    try:
        _number(spec.fill)
    except SimError:
        raise SimError(
            "argument",
            f"{spec.text!r}: there is no rule {spec.fill!r}, and it is no number; "
            f"rules: {', '.join(FILLS)}",
        ) from None


def value_of(spec: Spec, seed: int) -> np.ndarray | np.generic:
    """The array or scalar; `seed` counts where the spec has none."""
    if spec.file is not None:
        return _from_file(spec.file)
    dtype = dtype_of(spec.type)
    try:
        with np.errstate(all="ignore"):
            if spec.shape is None:
                return np.array(spec.value).astype(dtype)[()]
            found = _filled(spec, seed if spec.seed is None else spec.seed)
            return np.ascontiguousarray(found.view(dtype).reshape(spec.shape))
    except MemoryError:
        size = prod(spec.shape or ()) * dtype.itemsize / (1 << 30)
        raise SimError(
            "argument", f"there is no memory for the {size:,.0f} GiB of {spec.text!r}"
        ) from None


def _filled(spec: Spec, seed: int) -> np.ndarray:
    """The elements of an array, flat."""
    from tile_cudatile.types import SCALARS

    from tile_sim.fills import FILLS

    count = prod(spec.shape or ())
    if spec.fill in FILLS:
        element = SCALARS[ELEMENTS[spec.type]]
        return FILLS[spec.fill](np.random.default_rng(seed), element, count)
    return np.full(count, _number(spec.fill)).astype(dtype_of(spec.type))


def parse_arguments(texts: Sequence[str], seed: int = 0) -> list[Any]:
    """The values of all `--arg` of a command line, in order."""
    return [value_of(parse_spec(text), seed + at) for at, text in enumerate(texts)]


def parse_argument(text: str, seed: int = 0) -> np.ndarray | np.generic:
    """The value of one `--arg`."""
    return value_of(parse_spec(text), seed)


def _name_of(dtype: np.dtype) -> str:
    """The short name of a NumPy type; its own name where there is none."""
    names = {long: short for short, long in {**_NAMES, **_NARROW}.items()}
    return names.get(dtype.name, dtype.name)


def _from_file(path: str) -> np.ndarray:
    if not Path(path).is_file():
        raise SimError("argument", f"no file {path!r}")
    try:
        return np.load(path, allow_pickle=False)
    except ValueError as error:
        raise SimError("argument", f"{path!r} is no NumPy file: {error}") from None


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
