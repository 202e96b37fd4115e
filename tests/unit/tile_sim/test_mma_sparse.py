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
