"""`mma.sp` against NumPy, metadata packed by the figures of the PTX ISA."""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest
from tile_sim import Module, SimError

Kernel = Callable[..., Module]
DTYPES = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "tf32": np.float32, "s8": np.int8,
    "u8": np.uint8, "e4m3": ml_dtypes.float8_e4m3fn,
    "e3m2": ml_dtypes.float6_e3m2fn, "s4": np.uint8,
}  # fmt: skip
CASES = [
    ("f32.f16.f16.f32", 16, 3), ("f32.f16.f16.f32", 32, 1), ("f16.f16.f16.f16", 32, 0),
    ("f32.bf16.bf16.f32", 16, 0), ("f32.tf32.tf32.f32", 8, 2), ("f32.tf32.tf32.f32", 16, 1),
    ("s32.s8.s8.s32", 32, 1), ("s32.s8.s8.s32", 64, 0), ("f32.e4m3.e4m3.f32", 64, 0),
    ("f32.e3m2.e3m2.f32", 64, 0),
    ("s32.s4.s4.s32", 64, 1), ("s32.s4.s4.s32", 128, 0),
]  # fmt: skip


def _bits(name: str) -> int:
    return 4 if name == "s4" else 8 * np.dtype(DTYPES[name]).itemsize


def _sparse(rng: np.random.Generator, name: str, k: int):
    """A row-sparse matrix: its packed patterns, its full values, and 4-bit metadata by chunk."""
    bits = _bits(name)
    kept, width, group = (1, 2, 1) if bits == 32 else (2, 4, 2 if bits == 4 else 1)
    chunks = k // (width * group)
    meta = np.zeros((16, chunks), np.uint64)
    packed = np.zeros((16, k // 2), np.uint64)
    full = np.zeros((16, k))
    for row in range(16):
        for chunk in range(chunks):
            places = sorted(rng.choice(width, kept, replace=False))
            meta[row, chunk] = (
                (0b1110 if places[0] else 0b0100) if bits == 32 else places[0] | places[1] << 2
            )
            for j, place in enumerate(places):
                for e in range(group):
                    raw, value = _element(rng, name)
                    packed[row, (chunk * kept + j) * group + e] = raw
                    full[row, (chunk * width + place) * group + e] = value
    return packed, full, meta


def _element(rng: np.random.Generator, name: str) -> tuple[int, float]:
    if name == "s4":
        raw = int(rng.integers(16))
        return raw, raw - 16.0 if raw >= 8 else float(raw)
    dtype = np.dtype(DTYPES[name])
    value = rng.integers(-100, 100) if name in ("s8", "u8") else rng.integers(-8, 8) / 4
    x = np.array(value).astype(dtype)
    return int(x.view(f"u{dtype.itemsize}")), float(x)


def _pack(
    raw: np.ndarray, where: Callable[[int, int, int], tuple[int, int]], bits: int
) -> np.ndarray:
    """Registers `[32, n]`: element e of register r of a lane is at where(lane, r, e)."""
    per = 32 // bits
    count = raw.size * bits // 1024
    out = np.zeros((32, count), np.uint32)
    for lane in range(32):
        for r in range(count):
            word = sum(int(raw[where(lane, r, e)]) << (bits * e) for e in range(per))
            out[lane, r] = word
    return out


def _metadata(meta: np.ndarray, bits: int, k: int, selector: int) -> np.ndarray:
    out = np.random.default_rng(0).integers(0, 2**32, 32, np.uint32)

    def word(nibbles: np.ndarray) -> int:
        return sum(int(v) << 4 * i for i, v in enumerate(nibbles))

    for g in range(8):
        if bits >= 16:
            for block in range(meta.shape[1] // 4):
                part = slice(4 * block, 4 * block + 4)
                thread = selector * (meta.shape[1] // 4) + block
                out[4 * g + thread] = word(meta[g, part]) | word(meta[g + 8, part]) << 16
        else:
            for block in range(meta.shape[1] // 8):
                part = slice(8 * block, 8 * block + 8)
                for half in range(2):
                    thread = selector * 2 * (meta.shape[1] // 8) + 2 * block + half
                    out[4 * g + thread] = word(meta[g + 8 * half, part])
    return out


def _body(shape: str, types: str, selector: int, counts: tuple[int, int, int], word: str) -> str:
    lines, base, vectors = ["mov.u32 %r1, %tid.x;"], 20, []
    for name, count in zip("abc", counts, strict=True):
        lines.append(f"mul.wide.u32 %rd1, %r1, {4 * count}; add.u64 %rd2, {name}, %rd1;")
        names = [f"%r{base + i}" for i in range(count)]
        lines += [f"ld.global.b32 {n}, [%rd2+{4 * i}];" for i, n in enumerate(names)]
        vectors.append("{" + ", ".join(names) + "}")
        base += count
    out = [f"%r{base + i}" for i in range(counts[2])]
    lines.append("mul.wide.u32 %rd1, %r1, 4; add.u64 %rd2, e, %rd1; ld.global.b32 %r10, [%rd2];")
    lines.append(
        f"mma.{word}.sync.aligned.{shape}.row.col.{types} {{{', '.join(out)}}}, "
        f"{', '.join(vectors)}, %r10, {selector};"
    )
    lines.append(f"mul.wide.u32 %rd1, %r1, {4 * counts[2]}; add.u64 %rd2, d, %rd1;")
    lines += [f"st.global.b32 [%rd2+{4 * i}], {n};" for i, n in enumerate(out)]
    return "\n".join(lines)


@pytest.mark.parametrize(("types", "k", "selector"), CASES)
def test_sparse(kernel: Kernel, types: str, k: int, selector: int) -> None:
    rng = np.random.default_rng(k)
    d, name, _, _ = types.split(".")
    bits = _bits(name)
    per = 32 // bits
    packed, full, meta = _sparse(rng, name, k)
    b = np.zeros((k, 8), np.uint64)
    values = np.zeros((k, 8))
    for i in np.ndindex(k, 8):
        b[i], values[i] = _element(rng, name)
    fa = _pack(
        packed,
        lambda l, r, e: (l // 4 + 8 * (r % 2), l % 4 * per + e + 4 * per * (r // 2)), bits,
    )  # fmt: skip
    fb = _pack(b, lambda l, r, e: (l % 4 * per + e + 4 * per * r, l // 4), bits)
    c = rng.integers(-5, 5, (16, 8)).astype({"f32": "f4", "f16": "f2", "s32": "i4"}[d])
    fc = np.array(
        [[c[l // 4 + 8 * (i // 2), l % 4 * 2 + i % 2] for i in range(4)] for l in range(32)]
    )
    fd = np.zeros_like(fc)
    counts = (fa.shape[1], fb.shape[1], 2 if d == "f16" else 4)
    kind = "kind::f8f6f4." if name == "e3m2" else ""
    body = _body(f"m16n8k{k}", kind + types, selector, counts, "sp::ordered_metadata")
    module = kernel(body, "u64 a, u64 b, u64 c, u64 d, u64 e", target="sm_120a")
    words = _metadata(meta, bits, k, selector)
    module.launch("k", (1, 1, 1), (32, 1, 1), [fa, fb, fc, fd, words])
    exact = full @ values + c
    for lane in range(32):
        for i in range(4):
            want = exact[lane // 4 + 8 * (i // 2), lane % 4 * 2 + i % 2]
            assert float(fd[lane, i]) == pytest.approx(want, rel=2e-3 if d == "f16" else 1e-6)


def test_equal_indices_are_reported(kernel: Kernel) -> None:
    body = _body("m16n8k16", "f32.f16.f16.f32", 0, (2, 2, 4), "sp")
    zeros = [np.zeros((32, n), np.uint32) for n in (2, 2, 4, 4)]
    module = kernel(body, "u64 a, u64 b, u64 c, u64 d, u64 e")
    with pytest.raises(SimError, match="equal"):
        module.launch("k", (1, 1, 1), (32, 1, 1), [*zeros, np.zeros(32, np.uint32)])


def test_ordered_metadata_are_ordered(kernel: Kernel) -> None:
    """0b0001 keeps elements 1 and 0, in this order: legal for the older spelling only."""
    zeros = [np.zeros((32, n), np.uint32) for n in (2, 2, 4, 4)]
    words = np.full(32, 0x11111111, np.uint32)
    for word in ("sp", "sp::ordered_metadata"):
        body = _body("m16n8k16", "f32.f16.f16.f32", 0, (2, 2, 4), word)
        module = kernel(body, "u64 a, u64 b, u64 c, u64 d, u64 e")
        if word == "sp":
            module.launch("k", (1, 1, 1), (32, 1, 1), [*zeros, words])
            continue
        with pytest.raises(SimError, match="out of order"):
            module.launch("k", (1, 1, 1), (32, 1, 1), [*zeros, words])


# (kind, types, K, factors along K, scale type, byte of the factors, thread of A, thread of B)
SCALED = [
    ("mxf8f6f4", "e4m3", "e4m3", 64, 1, "ue8m0", 3, 1, 2),
    ("mxf8f6f4", "e3m2", "e4m3", 64, 1, "ue8m0", 0, 0, 3),
    ("mxf4", "e2m1", "e2m1", 128, 2, "ue8m0", 2, 1, 0),
    ("mxf4nvf4", "e2m1", "e2m1", 128, 2, "ue8m0", 0, 0, 1),
    ("mxf4nvf4", "e2m1", "e2m1", 128, 4, "ue4m3", 0, 1, 3),
]


def _nibble(rng: np.random.Generator, name: str) -> tuple[int, float]:
    if name != "e2m1":
        return _element(rng, name)
    value = np.array(rng.choice([-3.0, -1.0, 0.5, 2.0])).astype(ml_dtypes.float4_e2m1fn)
    return int(value.view(np.uint8)), float(value)


@pytest.mark.parametrize("case", SCALED, ids=str)
def test_block_scales(kernel: Kernel, case: tuple) -> None:
    """Factors stand in one byte, and one thread (A: two) of each quad, the rest is garbage."""
    kind, ta, tb, k, blocks, scale, byte, thread_a, thread_b = case
    rng = np.random.default_rng(3)
    bits = 4 if kind != "mxf8f6f4" else 8
    group, per = (2 if bits == 4 else 1), 32 // bits
    packed, full = np.zeros((16, k // 2), np.uint64), np.zeros((16, k))
    meta = np.zeros((16, k // (4 * group)), np.uint64)
    for row, chunk in np.ndindex(*meta.shape):
        places = sorted(rng.choice(4, 2, replace=False))
        meta[row, chunk] = places[0] | places[1] << 2
        for (j, place), e in ((jp, e) for jp in enumerate(places) for e in range(group)):
            raw, value = _nibble(rng, ta)
            packed[row, (2 * chunk + j) * group + e] = raw
            full[row, (4 * chunk + place) * group + e] = value
    b, values = np.zeros((k, 8), np.uint64), np.zeros((k, 8))
    for i in np.ndindex(k, 8):
        b[i], values[i] = _nibble(rng, tb)
    fa = _pack(
        packed,
        lambda l, r, e: (l // 4 + 8 * (r % 2), l % 4 * per + e + 4 * per * (r // 2)), bits,
    )  # fmt: skip
    fb = _pack(b, lambda l, r, e: (l % 4 * per + e + 4 * per * r, l // 4), bits)
    low, shift, bias = (126, 0, 127) if scale == "ue8m0" else (6, 3, 7)
    sa, sb = (rng.integers(low, low + 3, (rows, blocks)) for rows in (16, 8))
    words = rng.integers(0, 1 << 32, (32, 3), np.uint32)
    words[:, 0] = _metadata(meta, bits, k, 0)
    for codes, column, lane_of in (
        (sa, 1, lambda row: row % 8 * 4 + 2 * thread_a + row // 8),
        (sb, 2, lambda row: row * 4 + thread_b),
    ):
        for row, block in np.ndindex(*codes.shape):
            at = 8 * (byte + block)
            word = int(words[lane_of(row), column]) & ~(255 << at)
            words[lane_of(row), column] = word | int(codes[row, block]) << shift + at
    body = _scaled_body(kind, f"m16n8k{k}.row.col.f32.{ta}.{tb}.f32.{scale}", blocks)
    body = body.replace("SELECT_A", f"{{{byte}, {thread_a}}}")
    body = body.replace("SELECT_B", f"{{{byte}, {thread_b}}}")
    out = np.zeros((32, 4), np.float32)
    module = kernel(body, "u64 a, u64 b, u64 e, u64 d", target="sm_120a")
    module.launch("k", (1, 1, 1), (32, 1, 1), [fa, fb, words, out])
    factors = [np.repeat(2.0 ** (c - bias), k // blocks, axis=1) for c in (sa, sb)]
    exact = (full * factors[0]) @ (values.T * factors[1]).T
    for lane, i in np.ndindex(32, 4):
        assert out[lane, i] == exact[lane // 4 + 8 * (i // 2), lane % 4 * 2 + i % 2]


def _scaled_body(kind: str, form: str, blocks: int) -> str:
    lines = ["mov.u32 %r1, %tid.x; mov.b32 %r40, 0;"]
    for name, first, count in (("a", 20, 4), ("b", 24, 4), ("e", 10, 3)):
        lines.append(f"mul.wide.u32 %rd1, %r1, {4 * count}; add.u64 %rd2, {name}, %rd1;")
        lines += [f"ld.global.b32 %r{first + i}, [%rd2+{4 * i}];" for i in range(count)]
    lines.append(
        f"mma.sp::ordered_metadata.sync.aligned.kind::{kind}.block_scale.scale_vec::{blocks}X.{form}"
        " {%r30, %r31, %r32, %r33}, {%r20, %r21, %r22, %r23}, {%r24, %r25, %r26, %r27},"
        " {%r40, %r40, %r40, %r40}, %r10, 0, %r11, SELECT_A, %r12, SELECT_B;"
    )
    lines.append("mul.wide.u32 %rd1, %r1, 16; add.u64 %rd2, d, %rd1;")
    lines += [f"st.global.b32 [%rd2+{4 * i}], %r{30 + i};" for i in range(4)]
    return "\n".join(lines)
