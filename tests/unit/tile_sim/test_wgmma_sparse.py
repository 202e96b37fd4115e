"""Sparse `wgmma` against NumPy.

Metadata are placed by the fragments that CUTLASS gives (GMMA `ELayout_64x16`, `_64x32`, `_64x64`):
thread and value to (row, column) of the full A, each column worth 2 bits (32-bit types), 1 bit.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

import ml_dtypes
import numpy as np
import pytest
from tile_sim import Module, SimError

Kernel = Callable[..., Module]
TYPES = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "tf32": np.float32,
    "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2, "s8": np.int8, "u8": np.uint8,
}  # fmt: skip
DEPTH = {16: 32, 32: 16, 8: 64}
PARAMS = "u64 image, u64 regs, u64 out, u64 da, u64 db"


def bits_of(name: str) -> int:
    return 8 * np.dtype(TYPES[name]).itemsize


def sparse(rng: np.random.Generator, bits: int, unsigned: bool):
    """(stored values, the full matrix, codes) of 64 rows."""
    k = DEPTH[bits]
    width, kept = (2, 1) if bits == 32 else (4, 2)
    stored = rng.choice([-3.0, -2.0, -1.0, 1.0, 2.0, 4.0], (64, k // 2))
    stored = np.abs(stored) if unsigned else stored
    full, codes = np.zeros((64, k)), np.zeros((64, k // width), int)
    options = list(combinations(range(width), kept)) + ([(2, 1)] if kept == 2 else [])
    for row, chunk in np.ndindex(*codes.shape):
        places = options[int(rng.integers(len(options)))]
        for i, place in enumerate(places):
            full[row, width * chunk + place] = stored[row, kept * chunk + i]
        codes[row, chunk] = (0b1110 if places[0] else 0b0100) if kept == 1 else (
            places[0] | places[1] << 2
        )  # fmt: skip
    return stored, full, codes


def metadata(codes: np.ndarray, bits: int, selector: int) -> np.ndarray:
    """The register of each thread; what the selector leaves out is garbage."""
    words = np.random.default_rng(8).integers(0, 1 << 32, 128, np.uint32)
    width = 2 if bits == 32 else 4
    for thread in range(128):
        low, high, g, warp = thread % 2, thread // 2 % 2, thread // 4 % 8, thread // 32
        if bits == 8:
            rows, first = [8 * low + g + 16 * warp], 32 * high
            part = 32
        else:
            if high != selector:
                continue
            rows, first = [g + 16 * warp, g + 16 * warp + 8], DEPTH[bits] // 2 * low
            part = DEPTH[bits] // 2
        found = [codes[row, first // width : (first + part) // width] for row in rows]
        words[thread] = sum(int(c) << 4 * i for i, c in enumerate(np.concatenate(found)))
    return words


def k_major(x: np.ndarray) -> tuple[np.ndarray, int]:
    """Rows of 32 or 64 bytes in swizzled atoms of that width; bytes, and the descriptor."""
    raw = np.ascontiguousarray(x).view(np.uint8).reshape(len(x), -1)
    span = raw.shape[1]
    out = np.zeros(raw.size, np.uint8)
    for r, b in np.ndindex(*raw.shape):
        linear = r * span + b
        out[(linear // 16 ^ linear // 128 % (span // 16)) * 16 + linear % 16] = raw[r, b]
    return out, 1 << 16 | 8 * span >> 4 << 32 | {32: 3, 64: 2}[span] << 62


def fragment_a(x: np.ndarray, bits: int) -> np.ndarray:
    """A as stored, in registers `[128, 4]`: words along K, rows g and g + 8."""
    words = np.ascontiguousarray(x).view(np.uint32).reshape(64, 8)
    out = np.zeros((128, 4), np.uint32)
    for thread, i in np.ndindex(128, 4):
        row = thread // 32 * 16 + thread % 32 // 4 + 8 * (i % 2)
        out[thread, i] = words[row, thread % 4 + 4 * (i // 2)]
    return out


def body(name: str, n: int, registers: int, in_registers: bool, selector: int, tail: str) -> str:
    d = ", ".join(f"%r{100 + i}" for i in range(registers))
    a = "{%r50, %r51, %r52, %r53}" if in_registers else "%rd20"
    lines = [
        ".shared .align 1024 .b8 buf[32768];",
        "mov.u32 %r1, %tid.x; mov.u32 %r2, buf; mov.u32 %r10, %r1;",
        "FILL: setp.ge.u32 %p1, %r10, 8192; @%p1 bra FILLED;",
        "shl.b32 %r11, %r10, 2; cvt.u64.u32 %rd1, %r11; add.u64 %rd2, image, %rd1;",
        "ld.global.b32 %r13, [%rd2]; add.u32 %r12, %r2, %r11; st.shared.b32 [%r12], %r13;",
        "add.u32 %r10, %r10, 128; bra FILL;",
        "FILLED: fence.proxy.async.shared::cta; bar.sync 0;",
        "mul.wide.u32 %rd3, %r1, 20; add.u64 %rd4, regs, %rd3; ld.global.b32 %r49, [%rd4+16];",
        *(f"ld.global.b32 %r{50 + i}, [%rd4+{4 * i}];" for i in range(4)),
        *(f"mov.b32 %r{100 + i}, 0;" for i in range(registers)),
        "shr.u32 %r7, %r2, 4; cvt.u64.u32 %rd5, %r7; setp.ne.b32 %p2, 0, 0;",
        "add.u64 %rd20, da, %rd5; add.u64 %rd21, db, %rd5; wgmma.fence.sync.aligned;",
        f"wgmma.mma_async.sp.sync.aligned.{name}",
        f"  {{{d}}}, {a}, %rd21, %r49, {selector}, %p2{tail};",
        "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;",
        f"mul.wide.u32 %rd3, %r1, {4 * registers}; add.u64 %rd4, out, %rd3;",
        *(f"st.global.b32 [%rd4+{4 * i}], %r{100 + i};" for i in range(registers)),
    ]
    return "\n".join(lines)


CASES = [
    ("f32.f16.f16", 16, 0), ("f32.f16.f16", 64, 1), ("f16.f16.f16", 8, 1), ("f32.bf16.bf16", 24, 0),
    ("f32.tf32.tf32", 16, 0), ("f32.tf32.tf32", 32, 1), ("f32.e4m3.e5m2", 40, 0),
    ("f16.e5m2.e4m3", 16, 0), ("s32.s8.u8", 48, 0), ("s32.u8.s8", 24, 0),
]  # fmt: skip


def launch(
    kernel: Kernel, form: str, n: int, selector: int, read: int | None = None,
    in_registers: bool = False, change: Callable[[np.ndarray], None] | None = None,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """(D as computed, D as it should be)."""
    d, a, b = form.split(".")
    bits, rng = bits_of(a), np.random.default_rng(2)
    stored, full, codes = sparse(rng, bits, a == "u8")
    other = rng.integers(-4, 5, (n, full.shape[1])).astype(float)
    other = np.abs(other) if b == "u8" else other
    image, words = np.zeros(32768, np.uint8), []
    for at, x, name in ((0, stored, a), (16384, other, b)):
        raw, word = k_major(x.astype(TYPES[name]))
        image[at : at + len(raw)] = raw
        words.append(word | at >> 4)
    meta = metadata(codes, bits, selector)
    if change is not None:
        change(meta)
    regs = np.concatenate([fragment_a(stored.astype(TYPES[a]), bits), meta[:, None]], axis=1)
    registers = n // 4 if d == "f16" else n // 2
    tail = ", 1, 1, 0" + ("" if in_registers else ", 0") if bits == 16 else ", 1, 1"
    tail = "" if d == "s32" else tail
    chosen = selector if read is None else read
    text = body(f"m64n{n}k{DEPTH[bits]}.{form}", n, registers, in_registers, chosen, tail)
    out = np.zeros((128, registers), np.uint32)
    kernel(text, PARAMS, target="sm_90a").launch(
        "k", (1, 1, 1), (128, 1, 1), [image, np.ascontiguousarray(regs), out, *words]
    )
    dtype = {"f32": np.float32, "f16": np.float16, "s32": np.int32}[d]
    found = np.zeros((64, n))
    values = out.view(dtype)
    for thread, i in np.ndindex(128, n // 2):
        row = thread // 32 * 16 + thread % 32 // 4 + 8 * (i // 2 % 2)
        found[row, 8 * (i // 4) + thread % 4 * 2 + i % 2] = values[thread, i]
    return found, full @ other.T


@pytest.mark.parametrize("in_registers", [False, True])
@pytest.mark.parametrize(("form", "n", "selector"), CASES)
def test_product(kernel: Kernel, form: str, n: int, selector: int, in_registers: bool) -> None:
    found, wanted = launch(kernel, form, n, selector, in_registers=in_registers)
    np.testing.assert_array_equal(found, wanted)


def _notices(run: Callable[[], tuple[np.ndarray, np.ndarray]]) -> bool:
    try:
        found, wanted = run()
    except SimError as error:
        return error.kind == "bad-metadata"
    return bool((found != wanted).any())


@pytest.mark.parametrize("form", ["f32.f16.f16", "f32.tf32.tf32", "s32.s8.s8"])
def test_wrong_metadata_are_noticed(kernel: Kernel, form: str) -> None:
    """A bit of one thread, two threads exchanged, and the other selector."""
    threads = {"f32.f16.f16": 0, "f32.tf32.tf32": 1, "s32.s8.s8": 2}[form]

    def flip(meta: np.ndarray) -> None:
        meta[64 + threads % 2] ^= np.uint32(1 << 9)

    def swap(meta: np.ndarray) -> None:
        meta[[4, 5]] = meta[[5, 4]]

    for change in (flip, swap):
        assert _notices(lambda change=change: launch(kernel, form, 16, 0, change=change))
    if form != "s32.s8.s8":
        assert _notices(lambda: launch(kernel, form, 16, 0, read=1))


def test_what_does_not_exist(kernel: Kernel) -> None:
    with pytest.raises(SimError, match="selector 1 is too large"):
        launch(kernel, "s32.s8.s8", 16, 0, read=1)
    with pytest.raises(SimError, match="no shape m64n16k16"):
        kernel(
            body("m64n16k16.f32.f16.f16", 16, 8, False, 0, ", 1, 1, 0, 0"), PARAMS, target="sm_90a"
        )
    with pytest.raises(SimError, match=r"no sparse product of \.b1"):
        kernel(body("m64n16k512.s32.b1.b1.and.popc", 16, 8, False, 0, ""), PARAMS, target="sm_90a")
