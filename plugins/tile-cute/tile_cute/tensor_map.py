"""The 128 bytes of a tensor map (CUtensorMap): where each field lies, and the values it takes.

NVIDIA does not publish the encoding. What stands here was seen in output of its released tools
(13.5), each fact in at least one of three places:

* host: the maps that the host code of `tileiras`' cubins writes, one argument varied at a time;
* sass: the loads, merges and stores that `ptxas` makes of `tensormap.replace` (sm_90a to sm_120a);
* cute: the maps that CuTe DSL's host functions write (im2col among them).

A map is one little-endian number of 1024 bits. The upper 512 are not written by any of the three.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

SIZE = 128
ALIGNMENT = 64
MAX_RANK = 5
#: Elements of a box along one dimension at most.
MAX_BOX = 256
#: A tensor from this many bytes on has `large` set.
LARGE_BYTES = 128 * 1024
#: The value of `kind` in every map that was seen. What it means is not known; maps that a kernel
#: builds from zero bytes have 0 there.
KIND = 1


@dataclass(frozen=True)
class Field:
    """`count` neighbouring numbers of `width` bits from bit `first` on.

    What is stored is (value - bias) / unit, modulo 2**width.
    """

    first: int
    width: int
    count: int = 1
    bias: int = 0
    unit: int = 1

    def store(self, index: int, value: int) -> int:
        """The field's bits in place. Raises ValueError for what does not fit."""
        scaled, rest = divmod(value - self.bias, self.unit)
        if rest:
            raise ValueError(f"{value} is no multiple of {self.unit}")
        if not 0 <= scaled < 1 << self.width:
            low, high = self.bias, self.bias + ((1 << self.width) - 1) * self.unit
            raise ValueError(f"{value} is not in {low}..{high}")
        return scaled << self.position(index)

    def load(self, bits: int, index: int = 0) -> int:
        stored = bits >> self.position(index) & ((1 << self.width) - 1)
        return stored * self.unit + self.bias

    def position(self, index: int = 0) -> int:
        """The lowest bit of number `index`."""
        return self.first + index * self.width

    def mask(self, index: int = 0) -> int:
        return ((1 << self.width) - 1) << self.position(index)

    @property
    def all_bits(self) -> int:
        return ((1 << self.width * self.count) - 1) << self.first


# Names are those of `tensormap.replace` where it has the field. Units of extents and boxes are
# elements (of 4 or 6 bits for the small types), of strides bytes.
FIELDS: dict[str, Field] = {
    "global_address": Field(4, 53, unit=16),  # host sass; bits 57 to 63 of an address are dropped
    "im2col": Field(64, 1),  # cute
    "kind": Field(65, 3),  # host cute
    "rank": Field(68, 3, bias=1),  # host sass cute
    "elemtype": Field(71, 4),  # host sass cute
    "interleave_layout": Field(75, 2),  # sass
    "swizzle_mode": Field(77, 2),  # host sass cute
    "fill_mode": Field(79, 1),  # sass
    "tf32": Field(80, 1),  # host sass cute: f32 is rounded on the way
    "l2_promotion": Field(81, 2),  # host cute; position inferred from the gap, always 128B
    "swizzle_atomicity": Field(83, 2),  # host sass cute
    "large": Field(85, 1),  # host cute; cleared by a new address in sass
    "swizzle_96B": Field(86, 1),  # sass, sm_103a; with swizzle_mode 0
    "stride_low": Field(96, 32, 4),  # host sass cute: of dimensions 1 to 4, in 16 bytes
    "stride_high": Field(224, 4, 4),  # sass cute: bits 32 to 35 of the same
    "global_dim": Field(256, 32, 5, bias=1),  # host sass cute; innermost first
    "element_stride": Field(416, 3, 5, bias=1),  # sass cute
    "box_dim": Field(440, 8, 5, bias=1),  # host sass cute; im2col: number 0 counts channels
    "pixels": Field(480, 10, bias=1),  # cute; im2col only
}
#: The corners of an im2col bounding box, signed, take the place of the outer boxes, by rank.
CORNERS: dict[str, dict[int, Field]] = {
    "lower": {3: Field(448, 16), 4: Field(448, 8, 2), 5: Field(448, 5, 3)},
    "upper": {3: Field(464, 16), 4: Field(464, 8, 2), 5: Field(464, 5, 3)},
}
_EXPLAINED = sum(field.all_bits for name, field in FIELDS.items() if name != "pixels")
_LOWER_HALF = (1 << 512) - 1


@dataclass(frozen=True)
class ElementType:
    """An element type of `tensormap.replace`: its code in a map, and its bits in memory.

    `packed` elements of 4 or 6 bits come in groups of 16; `shared_bytes` is what one element, or
    one group, takes in shared memory.
    """

    name: str
    code: int
    bits: int
    shared_bytes: int
    tf32: bool = False

    @property
    def packed(self) -> bool:
        return self.bits < 8


#: In the order of the numbers that `tensormap.replace.elemtype` takes (PTX ISA). tileiras and CuTe
#: write u32 and u64 for signed integers too, but for reductions by minimum and maximum.
ELEMENT_TYPES: tuple[ElementType, ...] = (
    ElementType("u8", 0, 8, 1),
    ElementType("u16", 1, 16, 2),
    ElementType("u32", 2, 32, 4),
    ElementType("s32", 3, 32, 4),
    ElementType("u64", 4, 64, 8),
    ElementType("s64", 5, 64, 8),
    ElementType("f16", 6, 16, 2),
    ElementType("f32", 7, 32, 4),
    ElementType("f32.ftz", 8, 32, 4),
    ElementType("f64", 9, 64, 8),
    ElementType("bf16", 10, 16, 2),
    ElementType("tf32", 7, 32, 4, tf32=True),
    ElementType("tf32.ftz", 8, 32, 4, tf32=True),
    ElementType("b4x16", 11, 4, 8),
    ElementType("b4x16_p64", 12, 4, 16),
    ElementType("b6x16_p32", 13, 6, 16),
)
TYPE_BY_NAME = {kind.name: kind for kind in ELEMENT_TYPES}
_TYPE_BY_CODE = {(kind.code, kind.tf32): kind for kind in ELEMENT_TYPES}
INTERLEAVES = ("none", "16B", "32B")
SWIZZLES = ("none", "32B", "64B", "128B", "96B")
FILLS = ("zero", "nan")
L2_PROMOTIONS = ("none", "64B", "128B", "256B")
ATOMICITIES = ("16B", "32B", "32B+8B", "64B")
#: Swizzles of `tile_cute.swizzle.BYTE_SWIZZLES` whose pieces are larger: their mode and atomicity.
_COARSE = {"128B_32B_atom": ("128B", "32B")}

Values = Mapping[str, int | Sequence[int]]


def swizzle_fields(name: str) -> tuple[str, str]:
    """(mode, atomicity) of a swizzle of byte addresses, by its name there."""
    return _COARSE.get(name, (name, "16B"))


def type_of_code(code: int, tf32: bool) -> ElementType | None:
    """The element type of a code and the bit `tf32`, which means nothing but for f32."""
    return _TYPE_BY_CODE.get((code, tf32)) or _TYPE_BY_CODE.get((code, False))


def stride_numbers(stride: int) -> tuple[int, int]:
    """What `stride_low` and `stride_high` hold for a stride in bytes.

    Raises ValueError for one that is no multiple of 16 or has more than 40 bits.
    """
    if stride % 16 or not 0 <= stride < 1 << 40:
        raise ValueError(f"a stride of {stride} bytes is no multiple of 16 below 2**40")
    return stride >> 4 & 0xFFFFFFFF, stride >> 36


def span_bytes(dims: Sequence[int], strides: Sequence[int], bits: int) -> int:
    """Bytes from the first element of a tensor to the end of its last one (true strides)."""
    outer = sum((n - 1) * step for n, step in zip(dims[1:], strides, strict=True))
    return outer + -(-dims[0] * bits // 8)


def pack(values: Values, rank: int) -> bytes:
    """The 128 bytes with the given fields, the others zero.

    `lower` and `upper` are corners. Raises ValueError naming the field that does not fit.
    """
    bits = 0
    for name, value in values.items():
        field = CORNERS[name][rank] if name in CORNERS else FIELDS[name]
        numbers = [value] if isinstance(value, int) else list(value)
        if len(numbers) > field.count:
            raise ValueError(f"{name}: {len(numbers)} numbers, at most {field.count}")
        for index, number in enumerate(numbers):
            if name in CORNERS:
                number = _wrapped(name, number, field.width)
            try:
                bits |= field.store(index, number)
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from error
    return bits.to_bytes(SIZE, "little")


def _wrapped(name: str, corner: int, width: int) -> int:
    """A signed corner as it is stored."""
    if not -(1 << width - 1) <= corner < 1 << width - 1:
        raise ValueError(f"{name}: {corner} does not fit {width} bits")
    return corner % (1 << width)


def corners(bits: int, name: str, rank: int) -> tuple[int, ...]:
    """The signed corner `lower` or `upper` of an im2col map of `rank` 3 to 5."""
    field = CORNERS[name][rank]
    sign = 1 << field.width - 1
    return tuple((field.load(bits, i) ^ sign) - sign for i in range(field.count))


def unexplained(bits: int) -> int:
    """Bits of the lower half that are set and belong to no field."""
    im2col = FIELDS["im2col"].load(bits)
    known = _EXPLAINED | (FIELDS["pixels"].all_bits if im2col else 0)
    return bits & _LOWER_HALF & ~known
