"""Tensor maps: the 128-byte descriptors of tensor copies.

The hardware's encoding is not documented; this is the simulator's own. Programs that treat the
descriptor as opaque (built by the host, changed by `tensormap.replace`) see no difference.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

import numpy as np

from tile_sim.errors import SimError

SIZE = 128
_MAGIC = 0x70616D74
_HEAD = struct.Struct("<I8BQ5I4Q5H5B6h2H")
# The numbers of `tensormap.replace.elemtype`: name, bytes in global memory, NumPy type.
ELEMENT_TYPES: tuple[tuple[str, int, str], ...] = (
    ("u8", 1, "u1"),
    ("u16", 2, "u2"),
    ("u32", 4, "u4"),
    ("s32", 4, "i4"),
    ("u64", 8, "u8"),
    ("s64", 8, "i8"),
    ("f16", 2, "f2"),
    ("f32", 4, "f4"),
    ("f32.ftz", 4, "f4"),
    ("f64", 8, "f8"),
    ("bf16", 2, "u2"),
    ("tf32", 4, "f4"),
    ("tf32.ftz", 4, "f4"),
)
_NUMBER = {name: i for i, (name, _, _) in enumerate(ELEMENT_TYPES)}
INTERLEAVES = ("none", "16B", "32B")
SWIZZLES = ("none", "32B", "64B", "128B")
ATOMICITIES = ("16B", "32B", "32B+8B", "64B")
FILLS = ("zero", "nan")


@dataclass
class TensorMap:
    """A tensor in global memory and the box that one copy moves; dimension 0 is the innermost.

    `array`: the NumPy array that holds the tensor, or its address. `strides[i]` is the byte
    distance along dimension i + 1. Defaults describe the whole of a C-contiguous array.
    With `pixels` set the map is for im2col: `channels` and `pixels` of one column, `lower` and
    `upper` the corners of the bounding box of the spatial dimensions, innermost first.
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

    def __post_init__(self) -> None:
        if isinstance(self.array, np.ndarray):
            self._describe(self.array)
        self.element_strides = self.element_strides or (1,) * len(self.dims)
        self.strides = self.strides or _dense(self.dims, self.element_bytes)
        self._check()

    def _describe(self, array: np.ndarray) -> None:
        self.type = self.type or _type_of(array)
        self.dims = self.dims or tuple(reversed(array.shape))

    @property
    def element_bytes(self) -> int:
        return ELEMENT_TYPES[_NUMBER[self.type]][1]

    @property
    def rank(self) -> int:
        return len(self.dims)

    def _check(self) -> None:
        """The rules of the CUDA driver's encoder that a kernel could trip over."""
        rank, size = self.rank, self.element_bytes
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
        if any(stride % 16 for stride in self.strides):
            raise SimError("tensormap", f"strides {self.strides} have to be multiples of 16 bytes")
        inner = self.box[0] * size
        if inner % 16 and self.interleave == "none":
            raise SimError(
                "tensormap", f"the inner box extent of {inner} bytes is no multiple of 16"
            )
        span = {"32B": 32, "64B": 64, "128B": 128}.get(self.swizzle)
        if span and inner > span:
            raise SimError(
                "tensormap", f"inner box of {inner} bytes exceeds swizzle {self.swizzle}"
            )
        if self.interleave != "none":
            raise SimError("tensormap", f"interleave {self.interleave} is not supported")

    def encode(self, address: int) -> bytes:
        """The 128 bytes for a tensor at `address` (16-byte aligned)."""
        if address % 16:
            raise SimError("tensormap", f"tensor address {address:#x} is not 16-byte aligned")
        pad = lambda values, n, fill: list(values) + [fill] * (n - len(values))  # noqa: E731
        head = _HEAD.pack(
            _MAGIC,
            self.rank,
            _NUMBER[self.type],
            INTERLEAVES.index(self.interleave),
            SWIZZLES.index(self.swizzle),
            ATOMICITIES.index(self.atomicity),
            FILLS.index(self.fill),
            int(self.pixels > 0),
            0,
            address,
            *pad(self.dims, 5, 1),
            *pad(self.strides, 4, 0),
            *pad(self.box, 5, 1),
            *pad(self.element_strides, 5, 1),
            *pad(self.lower, 3, 0),
            *pad(self.upper, 3, 0),
            self.channels,
            self.pixels,
        )
        return head.ljust(SIZE, b"\0")


def _dense(dims: tuple[int, ...], size: int) -> tuple[int, ...]:
    strides, step = [], size
    for dim in dims[:-1]:
        step *= dim
        strides.append(step)
    return tuple(strides)


def _type_of(array: np.ndarray) -> str:
    if array.dtype.name == "bfloat16":
        return "bf16"
    for name, _, dtype in ELEMENT_TYPES:
        if np.dtype(dtype) == array.dtype and name != "bf16":
            return name
    if array.dtype.itemsize == 1:
        return "u8"
    raise SimError("tensormap", f"no tensor element type for {array.dtype}")


def decode(raw: bytes) -> tuple[int, TensorMap]:
    """(address, map) of 128 bytes. Raises SimError (`tensormap`) for other contents."""
    fields = list(_HEAD.unpack_from(raw))
    if fields[0] != _MAGIC:
        raise SimError("tensormap", "no tensor map here (128 bytes made by TensorMap.encode)")
    rank, kind, interleave, swizzle, atomicity, fill, im2col = fields[1:8]
    if not 1 <= rank <= 5 or kind >= len(ELEMENT_TYPES):
        raise SimError("tensormap", f"rank {rank} or element type {kind} is not legal")
    dims, strides, box = fields[10:15], fields[15:19], fields[19:24]
    steps, lower, upper = fields[24:29], fields[29:32], fields[32:35]
    spatial = rank - 2 if im2col else 0
    return fields[9], TensorMap(
        array=None,
        box=tuple(box[:rank]),
        dims=tuple(dims[:rank]),
        strides=tuple(strides[: rank - 1]),
        element_strides=tuple(steps[:rank]),
        type=ELEMENT_TYPES[kind][0],
        swizzle=SWIZZLES[swizzle],
        atomicity=ATOMICITIES[atomicity],
        interleave=INTERLEAVES[interleave],
        fill=FILLS[fill],
        channels=fields[35],
        pixels=fields[36],
        lower=tuple(lower[:spatial]),
        upper=tuple(upper[:spatial]),
    )


# Where each field of `tensormap.replace` lies: offset, bytes, how many, what is added.
FIELDS: dict[str, tuple[int, int, int, int]] = {
    "rank": (4, 1, 1, 1),
    "elemtype": (5, 1, 1, 0),
    "interleave_layout": (6, 1, 1, 0),
    "swizzle_mode": (7, 1, 1, 0),
    "swizzle_atomicity": (8, 1, 1, 0),
    "fill_mode": (9, 1, 1, 0),
    "global_address": (12, 8, 1, 0),
    "global_dim": (20, 4, 5, 0),
    "global_stride": (40, 8, 4, 0),
    "box_dim": (72, 2, 5, 0),
    "element_stride": (82, 1, 5, 0),
}


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
