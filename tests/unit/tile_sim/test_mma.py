"""`mma.sync` against NumPy: fragments are filled by the formulas of the PTX ISA, lane by lane."""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest
from tile_sim import Module, SimError

Kernel = Callable[..., Module]
Index = Callable[[int, int], tuple[int, int]]


def _g(lane: int) -> int:
    return lane >> 2


def _t(lane: int) -> int:
    return lane % 4


# The ISA's tables, element i of lane l to (row, column); one entry for each shape and width.
A_FRAGMENTS: dict[tuple[str, int], tuple[int, Index]] = {
    ("m16n8k8", 16): (4, lambda l, i: (_g(l) + (0 if i < 2 else 8), _t(l) * 2 + (i & 1))),
    ("m16n8k16", 16): (
        8,
        lambda l, i: (
            _g(l) + (0 if i < 2 or 4 <= i < 6 else 8),
            _t(l) * 2 + (i & 1) + (0 if i < 4 else 8),
        ),
    ),
    ("m16n8k4", 32): (2, lambda l, i: (_g(l) + 8 * i, _t(l))),
    ("m16n8k8", 32): (4, lambda l, i: (_g(l) + 8 * (i & 1), _t(l) + (4 if i >= 2 else 0))),
    ("m8n8k16", 8): (4, lambda l, i: (_g(l), _t(l) * 4 + (i & 3))),
    ("m16n8k16", 8): (8, lambda l, i: (_g(l) + (0 if i < 4 else 8), _t(l) * 4 + (i & 3))),
    ("m16n8k32", 8): (
        16,
        lambda l, i: (
            _g(l) + (0 if i < 4 or 8 <= i < 12 else 8),
            _t(l) * 4 + (i & 3) + (0 if i < 8 else 16),
        ),
    ),
    ("m8n8k32", 4): (8, lambda l, i: (_g(l), _t(l) * 8 + (i & 7))),
    ("m16n8k32", 4): (16, lambda l, i: (_g(l) + (0 if i < 8 else 8), _t(l) * 8 + (i & 7))),
    ("m16n8k64", 4): (
        32,
        lambda l, i: (
            _g(l) + (0 if i < 8 or 16 <= i < 24 else 8),
            _t(l) * 8 + (i & 7) + (0 if i < 16 else 32),
        ),
    ),
    ("m8n8k128", 1): (32, lambda l, i: (_g(l), _t(l) * 32 + i)),
    ("m16n8k128", 1): (64, lambda l, i: (_g(l) + (0 if i < 32 else 8), _t(l) * 32 + (i & 31))),
    ("m16n8k256", 1): (
        128,
        lambda l, i: (
            _g(l) + (0 if i < 32 or 64 <= i < 96 else 8),
            _t(l) * 32 + (i & 31) + (0 if i < 64 else 128),
        ),
    ),
    ("m8n8k4", 64): (1, lambda l, i: (_g(l), _t(l))),
    ("m16n8k4", 64): (2, lambda l, i: (_g(l) + 8 * i, _t(l))),
    ("m16n8k8", 64): (4, lambda l, i: (_g(l) + 8 * (i % 2), _t(l) + 4 * (i // 2))),
    ("m16n8k16", 64): (8, lambda l, i: (_g(l) + 8 * (i % 2), 4 * (i // 2) + _t(l))),
}
B_FRAGMENTS: dict[tuple[str, int], tuple[int, Index]] = {
    ("m16n8k8", 16): (2, lambda l, i: (_t(l) * 2 + i, _g(l))),
    ("m16n8k16", 16): (4, lambda l, i: (_t(l) * 2 + (i & 1) + (8 if i >= 2 else 0), _g(l))),
    ("m16n8k4", 32): (1, lambda l, i: (_t(l), _g(l))),
    ("m16n8k8", 32): (2, lambda l, i: (_t(l) + 4 * i, _g(l))),
    ("m8n8k16", 8): (4, lambda l, i: (_t(l) * 4 + i, _g(l))),
    ("m16n8k16", 8): (4, lambda l, i: (_t(l) * 4 + i, _g(l))),
    ("m16n8k32", 8): (8, lambda l, i: (_t(l) * 4 + (i & 3) + (16 if i >= 4 else 0), _g(l))),
    ("m8n8k32", 4): (8, lambda l, i: (_t(l) * 8 + i, _g(l))),
    ("m16n8k32", 4): (8, lambda l, i: (_t(l) * 8 + i, _g(l))),
    ("m16n8k64", 4): (16, lambda l, i: (_t(l) * 8 + (i & 7) + (32 if i >= 8 else 0), _g(l))),
    ("m8n8k128", 1): (32, lambda l, i: (_t(l) * 32 + i, _g(l))),
    ("m16n8k128", 1): (32, lambda l, i: (_t(l) * 32 + i, _g(l))),
    ("m16n8k256", 1): (64, lambda l, i: (_t(l) * 32 + (i & 31) + (128 if i >= 32 else 0), _g(l))),
    ("m8n8k4", 64): (1, lambda l, i: (_t(l), _g(l))),
    ("m16n8k4", 64): (1, lambda l, i: (_t(l), _g(l))),
    ("m16n8k8", 64): (2, lambda l, i: (_t(l) + 4 * i, _g(l))),
    ("m16n8k16", 64): (4, lambda l, i: (_t(l) + 4 * i, _g(l))),
}


def _c_index(m: int) -> tuple[int, Index]:
    if m == 8:
        return 2, lambda l, i: (_g(l), _t(l) * 2 + (i & 1))
    return 4, lambda l, i: (_g(l) + (0 if i < 2 else 8), _t(l) * 2 + (i & 1))


def to_fragment(raw: np.ndarray, count: int, index: Index, bits: int) -> np.ndarray:
    """A matrix of raw element patterns to the registers of 32 lanes."""
    elements = np.array([[raw[index(l, i)] for i in range(count)] for l in range(32)], np.uint64)
    width = 64 if bits == 64 else 32
    per = width // bits
    out = np.zeros((32, count // per), np.uint64)
    for e in range(per):
        out |= elements[:, e::per] << np.uint64(e * bits)
    return out.astype(np.uint64 if bits == 64 else np.uint32)


def from_fragment(registers: np.ndarray, index: Index, shape: tuple[int, int]) -> np.ndarray:
    out = np.zeros(shape, registers.dtype)
    for l in range(32):
        for i in range(registers.shape[1]):
            out[index(l, i)] = registers[l, i]
    return out


def mma_kernel(instruction: str, counts: tuple[int, int, int, int], extra: str = "") -> str:
    """Loads the registers of A, B, C of each lane, runs the instruction, stores D."""
    wide = ".f64" in instruction
    reg, size, kind = ("%rd", 8, "b64") if wide else ("%r", 4, "b32")
    lines, base, vectors = ["mov.u32 %r599, %tid.x;"], 20, []
    for name, count in zip("abc", counts[:3], strict=True):
        lines.append(f"mul.lo.u32 %r598, %r599, {count * size}; cvt.u64.u32 %rd90, %r598;")
        lines.append(f"add.u64 %rd91, {name}, %rd90;")
        names = [f"{reg}{base + i}" for i in range(count)]
        base += count
        lines += [f"ld.global.{kind} {n}, [%rd91+{size * i}];" for i, n in enumerate(names)]
        vectors.append("{" + ", ".join(names) + "}")
    out = [f"{reg}{base + i}" for i in range(counts[3])]
    lines.append(f"{instruction} {{{', '.join(out)}}}, {', '.join(vectors)}{extra};")
    lines.append(f"mul.lo.u32 %r598, %r599, {counts[3] * size}; cvt.u64.u32 %rd90, %r598;")
    lines.append("add.u64 %rd91, d, %rd90;")
    lines += [f"st.global.{kind} [%rd91+{size * i}], {n};" for i, n in enumerate(out)]
    return "\n".join(lines)


NUMPY = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "tf32": np.float32, "f64": np.float64,
    "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2,
    "u8": np.uint8, "s8": np.int8, "e2m3": ml_dtypes.float6_e2m3fn,
    "e3m2": ml_dtypes.float6_e3m2fn, "e2m1": ml_dtypes.float4_e2m1fn,
}  # fmt: skip
BITS = {"f16": 16, "bf16": 16, "tf32": 32, "f64": 64, "u4": 4, "s4": 4, "b1": 1}


def random_operand(
    rng: np.random.Generator, name: str, shape: tuple[int, int]
) -> tuple[np.ndarray, np.ndarray]:
    """Values (float64) and raw patterns of a random matrix."""
    if name in ("u4", "s4", "b1"):
        raw = rng.integers(0, 2 if name == "b1" else 16, shape).astype(np.uint8)
        return (np.where(raw >= 8, raw - 16.0, raw) if name == "s4" else raw * 1.0), raw
    dtype = np.dtype(NUMPY[name])
    if name in ("u8", "s8"):
        values = rng.integers(0, 256, shape).astype(np.uint8).view(dtype)
    else:
        values = rng.normal(size=shape).astype(np.float32).astype(dtype)
    raw = values.view(f"u{dtype.itemsize}")
    if name == "tf32":
        raw = raw & np.uint32(0xFFFFE000)
        values = raw.view(np.float32)
    return values.astype(np.float64), raw


DENSE = [
    ("m16n8k8", "f32.f16.f16.f32"), ("m16n8k16", "f32.f16.f16.f32"), ("m16n8k8", "f16.f16.f16.f16"),
    ("m16n8k16", "f16.f16.f16.f16"), ("m16n8k8", "f32.bf16.bf16.f32"),
    ("m16n8k16", "f32.bf16.bf16.f32"), ("m16n8k4", "f32.tf32.tf32.f32"),
    ("m16n8k8", "f32.tf32.tf32.f32"), ("m8n8k4", "f64.f64.f64.f64"), ("m16n8k4", "f64.f64.f64.f64"),
    ("m16n8k8", "f64.f64.f64.f64"), ("m16n8k16", "f64.f64.f64.f64"),
    ("m8n8k16", "s32.s8.u8.s32"), ("m16n8k16", "s32.u8.s8.s32"), ("m16n8k32", "s32.s8.s8.s32"),
    ("m8n8k32", "s32.s4.u4.s32"), ("m16n8k32", "s32.u4.u4.s32"), ("m16n8k64", "s32.s4.s4.s32"),
    ("m16n8k32", "f32.e4m3.e5m2.f32"), ("m16n8k32", "f32.e5m2.e5m2.f32"),
    ("m16n8k16", "f32.e4m3.e4m3.f32"), ("m16n8k32", "f16.e4m3.e4m3.f16"),
]  # fmt: skip


def _shape(text: str) -> tuple[int, int, int]:
    m, rest = text[1:].split("n")
    n, k = rest.split("k")
    return int(m), int(n), int(k)


def _run(
    kernel: Kernel, instruction: str, shape: str, a_raw, b_raw, c_raw, bits: int, out_bits: int
):
    m, n, _ = _shape(shape)
    count_a, index_a = A_FRAGMENTS[shape, bits]
    count_b, index_b = B_FRAGMENTS[shape, bits]
    count_c, index_c = _c_index(m)
    fa = to_fragment(a_raw, count_a, index_a, bits)
    fb = to_fragment(b_raw, count_b, index_b, bits)
    fc = to_fragment(c_raw, count_c, index_c, out_bits)
    fd = np.zeros_like(fc)
    body = mma_kernel(instruction, (fa.shape[1], fb.shape[1], fc.shape[1], fd.shape[1]))
    module = kernel(body, "u64 a, u64 b, u64 c, u64 d", target="sm_120a")
    module.launch("k", (1, 1, 1), (32, 1, 1), [fa, fb, fc, fd])
    if out_bits == 16:
        fd = fd.view(np.uint16)
    return from_fragment(fd, index_c, (m, n))


@pytest.mark.parametrize(("shape", "types"), DENSE)
def test_dense(kernel: Kernel, shape: str, types: str) -> None:
    rng = np.random.default_rng(7)
    m, n, k = _shape(shape)
    d, a, b, _ = types.split(".")
    av, a_raw = random_operand(rng, a, (m, k))
    bv, b_raw = random_operand(rng, b, (k, n))
    out = {"f32": np.float32, "f16": np.float16, "f64": np.float64, "s32": np.int32}[d]
    c = (rng.normal(size=(m, n)) * 10).astype(out)
    kind = ""
    instruction = f"mma.sync.aligned.{shape}.row.col{kind}.{types}"
    c_raw = c.view(f"u{c.itemsize}")
    got = _run(kernel, instruction, shape, a_raw, b_raw, c_raw, BITS.get(a, 8), 8 * c.itemsize)
    expected = av @ bv + c.astype(np.float64)
    if d == "s32":
        np.testing.assert_array_equal(got.view(np.int32), expected.astype(np.int64))
    else:
        tolerance = {"f32": 1e-6, "f16": 1e-3, "f64": 1e-14}[d]
        np.testing.assert_allclose(
            got.view(out).astype(np.float64), expected, rtol=tolerance, atol=tolerance
        )


@pytest.mark.parametrize("shape", ["m8n8k128", "m16n8k128", "m16n8k256"])
@pytest.mark.parametrize("op", ["xor", "and"])
def test_single_bits(kernel: Kernel, shape: str, op: str) -> None:
    rng = np.random.default_rng(8)
    m, n, k = _shape(shape)
    _, a = random_operand(rng, "b1", (m, k))
    _, b = random_operand(rng, "b1", (k, n))
    c = rng.integers(-50, 50, (m, n)).astype(np.int32)
    instruction = f"mma.sync.aligned.{shape}.row.col.s32.b1.b1.s32.{op}.popc"
    got = _run(kernel, instruction, shape, a, b, c.view(np.uint32), 1, 32).view(np.int32)
    fn = np.bitwise_xor if op == "xor" else np.bitwise_and
    np.testing.assert_array_equal(got, fn(a[:, :, None], b[None]).sum(axis=1) + c)


def test_saturation(kernel: Kernel) -> None:
    a, b = np.full((16, 32), 127, np.uint8), np.full((32, 8), 127, np.uint8)
    c = np.full((16, 8), 2**31 - 1, np.int32).view(np.uint32)
    base = "mma.sync.aligned.m16n8k32.row.col{}.s32.s8.s8.s32"
    clamped = _run(kernel, base.format(".satfinite"), "m16n8k32", a, b, c, 8, 32).view(np.int32)
    wrapped = _run(kernel, base.format(""), "m16n8k32", a, b, c, 8, 32).view(np.int32)
    assert (clamped == 2**31 - 1).all()
    assert (wrapped == 2**31 - 1 + 32 * 127 * 127 - 2**32).all()


def test_a_swapped_fragment_register_is_seen(kernel: Kernel) -> None:
    """The model would notice registers of A in the wrong order."""
    rng = np.random.default_rng(9)
    av, a_raw = random_operand(rng, "f16", (16, 16))
    bv, b_raw = random_operand(rng, "f16", (16, 8))
    fa = to_fragment(a_raw, *A_FRAGMENTS["m16n8k16", 16], 16)[:, [0, 2, 1, 3]].copy()
    fb = to_fragment(b_raw, *B_FRAGMENTS["m16n8k16", 16], 16)
    fc, fd = np.zeros((32, 4), np.float32), np.zeros((32, 4), np.float32)
    body = mma_kernel("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", (4, 2, 4, 4))
    kernel(body, "u64 a, u64 b, u64 c, u64 d").launch("k", (1, 1, 1), (32, 1, 1), [fa, fb, fc, fd])
    got = from_fragment(fd, _c_index(16)[1], (16, 8))
    assert not np.allclose(got, av @ bv)


@pytest.mark.parametrize(("a_layout", "b_layout"), [("row", "col"), ("col", "row"), ("row", "row")])
@pytest.mark.parametrize("accumulator", ["f16", "f32"])
def test_first_generation_shape(
    kernel: Kernel, a_layout: str, b_layout: str, accumulator: str
) -> None:
    """m8n8k4: four products, each in two quads of lanes 16 apart."""
    rng = np.random.default_rng(10)
    a, b = (
        rng.normal(size=(4, 8, 4)).astype(np.float16),
        rng.normal(size=(4, 4, 8)).astype(np.float16),
    )
    c = rng.normal(size=(4, 8, 8)).astype(np.float32 if accumulator == "f32" else np.float16)
    fa, fb = np.zeros((32, 4), np.float16), np.zeros((32, 4), np.float16)
    fc = np.zeros((32, 8), c.dtype)
    where = {}
    for l in range(32):
        q, up = (l % 16) // 4, 0 if l < 16 else 4
        for i in range(4):
            fa[l, i] = a[(q, l % 4 + up, i) if a_layout == "row" else (q, i + up, l % 4)]
            fb[l, i] = b[(q, l % 4, i + up) if b_layout == "row" else (q, i, l % 4 + up)]
        for i in range(8):
            where[l, i] = (q, l % 4 + up, i)
            if accumulator == "f32":
                where[l, i] = (q, (l & 1) + (i & 2) + up, (i & 4) + (l & 2) + (i & 1))
            fc[l, i] = c[where[l, i]]
    fd = np.zeros_like(fc)
    types = f"{accumulator}.f16.f16.{accumulator}"
    count = 8 if accumulator == "f32" else 4
    body = mma_kernel(
        f"mma.sync.aligned.m8n8k4.{a_layout}.{b_layout}.{types}", (2, 2, count, count)
    )
    kernel(body, "u64 a, u64 b, u64 c, u64 d").launch("k", (1, 1, 1), (32, 1, 1), [fa, fb, fc, fd])
    expected = a.astype(np.float64) @ b.astype(np.float64) + c
    got = np.array([[fd[l, i] for i in range(8)] for l in range(32)], np.float64)
    want = np.array([[expected[where[l, i]] for i in range(8)] for l in range(32)])
    np.testing.assert_allclose(got, want, rtol=1e-3 if accumulator == "f16" else 1e-6, atol=1e-3)


SCALED = [
    ("mxf8f6f4", "1X", "e4m3", "e5m2", "ue8m0", 0, 0, 0, 0),
    ("mxf8f6f4", "1X", "e2m1", "e3m2", "ue8m0", 2, 1, 3, 2),
    ("mxf8f6f4", "1X", "e2m3", "e4m3", "ue8m0", 1, 0, 0, 3),
    ("mxf4", "2X", "e2m1", "e2m1", "ue8m0", 2, 1, 0, 1),
    ("mxf4nvf4", "4X", "e2m1", "e2m1", "ue4m3", 0, 1, 0, 2),
    ("mxf4nvf4", "2X", "e2m1", "e2m1", "ue8m0", 0, 0, 2, 0),
    ("mxf4nvf4", "4X", "e2m1", "e2m1", "ue8m0", 0, 0, 0, 0),
]


def _container(raw: np.ndarray, name: str, packed: bool) -> np.ndarray:
    """A 4-bit pattern sits in bits 2 to 5 of its byte, unless nibbles are packed."""
    return raw << 2 if name == "e2m1" and not packed else raw


@pytest.mark.parametrize(
    ("kind", "vec", "a", "b", "scale", "byte_a", "pair", "byte_b", "one"), SCALED
)
def test_block_scaled(
    kernel: Kernel, kind: str, vec: str, a: str, b: str, scale: str,
    byte_a: int, pair: int, byte_b: int, one: int,
) -> None:  # fmt: skip
    rng = np.random.default_rng(11)
    packed = kind != "mxf8f6f4"
    k, blocks, bits = (64 if packed else 32), int(vec[0]), 4 if packed else 8
    shape = f"m16n8k{k}"
    av, a_raw = random_operand(rng, a, (16, k))
    bv, b_raw = random_operand(rng, b, (k, 8))
    fa = to_fragment(_container(a_raw, a, packed), *A_FRAGMENTS[shape, bits], bits)
    fb = to_fragment(_container(b_raw, b, packed), *B_FRAGMENTS[shape, bits], bits)
    low, high = (120, 134) if scale == "ue8m0" else (0x30, 0x48)
    sa = rng.integers(low, high, (16, blocks)).astype(np.uint8)
    sb = rng.integers(low, high, (8, blocks)).astype(np.uint8)
    ra, rb = np.full((32, 4), 0xAB, np.uint8), np.full((32, 4), 0xAB, np.uint8)
    for g in range(8):
        ra[4 * g + 2 * pair, byte_a : byte_a + blocks] = sa[g]
        ra[4 * g + 2 * pair + 1, byte_a : byte_a + blocks] = sa[g + 8]
        rb[4 * g + one, byte_b : byte_b + blocks] = sb[g]
    fc = rng.normal(size=(32, 4)).astype(np.float32)
    fd = np.zeros_like(fc)
    name = f"mma.sync.aligned.{shape}.row.col.kind::{kind}.block_scale.scale_vec::{vec}"
    first, second = ("%r500", "%r501") if vec == "1X" else ("{%r500}", "{%r501}")
    extra = f", {first}, {{{byte_a}, {pair}}}, {second}, {{{byte_b}, {one}}}"
    load = """mov.u32 %r502, %tid.x; mul.wide.u32 %rd1, %r502, 4; add.u64 %rd2, sa, %rd1;
        ld.global.b32 %r500, [%rd2]; add.u64 %rd2, sb, %rd1; ld.global.b32 %r501, [%rd2];"""
    counts = (fa.shape[1], fb.shape[1], 4, 4)
    body = load + mma_kernel(f"{name}.f32.{a}.{b}.f32.{scale}", counts, extra)
    params = "u64 a, u64 b, u64 c, u64 d, u64 sa, u64 sb"
    module = kernel(body, params, target="sm_120a")
    module.launch("k", (1, 1, 1), (32, 1, 1), [fa, fb, fc, fd, ra, rb])
    decode = {"ue8m0": ml_dtypes.float8_e8m0fnu, "ue4m3": ml_dtypes.float8_e4m3fn}[scale]
    xa = av * np.repeat(sa.view(decode).astype(np.float64), k // blocks, axis=1)
    xb = bv * np.repeat(sb.view(decode).astype(np.float64), k // blocks, axis=1).T
    index = _c_index(16)[1]
    expected = xa @ xb + from_fragment(fc, index, (16, 8))
    np.testing.assert_allclose(from_fragment(fd, index, (16, 8)), expected, rtol=1e-5, atol=1e-5)


def test_divergent_warp_is_reported(kernel: Kernel) -> None:
    body = """mov.u32 %r1, %laneid; setp.lt.u32 %p1, %r1, 16; mov.b32 %r2, 0; mov.f32 %f1, 0f0;
    @%p1 bra HERE;
    bra END;
    HERE:
    mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f2,%f3,%f4,%f5}, {%r2,%r2}, {%r2},
        {%f1,%f1,%f1,%f1};
    END: bar.warp.sync 0xffffffff;""".replace("0f0;", "0f00000000;")
    with pytest.raises(SimError) as caught:
        kernel(body).launch("k", (1, 1, 1), (32, 1, 1), [])
    assert caught.value.kind in ("divergent", "deadlock")
    assert "mma.sync.aligned" in str(caught.value)


def test_bad_forms_are_named(kernel: Kernel) -> None:
    for text, word in (
        ("mma.sync.aligned.m16n8k16.row.col.f32.f16.bf16.f32", "bf16"),
        ("mma.sync.aligned.m16n8k12.row.col.f32.f16.f16.f32", "m16n8k12"),
        ("mma.sync.aligned.m16n8k16.col.col.f32.f16.f16.f32", "row.col"),
    ):
        with pytest.raises(SimError, match=word):
            kernel(mma_kernel(text, (4, 2, 4, 4)), "u64 a, u64 b, u64 c, u64 d")
