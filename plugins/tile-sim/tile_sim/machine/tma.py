"""Tensor copies: which elements a box (or an im2col column) covers, and moving them."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from tile_sim.errors import SimError
from tile_sim.machine import shared
from tile_sim.machine.globalwatch import Spans
from tile_sim.machine.tensormap import DTYPES, TensorMap, swizzled

if TYPE_CHECKING:
    from tile_sim.machine.wave import Wave

Array = np.ndarray


def tile_coordinates(tensor: TensorMap, start: tuple[int, ...]) -> Array:
    """Coordinates of the units of a box in shared order, `[units, rank]`; dimension 0 in units."""
    start = (first_unit(tensor, start[0]), *start[1:])
    box = (tensor.box[0] // tensor.per_unit, *tensor.box[1:])
    return _box(box, tensor.element_strides) + np.array(start)


@lru_cache(maxsize=64)
def _box(box: tuple[int, ...], strides: tuple[int, ...]) -> Array:
    """The units of a box at 0."""
    axes = [np.arange(-(-b // s)) * s for b, s in zip(box, strides, strict=True)]
    grid = np.meshgrid(*reversed(axes), indexing="ij")
    return np.stack([axis.reshape(-1) for axis in reversed(grid)], axis=1)


def box_units(tensor: TensorMap) -> int:
    """Units of a box."""
    box = (tensor.box[0] // tensor.per_unit, *tensor.box[1:])
    return prod(-(-b // s) for b, s in zip(box, tensor.element_strides, strict=True))


def im2col_coordinates(
    tensor: TensorMap, start: tuple[int, ...], offsets: tuple[int, ...]
) -> Array:
    """The pixels of a column, innermost spatial dimension first, each with its channels.

    Pixels walk through the bounding box from `lower` to dim - 1 + `upper`, in steps of the element
    strides; the offsets are added to each.
    """
    spatial = tensor.rank - 2
    at = list(start[1:])
    pixels = []
    for _ in range(tensor.pixels):
        pixels.append([at[i] + offsets[i] for i in range(spatial)] + [at[spatial]])
        for i in range(spatial):
            at[i] += tensor.element_strides[1 + i]
            if at[i] <= tensor.dims[1 + i] - 1 + tensor.upper[i]:
                break
            at[i] = tensor.lower[i]
        else:
            at[spatial] += 1
    channel = first_unit(tensor, start[0]) + np.arange(tensor.channels // tensor.per_unit)
    rows = np.array(pixels).reshape(tensor.pixels, spatial + 1)
    outer = np.repeat(rows, len(channel), axis=0)
    return np.concatenate([np.tile(channel, tensor.pixels)[:, None], outer], axis=1)


def gather4_coordinates(tensor: TensorMap, start: tuple[int, ...]) -> Array:
    """Four rows of a matrix: the first coordinate is the column, the others the rows."""
    column = first_unit(tensor, start[0]) + np.arange(tensor.box[0] // tensor.per_unit)
    return np.stack([np.tile(column, 4), np.repeat(np.array(start[1:5]), len(column))], axis=1)


def first_unit(tensor: TensorMap, coordinate: int) -> int:
    """The unit that a coordinate of dimension 0 begins; packed elements are moved in groups."""
    unit, rest = divmod(coordinate, tensor.per_unit)
    if rest:
        raise SimError(
            "tensormap",
            f"coordinate {coordinate} of {tensor.type} is no multiple of {tensor.per_unit}",
        )
    return unit


def inside(tensor: TensorMap, coordinates: Array) -> Array:
    dims = [-(-tensor.dims[0] // tensor.per_unit), *tensor.dims[1:]]
    legal = (coordinates >= 0) & (coordinates < np.array(dims))
    return np.asarray(legal.all(axis=1))


def addresses(tensor: TensorMap, base: int, coordinates: Array) -> Array:
    steps = np.array([tensor.unit_bytes, *tensor.strides], np.int64)
    return (base + coordinates @ steps).astype(np.uint64)


def first_byte(tensor: TensorMap, base: int, coordinates: Array) -> int:
    """The address of the first unit, which may lie outside the tensor."""
    return place_of(tensor, base, tuple(coordinates[0].tolist()))


def place_of(tensor: TensorMap, base: int, unit: tuple[int, ...]) -> int:
    """The address of a unit, which may lie outside the tensor."""
    steps = (tensor.unit_bytes, *tensor.strides)
    return base + sum(int(c) * s for c, s in zip(unit, steps, strict=True))


def shared_places(wave: Wave, cta: int, offset: int, tensor: TensorMap, count: int) -> Array:
    """Flat shared bytes of `count` units in box order, swizzled, `[units, bytes]`."""
    if offset % 128:
        raise SimError("misaligned", f"tensor copy at shared offset {offset} needs 128 bytes")
    size = tensor.shared_bytes
    linear = offset + np.arange(count * size)
    moved = swizzled(linear, tensor.swizzle, tensor.atomicity)
    return shared.flat(wave, cta, moved, "tensor copy").reshape(count, size)


def load_elements(wave: Wave, tensor: TensorMap, base: int, coordinates: Array) -> Array:
    """The bytes of the units, `[units, shared bytes]`; outside the tensor the fill value."""
    size = tensor.unit_bytes
    out = np.zeros((len(coordinates), tensor.shared_bytes), np.uint8)
    here = inside(tensor, coordinates)
    if tensor.fill == "nan" and not here.all():
        out[~here] = _nan_bytes(tensor)
    if here.any():
        where = addresses(tensor, base, coordinates[here])
        found = np.empty((len(where), size), np.uint8)
        for buffer, pick in wave.memory.split(where, size):
            mine = where if pick is None else where[pick]
            index = (mine - np.uint64(buffer.base)).astype(np.int64)
            data = buffer.data[index[:, None] + np.arange(size)]
            found[slice(None) if pick is None else pick] = data
        out[here, :size] = _rounded(found) if tensor.kind.tf32 else found
    return out


def _rounded(raw: Array) -> Array:
    """f32 as maps of tf32 deliver them: the nearest tf32, of two the even one; infinities and NaN
    as they are (measured on an sm_120: triton-lang/triton, pull request 11751).
    """
    bits = np.ascontiguousarray(raw).view(np.uint32)
    nearest = bits + np.uint32(0xFFF) + (bits >> np.uint32(13) & np.uint32(1))
    nearest &= np.uint32(0xFFFFE000)
    special = bits & np.uint32(0x7F800000) == np.uint32(0x7F800000)
    return np.where(special, bits, nearest).view(np.uint8)


def _nan_bytes(tensor: TensorMap) -> Array:
    """The special quiet NaN of out-of-bounds fill."""
    value = {"f16": 0x7FFF, "bf16": 0x7FFF}.get(tensor.type)
    if value is not None:
        return np.frombuffer(np.uint16(value).tobytes(), np.uint8)
    if tensor.type.startswith(("f32", "tf32")):
        return np.frombuffer(np.uint32(0x7FFFFFFF).tobytes(), np.uint8)
    raise SimError("tensormap", f"NaN fill is for floating types, not {tensor.type}")


def touched(wave: Wave, tensor: TensorMap, base: int, coordinates: Array) -> Spans:
    """The runs of bytes of global memory that a copy of the units reads or writes."""
    where = addresses(tensor, base, coordinates[inside(tensor, coordinates)])
    if not len(where):
        return []
    size = tensor.unit_bytes
    found: Spans = []
    for buffer, pick in wave.memory.split(where, size):
        mine = where if pick is None else where[pick]
        # The first unit begins a run, whatever their size.
        first = np.flatnonzero(np.diff(mine, prepend=mine[:1] - np.uint64(size + 1)) != size)
        lengths = np.diff(first, append=len(mine)) * size
        starts = (mine[first] - np.uint64(buffer.origin)).astype(np.int64)
        found.append((buffer, starts, lengths))
    return found


def store_elements(
    wave: Wave, tensor: TensorMap, base: int, coordinates: Array, data: Array, op: str | None
) -> None:
    """Write (or with `op` combine) the units that lie inside the tensor."""
    here = inside(tensor, coordinates)
    if not here.any():
        return
    size = tensor.unit_bytes
    where = addresses(tensor, base, coordinates[here])
    values = data[here, :size]
    for buffer, pick in wave.memory.split(where, size):
        if not buffer.writable:
            raise SimError("read-only", f"tensor copy writes {buffer.name!r}, which is read-only")
        mine, new = (where, values) if pick is None else (where[pick], values[pick])
        index = (mine - np.uint64(buffer.base)).astype(np.int64)[:, None] + np.arange(size)
        if op is not None:
            old = np.ascontiguousarray(buffer.data[index])
            new = combine(op, tensor.type, old, np.ascontiguousarray(new))
        buffer.data[index] = new
    wave.progress += 1


def combine(op: str, type_: str, old: Array, new: Array) -> Array:
    """The reductions of bulk copies, on bytes `[elements, size]`."""
    if type_ == "bf16":
        return _combine_bf16(op, old, new)
    if type_ not in DTYPES:
        raise SimError("bad-copy", f"reduction .{op} is not for {type_}")
    dtype = np.dtype(DTYPES[type_])
    a, b = old.view(dtype).reshape(-1), new.view(dtype).reshape(-1)
    if op in ("and", "or", "xor"):
        unsigned = f"<u{dtype.itemsize}"
        fn = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}[op]
        return fn(a.view(unsigned), b.view(unsigned)).view(np.uint8).reshape(old.shape)
    fns = {
        "add": np.add,
        "min": np.fmin,
        "max": np.fmax,
        "inc": lambda x, y: np.where(x >= y, x.dtype.type(0), x + x.dtype.type(1)),
        "dec": lambda x, y: np.where((x == 0) | (x > y), y, x - x.dtype.type(1)),
    }
    result = np.ascontiguousarray(fns[op](a, b).astype(dtype))
    return result.view(np.uint8).reshape(old.shape)


def _combine_bf16(op: str, old: Array, new: Array) -> Array:
    from tile_sim.isa.half import Kind

    kind = Kind(bfloat=True)
    a, b = (kind.read(x.view("<u2").reshape(-1)) for x in (old, new))
    fns = {"add": lambda x, y: x.astype(np.float64) + y, "min": np.fmin, "max": np.fmax}
    if op not in fns:
        raise SimError("bad-copy", f"reduction .{op} is not for bf16")
    result = np.ascontiguousarray(kind.write(fns[op](a, b)))
    return result.view(np.uint8).reshape(old.shape)
