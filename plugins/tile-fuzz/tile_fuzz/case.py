"""A program with what it is run on, in one file: the recipe travels as the program's producer."""

from __future__ import annotations

import base64
import json
import math
import re
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from tile_cudatile import from_mlir, parse_text, read_bytecode, to_mlir, write_bytecode
from tile_cudatile.evaluator.formats import decode_e5m3, dtype_of
from tile_cudatile.locations import UNKNOWN
from tile_cudatile.tree import Module
from tile_cudatile.types import F8E5M3FNU, I1, SCALARS, Scalar
from tile_cudatile.versions import V13_3
from tile_sim.arguments import ELEMENTS, Spec, value_of
from tile_sim.fills import FILLS, held

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
    data: str = ""  # base64 of the bytes, for the rule "data"


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

#: The rule of an argument whose bytes are in it.
DATA = "data"


def argument_of(spec: Spec, position: int) -> Argument:
    """An argument as the command line spells it (`tile_sim.arguments`).

    Where no seed is given it is the position, as for `tilec run --seed 0`: all verbs that take
    the same words launch on the same data.
    """
    element = ELEMENTS.get(spec.type)
    if element is None:
        raise UsageError(f"'{spec.text}': there is no element '{spec.type}' in a program")
    if spec.shape is None and spec.file is None:
        return Argument(element, value=float(spec.value))
    if spec.file is None and spec.fill in FILLS:
        seed = position if spec.seed is None else spec.seed
        needs_seed = spec.fill not in ("zeros", "ones", "arange")
        count = math.prod(spec.shape or ())
        return Argument(element, count, spec.fill, seed if needs_seed else 0, exact=spec.exact)
    array = value_of(spec, position)
    raw = np.ascontiguousarray(array).tobytes()
    return Argument(
        element, array.size, DATA, exact=spec.exact, data=base64.b64encode(raw).decode()
    )


def data_of(argument: Argument) -> Any:
    """A fresh array, or the number; the same for the same argument everywhere."""
    element = SCALARS[argument.element]
    if argument.count is None:
        return _number(element, argument.value)
    if argument.fill == DATA:
        raw = np.frombuffer(base64.b64decode(argument.data), np.uint8)
        return raw.view(held(element)).copy()
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


def numbers_of(array: np.ndarray, element: Scalar) -> np.ndarray:
    """The floating-point numbers of an array in memory form, as float64."""
    if element == F8E5M3FNU:
        return decode_e5m3(array).astype(np.float64)
    with np.errstate(all="ignore"):
        return array.astype(np.float64)
