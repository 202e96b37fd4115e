"""Where variables lie: sizes, alignment, address windows, initial bytes."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from tile_sim.errors import SimError
from tile_sim.program.types import TYPES, Type
from tile_sim.ptx.syntax import Float, Int, Name, Variable

# Windows of the 64-bit generic address space. Global, const and kernel parameters are addressed
# the same in their own space; shared and local addresses are 32-bit offsets into their window.
# Local and shared windows lie above what a process can map: a launch with raw parameters uses
# real addresses.
FUNCTION_WINDOW = 0x0000_0100_0000
PARAM_WINDOW = 0x0010_0000_0000
MODULE_WINDOW = 0x0020_0000_0000
HEAP_WINDOW = 0x0100_0000_0000
LOCAL_WINDOW = 0x00FE_0000_0000_0000
SHARED_WINDOW = 0x00FF_0000_0000_0000
WINDOW_SIZE = 1 << 32
# The first bytes of shared memory belong to the system, as on sm_90, so that address 0 is wrong
# and the first variable is aligned for every swizzle.
SHARED_START = 1024
# What a CTA is given is a multiple of this many bytes (CUDA's occupancy calculator, "shared memory
# allocation unit size" of capabilities 8.0 and later).
SHARED_UNIT = 128
# A shared address holds the rank of its CTA in the cluster above these bits.
RANK_SHIFT = 24


def align_up(value: int, alignment: int) -> int:
    return -(-value // alignment) * alignment


def size_of(variable: Variable) -> int:
    """Bytes; 0 for an array without extent."""
    extents = [0 if n is None else n for n in variable.shape]
    return TYPES[variable.type].bytes * variable.vector * math.prod(extents)


def alignment_of(variable: Variable) -> int:
    return variable.align or TYPES[variable.type].bytes * variable.vector


def initial_bytes(variable: Variable, resolve: Callable[[Name], int]) -> np.ndarray:
    """The bytes a variable starts with; what has no initialiser is zero."""
    data = np.zeros(max(size_of(variable), 1), np.uint8)
    if variable.init is None:
        return data
    type_ = TYPES[variable.type]
    values: list[int] = []
    _flatten(variable.init, list(variable.shape), type_, resolve, values)
    raw = b"".join(v.to_bytes(type_.bytes, "little") for v in values)
    if not variable.shape or variable.shape[0] is None:
        data = np.zeros(max(len(raw), len(data)), np.uint8)
    if len(raw) > len(data):
        raise SimError("syntax", f"initialiser of {variable.name!r} is longer than the variable")
    data[: len(raw)] = np.frombuffer(raw, np.uint8)
    return data


def _flatten(
    init: object,
    shape: list[int | None],
    type_: Type,
    resolve: Callable[[Name], int],
    out: list[int],
) -> None:
    """Append the elements in order, filling the unwritten rest of each row with zeros."""
    if not isinstance(init, tuple):
        out.append(_element(init, type_, resolve))
        return
    inner = shape[1:]
    start = len(out)
    for item in init:
        _flatten(item, inner, type_, resolve, out)
    if shape and shape[0] is not None and any(isinstance(i, tuple) for i in init):
        full = math.prod(n or 0 for n in shape)
        out.extend([0] * (full - (len(out) - start)))
    elif inner and len(out) - start < math.prod(n or 0 for n in shape):
        out.extend([0] * (math.prod(n or 0 for n in shape) - (len(out) - start)))


def _element(value: object, type_: Type, resolve: Callable[[Name], int]) -> int:
    modulus = 1 << (8 * type_.bytes)
    if isinstance(value, Int):
        return value.value % modulus
    if isinstance(value, Float):
        if type_.bits == value.bits:
            return value.pattern
        dtype = type_.dtype if type_.dtype.kind == "f" else np.dtype(f"f{type_.bytes}")
        return int(np.array(value.value, dtype).view(f"u{type_.bytes}"))
    if isinstance(value, Name):
        return resolve(value) % modulus
    raise SimError("syntax", f"cannot initialise with {value!r}")


def parameter_offsets(params: tuple[Variable, ...]) -> tuple[list[int], int]:
    """Offsets of kernel parameters, each at its natural or declared alignment, and the size."""
    offsets, end = [], 0
    for param in params:
        end = align_up(end, alignment_of(param))
        offsets.append(end)
        end += size_of(param)
    return offsets, end
