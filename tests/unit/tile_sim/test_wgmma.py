"""`wgmma` against NumPy; shared memory is laid out by an independent model of the ISA."""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest
from tile_sim import Module, SimError

Kernel = Callable[..., Module]
A_AT, B_AT = 1024, 1024 + 32768
SPAN = {"none": 16, "128B": 128, "64B": 64, "32B": 32}
MODE = {"none": 0, "128B": 1, "64B": 2, "32B": 3}


def place(x: np.ndarray, swizzle: str, k_major: bool) -> tuple[np.ndarray, int, int]:
    """An MN x K matrix as the bytes of shared memory, with its LBO and SBO.

    Whole swizzle atoms of 8 lines: along K for K-major, along MN for MN-major, then the next.
    """
    rows = x if k_major else x.T
    raw = np.ascontiguousarray(rows).view(np.uint8)
    lines, width = raw.shape
    span = SPAN[swizzle]
    out = np.zeros(lines * max(width, span), np.uint8)
    columns = -(-width // span)
    for line in range(lines):
        for byte in range(width):
            atom = line // 8 * columns + byte // span
            linear = atom * 8 * span + line % 8 * span + byte % span
            chunk = linear // 16
            if span > 16:
                chunk ^= linear // 128 % (span // 16)
            out[chunk * 16 + linear % 16] = raw[line, byte]
    next_column, next_lines = 8 * span, 8 * span * columns
    if k_major or span > 16:
        return out, next_column, next_lines
    # Without a swizzle the roles are exchanged for MN-major.
    return out, next_lines, next_column


def descriptor(at: int, lbo: int, sbo: int, swizzle: str) -> int:
    return at >> 4 | lbo >> 4 << 16 | sbo >> 4 << 32 | MODE[swizzle] << 62


COPY_IN = """
.shared .align 1024 .b8 buf[65536];
mov.u32 %r1, %tid.x; mov.u32 %r2, buf; mov.u32 %r10, %r1;
FILL: setp.ge.u32 %p1, %r10, 16384; @%p1 bra FILLED;
shl.b32 %r11, %r10, 2; cvt.u64.u32 %rd1, %r11; add.u64 %rd2, image, %rd1;
ld.global.b32 %r13, [%rd2];
add.u32 %r12, %r2, %r11; st.shared.b32 [%r12], %r13; add.u32 %r10, %r10, 128; bra FILL;
FILLED: fence.proxy.async.shared::cta; bar.sync 0;
"""


def program(form: str, n: int, registers: int, tail: str, steps: int = 1, wait: bool = True) -> str:
    """`steps` products into the same accumulators, then the registers of each thread to `out`."""
    names = ", ".join(f"%r{100 + i}" for i in range(registers))
    lines = [COPY_IN, f"mul.wide.u32 %rd10, %r1, {4 * registers}; add.u64 %rd11, acc, %rd10;"]
    lines += [f"ld.global.b32 %r{100 + i}, [%rd11+{4 * i}];" for i in range(registers)]
    lines += ["setp.ne.b32 %p2, scale, 0; mov.b64 %rd20, da; mov.b64 %rd21, db;"]
    lines += ["wgmma.fence.sync.aligned;"]
    for step in range(steps):
        lines += [f"wgmma.mma_async.sync.aligned.{form} {{{names}}}, %rd20, %rd21, %p2{tail};"]
        if step + 1 < steps:
            lines += ["add.u64 %rd20, %rd20, stepa; add.u64 %rd21, %rd21, stepb;"]
            lines += ["setp.eq.b32 %p2, 0, 0;"]
    lines += ["wgmma.commit_group.sync.aligned;"]
    lines += ["wgmma.wait_group.sync.aligned 0;"] if wait else []
    lines += ["add.u64 %rd11, out, %rd10;"]
    lines += [f"st.global.b32 [%rd11+{4 * i}], %r{100 + i};" for i in range(registers)]
    return "\n".join(lines)


PARAMS = "u64 image, u64 acc, u64 out, u64 da, u64 db, u32 scale, u64 stepa, u64 stepb"
TYPES = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "tf32": np.float32,
    "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2, "s8": np.int8, "u8": np.uint8,
}  # fmt: skip


def operand(rng: np.random.Generator, name: str, shape: tuple[int, int]) -> np.ndarray:
    if name in ("s8", "u8"):
        return rng.integers(0, 256, shape).astype(np.uint8).view(TYPES[name])
    x = rng.normal(size=shape).astype(np.float32).astype(TYPES[name])
    if name == "tf32":
        x = (x.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)
    return x


def fragment(matrix: np.ndarray) -> np.ndarray:
    """Accumulators of 64 x N as the registers of 128 threads (before packing), `[128, N / 2]`."""
    n = matrix.shape[1]
    out = np.zeros((128, n // 2), matrix.dtype)
    for thread in range(128):
        for i in range(n // 2):
            row = thread // 32 * 16 + thread % 32 // 4 + 8 * (i // 2 % 2)
            out[thread, i] = matrix[row, 8 * (i // 4) + thread % 4 * 2 + i % 2]
    return out


CASES = [
    ("f32.f16.f16", 16, 16, "128B", True, True), ("f32.f16.f16", 64, 16, "64B", True, True),
    ("f32.bf16.bf16", 8, 16, "32B", True, True), ("f16.f16.f16", 24, 16, "none", True, True),
    ("f32.f16.f16", 64, 16, "128B", False, False), ("f32.bf16.bf16", 128, 16, "64B", False, True),
    ("f32.f16.f16", 32, 16, "32B", True, False), ("f16.f16.f16", 64, 16, "none", False, False),
    ("f32.tf32.tf32", 16, 8, "32B", True, True), ("f32.e4m3.e5m2", 40, 32, "32B", True, True),
    ("f16.e5m2.e4m3", 16, 32, "none", True, True), ("s32.s8.u8", 32, 32, "32B", True, True),
]  # fmt: skip


def _launch(
    kernel: Kernel, form: str, n: int, k: int, a, b, swizzle, major_a, major_b, acc, **options
):
    _, ta, _ = form.split(".")
    tail = ""
    if ta in ("f16", "bf16"):
        tail = f", 1, {options.pop('sign', 1)}, {int(not major_a)}, {int(not major_b)}"
    elif ta not in ("s8", "u8"):
        tail = ", 1, 1"
    image = np.zeros(65536, np.uint8)
    words = []
    for at, x, major in ((0, a, major_a), (32768, b, major_b)):
        raw, lbo, sbo = place(x, swizzle, major)
        image[at : at + len(raw)] = raw
        words.append(descriptor(A_AT + at, lbo, sbo, swizzle))
    start = fragment(acc)
    start = np.ascontiguousarray(start).view(np.uint32)
    out = np.zeros_like(start)
    steps = options.pop("steps", 1)
    wait = options.pop("wait", True)
    scale = options.pop("scale", 1)
    full_form = f"m64n{n}k{k}.{form}"
    module = kernel(program(full_form, n, start.shape[1], tail, steps, wait), PARAMS)
    args = [image, start, out, *words, scale, 2, 2]
    module.launch("k", (1, 1, 1), (128, 1, 1), args, **options)
    return out.view(acc.dtype)


@pytest.mark.parametrize("schedule", ["late", "early"])
@pytest.mark.parametrize(("form", "n", "k", "swizzle", "major_a", "major_b"), CASES)
def test_product(kernel: Kernel, schedule, form, n, k, swizzle, major_a, major_b) -> None:
    rng = np.random.default_rng(1)
    d, ta, tb = form.split(".")
    # MN-major swizzled atoms are as wide as the swizzle: A has 64 rows, B n columns.
    a, b = operand(rng, ta, (64, k)), operand(rng, tb, (n, k))
    dtype = {"f32": np.float32, "f16": np.float16, "s32": np.int32}[d]
    acc = (rng.normal(size=(64, n)) * 4).astype(dtype)
    got = _launch(kernel, form, n, k, a, b, swizzle, major_a, major_b, acc, schedule=schedule)
    exact = a.astype(np.float64) @ b.astype(np.float64).T + acc.astype(np.float64)
    if d == "s32":
        np.testing.assert_array_equal(got, fragment(exact.astype(np.int32)))
    else:
        tolerance = 1e-5 if d == "f32" else 4e-3
        np.testing.assert_allclose(
            got.astype(np.float64), fragment(exact), rtol=tolerance, atol=tolerance
        )


@pytest.mark.parametrize("schedule", ["late", "early", "random"])
def test_steps_along_k_inside_a_swizzle_atom(kernel: Kernel, schedule: str) -> None:
    """The start address moves by 32 bytes inside rows of 128 swizzled bytes; scale-d 0 first."""
    rng = np.random.default_rng(2)
    a, b = operand(rng, "f16", (64, 64)), operand(rng, "f16", (16, 64))
    acc = np.full((64, 16), np.nan, np.float32)
    got = _launch(
        kernel, "f32.f16.f16", 16, 16, a, b, "128B", True, True, acc, steps=4, scale=0,
        schedule=schedule,
    )  # fmt: skip
    exact = a.astype(np.float64) @ b.astype(np.float64).T
    np.testing.assert_allclose(got, fragment(exact), rtol=1e-5, atol=1e-5)


def test_negated_input(kernel: Kernel) -> None:
    rng = np.random.default_rng(3)
    a, b = operand(rng, "f16", (64, 16)), operand(rng, "f16", (16, 16))
    acc = np.zeros((64, 16), np.float32)
    got = _launch(kernel, "f32.f16.f16", 16, 16, a, b, "32B", True, True, acc, sign=-1)
    np.testing.assert_allclose(got, fragment(-(a.astype(np.float64) @ b.T)), rtol=1e-3, atol=1e-2)


def test_a_missing_wait_spoils_the_result(kernel: Kernel) -> None:
    rng = np.random.default_rng(4)
    a, b = operand(rng, "f16", (64, 16)), operand(rng, "f16", (16, 16))
    acc = np.zeros((64, 16), np.float32)
    got = _launch(kernel, "f32.f16.f16", 16, 16, a, b, "32B", True, True, acc, wait=False)
    assert np.isnan(got).all()


def test_a_wrong_swizzle_spoils_the_result(kernel: Kernel) -> None:
    rng = np.random.default_rng(5)
    a, b = operand(rng, "f16", (64, 64)), operand(rng, "f16", (16, 64))
    image = np.zeros(65536, np.uint8)
    for at, x in ((0, a), (32768, b)):
        raw = place(x, "128B", True)[0]
        image[at : at + len(raw)] = raw
    text = program("m64n16k16.f32.f16.f16", 16, 8, ", 1, 1, 0, 0")
    outs = []
    for swizzle in ("128B", "64B"):
        acc, out = np.zeros((128, 8), np.float32), np.zeros((128, 8), np.float32)
        words = [descriptor(A_AT + at, 16, 1024, swizzle) for at in (0, 32768)]
        kernel(text, PARAMS).launch("k", (1, 1, 1), (128, 1, 1), [image, acc, out, *words, 0, 0, 0])
        outs.append(out)
    exact = fragment(a[:, :16].astype(np.float64) @ b[:, :16].astype(np.float64).T)
    np.testing.assert_allclose(outs[0], exact, rtol=1e-4, atol=1e-4)
    assert not np.allclose(outs[1], exact, atol=1e-1)


def test_reserved_descriptor_bits(kernel: Kernel) -> None:
    text = program("m64n16k16.f32.f16.f16", 16, 8, ", 1, 1, 0, 0")
    acc, image = np.zeros((128, 8), np.float32), np.zeros(65536, np.uint8)
    word = descriptor(A_AT, 16, 1024, "128B") | 1 << 46
    with pytest.raises(SimError, match="reserved bits"):
        kernel(text, PARAMS).launch(
            "k", (1, 1, 1), (128, 1, 1), [image, acc, acc, word, word, 0, 0, 0]
        )


def test_a_in_registers(kernel: Kernel) -> None:
    rng = np.random.default_rng(6)
    a, b = operand(rng, "bf16", (64, 16)), operand(rng, "bf16", (16, 16))
    fa = np.zeros((128, 8), np.uint16)
    for thread in range(128):
        for i in range(8):
            row = thread // 32 * 16 + thread % 32 // 4 + (0 if i % 4 < 2 else 8)
            fa[thread, i] = a.view(np.uint16)[row, thread % 4 * 2 + i % 2 + (8 if i >= 4 else 0)]
    text = program("m64n16k16.f32.bf16.bf16", 16, 8, ", 1, 1, 0")
    load = """mul.wide.u32 %rd30, %r1, 16; add.u64 %rd31, da, %rd30;
    ld.global.v4.b32 {%r50, %r51, %r52, %r53}, [%rd31];
    wgmma.fence"""
    text = text.replace("wgmma.fence", load, 1).replace(
        "}, %rd20, ", "}, {%r50, %r51, %r52, %r53}, "
    )
    image = np.zeros(65536, np.uint8)
    raw, lbo, sbo = place(b, "32B", True)
    image[32768 : 32768 + len(raw)] = raw
    acc, out = np.zeros((128, 8), np.float32), np.zeros((128, 8), np.float32)
    word = descriptor(B_AT, lbo, sbo, "32B")
    kernel(text, PARAMS).launch("k", (1, 1, 1), (128, 1, 1), [image, acc, out, fa, word, 0, 0, 0])
    exact = a.astype(np.float64) @ b.astype(np.float64).T
    np.testing.assert_allclose(out, fragment(exact), rtol=1e-4, atol=1e-4)


APART = """
{ .reg .pred %q; mov.u32 %r91, %ctaid.x; and.b32 %r91, %r91, 1; setp.eq.u32 %q, %r91, 0;
@!%q bra ODD; wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0; ODD: }
"""


def test_warpgroups_that_issue_together_at_different_states(kernel: Kernel) -> None:
    """Under `random` the product before may be done for some CTAs of a wave and not for others."""
    rng = np.random.default_rng(3)
    steps, k = 6, 16
    x, y = (rng.normal(size=(r, steps * k)).astype(np.float16) for r in (64, 16))
    image = np.zeros(65536, np.uint8)
    raw_a, lbo_a, sbo_a = place(x, "none", True)
    raw_b, lbo_b, sbo_b = place(y, "none", True)
    image[: len(raw_a)], image[B_AT - A_AT :][: len(raw_b)] = raw_a, raw_b
    per = 8
    text = program("m64n16k16.f32.f16.f16", 16, per, ", 1, 1, 0, 0", steps)
    # Each CTA stores to its own place.
    text = text.replace(
        "add.u64 %rd11, out, %rd10;",
        f"mov.u32 %r90, %ctaid.x; mul.wide.u32 %rd12, %r90, {128 * per * 4}; "
        "add.u64 %rd11, out, %rd10; add.u64 %rd11, %rd11, %rd12;",
    )
    # Between products the CTAs go different ways, so that they do not always run together.
    text = text.replace("setp.eq.b32 %p2, 0, 0;", "setp.eq.b32 %p2, 0, 0;" + APART, 2)
    module = kernel(text, PARAMS)
    expected = fragment((x.astype("f4") @ y.astype("f4").T).astype("f4"))
    for seed in range(12):
        acc, out = np.zeros((128, per), np.float32), np.zeros((4, 128, per), np.float32)
        arguments = [
            image, acc, out, descriptor(A_AT, lbo_a, sbo_a, "none"),
            descriptor(B_AT, lbo_b, sbo_b, "none"), 0, 2 * lbo_a >> 4, 2 * lbo_b >> 4,
        ]  # fmt: skip
        module.launch("k", (4, 1, 1), (128, 1, 1), arguments, schedule="random", seed=seed)
        np.testing.assert_allclose(out, np.broadcast_to(expected, out.shape), atol=2e-2)
