"""Descriptors against the address rule of the PTX ISA, element by element."""

import itertools

import pytest
from tile_cute import gf2
from tile_cute.atoms.descriptors import (
    InstructionDescriptor,
    SmemOperand,
    blackwell_descriptor,
    canonical_buffer,
    hopper_descriptor,
    match_operand,
    scaled_instruction_descriptor,
)
from tile_cute.errors import LayoutError
from tile_cute.linear import LinearLayout, strided

HOPPER_SWIZZLES = {0: 0, 1: 3, 2: 2, 3: 1}  # code -> bits that are XORed
BLACKWELL_SWIZZLES = {0: 0, 2: 3, 4: 2, 6: 1}


def unpack(descriptor: int) -> tuple[int, int, int]:
    """(start, leading, stride) in bytes."""
    return tuple((descriptor >> shift & 0x3FFF) << 4 for shift in (0, 16, 32))  # type: ignore[return-value]


def hardware_address(descriptor: int, major: str, bits: int, mn: int, k: int) -> int:
    """Bit address at which a Hopper MMA looks for (mn, k), from the descriptor alone."""
    start, leading, stride = unpack(descriptor)
    swizzle = HOPPER_SWIZZLES[descriptor >> 62]
    width = 1 << swizzle  # 16-byte units in a row of the pattern
    per_unit = 128 // bits
    fast, slow = (k, mn) if major == "K" else (mn, k)
    unit, within = divmod(fast, per_unit)
    group, row = divmod(slow, 8)
    if swizzle == 0:
        # major K: units are `leading` apart, groups of 8 rows `stride`; major MN: the reverse
        unit_step, group_step = (leading, stride) if major == "K" else (stride, leading)
        offset = row * 16 + unit * unit_step + group * group_step
    else:
        inner, outer = unit % width, unit // width
        offset = row * width * 16 + inner * 16 + outer * leading + group * stride
    address = start + offset
    address ^= (address >> 7 & (1 << swizzle) - 1) << 4
    return address * 8 + within * bits


@pytest.mark.parametrize("bits", [4, 8, 16, 32])
@pytest.mark.parametrize("swizzle", ["none", "32B", "64B", "128B"])
@pytest.mark.parametrize("major", ["K", "MN"])
def test_canonical_buffers(bits: int, swizzle: str, major: str) -> None:
    """For every step of one instruction in a tile the descriptor finds all elements."""
    k_bits = {"K": 1024, "MN": 32 * 16}[major]
    shape = (64 * 16 // bits if major == "MN" else 64, k_bits // (bits if major == "K" else 16))
    buffer = canonical_buffer(*shape, bits, major, swizzle)
    operand = match_operand(buffer, bits)
    assert (operand.swizzle, operand.major) == (swizzle, major)
    place = {buffer.unflatten(e): i for i, e in enumerate(gf2.table(buffer.flat("offset")))}
    step_k = 256 // bits if major == "K" else 16
    base = 4096
    for first in range(0, shape[1], step_k):
        start = base + operand.start(0, first)
        descriptor = hopper_descriptor(start, operand)
        for mn, k in itertools.product(range(0, shape[0], 3), range(step_k)):
            found = hardware_address(descriptor, major, bits, mn, k)
            assert found == base * 8 + place[(mn, first + k)] * bits


@pytest.mark.parametrize("bits", [16, 32])
def test_coarse_swizzle(bits: int) -> None:
    """Rows of 128 bytes along M, pieces of 32 bytes XORed with the row number, groups of 4 rows."""
    shape = (2 * 1024 // bits, 16)
    buffer = canonical_buffer(*shape, bits, "MN", "128B_32B_atom")
    operand = match_operand(buffer, bits)
    assert (operand.swizzle, operand.major) == ("128B_32B_atom", "MN")
    assert (operand.stride, operand.leading) == (512, 16 * 128)
    place = {buffer.unflatten(e): i for i, e in enumerate(gf2.table(buffer.flat("offset")))}
    for mn, k in itertools.product(range(shape[0]), range(16)):
        column, inner = divmod(mn * bits // 8, 128)
        address = column * operand.leading + k // 4 * operand.stride + k % 4 * 128 + inner
        address ^= (address >> 7 & 3) << 5
        assert place[(mn, k)] * bits // 8 == address
    with pytest.raises(LayoutError, match="no canonical layout"):
        canonical_buffer(64, 64, 16, "K", "128B_32B_atom")
    with pytest.raises(LayoutError, match="wgmma has no swizzle"):
        hopper_descriptor(0, operand)


def test_sub_tiles_along_mn() -> None:
    buffer = canonical_buffer(256, 64, 16, "K", "128B")
    operand = match_operand(buffer, 16)
    assert operand.start(64, 0) == 64 * 128
    assert operand.start(0, 16) == 32
    tall = canonical_buffer(256, 128, 16, "K", "128B")
    assert match_operand(tall, 16).start(0, 64) == 256 * 128


def test_published_bits() -> None:
    """Start 0x400, leading 16, stride 1024."""
    operand = SmemOperand("128B", "K", 16, 1024, (), ())
    assert hopper_descriptor(0x400, operand) == 0x4000004000010040
    assert hopper_descriptor(0x420, operand) == 0x4000004000010042
    assert blackwell_descriptor(0x400, operand) == 0x4000404000010040


@pytest.mark.parametrize(
    ("swizzle", "code"), [("none", 0), ("32B", 6), ("64B", 4), ("128B", 2), ("128B_32B_atom", 1)]
)
def test_blackwell_fields(swizzle: str, code: int) -> None:
    descriptor = blackwell_descriptor(0x8000, SmemOperand(swizzle, "K", 32, 512, (), ()))
    assert unpack(descriptor) == (0x8000, 32, 512)
    assert descriptor >> 61 == code
    assert descriptor >> 46 & 7 == 1
    assert descriptor >> 49 & 0xFFF == 0


def test_base_offset() -> None:
    operand = SmemOperand("128B", "K", 16, 1024, (), ())
    assert hopper_descriptor(0x480, operand, 0x400) >> 49 & 7 == 0
    assert hopper_descriptor(0x480, operand, 0x480) >> 49 & 7 == 1


def test_not_canonical() -> None:
    with pytest.raises(
        LayoutError, match=r"Not a canonical GMMA_K Layout: unsupported swizzle, got"
    ):
        match_operand(
            LinearLayout({"offset": [(0, 1), (0, 2), (0, 4), (1, 4), (2, 0), (4, 0)]}, (8, 8)), 16
        )
    with pytest.raises(LayoutError, match="Not a canonical GMMA_MN Layout"):
        match_operand(strided((4, 16), (0, 1)), 16)
    for offsets, shape, words in (
        ([(0, 1), (0, 2), (0, 4), (1, 0), (2, 0)], (4, 8),
         "GMMA_K Layout: Expected MN-size multiple of 8"),
        ([(0, 1), (0, 2), (0, 4), (8, 0), (1, 0), (2, 0), (4, 0)], (16, 8),
         "GMMA_K Layout: Expected stride failure"),
        ([(1, 0), (2, 0), (0, 1), (4, 0), (0, 2), (0, 4)], (8, 8),
         "GMMA_MN Layout: No flat offset mode"),
        ([(1, 0), (2, 0), (4, 0), (0, 1), (0, 2)], (8, 4),
         "GMMA_MN Layout: Expected stride failure"),
    ):  # fmt: skip
        with pytest.raises(LayoutError, match=f"Not a canonical {words}"):
            match_operand(LinearLayout({"offset": offsets}, shape), 16)
    with pytest.raises(LayoutError, match="once each"):
        match_operand(LinearLayout({"offset": [(1, 0)]}, (8, 8)), 16)
    with pytest.raises(LayoutError, match="no multiple of 16"):
        hopper_descriptor(8, SmemOperand("none", "K", 16, 16, (), ()))
    with pytest.raises(LayoutError, match="no canonical layout"):
        canonical_buffer(64, 64, 16, "K", "256B")


def test_instruction_descriptors() -> None:
    plain = InstructionDescriptor("f16", "f16", "f16", "f32", 128, 256)
    assert plain.encode() == 0x08400010
    assert InstructionDescriptor("f16", "bf16", "bf16", "f32", 64, 128).encode() == 0x04200490
    turned = InstructionDescriptor("f16", "f16", "f16", "f32", 128, 256, a_major="MN")
    assert turned.encode() ^ plain.encode() == 1 << 15
    mixed = InstructionDescriptor("f8f6f4", "e2m1", "e3m2", "f16", 128, 8, sparse=True)
    assert mixed.encode() == 1 << 2 | 5 << 7 | 4 << 10 | 1 << 17 | 8 << 24
    scaled = scaled_instruction_descriptor("mxf4nvf4", "e2m1", "e2m1", 128, 64, "ue4m3")
    assert scaled == 1 << 7 | 1 << 10 | 8 << 17 | 8 << 24
    other = scaled_instruction_descriptor(
        "mxf8f6f4", "e4m3", "e5m2", 256, 64, "ue8m0", a_scale_id=2, b_scale_id=1
    )
    assert other == 1 << 4 | 1 << 10 | 8 << 17 | 1 << 23 | 16 << 24 | 2 << 29


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: InstructionDescriptor("f16", "s8", "s8", "f32", 128, 64), "does not multiply"),
        (lambda: InstructionDescriptor("i8", "s8", "s8", "f64", 128, 64), "accumulates in"),
        (lambda: InstructionDescriptor("i8", "s8", "s8", "s32", 128, 12), "no shape"),
    ],
)
def test_instruction_descriptor_errors(call, error: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(LayoutError, match=error):
        call().encode()


def test_scale_errors() -> None:
    with pytest.raises(LayoutError, match="has no block scales"):
        scaled_instruction_descriptor("f16", "f16", "f16", 128, 64, "ue8m0")
    with pytest.raises(LayoutError, match="no scales of type ue4m3"):
        scaled_instruction_descriptor("mxf4", "e2m1", "e2m1", 128, 64, "ue4m3")
