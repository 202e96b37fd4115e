"""A kernel that fills tensor memory, runs some `tcgen05` instructions, and gives all of it back.

So that a test compares whole images of tensor memory, what must not change included.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np

SHARED_AT = 1024
TYPES = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "tf32": np.float32,
    "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2, "e2m3": ml_dtypes.float6_e2m3fn,
    "e3m2": ml_dtypes.float6_e3m2fn, "e2m1": ml_dtypes.float4_e2m1fn, "s8": np.int8, "u8": np.uint8,
}  # fmt: skip
CODES = {
    "f16": 0, "bf16": 1, "tf32": 2, "e4m3": 0, "e5m2": 1, "e2m3": 3, "e3m2": 4, "e2m1": 5, "u8": 0,
    "s8": 1,
}  # fmt: skip
PARAMS = "u64 image, u64 start, u64 out"
EIGHT = ", ".join(f"%r{100 + i}" for i in range(8))

TEXT = """
.shared .align 1024 .b8 buf[ROOM];
.shared .align 8 .b64 bar;
.shared .align 4 .b32 taddr;
mov.u32 %r1, %tid.x; shr.u32 %r5, %r1, 5; setp.eq.u32 %p1, %r1, 0; setp.eq.u32 %p2, %r5, 0;
mov.u32 %r2, buf; mov.u32 %r3, bar; mov.u32 %r4, taddr; mov.u32 %r10, %r1;
mov.u32 %r30, %cluster_ctarank; mul.wide.u32 %rd30, %r30, ROOM; add.u64 image, image, %rd30;
FILL: setp.ge.u32 %p3, %r10, PIECES; @%p3 bra FILLED;
shl.b32 %r11, %r10, 4; cvt.u64.u32 %rd1, %r11; add.u64 %rd2, image, %rd1;
ld.global.v4.b32 {%r13, %r14, %r15, %r16}, [%rd2]; add.u32 %r12, %r2, %r11;
st.shared.v4.b32 [%r12], {%r13, %r14, %r15, %r16}; add.u32 %r10, %r10, 128; bra FILL;
FILLED: fence.proxy.async.shared::cta;
@%p1 mbarrier.init.shared.b64 [%r3], 1;
@%p2 tcgen05.alloc.cta_group::GROUP.sync.aligned.shared::cta.b32 [%r4], 512;
barrier.cluster.arrive; barrier.cluster.wait;
tcgen05.fence::after_thread_sync;
ld.shared.b32 %r6, [%r4]; shl.b32 %r20, %r5, 21; add.u32 %r21, %r6, %r20; mov.u32 %r22, 0;
mul.lo.u32 %r23, %r30, 128; add.u32 %r23, %r23, %r1; mul.wide.u32 %rd3, %r23, WIDTH;
add.u64 %rd4, start, %rd3; add.u64 %rd5, out, %rd3;
STORE: ld.global.v4.b32 {%r100,%r101,%r102,%r103}, [%rd4];
ld.global.v4.b32 {%r104,%r105,%r106,%r107}, [%rd4+16];
tcgen05.st.sync.aligned.32x32b.x8.b32 [%r21], {EIGHT};
add.u64 %rd4, %rd4, 32; add.u32 %r21, %r21, 8; add.u32 %r22, %r22, 32;
setp.lt.u32 %p6, %r22, WIDTH; @%p6 bra STORE;
tcgen05.wait::st.sync.aligned; tcgen05.fence::before_thread_sync;
barrier.cluster.arrive; barrier.cluster.wait; tcgen05.fence::after_thread_sync;
setp.eq.u32 %p7, %r30, 0; and.pred %p8, %p1, %p7; @!%p8 bra ISSUED;
shr.u32 %r7, %r2, 4; cvt.u64.u32 %rd20, %r7; setp.ne.u32 %p4, 0, 0; setp.eq.u32 %p9, 0, 0;
ISSUE
tcgen05.commit.cta_group::GROUP.mbarrier::arrive::one.shared::clusterMULTICAST.b64 [%r3]MASK;
ISSUED:
WAIT: mbarrier.try_wait.parity.shared.b64 %p5, [%r3], 0; @!%p5 bra WAIT;
tcgen05.fence::after_thread_sync;
add.u32 %r21, %r6, %r20; mov.u32 %r22, 0;
READ: tcgen05.ld.sync.aligned.32x32b.x8.b32 {EIGHT}, [%r21];
tcgen05.wait::ld.sync.aligned;
st.global.v4.b32 [%rd5], {%r100,%r101,%r102,%r103};
st.global.v4.b32 [%rd5+16], {%r104,%r105,%r106,%r107};
add.u64 %rd5, %rd5, 32; add.u32 %r21, %r21, 8; add.u32 %r22, %r22, 32;
setp.lt.u32 %p6, %r22, WIDTH; @%p6 bra READ;
tcgen05.fence::before_thread_sync;
barrier.cluster.arrive; barrier.cluster.wait;
@%p2 tcgen05.dealloc.cta_group::GROUP.sync.aligned.b32 %r6, 512;
"""


def text(issue: str, columns: int, room: int, group: int = 1) -> str:
    """The body of a kernel; `issue` may use %r6 (tensor memory), %rd20 (the buffer / 16), %p4
    (false) and %p9 (true)."""
    multicast = (".multicast::cluster", ", 3") if group == 2 else ("", "")
    parts = {
        "ISSUE\n": issue + "\n", "GROUP": group, "WIDTH": 4 * columns, "ROOM": room,
        "PIECES": room // 16, "EIGHT": EIGHT, "MULTICAST": multicast[0], "MASK": multicast[1],
    }  # fmt: skip
    body = TEXT
    for name, value in parts.items():
        body = body.replace(name, str(value))
    return body


def garbage(ctas: int, columns: int) -> np.ndarray:
    """Tensor memory with distinct words `[ctas, 128, columns]`."""
    rng = np.random.default_rng(99)
    return rng.integers(0, 1 << 32, (ctas, 128, columns), np.uint32)


def rows_as_bytes(x: np.ndarray, name: str, container: str) -> np.ndarray:
    """Rows as bytes: 6- and 4-bit types in 16-byte `groups`, in `bytes`, or `packed` in halves."""
    raw = np.ascontiguousarray(x).view(np.uint8).reshape(len(x), -1)
    if name not in ("e2m3", "e3m2", "e2m1"):
        return raw
    width = 4 if name == "e2m1" else 6
    if container == "packed":
        return raw[:, 0::2] | raw[:, 1::2] << 4
    if container == "bytes":
        return raw << (2 if width == 4 else 0)
    out = np.zeros_like(raw)
    for row, group in np.ndindex(len(raw), raw.shape[1] // 16):
        part = raw[row, 16 * group : 16 * group + 16]
        word = sum(int(v) << (width * i) for i, v in enumerate(part))
        out[row, 16 * group : 16 * group + 16] = np.frombuffer(word.to_bytes(16, "little"), "u1")
    return out


def k_major(rows: np.ndarray) -> tuple[np.ndarray, int]:
    """Rows of 32 or 64 bytes, swizzled in atoms of as many bytes; the bytes and the descriptor."""
    span = rows.shape[1]
    assert span in (32, 64)
    out = np.zeros(rows.size, np.uint8)
    for r, b in np.ndindex(*rows.shape):
        linear = r * span + b
        chunk = linear // 16 ^ (linear // 128 % (span // 16))
        out[chunk * 16 + linear % 16] = rows[r, b]
    word = 1 << 16 | 8 * span >> 4 << 32 | 1 << 46 | {32: 6, 64: 4}[span] << 61
    return out, word


def idesc(a: str, b: str, d: str, m: int, n: int, packed: bool = False) -> int:
    code_a, code_b = (1, 1) if packed else (CODES[a], CODES[b])
    head = {"f16": 0, "f32": 1, "s32": 2}[d] << 4 | code_a << 7 | code_b << 10
    return head | n // 8 << 17 | m // 16 << 24


def integers(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Values that every type holds exactly, none of them zero."""
    return rng.choice(np.array([-3.0, -2.0, -1.0, 1.0, 2.0, 3.0, 4.0]), shape)


def cast(x: np.ndarray, name: str) -> np.ndarray:
    return np.abs(x).astype(TYPES[name]) if name == "u8" else x.astype(TYPES[name])
