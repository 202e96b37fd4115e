"""Bulk and tensor copies against NumPy slices."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tile_sim import Module, SimError, TensorMap

Kernel = Callable[..., Module]
SCHEDULES = ["late", "early", "random"]
SHARED = ".shared .align 1024 .b8 buf[32768];\n.shared .align 8 .b64 bar;\n"
INIT = """
mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0;
mov.u32 %r2, buf; mov.u32 %r3, bar;
@%p1 mbarrier.init.shared.b64 [%r3], 1;
@%p1 fence.mbarrier_init.release.cluster;
bar.sync 0;
"""
WAIT = """
WAIT: mbarrier.try_wait.parity.shared.b64 %p2, [%r3], 0;
@!%p2 bra WAIT;
"""
# Copies `count` 32-bit words of the buffer to `out`, one for each thread and step.
DUMP = """
mov.u32 %r10, %r1;
DUMP: setp.ge.u32 %p3, %r10, count; @%p3 bra DONE;
shl.b32 %r11, %r10, 2; add.u32 %r12, %r2, %r11; ld.shared.b32 %r13, [%r12];
cvt.u64.u32 %rd1, %r11; add.u64 %rd2, out, %rd1; st.global.b32 [%rd2], %r13;
add.u32 %r10, %r10, 128; bra DUMP;
DONE:
"""


def _load(rank: int, coordinates: str, mode: str = "tile", extra: str = "") -> str:
    return f"""
@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r3], bytes;
@%p1 cp.async.bulk.tensor.{rank}d.shared::cluster.global.{mode}.mbarrier::complete_tx::bytes
    [%r2], [map, {{{coordinates}}}], [%r3]{extra};
"""


def _swizzle(linear: np.ndarray, swizzle: str) -> np.ndarray:
    """16-byte chunk j of 128-byte line i moves to chunk j ^ (i mod n) (n chunks in a span)."""
    line, chunk, byte = linear // 128, linear % 128 // 16, linear % 16
    flip = {"none": 0 * line, "128B": line % 8, "64B": line % 8 // 1 % 4, "32B": line % 2}[swizzle]
    return line * 128 + (chunk ^ flip) * 16 + byte


def _box(x: np.ndarray, start: tuple[int, ...], box: tuple[int, ...]) -> np.ndarray:
    """A box of an array (both outermost first), zero outside."""
    out = np.zeros(box, x.dtype)
    for index in np.ndindex(*box):
        at = tuple(s + i for s, i in zip(start, index, strict=True))
        if all(0 <= a < n for a, n in zip(at, x.shape, strict=True)):
            out[index] = x[at]
    return out


CASES = [
    ((100,), (64,), (16,), np.float32, "none"),
    ((20, 64), (8, 16), (3, 16), np.float32, "none"),
    ((20, 64), (8, 32), (-2, 40), np.float32, "128B"),
    ((20, 64), (16, 64), (10, 8), np.float16, "128B"),
    ((20, 64), (16, 32), (10, -8), np.float16, "64B"),
    ((20, 64), (16, 16), (-3, 8), np.float16, "32B"),
    ((6, 7, 32), (3, 4, 16), (4, -1, 16), np.uint16, "32B"),
    ((3, 4, 5, 16), (2, 2, 3, 16), (1, 3, 3, 0), np.uint8, "none"),
    ((2, 3, 4, 5, 8), (2, 2, 2, 3, 4), (0, 2, -1, 1, 4), np.int32, "none"),
]


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(("shape", "box", "start", "dtype", "swizzle"), CASES)
def test_tensor_load(kernel: Kernel, schedule: str, shape, box, start, dtype, swizzle: str) -> None:
    rng = np.random.default_rng(1)
    x = rng.integers(0, 200, shape).astype(dtype)
    tensor = TensorMap(x, box=tuple(reversed(box)), swizzle=swizzle)
    coordinates = ", ".join(str(c) for c in reversed(start))
    size = int(np.prod(box)) * x.itemsize
    body = SHARED + INIT + _load(len(box), coordinates) + WAIT + DUMP
    module = kernel(body, "u64 map, u64 out, u32 count, u32 bytes")
    out = np.zeros(-(-size // 128) * 128, np.uint8)
    args = [tensor, out, size // 4, size]
    module.launch("k", (1, 1, 1), (128, 1, 1), args, schedule=schedule)
    expected = np.zeros_like(out)
    dense = _box(x, start, box).view(np.uint8).reshape(-1)
    expected[_swizzle(np.arange(size), swizzle)] = dense
    np.testing.assert_array_equal(out, expected)


def test_maps_of_tf32_round_to_the_nearest_even(kernel: Kernel) -> None:
    """Both neighbours, ties, a carry into the exponent; infinities and NaN stay."""
    ulp = 2.0**-10
    nan = np.uint32(0x7F800001).view(np.float32)
    given = [1 + 0.25 * ulp, 1 + 0.5 * ulp, 1 + 1.5 * ulp, 1 + 0.75 * ulp, 2 - 0.25 * ulp,
             -1 - 0.75 * ulp, np.inf, nan]  # fmt: skip
    wanted = [1, 1, 1 + 2 * ulp, 1 + ulp, 2, -1 - ulp, np.inf, nan]
    tensor = TensorMap(np.array(given, np.float32), box=(8,), type="tf32")
    body = SHARED + INIT + _load(1, "0") + WAIT + DUMP
    out = np.zeros(32, np.float32)
    module = kernel(body, "u64 map, u64 out, u32 count, u32 bytes")
    module.launch("k", (1, 1, 1), (128, 1, 1), [tensor, out, 8, 32])
    expected = np.array(wanted, np.float32)
    np.testing.assert_array_equal(out[:8].view(np.uint32), expected.view(np.uint32))


def test_a_wrong_swizzle_is_seen(kernel: Kernel) -> None:
    x = np.arange(20 * 64, dtype=np.float16).reshape(20, 64)
    body = SHARED + INIT + _load(2, "0, 0") + WAIT + DUMP
    module = kernel(body, "u64 map, u64 out, u32 count, u32 bytes")
    outs = []
    for swizzle in ("128B", "64B"):
        out = np.zeros(1024, np.uint8)
        tensor = TensorMap(x, box=(32, 16), swizzle=swizzle)
        module.launch("k", (1, 1, 1), (128, 1, 1), [tensor, out, 256, 1024])
        outs.append(out)
    assert not np.array_equal(*outs)


def test_too_few_expected_bytes_is_a_deadlock_or_early_read(kernel: Kernel) -> None:
    x = np.zeros((16, 64), np.float16)
    body = SHARED + INIT + _load(2, "0, 0") + WAIT + DUMP
    module = kernel(body, "u64 map, u64 out, u32 count, u32 bytes")
    out = np.zeros(2048, np.uint8)
    with pytest.raises(SimError) as caught:
        module.launch("k", (1, 1, 1), (128, 1, 1), [TensorMap(x, box=(64, 16)), out, 512, 4096])
    assert caught.value.kind == "deadlock"
    assert "mbarrier.try_wait" in str(caught.value)


def test_reading_without_waiting(kernel: Kernel) -> None:
    x = np.zeros((16, 64), np.float16)
    body = SHARED + INIT + _load(2, "0, 0") + "bar.sync 0;" + DUMP
    module = kernel(body, "u64 map, u64 out, u32 count, u32 bytes")
    out = np.zeros(2048, np.uint8)
    with pytest.raises(SimError, match="still being") as caught:
        module.launch("k", (1, 1, 1), (128, 1, 1), [TensorMap(x, box=(64, 16)), out, 512, 2048])
    assert caught.value.kind == "pending"


@pytest.mark.parametrize("schedule", ["late", "random"])
def test_ending_while_memory_is_filled(kernel: Kernel, schedule: str) -> None:
    """The next block of the SM may have that memory by then."""
    x = np.zeros((16, 64), np.float16)
    module = kernel(SHARED + INIT + _load(2, "0, 0"), "u64 map, u32 bytes")
    arguments = [TensorMap(x, box=(64, 16)), 2048]
    found = module.launch(
        "k", (1, 1, 1), (128, 1, 1), arguments, check=True, schedule=schedule
    ).findings
    assert [one.kind for one in found] == ["destination-abandoned"]


@pytest.mark.parametrize("op", [None, "add", "max"])
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_tensor_store(kernel: Kernel, schedule: str, op: str | None) -> None:
    """Out of shared memory, swizzled, partly outside the tensor, then a read of the source."""
    rng = np.random.default_rng(2)
    y = rng.integers(-50, 50, (20, 64)).astype(np.int32)
    data = rng.integers(-50, 50, (8, 32)).astype(np.int32)
    before = y.copy()
    name = "cp.async.bulk.tensor" if op is None else "cp.reduce.async.bulk.tensor"
    word = "" if op is None else f".{op}"
    fill = """
    mov.u32 %r10, %r1;
    FILL: setp.ge.u32 %p3, %r10, 256; @%p3 bra FILLED;
    shl.b32 %r11, %r10, 2; cvt.u64.u32 %rd1, %r11; add.u64 %rd2, src, %rd1;
    ld.global.b32 %r13, [%rd2];
    shr.u32 %r14, %r11, 7; and.b32 %r14, %r14, 7; shl.b32 %r14, %r14, 4; xor.b32 %r11, %r11, %r14;
    add.u32 %r12, %r2, %r11; st.shared.b32 [%r12], %r13;
    add.u32 %r10, %r10, 128; bra FILL;
    FILLED: fence.proxy.async.shared::cta; bar.sync 0;
    """
    store = f"""
    @!%p1 bra END;
    {name}.2d.global.shared::cta{word}.tile.bulk_group [map, {{40, 15}}], [%r2];
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group.read 0;
    st.shared.b32 [%r2], %r1;
    END:
    """
    module = kernel(SHARED + INIT + fill + store, "u64 map, u64 src")
    tensor = TensorMap(y, box=(32, 8), swizzle="128B")
    module.launch("k", (1, 1, 1), (128, 1, 1), [tensor, data], schedule=schedule)
    part = data[:5, :24]
    old = before[15:, 40:]
    before[15:, 40:] = {None: part, "add": old + part, "max": np.maximum(old, part)}[op]
    np.testing.assert_array_equal(y, before)


def test_im2col(kernel: Kernel) -> None:
    """A 3x3 convolution's column: offsets choose the filter tap, the box its padding."""
    rng = np.random.default_rng(3)
    n, h, w, c = 2, 5, 6, 8
    x = rng.integers(1, 100, (n, h, w, c)).astype(np.uint16)
    pixels = 16
    tensor = TensorMap(x, box=(), channels=8, pixels=pixels, lower=(-1, -1), upper=(-1, -1))
    load = _load(4, "0, 1, 2, 0", "im2col", ", {2, 1}")
    module = kernel(SHARED + INIT + load + WAIT + DUMP, "u64 map, u64 out, u32 count, u32 bytes")
    out = np.zeros((pixels, c), np.uint16)
    module.launch("k", (1, 1, 1), (128, 1, 1), [tensor, out, pixels * c // 2, pixels * c * 2])
    padded = np.zeros((n, h + 2, w + 2, c), np.uint16)
    padded[:, 1:-1, 1:-1] = x
    places = [(b, i, j) for b in range(n) for i in range(-1, h - 1) for j in range(-1, w - 1)]
    first = places.index((0, 2, 1))
    expected = [padded[b, i + 1 + 1, j + 1 + 2] for b, i, j in places[first : first + pixels]]
    np.testing.assert_array_equal(out, expected)


def test_tensormap_replace(kernel: Kernel) -> None:
    """A map made for one tensor is turned into that of another, in shared memory."""
    x = np.arange(30 * 64, dtype=np.float32).reshape(30, 64)
    other = np.zeros((4, 32), np.float32)
    body = (
        SHARED
        + ".shared .align 128 .b8 copy[128];"
        + INIT
        + """
    mov.u32 %r20, copy; mov.u32 %r21, %r1;
    setp.ge.u32 %p4, %r1, 32; @%p4 bra MADE;
    shl.b32 %r22, %r1, 2; cvt.u64.u32 %rd3, %r22; add.u64 %rd4, map, %rd3;
    ld.global.b32 %r23, [%rd4];
    add.u32 %r24, %r20, %r22; st.shared.b32 [%r24], %r23; bar.warp.sync 0xffffffff;
    @!%p1 bra REPLACED;
    tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%r20], x;
    tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%r20], 0, 64;
    tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%r20], 1, 30;
    tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%r20], 0, 256;
    REPLACED: bar.warp.sync 0xffffffff;
    tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned
        [map], [%r20], 128;
    fence.proxy.tensormap::generic.acquire.gpu [map], 128;
    MADE:
    """
        + _load(2, "16, 9")
        + WAIT
        + DUMP
    )
    module = kernel(body, "u64 map, u64 out, u32 count, u32 bytes, u64 x")
    out = np.zeros((4, 16), np.float32)
    tensor = TensorMap(other, box=(16, 4))
    module.launch("k", (1, 1, 1), (128, 1, 1), [tensor, out, 64, 256, x])
    np.testing.assert_array_equal(out, x[9:13, 16:32])


CLUSTER = """
mov.u32 %r30, %cluster_ctarank; setp.eq.u32 %p5, %r30, 0;
mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0; mov.u32 %r2, buf; mov.u32 %r3, bar;
@%p1 mbarrier.init.shared.b64 [%r3], 1;
@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r3], 512;
barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;
"""


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_multicast(kernel: Kernel, schedule: str) -> None:
    """CTA 0 loads for CTAs 0, 1 and 3 of each cluster of 4."""
    body = (
        SHARED
        + CLUSTER
        + """
    and.pred %p6, %p1, %p5; mov.u16 %h1, 11; mov.u32 %r31, %clusterid.x; shl.b32 %r31, %r31, 3;
    @%p6 cp.async.bulk.tensor.2d.shared::cluster.global.tile
        .mbarrier::complete_tx::bytes.multicast::cluster
        [%r2], [map, {0, %r31}], [%r3], %h1;
    setp.eq.u32 %p7, %r30, 2; @%p7 bra LEAVE;
    """
        + WAIT
        + """
    mov.u32 %r40, %ctaid.x; mul.lo.u32 %r40, %r40, 512; cvt.u64.u32 %rd5, %r40;
    add.u64 out, out, %rd5;
    """
        + DUMP
        + """
    LEAVE: barrier.cluster.arrive; barrier.cluster.wait;
    """
    )
    module = kernel(body, "u64 map, u64 out, u32 count")
    x = np.arange(16 * 16, dtype=np.float32).reshape(16, 16)
    out = np.full((8, 8, 16), -1, np.float32)
    module.launch(
        "k", (8, 1, 1), (128, 1, 1), [TensorMap(x, box=(16, 8)), out, 128], cluster=(4, 1, 1),
        schedule=schedule, seed=5,
    )  # fmt: skip
    for cta in range(8):
        expected = x[8 * (cta // 4) :][:8] if cta % 4 != 2 else -1
        np.testing.assert_array_equal(out[cta], np.broadcast_to(expected, (8, 16)))


def test_bulk_copies_between_ctas(kernel: Kernel) -> None:
    """Global to shared, shared to the peer's shared memory, and reduced back to global memory."""
    body = (
        SHARED
        + """
    mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0; mov.u32 %r2, buf; mov.u32 %r3, bar;
    mov.u32 %r30, %cluster_ctarank;
    @%p1 mbarrier.init.shared.b64 [%r3], 1;
    barrier.cluster.arrive; barrier.cluster.wait;
    shl.b32 %r4, %r30, 8; cvt.u64.u32 %rd1, %r4; add.u64 %rd2, x, %rd1;
    @%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r3], 256;
    @%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes
        [%r2], [%rd2], 256, [%r3];
    """
        + WAIT
        + """
    @%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r3], 256;
    barrier.cluster.arrive; barrier.cluster.wait;
    xor.b32 %r31, %r30, 1; add.u32 %r5, %r2, 1024;
    mapa.shared::cluster.u32 %r6, %r5, %r31; mapa.shared::cluster.u32 %r7, %r3, %r31;
    @%p1 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes
        [%r6], [%r2], 256, [%r7];
    WAIT2: mbarrier.try_wait.parity.shared.b64 %p2, [%r3], 1; @!%p2 bra WAIT2;
    add.u64 %rd3, y, %rd1;
    @!%p1 bra END;
    cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%rd3], [%r5], 256;
    cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
    END: barrier.cluster.arrive; barrier.cluster.wait;
    """
    )
    x = np.arange(128, dtype=np.float32).reshape(2, 64)
    y = np.ones((2, 64), np.float32)
    kernel(body, "u64 x, u64 y").launch("k", (2, 1, 1), (64, 1, 1), [x, y], cluster=(2, 1, 1))
    np.testing.assert_array_equal(y, x[::-1] + 1)


def test_distributed_shared_memory(kernel: Kernel) -> None:
    """Each CTA adds into a counter of its neighbour and stores to it with st.async."""
    body = (
        ".shared .align 8 .b32 s[4];\n.shared .align 8 .b64 bar;\n"
        + """
    mov.u32 %r1, %tid.x; mov.u32 %r2, s; mov.u32 %r3, bar; setp.eq.u32 %p1, %r1, 0;
    mov.u32 %r9, 0;
    @%p1 st.shared.b32 [%r2], %r9;
    @%p1 mbarrier.init.shared.b64 [%r3], 1;
    @%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r3], 8;
    barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
    mov.u32 %r4, %cluster_ctarank; add.u32 %r5, %r4, 1; mov.u32 %r6, %cluster_nctarank;
    rem.u32 %r5, %r5, %r6;
    mapa.shared::cluster.u32 %r7, %r2, %r5; mapa.shared::cluster.u32 %r8, %r3, %r5;
    red.shared::cluster.add.u32 [%r7], %r1;
    @%p1 st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 [%r7+8], {%r4, %r5}, [%r8];
    WAIT: mbarrier.try_wait.parity.shared.b64 %p2, [%r3], 0; @!%p2 bra WAIT;
    barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
    ld.shared.b32 %r10, [%r2]; ld.shared.v2.b32 {%r11, %r12}, [%r2+8];
    mov.u32 %r13, %ctaid.x; mul.wide.u32 %rd1, %r13, 12; add.u64 %rd2, out, %rd1;
    st.global.b32 [%rd2], %r10; st.global.b32 [%rd2+4], %r11; st.global.b32 [%rd2+8], %r12;
    """
    )
    out = np.zeros((6, 3), np.uint32)
    kernel(body, "u64 out").launch("k", (6, 1, 1), (64, 1, 1), [out], cluster=(3, 1, 1))
    for cta in range(6):
        before = (cta % 3 - 1) % 3
        assert out[cta].tolist() == [64 * 63 // 2, before, cta % 3]


def test_store_of_some_bytes_and_of_a_column(kernel: Kernel) -> None:
    """A byte mask for each 16 bytes; an im2col store puts a column back where it came from."""
    body = (
        SHARED
        + """
    mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0; mov.u32 %r2, buf;
    shl.b32 %r4, %r1, 2; add.u32 %r5, %r2, %r4; add.u32 %r6, %r1, 0x01010101;
    st.shared.b32 [%r5], %r6;
    fence.proxy.async.shared::cta; bar.sync 0; @!%p1 bra END; mov.u16 %h1, 0x8001;
    cp.async.bulk.global.shared::cta.bulk_group.cp_mask [x], [%r2], 64, %h1;
    cp.async.bulk.tensor.4d.global.shared::cta.im2col_no_offs.bulk_group [map, {0, 1, 2, 0}], [%r2];
    cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
    END:
    """
    )
    x, y = np.zeros(64, np.uint8), np.zeros((2, 5, 6, 8), np.uint16)
    tensor = TensorMap(y, box=(), channels=8, pixels=16, lower=(0, 0), upper=(0, 0))
    kernel(body, "u64 x, u64 map", target="sm_100a").launch(
        "k", (1, 1, 1), (128, 1, 1), [x, tensor], check=True
    )
    words = np.arange(128, dtype=np.uint32) + np.uint32(0x01010101)
    data, at = words.view(np.uint8)[:64], np.arange(64)
    np.testing.assert_array_equal(x, np.where(np.isin(at % 16, (0, 15)), data, 0))
    expected = np.zeros_like(y).reshape(-1, 8)
    expected[13:29] = words[:64].view(np.uint16).reshape(16, 8)
    np.testing.assert_array_equal(y.reshape(-1, 8), expected)
