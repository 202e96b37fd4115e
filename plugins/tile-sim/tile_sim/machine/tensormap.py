"""Tensor maps: the 128-byte descriptors of tensor copies, with the bits that NVIDIA's tools write.

The places of the fields are `tile_cute.tensor_map`'s; this module knows what they mean together.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from tile_cute import tensor_map as bits_of
from tile_cute.tensor_map import FIELDS, SIZE, ElementType

from tile_sim.errors import SimError

__all__ = ["SIZE", "TensorMap", "decode", "edits_of", "swizzled"]

# NumPy types of the element types; packed ones are moved as bytes.
DTYPES = {
    "u8": "u1", "u16": "u2", "u32": "u4", "s32": "i4", "u64": "u8", "s64": "i8", "f16": "f2",
    "f32": "f4", "f32.ftz": "f4", "f64": "f8", "bf16": "u2", "tf32": "f4", "tf32.ftz": "f4",
}  # fmt: skip


@dataclass
class TensorMap:
    """A tensor in global memory and the box that one copy moves; dimension 0 is the innermost.

    `array`: the NumPy array that holds the tensor, or its address. `strides[i]` is the byte
    distance along dimension i + 1. Defaults describe the whole of a C-contiguous array.
    With `pixels` set the map is for im2col: `channels` and `pixels` of one column, `lower` and
    `upper` the corners of the bounding box of the spatial dimensions, innermost first.
    `large` (whether the tensor spans 128 KiB) follows from the extents unless given.
    """

    array: Any
    box: tuple[int, ...]
    dims: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()
    element_strides: tuple[int, ...] = ()
    type: str = ""
    swizzle: str = "none"
    atomicity: str = "16B"
    interleave: str = "none"
    fill: str = "zero"
    channels: int = 0
    pixels: int = 0
    lower: tuple[int, ...] = ()
    upper: tuple[int, ...] = ()
    l2_promotion: str = "128B"
    large: bool | None = None

    def __post_init__(self) -> None:
        if isinstance(self.array, np.ndarray):
            self._describe(self.array)
        self.element_strides = self.element_strides or (1,) * len(self.dims)
        self.strides = self.strides or _dense(self.dims, self.kind.bits)
        self._check()

    def _describe(self, array: np.ndarray) -> None:
        self.type = self.type or _type_of(array)
        self.dims = self.dims or tuple(reversed(array.shape))

    @property
    def kind(self) -> ElementType:
        found = bits_of.TYPE_BY_NAME.get(self.type)
        if found is None:
            known = ", ".join(bits_of.TYPE_BY_NAME)
            raise SimError("tensormap", f"no element type {self.type!r}; there are: {known}")
        return found

    @property
    def per_unit(self) -> int:
        """Elements of dimension 0 that are moved as one: 1, or as many as fill bytes."""
        if not self.kind.packed:
            return 1
        return 2 if self.type == "b4x16" else 16

    @property
    def unit_bytes(self) -> int:
        """Bytes of a unit in global memory."""
        return self.kind.bits * self.per_unit // 8

    @property
    def shared_bytes(self) -> int:
        """Bytes of a unit in shared memory, padding included."""
        return self.unit_bytes if self.type == "b4x16" else self.kind.shared_bytes

    @property
    def inner_bytes(self) -> int:
        """Bytes of the innermost extent of a box in shared memory."""
        return (self.channels or self.box[0]) // self.per_unit * self.shared_bytes

    @property
    def rank(self) -> int:
        return len(self.dims)

    def _check(self) -> None:
        """The rules of the CUDA driver's encoder that a kernel could trip over."""
        rank = self.rank
        if not 1 <= rank <= 5 or len(self.element_strides) != rank or len(self.strides) != rank - 1:
            raise SimError(
                "tensormap", f"a tensor of {rank} dimensions with strides {self.strides}"
            )
        if self.pixels:
            if rank < 3 or len(self.lower) != rank - 2 or len(self.upper) != rank - 2:
                raise SimError("tensormap", "im2col needs 3 to 5 dimensions and their corners")
            self.box = self.box or (self.channels,) + (1,) * (rank - 1)
        if len(self.box) != rank or any(not 1 <= b <= 256 for b in self.box):
            raise SimError("tensormap", f"box {self.box} needs {rank} extents of 1 to 256")
        if any(not 1 <= n <= 1 << 32 for n in self.dims):
            raise SimError("tensormap", f"extents {self.dims} have to be 1 to 2**32")
        if any(stride % 16 for stride in self.strides):
            raise SimError("tensormap", f"strides {self.strides} have to be multiples of 16 bytes")
        if self.interleave != "none":
            raise SimError("tensormap", f"interleave {self.interleave} is not supported")
        self._check_inner()

    def _check_inner(self) -> None:
        """What is asked of a row of the box, in shared memory."""
        units, rest = divmod(self.box[0], self.per_unit)
        inner = units * self.shared_bytes
        if rest or inner % 16:
            what = f"{self.box[0]} elements of {self.type}" if rest else f"{inner} bytes"
            message = f"the inner box extent of {what} is no multiple of 16 bytes"
            raise SimError("tensormap", message)
        if self.swizzle == "96B":
            raise SimError("tensormap", "swizzle 96B is not supported")
        span = {"32B": 32, "64B": 64, "128B": 128}.get(self.swizzle)
        if span and inner > span:
            raise SimError(
                "tensormap", f"inner box of {inner} bytes exceeds swizzle {self.swizzle}"
            )

    def encode(self, address: int) -> bytes:
        """The 128 bytes for a tensor at `address` (16-byte aligned)."""
        if address % 16:
            raise SimError("tensormap", f"tensor address {address:#x} is not 16-byte aligned")
        span = bits_of.span_bytes(self.dims, self.strides, self.kind.bits)
        swizzle = bits_of.SWIZZLES.index(self.swizzle)
        low, high = _stride_numbers(self.strides)
        values: dict[str, int | tuple[int, ...]] = {
            "global_address": address,
            "im2col": int(self.pixels > 0),
            "kind": bits_of.KIND,
            "rank": self.rank,
            "elemtype": self.kind.code,
            "interleave_layout": bits_of.INTERLEAVES.index(self.interleave),
            "swizzle_mode": swizzle % 4,
            "swizzle_96B": swizzle // 4,
            "fill_mode": bits_of.FILLS.index(self.fill),
            "tf32": int(self.kind.tf32),
            "l2_promotion": bits_of.L2_PROMOTIONS.index(self.l2_promotion),
            "swizzle_atomicity": bits_of.ATOMICITIES.index(self.atomicity),
            "large": int(span >= bits_of.LARGE_BYTES if self.large is None else self.large),
            "stride_low": low,
            "stride_high": high,
            "global_dim": self.dims,
            "element_stride": self.element_strides,
            "box_dim": self.box,
        }
        if self.pixels:
            corner = {"lower": self.lower, "upper": self.upper, "pixels": self.pixels}
            values |= {**corner, "box_dim": self.channels}
        try:
            return bits_of.pack(values, self.rank)
        except ValueError as error:
            raise SimError("tensormap", str(error)) from error


def _stride_numbers(strides: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    try:
        pairs = [bits_of.stride_numbers(stride) for stride in strides]
    except ValueError as error:
        raise SimError("tensormap", str(error)) from error
    return tuple(p[0] for p in pairs), tuple(p[1] for p in pairs)


def _dense(dims: tuple[int, ...], bits: int) -> tuple[int, ...]:
    strides, step = [], bits
    for dim in dims[:-1]:
        step *= dim
        strides.append(step // 8)
    return tuple(strides)


def _type_of(array: np.ndarray) -> str:
    if array.dtype.name == "bfloat16":
        return "bf16"
    for name, dtype in DTYPES.items():
        if np.dtype(dtype) == array.dtype and name != "bf16":
            return name
    if array.dtype.itemsize == 1:
        return "u8"
    raise SimError("tensormap", f"no tensor element type for {array.dtype}")


@lru_cache(maxsize=256)
def decode(raw: bytes) -> tuple[int, TensorMap]:
    """(address, map) of 128 bytes. Raises SimError (`tensormap`) for what cannot be a map."""
    bits = int.from_bytes(raw[:SIZE], "little")
    number = {name: field.load(bits) for name, field in FIELDS.items()}
    _check_bits(bits, number)
    rank, im2col = number["rank"], bool(number["im2col"])
    kind = bits_of.type_of_code(number["elemtype"], bool(number["tf32"]))
    assert kind is not None
    many = lambda name, n: tuple(FIELDS[name].load(bits, i) for i in range(n))  # noqa: E731
    pairs = zip(many("stride_low", rank - 1), many("stride_high", rank - 1), strict=True)
    return number["global_address"], TensorMap(
        array=None,
        box=() if im2col else many("box_dim", rank),
        dims=many("global_dim", rank),
        strides=tuple((high << 32 | low) * 16 for low, high in pairs),
        element_strides=many("element_stride", rank),
        type=kind.name,
        swizzle="96B" if number["swizzle_96B"] else bits_of.SWIZZLES[number["swizzle_mode"]],
        atomicity=bits_of.ATOMICITIES[number["swizzle_atomicity"]],
        interleave=bits_of.INTERLEAVES[number["interleave_layout"]],
        fill=bits_of.FILLS[number["fill_mode"]],
        channels=number["box_dim"] if im2col else 0,
        pixels=number["pixels"] if im2col else 0,
        lower=bits_of.corners(bits, "lower", rank) if im2col else (),
        upper=bits_of.corners(bits, "upper", rank) if im2col else (),
        l2_promotion=bits_of.L2_PROMOTIONS[number["l2_promotion"]],
        large=bool(number["large"]),
    )


def _check_bits(bits: int, number: dict[str, int]) -> None:
    """Contents that no encoder writes are no map: memory of something else, or unfinished."""
    faults = []
    if not bits:
        faults.append("all bytes are 0")
    if stray := bits_of.unexplained(bits):
        faults.append(f"bit {(stray & -stray).bit_length() - 1} is set, which belongs to no field")
    if number["kind"] not in (0, bits_of.KIND):
        faults.append(f"bits 65 to 67 are {number['kind']}")
    if number["rank"] > bits_of.MAX_RANK or (number["im2col"] and number["rank"] < 3):
        faults.append(f"rank {number['rank']}")
    if bits_of.type_of_code(number["elemtype"], bool(number["tf32"])) is None:
        faults.append(f"element type {number['elemtype']}")
    if number["interleave_layout"] >= len(bits_of.INTERLEAVES):
        faults.append("interleave 3")
    if number["swizzle_96B"] and number["swizzle_mode"]:
        faults.append("two swizzles")
    if faults:
        raise SimError("tensormap", f"no tensor map here: {'; '.join(faults)}")


def edits_of(field: str, ordinal: int, value: int) -> list[tuple[int, int]]:
    """(mask, bits) of the changes that `tensormap.replace` of a field makes to the 1024 bits.

    As ptxas does it: a new address clears `large`, a swizzle mode sets or clears 96B, and an
    element type that is no tf32 leaves the bit of one before. Raises SimError for other values.
    """
    try:
        if field == "global_stride":
            low, high = bits_of.stride_numbers(value)
            return [_edit("stride_low", low, ordinal), _edit("stride_high", high, ordinal)]
        if field == "rank":  # The operand is the rank less one.
            return [_edit("rank", value + 1)]
        if field == "global_address":
            return [_edit("global_address", value & (1 << 57) - 16), _edit("large", 0)]
        if field == "swizzle_mode":
            return [_edit("swizzle_mode", value % 4), _edit("swizzle_96B", value // 4)]
        if field == "elemtype":
            if value >= len(bits_of.ELEMENT_TYPES):
                raise ValueError(f"{value} is no element type")
            kind = bits_of.ELEMENT_TYPES[value]
            return [_edit("elemtype", kind.code), *[_edit("tf32", 1)] * kind.tf32]
        return [_edit(field, value, ordinal)]
    except ValueError as error:
        raise SimError("tensormap", f"tensormap.replace .{field}: {error}") from error


def _edit(name: str, value: int, index: int = 0) -> tuple[int, int]:
    field = FIELDS[name]
    return field.mask(index), field.store(index, value)


#: The fields of `tensormap.replace`, and how many numbers each has.
REPLACEABLE: dict[str, int] = {
    "rank": 1, "elemtype": 1, "interleave_layout": 1, "swizzle_mode": 1, "swizzle_atomicity": 1,
    "fill_mode": 1, "global_address": 1, "global_dim": 5, "global_stride": 4, "box_dim": 5,
    "element_stride": 5,
}  # fmt: skip
#: Those whose operand the PTX ISA wants to be an immediate.
IMMEDIATE = ("elemtype", "interleave_layout", "swizzle_mode", "swizzle_atomicity", "fill_mode")


def swizzled(offset: np.ndarray, swizzle: str, atomicity: str = "16B") -> np.ndarray:
    """Shared offsets (bytes) as the swizzle places them: bits 7 and up are xored into lower ones.

    128B: bits 7-9 into 4-6; 64B: 7-8 into 4-5; 32B: 7 into 4. With atoms of 32 bytes: bits 7-8
    into 5-6; of 64 bytes: bit 7 into 6.
    """
    if swizzle == "none":
        return offset
    if atomicity == "16B":
        mask = {"128B": 7, "64B": 3, "32B": 1}[swizzle]
        return offset ^ ((offset >> 7 & mask) << 4)
    if swizzle == "128B" and atomicity == "32B":
        return offset ^ ((offset >> 7 & 3) << 5)
    if swizzle == "128B" and atomicity == "64B":
        return offset ^ ((offset >> 7 & 1) << 6)
    raise SimError("tensormap", f"swizzle {swizzle} in atoms of {atomicity} is not supported")
