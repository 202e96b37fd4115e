"""Single instructions against exact integers and ml_dtypes."""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest
from tile_sim import Module, SimError

Kernel = Callable[..., Module]
LANE = "mov.u32 %r1, %tid.x; mul.wide.u32 %rd90, %r1, SIZE; add.u64 %rd91, out, %rd90;"
EDGE = [0, 1, 2, 5, 31, 32, 33, 63, 0x7F, 0x80, 0xFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF]


def run32(kernel: Kernel, instruction: str, *inputs: np.ndarray, size: int = 4) -> np.ndarray:
    """`instruction` with destination %r10 (or %rd10) and sources %r20, ... for 256 threads."""
    wide = [x.dtype.itemsize == 8 for x in inputs]
    lines = [LANE.replace("SIZE", str(size))]
    for i, w in enumerate(wide):
        step = 8 if w else 4
        lines.append(f"mul.wide.u32 %rd92, %r1, {step}; add.u64 %rd93, in{i}, %rd92;")
        lines.append(f"ld.global.b{8 * step} {'%rd' if w else '%r'}{20 + i}, [%rd93];")
    lines.append(instruction)
    register = "%r10" if size == 4 else "%rd10"
    lines.append(f"st.global.b{8 * size} [%rd91], {register};")
    params = ", ".join(["u64 out", *(f"u64 in{i}" for i in range(len(inputs)))])
    out = np.zeros(len(inputs[0]), f"u{size}")
    module = kernel("\n".join(lines), params, target="sm_100a")
    module.launch("k", (1, 1, 1), (len(out), 1, 1), [out, *inputs])
    return out


def _words(seed: int, n: int = 256) -> np.ndarray:
    x = np.random.default_rng(seed).integers(0, 2**32, n, np.uint32)
    x[: len(EDGE)] = EDGE
    return np.random.default_rng(seed + 1).permutation(x)


def _signed(v: int, bits: int = 32) -> int:
    return (v & ((1 << bits) - 1)) - (1 << bits if v >> (bits - 1) & 1 else 0)


def _bfe(a: int, b: int, c: int, signed: bool) -> int:
    pos, length = b & 255, c & 255
    sign = 0 if not signed or not length else a >> min(pos + length - 1, 31) & 1
    bits = [(a >> (pos + i) & 1) if i < length and pos + i <= 31 else sign for i in range(32)]
    return sum(bit << i for i, bit in enumerate(bits))


def _bfi(a: int, b: int, c: int, d: int) -> int:
    pos, length = c & 255, d & 255
    for i in range(length):
        if pos + i > 31:
            break
        b = b & ~(1 << (pos + i)) | (a >> i & 1) << (pos + i)
    return b


def _prmt(a: int, b: int, c: int) -> int:
    both, out = b << 32 | a, 0
    for i in range(4):
        nibble = c >> 4 * i & 15
        byte = both >> 8 * (nibble & 7) & 255
        if nibble & 8:
            byte = 255 * (byte >> 7)
        out |= byte << 8 * i
    return out


def _bfind(a: int, signed: bool, shiftamt: bool) -> int:
    if signed and a >> 31:
        a = ~a & 0xFFFFFFFF
    place = a.bit_length() - 1
    if place < 0:
        return 0xFFFFFFFF
    return 31 - place if shiftamt else place


THREE = {
    "bfe.u32 %r10, %r20, %r21, %r22;": lambda a, b, c: _bfe(a, b, c, False),
    "bfe.s32 %r10, %r20, %r21, %r22;": lambda a, b, c: _bfe(a, b, c, True),
    "bfi.b32 %r10, %r20, %r21, %r22, 7;": lambda a, b, c: _bfi(a, b, c, 7),
    "prmt.b32 %r10, %r20, %r21, %r22;": _prmt,
    "prmt.b32.f4e %r10, %r20, %r21, %r22;": lambda a, b, c: (b << 32 | a) >> 8 * (c & 3),
    "prmt.b32.rc8 %r10, %r20, %r21, %r22;": lambda a, b, c: (a >> 8 * (c & 3) & 255) * 0x01010101,
    "lop3.b32 %r10, %r20, %r21, %r22, 0x1d;": lambda a, b, c: sum(
        (0x1D >> ((a >> i & 1) << 2 | (b >> i & 1) << 1 | (c >> i & 1)) & 1) << i for i in range(32)
    ),
    "lop3.b32 %r10, %r20, %r21, %r22, 0xca;": lambda a, b, c: a & b | ~a & 0xFFFFFFFF & c,
    "shf.l.wrap.b32 %r10, %r20, %r21, %r22;": lambda a, b, c: (b << 32 | a) << (c & 31) >> 32,
    "shf.r.clamp.b32 %r10, %r20, %r21, %r22;": lambda a, b, c: (b << 32 | a) >> min(c, 32),
    "shf.l.clamp.b32 %r10, %r20, %r21, %r22;": lambda a, b, c: (b << 32 | a) << min(c, 32) >> 32,
    "mad.lo.s32 %r10, %r20, %r21, %r22;": lambda a, b, c: a * b + c,
    "mad.hi.u32 %r10, %r20, %r21, %r22;": lambda a, b, c: (a * b >> 32) + c,
    "mad.hi.s32 %r10, %r20, %r21, %r22;": lambda a, b, c: (_signed(a) * _signed(b) >> 32) + c,
    "mad24.lo.u32 %r10, %r20, %r21, %r22;": lambda a, b, c: (a & 0xFFFFFF) * (b & 0xFFFFFF) + c,
    "mul24.hi.s32 %r10, %r20, %r21;": lambda a, b, c: _signed(a, 24) * _signed(b, 24) >> 16,
    "bfind.u32 %r10, %r20;": lambda a, b, c: _bfind(a, False, False),
    "bfind.shiftamt.s32 %r10, %r20;": lambda a, b, c: _bfind(a, True, True),
    "add.sat.s32 %r10, %r20, %r21;": lambda a, b, c: max(
        -(2**31), min(2**31 - 1, _signed(a) + _signed(b))
    ),
    "min.s16x2 %r10, %r20, %r21;": lambda a, b, c: sum(
        (min(_signed(a >> k, 16), _signed(b >> k, 16)) & 0xFFFF) << k for k in (0, 16)
    ),
    "shl.b32 %r10, %r20, %r21;": lambda a, b, c: a << b if b < 32 else 0,
    "shr.s32 %r10, %r20, %r21;": lambda a, b, c: _signed(a) >> min(b, 31),
    "bmsk.clamp.b32 %r10, %r20, %r21;": lambda a, b, c: (
        ((1 << min(b, 32)) - 1) << min(a, 32)
    ),
    "szext.wrap.s32 %r10, %r20, %r21;": lambda a, b, c: _signed(
        a & ((1 << (b & 31)) - 1), b & 31
    ) if b & 31 else 0,
    "cnot.b32 %r10, %r20;": lambda a, b, c: int(a == 0),
    "sad.s32 %r10, %r20, %r21, %r22;": lambda a, b, c: abs(_signed(a) - _signed(b)) + c,
    "dp2a.hi.s32.u32 %r10, %r20, %r21, %r22;": lambda a, b, c: c + sum(
        _signed(a >> 16 * i, 16) * (b >> (16 + 8 * i) & 255) for i in range(2)
    ),
    "slct.u32.s32 %r10, %r20, %r21, %r22;": lambda a, b, c: a if _signed(c) >= 0 else b,
    "cvt.sat.u8.s32 %r10, %r20;": lambda a, b, c: max(0, min(255, _signed(a))),
    "cvt.s32.s8 %r10, %r20;": lambda a, b, c: _signed(a, 8),
    "cvt.sat.s16.u32 %r10, %r20;": lambda a, b, c: min(a, 32767),
    "cvt.pack.sat.u8.s32.b32 %r10, %r20, %r21, %r22;": lambda a, b, c: (
        max(0, min(255, _signed(a))) << 8 | max(0, min(255, _signed(b))) | c << 16
    ),
    "add.cc.u32 %r11, %r20, %r21; addc.u32 %r10, %r22, 0;": lambda a, b, c: c + (a + b >> 32),
    "sub.cc.u32 %r11, %r20, %r21; subc.u32 %r10, %r22, 0;": lambda a, b, c: c - (a < b),
    "mad.lo.cc.u32 %r11, %r20, %r21, %r22; madc.hi.u32 %r10, %r20, %r21, 0;": lambda a, b, c: (
        a * b + c
    ) >> 32,
}  # fmt: skip


@pytest.mark.parametrize("instruction", sorted(THREE))
def test_integers(kernel: Kernel, instruction: str) -> None:
    a, b, c = (_words(seed) for seed in (1, 3, 5))
    # Small shifts and positions are the interesting ones.
    b[::2] %= 40
    c[1::2] %= 40
    if "lop3" in instruction or "mad" in instruction:
        b, c = _words(3), _words(5)
    got = run32(kernel, instruction, a, b, c)
    for i in range(len(a)):
        x, y, z = int(a[i]), int(b[i]), int(c[i])
        assert int(got[i]) == THREE[instruction](x, y, z) & 0xFFFFFFFF, (x, y, z)


def test_64_bit(kernel: Kernel) -> None:
    rng = np.random.default_rng(7)
    a, b = (rng.integers(0, 2**64, 256, np.uint64) for _ in range(2))
    cases = {
        "mul.hi.u64 %rd10, %rd20, %rd21;": lambda x, y: x * y >> 64,
        "mul.hi.s64 %rd10, %rd20, %rd21;": lambda x, y: _signed(x, 64) * _signed(y, 64) >> 64,
        "bfe.s64 %rd10, %rd20, 50, 9;": lambda x, y: _signed(x >> 50, 9),
        "bfi.b64 %rd10, %rd20, %rd21, 60, 8;": lambda x, y: y & (1 << 60) - 1 | (x & 15) << 60,
        "mov.b64 {%r11, %r12}, %rd20; mov.b64 %rd10, {%r12, %r11};": lambda x, y: (
            x >> 32 | (x & 0xFFFFFFFF) << 32
        ),
    }
    for instruction, model in cases.items():
        got = run32(kernel, instruction, a, b, size=8)
        expected = [model(int(x), int(y)) % 2**64 for x, y in zip(a, b, strict=True)]
        assert [int(v) for v in got] == expected, instruction


SMALL = [
    ("e4m3x2", ml_dtypes.float8_e4m3fn, 448.0), ("e5m2x2", ml_dtypes.float8_e5m2, 57344.0),
    ("e2m3x2", ml_dtypes.float6_e2m3fn, 7.5), ("e3m2x2", ml_dtypes.float6_e3m2fn, 28.0),
    ("e2m1x2", ml_dtypes.float4_e2m1fn, 6.0),
]  # fmt: skip


@pytest.mark.parametrize(("name", "dtype", "largest"), SMALL)
def test_small_floats(kernel: Kernel, name: str, dtype: type, largest: float) -> None:
    rng = np.random.default_rng(8)
    a, b = (
        (rng.normal(size=256) * 2.0 ** rng.integers(-8, 8, 256)).astype(np.float32) for _ in "ab"
    )
    holder = "%h1" if name != "e2m1x2" else "b1"
    declare = ".reg .b8 b1;" if name == "e2m1x2" else ""
    widen = "cvt.u32.u16 %r10, %h1;" if name != "e2m1x2" else "cvt.u32.u8 %r10, b1;"
    text = f"{declare} mov.b32 %f1, %r20; mov.b32 %f2, %r21;"
    to = f"{text} cvt.rn.satfinite.{name}.f32 {holder}, %f1, %f2; {widen}"
    got = run32(kernel, to, a.view(np.uint32), b.view(np.uint32))
    width = 4 if name == "e2m1x2" else 8
    parts = (got >> width) & ((1 << width) - 1), got & ((1 << width) - 1)
    for x, bits in zip((a, b), parts, strict=True):
        np.testing.assert_array_equal(
            bits, np.clip(x, -largest, largest).astype(dtype).view(np.uint8)
        )
    back = f"{declare} mov.b32 %f1, %r20; mov.b32 %f2, %r21;"
    back += f"cvt.rn.satfinite.{name}.f32 {holder}, %f1, %f2; cvt.rn.f16x2.{name} %r10, {holder};"
    halves = (
        run32(kernel, back, a.view(np.uint32), b.view(np.uint32)).view(np.float16).reshape(-1, 2)
    )
    for x, column in ((a, 1), (b, 0)):
        exact = np.clip(x, -largest, largest).astype(dtype).astype(np.float16)
        np.testing.assert_array_equal(halves[:, column], exact)


def test_scale_factors(kernel: Kernel) -> None:
    rng = np.random.default_rng(9)
    a = (2.0 ** rng.uniform(-30, 30, 256)).astype(np.float32)
    for mode, fn in (("rp", np.ceil), ("rz", np.floor)):
        text = f"mov.b32 %f1, %r20; cvt.{mode}.satfinite.ue8m0x2.f32 %h1, %f1, %f1;"
        got = run32(kernel, text + "cvt.u32.u16 %r10, %h1;", a.view(np.uint32)) & 255
        np.testing.assert_array_equal(got, fn(np.log2(a.astype(np.float64))) + 127)


def test_tf32_and_packed_halves(kernel: Kernel) -> None:
    rng = np.random.default_rng(10)
    a, b = (rng.normal(size=256).astype(np.float32) for _ in "ab")
    bits = a.view(np.uint32)
    got = run32(kernel, "mov.b32 %f1, %r20; cvt.rna.tf32.f32 %r10, %f1;", bits)
    np.testing.assert_array_equal(got, (bits + np.uint32(0x1000)) & np.uint32(0xFFFFE000))
    ends = np.array([np.inf, -np.inf, 3.4027e38, 1e-40, -0.0, np.nan], np.float32).view(np.uint32)
    wanted = [0x7F800000, 0xFF800000, 0x7F800000, 0x00012000, 0x80000000, 0x7FFFFFFF]
    for mode in ("rn", "rna"):
        got = run32(kernel, f"mov.b32 %f1, %r20; cvt.{mode}.tf32.f32 %r10, %f1;", ends)
        np.testing.assert_array_equal(got, wanted)
    text = "mov.b32 %f1, %r20; mov.b32 %f2, %r21; cvt.rn.{}x2.f32 %r10, %f1, %f2;"
    for name, dtype in (("f16", np.float16), ("bf16", ml_dtypes.bfloat16)):
        got = run32(kernel, text.format(name), bits, b.view(np.uint32)).view(dtype).reshape(-1, 2)
        np.testing.assert_array_equal(got[:, 1], a.astype(dtype))
        np.testing.assert_array_equal(got[:, 0], b.astype(dtype))
    relu = run32(kernel, text.format("f16").replace(".rn.", ".rn.relu."), bits, bits)
    np.testing.assert_array_equal(
        relu.view(np.float16).reshape(-1, 2)[:, 0], np.maximum(a, 0).astype(np.float16)
    )


def test_packed_arithmetic(kernel: Kernel) -> None:
    rng = np.random.default_rng(11)
    for dtype, name in ((np.float16, "f16x2"), (ml_dtypes.bfloat16, "bf16x2")):
        a, b, c = (rng.normal(size=512).astype(dtype) for _ in "abc")
        words = [x.view(np.uint32) for x in (a, b, c)]
        exact = a.astype(np.float64) * b.astype(np.float64) + c.astype(np.float64)
        got = run32(kernel, f"fma.rn.{name} %r10, %r20, %r21, %r22;", *words)
        np.testing.assert_array_equal(got.view(dtype), exact.astype(dtype))
        got = run32(kernel, f"max.{name} %r10, %r20, %r21;", *words)
        np.testing.assert_array_equal(got.view(dtype), np.maximum(a, b))
        got = run32(kernel, f"neg.{name} %r10, %r20;", *words)
        np.testing.assert_array_equal(got.view(dtype), -a)
    a, b = (rng.normal(size=512).astype(np.float32) for _ in "ab")
    got = run32(
        kernel, "mul.rn.f32x2 %rd10, %rd20, %rd21;", a.view(np.uint64), b.view(np.uint64), size=8
    )
    np.testing.assert_array_equal(got.view(np.float32), a * b)


def test_flushing(kernel: Kernel) -> None:
    a = np.array([1e-40, -1e-40, 1e-38, 2.0] * 64, np.float32).view(np.uint32)
    text = "mov.b32 %f1, %r20; {} mov.b32 %r10, %f2;"
    kept = run32(kernel, text.format("mul.f32 %f2, %f1, 0f3F000000;"), a).view(np.float32)
    flushed = run32(kernel, text.format("mul.ftz.f32 %f2, %f1, 0f3F000000;"), a).view(np.float32)
    np.testing.assert_array_equal(kept, a.view(np.float32) * np.float32(0.5))
    np.testing.assert_array_equal(flushed[:4], [0, 0, 0, 1])
    assert np.signbit(flushed[1])


ATOMICS = [
    ("add.u32", np.uint32, np.add), ("min.s32", np.int32, np.minimum),
    ("max.u32", np.uint32, np.maximum), ("and.b32", np.uint32, np.bitwise_and),
    ("or.b32", np.uint32, np.bitwise_or), ("xor.b32", np.uint32, np.bitwise_xor),
    ("add.u64", np.uint64, np.add), ("max.s64", np.int64, np.maximum),
    ("add.f64", np.float64, np.add), ("add.noftz.f16", np.float16, np.add),
]  # fmt: skip


@pytest.mark.parametrize("space", ["global", "shared"])
@pytest.mark.parametrize(("op", "dtype", "fn"), ATOMICS)
def test_reductions_in_memory(kernel: Kernel, space: str, op: str, dtype: type, fn) -> None:
    """All threads into one element: the result of any order."""
    size = np.dtype(dtype).itemsize
    register = {2: "%h1", 4: "%r5", 8: "%rd5"}[size]
    rng = np.random.default_rng(12)
    x = rng.integers(0, 8 if dtype is np.float16 else 1000, 96).astype(dtype)
    start = np.zeros(1, dtype) if "and" not in op else np.array([2**32 - 1], dtype)
    body = f"""
    .shared .align 8 .b8 s[8];
    mov.u32 %r1, %tid.x; mul.wide.u32 %rd1, %r1, {size}; add.u64 %rd2, x, %rd1;
    ld.global.b{8 * size} {register}, [%rd2]; setp.eq.u32 %p1, %r1, 0;
    mov.u32 %r2, s; cvt.u64.u32 %rd3, %r2; setp.eq.u32 %p2, {int(space == "shared")}, 1;
    @%p2 bra COPY; mov.u64 %rd3, y; bra GO;
    COPY: @!%p1 bra GO;
    ld.global.b{8 * size} {register.replace("5", "6").replace("1", "2")}, [y];
    st.shared.b{8 * size} [%r2], {register.replace("5", "6").replace("1", "2")};
    GO: bar.sync 0;
    red.{space}.{op} [%rd3], {register};
    bar.sync 0;
    @!%p1 bra END; @!%p2 bra END;
    ld.shared.b{8 * size} {register}, [%r2]; st.global.b{8 * size} [y], {register};
    END:
    """
    kernel(body, "u64 x, u64 y").launch("k", (1, 1, 1), (96, 1, 1), [x, start])
    first = np.zeros(1, dtype) if "and" not in op else np.array([2**32 - 1], dtype)
    assert start[0] == fn.reduce(np.append(first, x))


def test_compare_and_swap_and_wrapping_counters(kernel: Kernel) -> None:
    body = """
    mov.u32 %r1, %tid.x; add.u32 %r2, %r1, 1; mul.wide.u32 %rd1, %r1, 4; add.u64 %rd2, out, %rd1;
    atom.global.cas.b32 %r3, [x], 0, %r2; atom.global.inc.u32 %r4, [x+4], 6;
    atom.global.dec.u32 %r5, [x+8], 6; atom.global.exch.b32 %r6, [x+12], %r2;
    st.global.b32 [%rd2], %r4;
    """
    x, out = np.zeros(4, np.uint32), np.zeros(64, np.uint32)
    kernel(body, "u64 x, u64 out").launch("k", (1, 1, 1), (64, 1, 1), [x, out])
    assert x.tolist() == [1, 64 % 7, (-64) % 7, 64]
    np.testing.assert_array_equal(out, np.arange(64) % 7)


def test_votes_matches_and_reductions_under_divergence(kernel: Kernel) -> None:
    """Each half of a warp, entered by a branch, votes for itself."""
    body = """
    mov.u32 %r1, %laneid; setp.lt.u32 %p1, %r1, 12; mov.u32 %r2, 0x00000fff; and.b32 %r9, %r1, 3;
    @%p1 bra GO; mov.u32 %r2, 0xfffff000;
    GO: setp.eq.u32 %p2, %r9, 0;
    @%p1 bra FIRST;
    vote.sync.ballot.b32 %r3, %p2, %r2; match.any.sync.b32 %r4, %r9, %r2;
    redux.sync.add.u32 %r5, %r1, %r2; activemask.b32 %r6; bra OUT;
    FIRST:
    vote.sync.ballot.b32 %r3, %p2, %r2; match.any.sync.b32 %r4, %r9, %r2;
    redux.sync.add.u32 %r5, %r1, %r2; activemask.b32 %r6;
    OUT: mul.wide.u32 %rd1, %r1, 16; add.u64 %rd2, out, %rd1;
    st.global.v4.b32 [%rd2], {%r3, %r4, %r5, %r6};
    """
    out = np.zeros((32, 4), np.uint32)
    kernel(body, "u64 out").launch("k", (1, 1, 1), (32, 1, 1), [out])
    for lane in range(32):
        mine = range(12) if lane < 12 else range(12, 32)
        assert out[lane, 0] == sum(1 << i for i in mine if i % 4 == 0)
        assert out[lane, 1] == sum(1 << i for i in mine if i % 4 == lane % 4)
        assert out[lane, 2] == sum(mine)
        assert out[lane, 3] == sum(1 << i for i in mine)


def test_shuffles(kernel: Kernel) -> None:
    lanes = np.arange(32, dtype=np.uint32)
    cases = {
        "shfl.sync.up.b32 %r10|%p1, %r20, 3, 0, -1;": np.where(lanes >= 3, lanes - 3, lanes),
        "shfl.sync.down.b32 %r10|%p1, %r20, 5, 31, -1;": np.where(lanes + 5 < 32, lanes + 5, lanes),
        "shfl.sync.bfly.b32 %r10|%p1, %r20, 9, 31, -1;": lanes ^ 9,
        "shfl.sync.idx.b32 %r10|%p1, %r20, 2, 0x181f, -1;": lanes // 8 * 8 + 2,
    }
    for instruction, expected in cases.items():
        np.testing.assert_array_equal(run32(kernel, instruction, lanes), expected)


def test_branch_tables(kernel: Kernel) -> None:
    body = """
    mov.u32 %r1, %tid.x; rem.u32 %r2, %r1, 3; setp.lt.u32 %p1, %r1, 60; mov.u32 %r3, 99;
    TABLE: .branchtargets ZERO, ONE, TWO;
    @%p1 brx.idx %r2, TABLE;
    bra JOIN;
    ZERO: mov.u32 %r3, 10; bra JOIN;
    TWO: mov.u32 %r3, 30; bra JOIN;
    ONE: mov.u32 %r3, 20;
    JOIN: mul.wide.u32 %rd1, %r1, 4; add.u64 %rd2, out, %rd1; st.global.u32 [%rd2], %r3;
    """
    out = np.zeros(64, np.uint32)
    kernel(body, "u64 out").launch("k", (1, 1, 1), (64, 1, 1), [out])
    t = np.arange(64)
    np.testing.assert_array_equal(out, np.where(t < 60, 10 + 10 * (t % 3), 99))


def test_zeros_in_bulk(kernel: Kernel) -> None:
    body = """
    .shared .align 8 .b32 s[64];
    mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0; mov.u32 %r2, s; mov.u64 %rd5, 128;
    shl.b32 %r3, %r1, 2; add.u32 %r3, %r3, %r2; st.shared.b32 [%r3], %r1; bar.sync 0;
    @%p1 st.bulk.weak.shared::cta [%r2+64], %rd5, 0;
    bar.sync 0; ld.shared.b32 %r4, [%r3];
    mul.wide.u32 %rd1, %r1, 4; add.u64 %rd2, out, %rd1; st.global.u32 [%rd2], %r4;
    """
    out = np.zeros(64, np.uint32)
    kernel(body, "u64 out", target="sm_100a").launch("k", (1, 1, 1), (64, 1, 1), [out])
    t = np.arange(64)
    np.testing.assert_array_equal(out, np.where((t >= 16) & (t < 48), 0, t))


def test_a_mask_outlives_its_predicate(kernel: Kernel) -> None:
    """Threads that wait at a join keep their mask when the predicate register changes."""
    body = """
    mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 3; mov.u32 %r3, 0; setp.lt.u32 %p1, %r2, 2;
    @%p1 bra A;
    LOOP: add.u32 %r3, %r3, 1; setp.lt.u32 %p1, %r3, %r1; @%p1 bra LOOP;
    bra JOIN;
    A: mov.u32 %r3, 1000; setp.eq.u32 %p1, %r1, 77;
    JOIN: mul.wide.u32 %rd1, %r1, 4; add.u64 %rd2, out, %rd1; st.global.u32 [%rd2], %r3;
    """
    out = np.zeros(96, np.uint32)
    kernel(body, "u64 out").launch("k", (1, 1, 1), (96, 1, 1), [out])
    t = np.arange(96)
    np.testing.assert_array_equal(out, np.where(t % 4 < 2, 1000, np.maximum(t, 1)))


@pytest.mark.parametrize(
    ("text", "kind", "word"),
    [
        ("frobnicate.b32 %r1, %r2;", "unknown-instruction", "frobnicate"),
        ("add.rz.s32 %r1, %r2, %r3;", "unknown-instruction", ".rz"),
        ("add.s32 %r1, %r2;", "bad-instruction", "takes 3 operands"),
        ("add.s32 %rd1, %r2, %r3;", "bad-instruction", "64 bits"),
        ("add.s32 %r1, %r2, nothing;", "undeclared", "nothing"),
        ("bra NOWHERE;", "undeclared", "NOWHERE"),
        ("mov.u32 %r1, ;", "syntax", "operand"),
        (".reg .b32 a; .reg .b32 a;", "syntax", "twice"),
        ("L: L: bar.sync 0;", "syntax", "twice"),
        ("ld.global.q32 %r1, [%rd1];", "bad-instruction", "type"),
    ],
)
def test_bad_text(kernel: Kernel, text: str, kind: str, word: str) -> None:
    with pytest.raises(SimError) as caught:
        kernel(text)
    assert caught.value.kind == kind
    assert word in str(caught.value)
    assert caught.value.where is not None


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("", "not PTX"), ("MZ\x90", "unexpected character"), (".version 3.0\n.target sm_20", "3.0"),
        (".version 8.0\n.target sm_80\n.address_size 32", "32"),
        (".version 8.0\n.target sm_80\n.visible .entry k() {", "ends inside"),
        (".version 8.0\n.target sm_80\n.surprise 1;", ".surprise"),
    ],
)  # fmt: skip
def test_what_is_not_a_module(text: str, word: str) -> None:
    with pytest.raises(SimError, match=word) as caught:
        Module(text)
    assert caught.value.kind == "syntax"


def test_wrong_launches(kernel: Kernel) -> None:
    module = kernel("mov.u32 %r1, n;", "u64 x, u32 n")
    x = np.zeros(4, np.uint32)
    for args, block, word in (
        ([x], (32, 1, 1), "takes 2 arguments"),
        ([x, 2**40], (32, 1, 1), "does not fit"),
        ([x, x], (32, 1, 1), "no pointer"),
        ([x, 1], (2048, 1, 1), "too large"),
        ([x, 1], None, "no block size"),
        ([x, 1], (0, 1, 1), "positive"),
        ([x, "text"], (32, 1, 1), "cannot pass str"),
    ):
        with pytest.raises(SimError, match=word) as caught:
            module.launch("k", (1, 1, 1), block, args)
        assert caught.value.kind == "launch"
    with pytest.raises(SimError, match="no kernel 'q'"):
        module.launch("q", (1, 1, 1), (1, 1, 1), [])
    with pytest.raises(SimError, match="unknown schedule"):
        module.launch("k", (1, 1, 1), (1, 1, 1), [x, 1], schedule="soon")


SPECIAL = [0.0, -0.0, 1.0, 4.0, 2.8, 3e-310, 7e300, -1.0, np.inf, -np.inf, np.nan]


@pytest.mark.parametrize(
    ("instruction", "dtype", "tolerance"),
    [
        ("rsqrt.approx.f32 {}, {};", np.float32, 2.0**-22),
        ("rsqrt.approx.ftz.f64 {}, {};", np.float64, 2.0**-20),
        ("rsqrt.approx.f64 {}, {};", np.float64, 2.0**-51),
    ],
)
def test_reciprocal_square_root(
    kernel: Kernel, instruction: str, dtype: type, tolerance: float
) -> None:
    """The root of -0 is -0, hence its reciprocal -inf; without .ftz, f64 is precise."""
    with np.errstate(over="ignore"):
        x = np.array(SPECIAL * 24, dtype)[:256]
    register = "%r{}" if dtype is np.float32 else "%rd{}"
    text = instruction.format(register.format(10), register.format(20))
    raw = run32(kernel, text, x.view(f"u{x.itemsize}"), size=x.itemsize)
    found = raw.view(dtype).astype(np.float64)
    with np.errstate(all="ignore"):
        if "ftz" in instruction:
            x = np.where(np.abs(x) < np.finfo(dtype).tiny, np.copysign(0.0, x), x)
        expected = 1 / np.sqrt(x.astype(np.float64))
    np.testing.assert_allclose(found, expected, rtol=tolerance)
