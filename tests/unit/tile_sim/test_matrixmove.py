"""`ldmatrix`, `stmatrix`, `movmatrix`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tile_sim import Module, SimError

Kernel = Callable[..., Module]
FILL = """
.shared .align 128 .b8 s[2048];
mov.u32 %r1, %tid.x; mov.u32 %r2, s; mov.u32 %r10, %r1;
FILL: setp.ge.u32 %p1, %r10, 512; @%p1 bra FILLED;
shl.b32 %r11, %r10, 2; cvt.u64.u32 %rd1, %r11; add.u64 %rd2, x, %rd1; ld.global.b32 %r13, [%rd2];
add.u32 %r12, %r2, %r11; st.shared.b32 [%r12], %r13; add.u32 %r10, %r10, 32; bra FILL;
FILLED: bar.sync 0;
mul.wide.u32 %rd1, %r1, 4; add.u64 %rd2, rows, %rd1; ld.global.u32 %r20, [%rd2];
add.u32 %r20, %r20, %r2;
"""


def _load(kernel: Kernel, form: str, registers: int, x: np.ndarray, rows: np.ndarray) -> np.ndarray:
    names = [f"%r{30 + i}" for i in range(registers)]
    body = FILL + f"ldmatrix.sync.aligned.{form} {{{', '.join(names)}}}, [%r20];\n"
    body += f"mul.wide.u32 %rd3, %r1, {4 * registers}; add.u64 %rd4, out, %rd3;\n"
    body += "\n".join(f"st.global.b32 [%rd4+{4 * i}], {n};" for i, n in enumerate(names))
    out = np.zeros((32, registers), np.uint32)
    module = kernel(body, "u64 x, u64 rows, u64 out", target="sm_100a")
    module.launch("k", (1, 1, 1), (32, 1, 1), [x, rows, out])
    return out


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("trans", [False, True])
def test_8x8(kernel: Kernel, count: int, trans: bool) -> None:
    rng = np.random.default_rng(1)
    x = rng.integers(0, 2**16, 1024).astype(np.uint16)
    rows = (rng.permutation(128)[:32] * 16).astype(np.uint32)
    form = f"m8n8.x{count}{'.trans' if trans else ''}.shared.b16"
    got = _load(kernel, form, count, x, rows).view(np.uint16).reshape(32, count, 2)
    for k in range(count):
        matrix = np.stack([x[r // 2 : r // 2 + 8] for r in rows[8 * k : 8 * k + 8]])
        matrix = matrix.T if trans else matrix
        for lane in range(32):
            pair = matrix[lane // 4, lane % 4 * 2 : lane % 4 * 2 + 2]
            np.testing.assert_array_equal(got[lane, k], pair)


@pytest.mark.parametrize("count", [1, 2])
def test_16x16_bytes(kernel: Kernel, count: int) -> None:
    """Register h of thread (g, t): rows 4t to 4t + 3 of column g + 8h."""
    rng = np.random.default_rng(2)
    x = rng.integers(0, 256, 2048).astype(np.uint8)
    rows = (rng.permutation(128)[:32] * 16).astype(np.uint32)
    got = _load(kernel, f"m16n16.x{count}.trans.shared.b8", 2 * count, x, rows)
    got = got.view(np.uint8).reshape(32, count, 2, 4)
    for k in range(count):
        matrix = np.stack([x[r : r + 16] for r in rows[16 * k : 16 * k + 16]])
        for lane in range(32):
            g, t = lane // 4, lane % 4
            for h in range(2):
                expected = matrix[4 * t : 4 * t + 4, g + 8 * h].tolist()
                assert got[lane, k, h].tolist() == expected


@pytest.mark.parametrize(("form", "bits"), [("b4x16_p64", 4), ("b6x16_p32", 6)])
def test_narrow_elements_become_bytes(kernel: Kernel, form: str, bits: int) -> None:
    rng = np.random.default_rng(3)
    values = rng.integers(0, 1 << bits, (8, 16))
    x = np.zeros(2048, np.uint8)
    for r in range(8):
        word = sum(int(v) << bits * i for i, v in enumerate(values[r]))
        x[16 * r : 16 * r + 16] = np.frombuffer(word.to_bytes(16, "little"), np.uint8)
    rows = (np.arange(32) % 8 * 16).astype(np.uint32)
    got = _load(kernel, f"m8n16.x1.shared.b8x16.{form}", 1, x, rows)
    np.testing.assert_array_equal(got.view(np.uint8).reshape(8, 16), values)


@pytest.mark.parametrize("form", ["m8n8.x2.shared.b16", "m8n8.x4.trans.shared.b16"])
def test_store_and_load_agree(kernel: Kernel, form: str) -> None:
    count = int(form.split("x")[1][0])
    names = ", ".join(f"%r{40 + i}" for i in range(count))
    body = FILL + "".join(f"mad.lo.u32 %r{40 + i}, %r1, 77, {i * 1000003};\n" for i in range(count))
    body += f"stmatrix.sync.aligned.{form} [%r20], {{{names}}}; bar.warp.sync -1;\n"
    back = ", ".join(f"%r{50 + i}" for i in range(count))
    body += f"ldmatrix.sync.aligned.{form} {{{back}}}, [%r20];\n"
    body += f"mul.wide.u32 %rd3, %r1, {4 * count}; add.u64 %rd4, out, %rd3;\n"
    body += "\n".join(f"st.global.b32 [%rd4+{4 * i}], %r{50 + i};" for i in range(count))
    out = np.zeros((32, count), np.uint32)
    rows = (np.random.default_rng(4).permutation(128)[:32] * 16).astype(np.uint32)
    x = np.zeros(2048, np.uint8)
    kernel(body, "u64 x, u64 rows, u64 out").launch("k", (1, 1, 1), (32, 1, 1), [x, rows, out])
    lane, k = np.arange(32)[:, None], np.arange(count)[None, :]
    np.testing.assert_array_equal(out, lane * 77 + k * 1000003)


def test_bytes_stored_transposed(kernel: Kernel) -> None:
    """Byte b of thread (g, t) goes to row 2t + b % 2, column g + 8 * (b / 2)."""
    x = np.zeros(2048, np.uint8)
    rows = (np.arange(32) * 16).astype(np.uint32)
    body = (
        FILL
        + """
    mul.wide.u32 %rd3, %r1, 4; add.u64 %rd4, frag, %rd3; ld.global.b32 %r40, [%rd4];
    stmatrix.sync.aligned.m16n8.x1.trans.shared.b8 [%r20], {%r40}; bar.warp.sync -1;
    shl.b32 %r41, %r1, 2; add.u32 %r42, %r2, %r41; ld.shared.b32 %r43, [%r42];
    add.u64 %rd5, out, %rd3; st.global.b32 [%rd5], %r43;
    """
    )
    fragment = np.arange(128, dtype=np.uint8).reshape(32, 4)
    out = np.zeros((8, 16), np.uint8)
    module = kernel(body, "u64 x, u64 rows, u64 frag, u64 out", target="sm_100a")
    module.launch("k", (1, 1, 1), (32, 1, 1), [x, rows, fragment, out])
    for lane in range(32):
        for b in range(4):
            assert out[lane % 4 * 2 + b % 2, lane // 4 + 8 * (b // 2)] == fragment[lane, b]


def test_movmatrix(kernel: Kernel) -> None:
    body = """mov.u32 %r1, %tid.x; mul.wide.u32 %rd1, %r1, 4; add.u64 %rd2, x, %rd1;
    ld.global.b32 %r2, [%rd2]; movmatrix.sync.aligned.m8n8.trans.b16 %r3, %r2;
    st.global.b32 [%rd2], %r3;
    """
    x = np.arange(64, dtype=np.uint16).reshape(8, 8)
    expected = x.T.copy()
    kernel(body, "u64 x").launch("k", (1, 1, 1), (32, 1, 1), [x])
    np.testing.assert_array_equal(x, expected)


def test_misaligned_rows(kernel: Kernel) -> None:
    rows = np.full(32, 8, np.uint32)
    with pytest.raises(SimError, match="16-byte"):
        _load(kernel, "m8n8.x1.shared.b16", 1, np.zeros(1024, np.uint16), rows)
