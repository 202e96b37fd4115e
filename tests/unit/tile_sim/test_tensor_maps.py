"""Tensor maps: words that NVIDIA's tools wrote, both ways, and `tensormap.replace`."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from tile_cute import tensor_map as bits_of
from tile_sim import Module, SimError, TensorMap
from tile_sim.machine.tensormap import IMMEDIATE, REPLACEABLE, decode, edits_of

# Fields and the lower eight words of maps that host code of NVIDIA's tools wrote.
SEEN: list[tuple[dict[str, Any], int, tuple[int, ...]]] = [
    (
        {"box": (32, 64), "dims": (336, 272), "strides": (672,), "type": "f16", "swizzle": "64B"},
        0x7F0000100000,
        (0x7F0000100000, 0x2A00244312, 0, 0, 0x10F0000014F, 0, 0x1F00000000000000, 0x3F),
    ),
    (
        {"box": (64, 64, 1), "dims": (400, 336, 4), "strides": (800, 268800), "type": "f16",
         "swizzle": "128B"},
        0x7F0000100000,
        (0x7F0000100000, 0x3200246322, 0x41A0, 0, 0x14F0000018F, 3, 0x3F00000000000000, 0x3F),
    ),
    (
        {"box": (16, 32), "dims": (336, 272), "strides": (1344,), "type": "f32"},
        0x7F0000100000,
        (0x7F0000100000, 0x5400240392, 0, 0, 0x10F0000014F, 0, 0xF00000000000000, 0x1F),
    ),
    (
        {"box": (256, 1), "dims": (352, 288), "strides": (704,), "type": "f16"},
        0x7F0000200000,
        (0x7F0000200000, 0x2C00240312, 0, 0, 0x11F0000015F, 0, 0xFF00000000000000, 0),
    ),
]  # fmt: skip


def words(raw: bytes) -> tuple[int, ...]:
    return tuple(int(w) for w in np.frombuffer(raw, "<u8"))


@pytest.mark.parametrize(("fields", "address", "expected"), SEEN)
def test_words_of_released_tools(
    fields: dict[str, Any], address: int, expected: tuple[int, ...]
) -> None:
    tensor = TensorMap(address, **fields)
    raw = tensor.encode(address)
    assert words(raw) == (*expected, *[0] * 8)
    found, back = decode(raw)
    assert found == address
    assert back == dataclasses.replace(tensor, array=None, large=back.large)


def random_map(rng: np.random.Generator) -> TensorMap:
    """A legal map of any rank and element type; im2col where the rank allows it."""
    kind = bits_of.ELEMENT_TYPES[rng.integers(len(bits_of.ELEMENT_TYPES))]
    rank = int(rng.integers(1, 6))
    im2col = rank >= 3 and bool(rng.integers(2))
    bits = kind.bits
    inner = 128 if kind.packed else 128 // bits * int(rng.integers(1, 3))
    corner = lambda: tuple(int(n) for n in rng.integers(-8, 8, rank - 2))  # noqa: E731
    return TensorMap(
        array=None,
        box=() if im2col else (inner, *(int(n) for n in rng.integers(1, 257, rank - 1))),
        dims=tuple(int(n) for n in rng.integers(1, 2**32, rank)),
        strides=tuple(16 * int(n) for n in rng.integers(0, 2**36, rank - 1)),
        element_strides=tuple(int(n) for n in rng.integers(1, 9, rank)),
        type=kind.name,
        swizzle="none" if inner * kind.bits > 1024 else str(rng.choice(["none", "128B"])),
        atomicity=str(rng.choice(bits_of.ATOMICITIES)),
        fill=str(rng.choice(bits_of.FILLS)),
        l2_promotion=str(rng.choice(bits_of.L2_PROMOTIONS)),
        channels=inner if im2col else 0,
        pixels=int(rng.integers(1, 1025)) if im2col else 0,
        lower=corner() if im2col else (),
        upper=corner() if im2col else (),
        large=bool(rng.integers(2)),
    )


def test_every_map_comes_back() -> None:
    rng = np.random.default_rng(11)
    for _ in range(500):
        tensor = random_map(rng)
        address = 16 * int(rng.integers(2**53))
        raw = tensor.encode(address)
        assert bits_of.unexplained(int.from_bytes(raw, "little")) == 0
        back = decode(raw)
        assert back == (address, dataclasses.replace(tensor, box=back[1].box))


def test_fields_do_not_overlap() -> None:
    taken = 0
    for name, field in bits_of.FIELDS.items():
        if name != "pixels":
            assert not taken & field.all_bits, name
            taken |= field.all_bits


def test_large_is_the_span_of_the_tensor() -> None:
    """Bit 85: from the first byte to the end of the last element, 128 KiB or more."""
    for rows, large in ((1023, 0), (1024, 1)):
        tensor = TensorMap(0, box=(64, 8), dims=(64, rows), strides=(128,), type="f16")
        assert words(tensor.encode(0))[1] >> 21 & 1 == large


NOT_A_MAP = {
    "all bytes are 0": 0,
    "rank 8": 7 << 68 | 1 << 65,
    "element type 15": 15 << 71 | 1 << 65,
    "bits 65 to 67 are 5": 5 << 65,
    "bit 60 is set": 1 << 60 | 1 << 65,
    "interleave 3": 3 << 75 | 1 << 65,
    "two swizzles": 1 << 86 | 1 << 77 | 1 << 65,
    "rank 2": 1 << 64 | 1 << 65 | 1 << 68,
}


@pytest.mark.parametrize("message", NOT_A_MAP)
def test_what_is_no_map(message: str) -> None:
    with pytest.raises(SimError, match=f"no tensor map here.*{message}"):
        decode(NOT_A_MAP[message].to_bytes(128, "little"))


REFUSED: dict[str, dict[str, Any]] = {
    "2\\*\\*32": {"dims": (0, 4)},
    "2\\*\\*40": {"strides": (1 << 40,)},
    "multiples of 16 bytes": {"strides": (264,)},
    "no multiple of 16": {"box": (6, 4)},
    "exceeds swizzle 64B": {"box": (64, 4), "swizzle": "64B"},
    "element_stride: 9 is not in 1..8": {"element_strides": (1, 9)},
    "no element type 'f17'": {"type": "f17"},
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_is_refused(message: str) -> None:
    fields = {"box": (32, 4), "dims": (64, 64), "strides": (256,), "type": "f16"}
    with pytest.raises(SimError, match=message):
        TensorMap(0, **{**fields, **REFUSED[message]}).encode(0)


def apply(raw: bytes, edits: list[tuple[int, int]]) -> bytes:
    bits = int.from_bytes(raw, "little")
    for mask, new in edits:
        bits = bits & ~mask | new
    return bits.to_bytes(128, "little")


def test_replacing_every_field_makes_the_other_map() -> None:
    """From one map to another by `tensormap.replace` alone, as kernels do it."""
    before = TensorMap(0, box=(64, 8), dims=(64, 64), strides=(128,), type="f16")
    after = TensorMap(
        0, box=(32, 16, 2), dims=(100, 90, 80), strides=(1 << 36, 1 << 39), type="f32",
        element_strides=(1, 2, 3), swizzle="128B", atomicity="32B", fill="nan", large=False,
    )  # fmt: skip
    raw = before.encode(0x1000)
    steps: list[tuple[str, int, int]] = [
        ("global_address", 0, 0x123450), ("rank", 0, 2), ("elemtype", 0, 7),
        ("interleave_layout", 0, 0), ("swizzle_mode", 0, 3), ("swizzle_atomicity", 0, 1),
        ("fill_mode", 0, 1),
    ]  # fmt: skip
    for i in range(3):
        steps += [("global_dim", i, after.dims[i]), ("box_dim", i, after.box[i])]
        steps += [("element_stride", i, after.element_strides[i])]
    steps += [("global_stride", i, after.strides[i]) for i in range(2)]
    assert {s[0] for s in steps} == set(REPLACEABLE)
    for field, ordinal, value in steps:
        raw = apply(raw, edits_of(field, ordinal, value))
    assert raw == after.encode(0x123450)


def test_replace_does_what_ptxas_makes_of_it() -> None:
    """A new address clears bit 85; a mode clears 96B; a type after tf32 leaves bit 80."""
    assert apply((1 << 85).to_bytes(128, "little"), edits_of("global_address", 0, 0)) == bytes(128)
    assert apply((1 << 86).to_bytes(128, "little"), edits_of("swizzle_mode", 0, 0)) == bytes(128)
    tf32 = apply(bytes(128), edits_of("elemtype", 0, 11))
    assert int.from_bytes(tf32, "little") == 7 << 71 | 1 << 80
    f16 = apply(tf32, edits_of("elemtype", 0, 6))
    assert int.from_bytes(f16, "little") == 6 << 71 | 1 << 80


PARAMETER = """.version 8.7
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 map, .param .u32 value) {{
.reg .b64 %m; .reg .b32 %v;
ld.param.u64 %m, [map]; ld.param.u32 %v, [value];
tensormap.replace.tile.{field}.global.b1024.b32 [%m]{ordinal}, {value};
ret; }}
"""


def test_replace_runs_on_memory() -> None:
    raw = np.frombuffer(TensorMap(0, box=(64,), dims=(64,), type="f16").encode(64), "u1").copy()
    place = np.zeros(256, np.uint8)
    start = -place.ctypes.data % 64
    memory = place[start : start + 128]
    memory[:] = raw
    text = PARAMETER.format(field="global_dim", ordinal=", 0", value="%v")
    Module(text).launch("k", (1, 1, 1), (32, 1, 1), [memory, 77])
    assert decode(memory.tobytes())[1].dims == (77,)


@pytest.mark.parametrize("field", IMMEDIATE)
def test_modes_have_to_be_immediate(field: str) -> None:
    with pytest.raises(SimError, match="bad-instruction"):
        Module(PARAMETER.format(field=field, ordinal="", value="%v"))
    Module(PARAMETER.format(field=field, ordinal="", value="1"))
