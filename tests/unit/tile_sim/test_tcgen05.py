"""`tcgen05` against NumPy: operands placed in shared memory by hand, results read back."""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest
from tile_sim import Module, SimError

Kernel = Callable[..., Module]
BASE = 1024
TYPES = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "tf32": np.float32,
    "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2, "e2m3": ml_dtypes.float6_e2m3fn,
    "e3m2": ml_dtypes.float6_e3m2fn, "e2m1": ml_dtypes.float4_e2m1fn, "s8": np.int8, "u8": np.uint8,
}  # fmt: skip
CODE = {
    "f16": 0, "bf16": 1, "tf32": 2, "e4m3": 0, "e5m2": 1, "e2m3": 3, "e3m2": 4, "e2m1": 5, "u8": 0,
    "s8": 1,
}  # fmt: skip


def bytes_of(x: np.ndarray, name: str, packed: bool) -> np.ndarray:
    """The rows of a K-major operand as bytes; 6- and 4-bit types in 16-byte groups, or packed."""
    raw = x.view(np.uint8).reshape(x.shape[0], -1)
    if name not in ("e2m3", "e3m2", "e2m1"):
        return raw
    width = 4 if name == "e2m1" else 6
    if packed:
        return raw[:, 0::2] | raw[:, 1::2] << 4
    out = np.zeros_like(raw)
    for group in range(0, raw.shape[1], 16):
        for row in range(len(raw)):
            word = sum(int(v) << (width * i) for i, v in enumerate(raw[row, group : group + 16]))
            out[row, group : group + 16] = np.frombuffer(word.to_bytes(16, "little"), np.uint8)
    return out


def k_major(rows: np.ndarray, span: int) -> tuple[np.ndarray, int]:
    """Rows of 32 bytes in 8-row atoms of `span` swizzled bytes; the bytes and the SBO."""
    lines = len(rows)
    out = np.zeros(lines * span, np.uint8)
    for r in range(lines):
        for b in range(rows.shape[1]):
            linear = r * span + b
            chunk = linear // 16 ^ (linear // 128 % (span // 16))
            out[chunk * 16 + linear % 16] = rows[r, b]
    return out, 8 * span


def smem_descriptor(at: int, lbo: int, sbo: int, span: int) -> int:
    mode = {16: 0, 128: 2, 64: 4, 32: 6}[span]
    return at >> 4 | lbo >> 4 << 16 | sbo >> 4 << 32 | 1 << 46 | mode << 61


def idesc(a: str, b: str, d: str, m: int, n: int, packed: bool = False) -> int:
    code_a, code_b = (1, 1) if packed else (CODE[a], CODE[b])
    return (
        {"f16": 0, "f32": 1, "s32": 2}[d] << 4
        | code_a << 7
        | code_b << 10
        | n // 8 << 17
        | m // 16 << 24
    )


START = """
.shared .align 1024 .b8 buf[65536];
.shared .align 8 .b64 bar;
.shared .align 4 .b32 taddr;
mov.u32 %r1, %tid.x; shr.u32 %r5, %r1, 5; setp.eq.u32 %p1, %r1, 0; setp.eq.u32 %p2, %r5, 0;
mov.u32 %r2, buf; mov.u32 %r3, bar; mov.u32 %r4, taddr; mov.u32 %r10, %r1;
mov.u32 %r30, %cluster_ctarank; mul.wide.u32 %rd30, %r30, 65536; add.u64 image, image, %rd30;
FILL: setp.ge.u32 %p3, %r10, 16384; @%p3 bra FILLED;
shl.b32 %r11, %r10, 2; cvt.u64.u32 %rd1, %r11; add.u64 %rd2, image, %rd1;
ld.global.b32 %r13, [%rd2];
add.u32 %r12, %r2, %r11; st.shared.b32 [%r12], %r13; add.u32 %r10, %r10, 128; bra FILL;
FILLED: fence.proxy.async.shared::cta;
@%p1 mbarrier.init.shared.b64 [%r3], 1;
@%p2 tcgen05.alloc.cta_group::GROUP.sync.aligned.shared::cta.b32 [%r4], 512;
barrier.cluster.arrive; barrier.cluster.wait;
tcgen05.fence::after_thread_sync;
ld.shared.b32 %r6, [%r4]; add.u32 %r7, %r6, 256; add.u32 %r8, %r6, 264; add.u32 %r9, %r6, 128;
"""
FINISH = """
WAIT: mbarrier.try_wait.parity.shared.b64 %p5, [%r3], 0; @!%p5 bra WAIT;
tcgen05.fence::after_thread_sync;
shl.b32 %r20, %r5, 21; add.u32 %r21, %r6, %r20; mov.u32 %r22, 0;
mul.lo.u32 %r23, %r30, 128; add.u32 %r23, %r23, %r1; mul.wide.u32 %rd3, %r23, WIDTH;
add.u64 %rd4, out, %rd3;
READ: tcgen05.ld.sync.aligned.32x32b.x8.b32
    {%r100,%r101,%r102,%r103,%r104,%r105,%r106,%r107}, [%r21];
tcgen05.wait::ld.sync.aligned;
st.global.v4.b32 [%rd4], {%r100,%r101,%r102,%r103};
st.global.v4.b32 [%rd4+16], {%r104,%r105,%r106,%r107};
add.u64 %rd4, %rd4, 32; add.u32 %r21, %r21, 8; add.u32 %r22, %r22, 32;
setp.lt.u32 %p6, %r22, WIDTH; @%p6 bra READ;
tcgen05.fence::before_thread_sync;
barrier.cluster.arrive; barrier.cluster.wait;
@%p2 tcgen05.dealloc.cta_group::GROUP.sync.aligned.b32 %r6, 512;
"""
PARAMS = "u64 image, u64 out, u64 da, u64 db, u32 idesc"


def program(issue: str, n: int, group: int = 1) -> str:
    text = START + issue + FINISH
    return text.replace("GROUP", str(group)).replace("WIDTH", str(4 * n))


def product(kind: str, tail: str = "", group: int = 1, extra: str = "") -> str:
    return f"""
    setp.eq.u32 %p7, %r30, 0; and.pred %p8, %p1, %p7;
    @!%p8 bra ISSUED;
    setp.ne.u32 %p4, 0, 0;
    tcgen05.mma.cta_group::{group}.kind::{kind} [%r6], da, db, idesc{tail}, %p4;
    {extra}
    tcgen05.commit.cta_group::{group}.mbarrier::arrive::one.shared::cluster.b64 [%r3];
    ISSUED:
    """


def operand(rng: np.random.Generator, name: str, shape: tuple[int, int]) -> np.ndarray:
    if name in ("s8", "u8"):
        return rng.integers(0, 256, shape).astype(np.uint8).view(TYPES[name])
    x = rng.normal(size=shape).astype(np.float32).astype(TYPES[name])
    return (x.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32) if name == "tf32" else x


CASES = [
    ("f16", "f16", "f16", "f32", 128, 64, 128), ("f16", "bf16", "bf16", "f32", 64, 32, 64),
    ("f16", "f16", "f16", "f16", 128, 16, 32), ("tf32", "tf32", "tf32", "f32", 128, 32, 32),
    ("f8f6f4", "e4m3", "e5m2", "f32", 128, 16, 16), ("f8f6f4", "e2m1", "e3m2", "f32", 64, 16, 128),
    ("f8f6f4", "e2m3", "e4m3", "f16", 128, 16, 32), ("i8", "s8", "u8", "s32", 128, 48, 32),
]  # fmt: skip


def _image(a_rows: np.ndarray, b_rows: np.ndarray, span: int) -> tuple[np.ndarray, int, int]:
    image = np.zeros(65536, np.uint8)
    words = []
    for at, rows in ((0, a_rows), (32768, b_rows)):
        if span == 16:
            # Two chunks of 16 bytes: each column of 8x16 cores is contiguous.
            cores = rows.reshape(-1, 8, 2, 16).transpose(2, 0, 1, 3).reshape(-1)
            raw, lbo, sbo = cores, len(rows) * 16, 128
        else:
            (raw, sbo), lbo = k_major(rows, span), 16
        image[at : at + len(raw)] = raw
        words.append(smem_descriptor(BASE + at, lbo, sbo, span))
    return image, words[0], words[1]


@pytest.mark.parametrize("schedule", ["late", "early", "random"])
@pytest.mark.parametrize(("kind", "a", "b", "d", "m", "n", "span"), CASES)
def test_product(kernel: Kernel, schedule, kind, a, b, d, m, n, span) -> None:
    rng = np.random.default_rng(1)
    k = {"tf32": 8, "f16": 16}.get(kind, 32)
    x, y = operand(rng, a, (m, k)), operand(rng, b, (n, k))
    image, da, db = _image(bytes_of(x, a, False), bytes_of(y, b, False), span)
    width = 8 * -(-n // 8)
    module = kernel(program(product(kind), width), PARAMS, target="sm_100a")
    out = np.zeros((128, width), np.uint32)
    if m == 64:
        # Lanes 16-31 of each quarter are never written: only the others may be read.
        text = program(product(kind), width).replace("32x32b.x8", "16x64b.x8")
        text = text.replace(
            "add.u32 %r21, %r21, 8; add.u32 %r22, %r22, 32",
            "add.u32 %r21, %r21, 16; add.u32 %r22, %r22, 64",
        )
        module = kernel(text, PARAMS)
    args = [image, out, da, db, idesc(a, b, d, m, n)]
    module.launch("k", (1, 1, 1), (128, 1, 1), args, schedule=schedule, seed=2)
    if m == 64:
        out = _from_16x64b(out, n)
    exact = x.astype(np.float64) @ y.astype(np.float64).T
    if d == "s32":
        np.testing.assert_array_equal(out[:m, :n].view(np.int32), exact)
    elif d == "f16":
        got = (out[:m, :n] & 0xFFFF).astype(np.uint16).view(np.float16)
        np.testing.assert_allclose(got, exact, rtol=2e-3, atol=2e-3)
    else:
        got = np.ascontiguousarray(out[:m, :n]).view(np.float32)
        np.testing.assert_allclose(got, exact, rtol=1e-5, atol=1e-5)


def _from_16x64b(out: np.ndarray, n: int) -> np.ndarray:
    """Steps of 8 registers that each cover 16 columns of 16 lanes."""
    matrix = np.zeros((64, n), np.uint32)
    for thread in range(128):
        lane = thread % 32
        for register in range(8):
            for step in range(n // 16):
                row = thread // 32 * 16 + lane // 4 + 8 * (lane % 2)
                column = 16 * step + lane // 2 % 2 + 2 * register
                matrix[row, column] = out[thread, 8 * step + register]
    return matrix


def test_two_steps_and_accumulation(kernel: Kernel) -> None:
    rng = np.random.default_rng(3)
    x, y = operand(rng, "f16", (128, 32)), operand(rng, "f16", (16, 32))
    image, da, db = _image(x.view(np.uint8), y.view(np.uint8), 64)
    more = """add.u64 da, da, 2; add.u64 db, db, 2; setp.eq.u32 %p4, 0, 0;
    tcgen05.mma.cta_group::1.kind::f16 [%r6], da, db, idesc, %p4;"""
    module = kernel(program(product("f16", extra=more), 16), PARAMS)
    out = np.zeros((128, 16), np.float32)
    args = [image, out, da, db, idesc("f16", "f16", "f32", 128, 16)]
    module.launch("k", (1, 1, 1), (128, 1, 1), args)
    np.testing.assert_allclose(
        out, x.astype(np.float64) @ y.T.astype(np.float64), rtol=1e-4, atol=1e-4
    )


@pytest.mark.parametrize(("m", "schedule"), [(256, "late"), (256, "random"), (128, "late")])
def test_pair_of_ctas(kernel: Kernel, m: int, schedule: str) -> None:
    """Each CTA holds half the rows of A and half the columns of B."""
    rng = np.random.default_rng(4)
    n = 32
    x, y = operand(rng, "bf16", (m, 16)), operand(rng, "bf16", (n, 16))
    image, words = np.zeros((2, 65536), np.uint8), (0, 0)
    for cta in range(2):
        halves = (x[cta * m // 2 :][: m // 2], y[cta * n // 2 :][: n // 2])
        a_rows, b_rows = (np.ascontiguousarray(half).view(np.uint8) for half in halves)
        image[cta], *words = _image(a_rows, b_rows, 32)
    commit = "mbarrier::arrive::one.shared::cluster"
    text = program(product("f16", group=2), n, 2)
    text = text.replace(f"{commit}.b64 [%r3]", f"{commit}.multicast::cluster.b64 [%r3], 3")
    out = np.zeros((2, 128, n), np.float32)
    if m == 128:
        # Only half of the columns exist: the upper lanes hold the others.
        text = text.replace(f"setp.lt.u32 %p6, %r22, {4 * n}", f"setp.lt.u32 %p6, %r22, {2 * n}")
    module = kernel(text, PARAMS, target="sm_100a")
    args = [image, out, *words, idesc("bf16", "bf16", "f32", m, n)]
    module.launch("k", (2, 1, 1), (128, 1, 1), args, cluster=(2, 1, 1), schedule=schedule)
    exact = x.astype(np.float64) @ y.astype(np.float64).T
    if m == 256:
        np.testing.assert_allclose(out.reshape(256, n), exact, rtol=1e-5, atol=1e-5)
    else:
        halves = out[:, :, : n // 2].reshape(2, 2, 64, n // 2)
        got = halves.transpose(0, 2, 1, 3).reshape(128, n)
        np.testing.assert_allclose(got, exact, rtol=1e-5, atol=1e-5)


SCALED = [
    ("mxf8f6f4", "e4m3", "e2m1", "ue8m0", "", 1, 2), ("mxf4", "e2m1", "e2m1", "ue8m0", "", 2, 0),
    ("mxf4nvf4", "e2m1", "e2m1", "ue4m3", ".scale_vec::4X", 4, 0),
    ("mxf4nvf4", "e2m1", "e2m1", "ue8m0", ".block32", 2, 2),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "a", "b", "scale", "word", "blocks", "first"), SCALED)
def test_block_scaled(kernel: Kernel, kind, a, b, scale, word, blocks, first) -> None:
    """The factors come by `tcgen05.cp` from shared memory to columns behind the accumulators."""
    rng = np.random.default_rng(5)
    m, n, packed = 128, 32, kind != "mxf8f6f4"
    k = 64 if packed else 32
    x, y = operand(rng, a, (m, k)), operand(rng, b, (n, k))
    image, da, db = _image(bytes_of(x, a, packed), bytes_of(y, b, packed), 32)
    low, high = (122, 132) if scale == "ue8m0" else (0x30, 0x48)
    fa, fb = (rng.integers(low, high, (rows, blocks)).astype(np.uint8) for rows in (m, n))
    for at, factors in ((16384, fa), (49152, fb)):
        # Lane r % 32, column r / 32, bytes from the id: 32 lanes of 16 bytes.
        grid = np.full((32, 4, 4), low, np.uint8)
        for r in range(len(factors)):
            grid[r % 32, r // 32, first : first + blocks] = factors[r]
        image[at : at + 512] = grid.reshape(-1)
    copies = [smem_descriptor(BASE + at, 128, 128, 16) for at in (16384, 49152)]
    issue = f"""
    mov.b64 %rd20, {copies[0]}; mov.b64 %rd21, {copies[1]};
    @%p1 tcgen05.cp.cta_group::1.32x128b.warpx4 [%r7], %rd20;
    @%p1 tcgen05.cp.cta_group::1.32x128b.warpx4 [%r8], %rd21;
    """ + product(f"{kind}.block_scale{word}", ", [%r7], [%r8]")
    code = idesc(a, b, "f16", m, n, packed) | first << 29 | first << 4 | (scale == "ue8m0") << 23
    out = np.zeros((m, n), np.float32)
    module = kernel(program(issue, n), PARAMS, target="sm_100a")
    module.launch("k", (1, 1, 1), (128, 1, 1), [image, out, da, db, code])
    dtype = {"ue8m0": ml_dtypes.float8_e8m0fnu, "ue4m3": ml_dtypes.float8_e4m3fn}[scale]
    sx, sy = (np.repeat(f.view(dtype).astype(np.float64), k // blocks, axis=1) for f in (fa, fb))
    exact = (x.astype(np.float64) * sx) @ (y.astype(np.float64) * sy).T
    np.testing.assert_allclose(out, exact, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("schedule", ["late", "early", "random"])
@pytest.mark.parametrize("overwritten", [False, True])
def test_operand_a_in_tensor_memory(kernel: Kernel, overwritten: bool, schedule: str) -> None:
    """The next product of the thread may write where this one reads A: they happen in order."""
    rng = np.random.default_rng(6)
    x, y = operand(rng, "f16", (128, 16)), operand(rng, "f16", (16, 16))
    image, _, db = _image(x.view(np.uint8), y.view(np.uint8), 32)
    put = """
    mul.wide.u32 %rd5, %r1, 32; add.u64 %rd6, da, %rd5; shl.b32 %r40, %r5, 21;
    add.u32 %r41, %r9, %r40;
    ld.global.v4.b32 {%r50,%r51,%r52,%r53}, [%rd6];
    ld.global.v4.b32 {%r54,%r55,%r56,%r57}, [%rd6+16];
    tcgen05.st.sync.aligned.32x32b.x8.b32 [%r41], {%r50,%r51,%r52,%r53,%r54,%r55,%r56,%r57};
    add.u32 %r42, %r7, %r40;
    tcgen05.st.sync.aligned.32x32b.x8.b32 [%r42], {%r50,%r51,%r52,%r53,%r54,%r55,%r56,%r57};
    tcgen05.wait::st.sync.aligned; tcgen05.fence::before_thread_sync; bar.sync 0;
    tcgen05.fence::after_thread_sync;
    """
    over = "tcgen05.mma.cta_group::1.kind::f16 [%r9], [%r7], db, idesc, %p4;" if overwritten else ""
    text = program(put + product("f16", extra=over).replace("[%r6], da", "[%r6], [%r9]"), 16)
    out = np.zeros((128, 16), np.float32)
    args = [image, out, x, db, idesc("f16", "f16", "f32", 128, 16)]
    kernel(text, PARAMS).launch("k", (1, 1, 1), (128, 1, 1), args, schedule=schedule)
    np.testing.assert_allclose(
        out, x.astype(np.float64) @ y.T.astype(np.float64), rtol=1e-4, atol=1e-4
    )


SHAPES = [("32x32b", 8, 1), ("16x64b", 4, 1), ("16x128b", 2, 2), ("16x256b", 2, 4)]


@pytest.mark.parametrize(("shape", "repeat", "per"), SHAPES)
def test_load_and_store_shapes_agree(kernel: Kernel, shape: str, repeat: int, per: int) -> None:
    """Stored row by row, read in each shape by the tables of the ISA."""
    x = np.arange(128 * 16, dtype=np.uint32).reshape(128, 16)
    registers = [f"%r{200 + i}" for i in range(repeat * per)]
    body = """
    .shared .align 4 .b32 taddr;
    mov.u32 %r1, %tid.x; shr.u32 %r5, %r1, 5; setp.eq.u32 %p2, %r5, 0; mov.u32 %r4, taddr;
    @%p2 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r4], 32;
    bar.sync 0; ld.shared.b32 %r6, [%r4]; shl.b32 %r7, %r5, 21; add.u32 %r6, %r6, %r7;
    mul.wide.u32 %rd1, %r1, 64; add.u64 %rd2, x, %rd1;
    """
    names = [f"%r{100 + i}" for i in range(16)]
    body += "".join(f"ld.global.b32 {r}, [%rd2+{4 * i}];\n" for i, r in enumerate(names))
    body += f"tcgen05.st.sync.aligned.32x32b.x16.b32 [%r6], {{{', '.join(names)}}};\n"
    body += "tcgen05.wait::st.sync.aligned;\n"
    body += f"tcgen05.ld.sync.aligned.{shape}.x{repeat}.b32 {{{', '.join(registers)}}}, [%r6];\n"
    body += f"tcgen05.wait::ld.sync.aligned; mul.wide.u32 %rd3, %r1, {4 * len(registers)};\n"
    body += "add.u64 %rd4, y, %rd3;\n"
    body += "".join(f"st.global.b32 [%rd4+{4 * i}], {r};\n" for i, r in enumerate(registers))
    body += "bar.sync 0;\n@%p2 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r6, 32;"
    y = np.zeros((128, len(registers)), np.uint32)
    kernel(body, "u64 x, u64 y").launch("k", (1, 1, 1), (128, 1, 1), [x, y])
    for thread in range(128):
        t, warp = thread % 32, thread // 32 * 32
        for i in range(len(registers)):
            place = {
                "32x32b": (t, i),
                "16x64b": (t // 4 + 8 * (t & 1), (t >> 1 & 1) + 2 * i),
                "16x128b": (t // 4 + 8 * (i & 1), t % 4 + 4 * (i // 2)),
                "16x256b": (t // 4 + 8 * (i // 2 & 1), t % 4 * 2 + (i & 1) + 8 * (i // 4)),
            }[shape]
            assert y[thread, i] == x[warp + place[0], place[1]]


def _broken(kernel: Kernel, old: str, new: str) -> SimError:
    rng = np.random.default_rng(7)
    x, y = operand(rng, "f16", (128, 16)), operand(rng, "f16", (16, 16))
    image, da, db = _image(x.view(np.uint8), y.view(np.uint8), 32)
    text = program(product("f16"), 16)
    assert old in text
    module = kernel(text.replace(old, new), PARAMS)
    args = [image, np.zeros((128, 16), np.float32), da, db, idesc("f16", "f16", "f32", 128, 16)]
    with pytest.raises(SimError) as caught:
        module.launch("k", (1, 1, 1), (128, 1, 1), args)
    return caught.value


def test_planted_errors(kernel: Kernel) -> None:
    assert _broken(kernel, "@!%p5 bra WAIT;", "").kind == "pending"
    assert _broken(kernel, "shl.b32 %r20, %r5, 21", "shl.b32 %r20, %r5, 20").kind == "tmem"
    assert _broken(kernel, "[%r4], 512;", "[%r4], 48;").kind == "tmem"
    assert (
        _broken(
            kernel,
            "tcgen05.mma.cta_group::1.kind::f16 [%r6]",
            "mov.b32 %r6, 520; tcgen05.mma.cta_group::1.kind::f16 [%r6]",
        ).kind
        == "tmem"
    )
    lost = _broken(kernel, "tcgen05.commit.cta_group::1", "//")
    assert lost.kind == "deadlock"
    assert "mbarrier.try_wait" in str(lost)


def test_a_commit_with_an_empty_mask_signals_nobody(kernel: Kernel) -> None:
    commit = "mbarrier::arrive::one.shared::cluster"
    lost = _broken(kernel, f"{commit}.b64 [%r3]", f"{commit}.multicast::cluster.b64 [%r3], 0")
    assert lost.kind == "deadlock"


@pytest.mark.parametrize("schedule", ["late", "early", "random"])
def test_loads_that_are_used_before_the_wait(kernel: Kernel, schedule: str) -> None:
    """The value is right, as hardware guards registers; check mode reports the missing wait."""
    rng = np.random.default_rng(7)
    x, y = operand(rng, "f16", (128, 16)), operand(rng, "f16", (16, 16))
    image, da, db = _image(x.view(np.uint8), y.view(np.uint8), 32)
    text = program(product("f16"), 16)
    init = "mbarrier.init.shared.b64 [%r3], 1;"
    text = text.replace(init, f"{init} fence.mbarrier_init.release.cluster;")
    for waits in (True, False):
        module = kernel(text if waits else text.replace("tcgen05.wait::ld", "// "), PARAMS)
        out = np.zeros((128, 16), np.float32)
        args = [image, out, da, db, idesc("f16", "f16", "f32", 128, 16)]
        for strict in (True, False):
            report = module.launch(
                "k", (1, 1, 1), (128, 1, 1), args, schedule=schedule, check=True, strict=strict
            )
            found = {finding.kind for finding in report.findings}
            assert found == ({"missing-load-wait"} if strict and not waits else set())
            np.testing.assert_allclose(out, x.astype("f4") @ y.astype("f4").T, atol=1e-3)
