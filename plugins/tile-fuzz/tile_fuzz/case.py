"""A program with what it is run on, in one file: the recipe travels as the program's producer."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from tile_cudatile import from_mlir, parse_text, read_bytecode, to_mlir, write_bytecode
from tile_cudatile.evaluator.formats import FLOATS, decode_e5m3, dtype_of, memory_bytes
from tile_cudatile.locations import UNKNOWN
from tile_cudatile.tree import Module
from tile_cudatile.types import F8E5M3FNU, F8E8M0FNU, I1, I4, SCALARS, TF32, Scalar
from tile_cudatile.versions import V13_3

from tile_core.diagnostics import InputError, UsageError
from tile_core.registry import Registry

#: How the producer of a program with a recipe starts.
MARK = "tile-fuzz "
_BYTECODE = b"\x7fTileIR\x00"


@dataclass(frozen=True)
class Argument:
    """An argument of a launch.

    An array of `count` elements filled by the rule `fill` with `seed`, or, where `count` is
    None, the number `value`. Whether the bits of an array written by the program are defined by
    the language is `exact`; otherwise it is compared with a tolerance.
    """

    element: str
    count: int | None = None
    fill: str = "zeros"
    seed: int = 0
    value: float = 0
    exact: bool = True


@dataclass(frozen=True)
class Launch:
    """One kernel, its grid and its arguments in flattened order."""

    entry: str
    grid: tuple[int, int, int] = (1, 1, 1)
    arguments: tuple[Argument, ...] = ()

    @property
    def blocks(self) -> int:
        """Tile blocks of the grid."""
        return self.grid[0] * self.grid[1] * self.grid[2]


@dataclass
class Case:
    """A program and its launches."""

    module: Module
    launches: list[Launch] = field(default_factory=list)

    def recipe(self) -> str:
        """The launches as text."""
        return MARK + json.dumps([_plain(launch) for launch in self.launches])

    def packed(self) -> Module:
        """The program with the recipe as its producer, in a version that has producers."""
        version = max(self.module.version, V13_3)
        return replace(self.module, producer=self.recipe(), layout=None, version=version)


def _plain(launch: Launch) -> dict[str, Any]:
    made = asdict(launch)
    default = asdict(Argument(""))
    made["arguments"] = [
        {k: v for k, v in argument.items() if v != default[k]} for argument in made["arguments"]
    ]
    return made


def launches_of(module: Module) -> list[Launch]:
    """The launches that the producer of a program spells; none if it has no recipe.

    Raises:
        InputError: the recipe cannot be read.
    """
    text = module.producer or ""
    if not text.startswith(MARK):
        return []
    try:
        return [
            Launch(
                item["entry"],
                tuple(item["grid"]),
                tuple(Argument(**argument) for argument in item["arguments"]),
            )
            for item in json.loads(text.removeprefix(MARK))
        ]
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"the recipe in the program's producer is broken: {error}") from None


# --- files ----------------------------------------------------------------------------------------


def load(data: bytes, registry: Registry) -> Case:
    """A case from bytecode, assembly, or the MLIR form.

    Raises:
        InputError: `data` is none of those.
    """
    module = _module(data, registry)
    return Case(module, launches_of(module))


def _module(data: bytes, registry: Registry) -> Module:
    if data.startswith(_BYTECODE):
        return read_bytecode(data)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"the input is neither bytecode nor text: {error.reason}") from None
    if re.search(r"^\s*(//.*\n\s*)*cuda_tile\.module", text):
        return parse_text(text)
    from tile_core.session import session_of

    with session_of(registry) as session:
        parsed = session.parse(text)
        with session.context:
            return _unplaced(from_mlir(parsed))


def _unplaced(module: Module) -> Module:
    """The program without the lines of its text, which bytecode has no place for."""
    for entry in module.entries:
        entry.loc = UNKNOWN
        for op in entry.body.walk():
            op.loc = UNKNOWN
    return module


def save(case: Case, path: Path) -> None:
    """Writes a case: `.mlir` as text, anything else as bytecode.

    Raises:
        UsageError: the file cannot be written.
    """
    packed = case.packed()
    try:
        if path.suffix == ".mlir":
            path.write_text(f"{to_mlir(packed)}\n")
        else:
            path.write_bytes(write_bytecode(packed))
    except OSError as error:
        raise UsageError(f"cannot write '{path}': {error.strerror}") from None


# --- data -----------------------------------------------------------------------------------------

_ARGUMENT = re.compile(r"(~?)(\w+)(?:\[(\d+)\])?(?:=([^@]+)(?:@(\d+))?)?$")


def parse_argument(text: str) -> Argument:
    """An argument as `--arg` spells it: `f32[64]=small@7`, `~f16[32]`, `i32=5`.

    Raises:
        UsageError: it is spelt otherwise.
    """
    found = _ARGUMENT.match(text)
    if found is None or found[2] not in SCALARS:
        raise UsageError(
            f"'{text}' is no argument", hint="write f32[64]=bits@SEED, ~f32[64] or i32=5"
        )
    element, count = found[2], found[3]
    if count is None:
        try:
            return Argument(element, value=float(found[4] or 0))
        except ValueError:
            raise UsageError(f"'{text}': '{found[4]}' is no number") from None
    fill = found[4] or "zeros"
    if fill not in FILLS:
        raise UsageError(f"'{text}': there is no rule '{fill}'", hint=f"rules: {', '.join(FILLS)}")
    return Argument(element, int(count), fill, int(found[5] or 0), exact=not found[1])


def data_of(argument: Argument) -> Any:
    """A fresh array, or the number; the same for the same argument everywhere."""
    element = SCALARS[argument.element]
    if argument.count is None:
        return _number(element, argument.value)
    rng = np.random.default_rng(argument.seed)
    return FILLS[argument.fill](rng, element, argument.count)


def _number(element: Scalar, value: float) -> Any:
    if element.is_float:
        return np.asarray(value).astype(dtype_of(element))[()]
    bits = int(value) & ((1 << element.width) - 1)
    if element == I1:
        return np.bool_(bits)
    signed = bits - (1 << element.width) if bits >> (element.width - 1) else bits
    return np.asarray(signed).astype(dtype_of(element))[()]


def zeros(rng: np.random.Generator, element: Scalar, count: int) -> np.ndarray:
    """Bytes of zero."""
    del rng
    return np.zeros(count, _held(element))


def small(rng: np.random.Generator, element: Scalar, count: int) -> np.ndarray:
    """Whole numbers from -4 to 4 (powers of two for formats of those); sums are exact."""
    if element == F8E8M0FNU:
        return rng.integers(125, 130, count).astype(np.uint8).view(ml_dtypes.float8_e8m0fnu)
    if element == F8E5M3FNU:
        return (rng.integers(14, 18, count) << 3).astype(np.uint8)
    low = 0 if element == I1 else -4
    return rng.integers(low, 2 if element == I1 else 5, count).astype(_held(element))


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


def _held(element: Scalar) -> Any:
    """What arrays of an element are made of: its memory form."""
    return np.uint8 if element in (F8E5M3FNU, I4) else dtype_of(element)


def numbers_of(array: np.ndarray, element: Scalar) -> np.ndarray:
    """The floating-point numbers of an array in memory form, as float64."""
    if element == F8E5M3FNU:
        return decode_e5m3(array).astype(np.float64)
    with np.errstate(all="ignore"):
        return array.astype(np.float64)


FILLS = {"zeros": zeros, "small": small, "bits": bits}
