"""Fences and waits of the tensor families and of the asynchronous proxy: each one dropped shows."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest
from tile_sim import Module, SimError

Kernel = Callable[..., Module]
SCHEDULES = ("late", "early", "random")


def found(kernel: Kernel, text: str, params: str, args: list, threads: int, **options) -> set[str]:
    report = kernel(text, params).launch(
        "k", (1, 1, 1), (threads, 1, 1), args, check=True, **options
    )
    return {finding.kind for finding in report.findings}


def without(text: str, what: str, which: int = 0) -> str:
    """The text with the n-th occurrence of an instruction left out."""
    parts = text.split(what)
    assert len(parts) > which + 1
    return what.join(parts[: which + 1]) + what.join(["", *parts[which + 1 :]])[len(what) :]


# --- tensor memory --------------------------------------------------------------------------------

EIGHT = ", ".join(f"%r{100 + i}" for i in range(8))
# Warps 0 to 3 store, warps 4 to 7 load the same lanes, then warps 0 to 3 store again.
EXCHANGE = f"""
.shared .align 4 .b32 taddr;
mov.u32 %r1, %tid.x; shr.u32 %r5, %r1, 5; setp.eq.u32 %p1, %r5, 0; setp.lt.u32 %p2, %r5, 4;
mov.u32 %r4, taddr;
@%p1 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r4], 32;
bar.sync 0;
ld.shared.b32 %r6, [%r4]; and.b32 %r7, %r5, 3; shl.b32 %r7, %r7, 21; add.u32 %r8, %r6, %r7;
{" ".join(f"mov.u32 %r{100 + i}, %r1;" for i in range(8))}
@!%p2 bra STORED;
tcgen05.st.sync.aligned.32x32b.x8.b32 [%r8], {{{EIGHT}}};
tcgen05.wait::st.sync.aligned;
tcgen05.fence::before_thread_sync;
STORED: bar.sync 0;
@%p2 bra LOADED;
tcgen05.fence::after_thread_sync;
tcgen05.ld.sync.aligned.32x32b.x8.b32 {{{EIGHT}}}, [%r8];
tcgen05.wait::ld.sync.aligned;
tcgen05.fence::before_thread_sync;
LOADED: bar.sync 0;
@!%p2 bra AGAIN;
tcgen05.fence::after_thread_sync;
tcgen05.st.sync.aligned.32x32b.x8.b32 [%r8], {{{EIGHT}}};
tcgen05.wait::st.sync.aligned;
AGAIN: bar.sync 0;
mul.wide.u32 %rd1, %r1, 4; add.u64 %rd2, out, %rd1; st.global.b32 [%rd2], %r100;
@%p1 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r6, 32;
"""
BEFORE, AFTER = "tcgen05.fence::before_thread_sync;", "tcgen05.fence::after_thread_sync;"


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_tensor_memory_changes_hands(kernel: Kernel, schedule: str) -> None:
    out = np.zeros(256, np.uint32)
    assert found(kernel, EXCHANGE, "u64 out", [out], 256, schedule=schedule) == set()
    np.testing.assert_array_equal(out, np.tile(np.arange(128), 2))


@pytest.mark.parametrize(
    ("what", "which", "kind"),
    [
        (BEFORE, 0, "missing-tcgen05-fence"), (AFTER, 0, "missing-tcgen05-fence"),
        (BEFORE, 1, "missing-tcgen05-fence"), (AFTER, 1, "missing-tcgen05-fence"),
        ("tcgen05.wait::st.sync.aligned;", 0, "missing-store-wait"),
        ("tcgen05.wait::ld.sync.aligned;", 0, "missing-load-wait"),
    ],
)  # fmt: skip
def test_order_of_tensor_memory(kernel: Kernel, what: str, which: int, kind: str) -> None:
    text, args = without(EXCHANGE, what, which), [np.zeros(256, np.uint32)]
    assert kind in found(kernel, text, "u64 out", args, 256)
    forgiven = kind == "missing-tcgen05-fence"
    assert (kind in found(kernel, text, "u64 out", args, 256, strict=False)) != forgiven


@pytest.mark.parametrize("label", ["STORED", "LOADED", "AGAIN"])
def test_races_on_tensor_memory(kernel: Kernel, label: str) -> None:
    """Without a barrier; which of the two comes first is luck."""
    text = EXCHANGE.replace(f"{label}: bar.sync 0;", f"{label}:")
    try:
        assert "race" in found(kernel, text, "u64 out", [np.zeros(256, np.uint32)], 256)
    except SimError as error:
        assert error.kind in ("uninitialised", "tmem")  # noqa: PT017


# --- registers of wgmma ---------------------------------------------------------------------------

FENCE = "wgmma.fence.sync.aligned;"
FOUR = "%f100, %f101, %f102, %f103"
WGMMA = f"""
.shared .align 128 .b8 buf[4096];
mov.u32 %r1, %tid.x; mov.u32 %r2, buf; shl.b32 %r3, %r1, 5; add.u32 %r3, %r2, %r3;
mov.u32 %r4, 0; st.shared.v4.b32 [%r3], {{%r4, %r4, %r4, %r4}};
st.shared.v4.b32 [%r3+16], {{%r4, %r4, %r4, %r4}};
fence.proxy.async.shared::cta; bar.sync 0;
shr.u32 %r5, %r2, 4; cvt.u64.u32 %rd1, %r5; or.b64 %rd1, %rd1, 0x800080000; mov.b64 %rd2, %rd1;
cvt.rn.f32.u32 %f90, %r1; setp.eq.u32 %p1, %r4, 0;
{" ".join(f"add.f32 %f{100 + i}, %f90, 0f3F800000;" for i in range(4))}
{FENCE}
wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {{{FOUR}}}, %rd1, %rd2, %p1, 1, 1, 0, 0;
wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {{{FOUR}}}, %rd1, %rd2, %p1, 1, 1, 0, 0;
wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;
add.f32 %f100, %f100, 0f3F800000;
{FENCE}
wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {{{FOUR}}}, %rd1, %rd2, %p1, 1, 1, 0, 0;
wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;
{FENCE}
mov.f32 %f200, %f100;
wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32
    {{%f200, %f101, %f102, %f103}}, %rd1, %rd2, %p1, 1, 1;
wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;
mul.wide.u32 %rd3, %r1, 4; add.u64 %rd4, out, %rd3; st.global.f32 [%rd4], %f200;
"""


@pytest.mark.parametrize("which", [None, 0, 1, 2])
def test_registers_of_wgmma_need_a_fence(kernel: Kernel, which: int | None) -> None:
    """Before the first product, after another access, between shapes; `mov` is no access."""
    text = WGMMA if which is None else without(WGMMA, FENCE, which)
    out = np.zeros(128, np.float32)
    kinds = found(kernel, text, "u64 out", [out], 128)
    assert kinds == (set() if which is None else {"missing-wgmma-fence"})
    np.testing.assert_array_equal(out, np.arange(128) + 2)


# --- the asynchronous proxy -----------------------------------------------------------------------

PROXY = "fence.proxy.async.shared::cta;"
# A bulk copy, loads of what it brought, stores over it, and a second bulk copy to the same place.
REFILL = f"""
.shared .align 128 .b8 buf[512];
.shared .align 8 .b64 bar;
mov.u32 %r1, %tid.x; mov.u32 %r2, buf; mov.u32 %r3, bar; setp.eq.u32 %p1, %r1, 0;
shl.b32 %r4, %r1, 2; add.u32 %r4, %r2, %r4;
@%p1 mbarrier.init.shared.b64 [%r3], 1;
@%p1 fence.mbarrier_init.release.cluster;
bar.sync 0;
@!%p1 bra W0;
mbarrier.arrive.expect_tx.shared.b64 %rd1, [%r3], 512;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [in], 512, [%r3];
W0: mbarrier.try_wait.parity.shared.b64 %p2, [%r3], 0; @!%p2 bra W0;
ld.shared.b32 %r5, [%r4];
{PROXY}
bar.sync 0;
@!%p1 bra W1;
mbarrier.arrive.expect_tx.shared.b64 %rd1, [%r3], 512;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [in], 512, [%r3];
W1: mbarrier.try_wait.parity.shared.b64 %p2, [%r3], 1; @!%p2 bra W1;
add.u32 %r5, %r5, 1; st.shared.b32 [%r4], %r5;
{PROXY}
bar.sync 0;
@!%p1 bra W2;
mbarrier.arrive.expect_tx.shared.b64 %rd1, [%r3], 512;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [in], 512, [%r3];
W2: mbarrier.try_wait.parity.shared.b64 %p2, [%r3], 0; @!%p2 bra W2;
"""


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("which", [None, 0, 1])
def test_bulk_copies_over_what_threads_accessed(
    kernel: Kernel, which: int | None, schedule: str
) -> None:
    text = REFILL if which is None else without(REFILL, PROXY, which)
    kinds = found(kernel, text, "u64 in", [np.ones(128, np.uint32)], 128, schedule=schedule)
    assert kinds == (set() if which is None else {"missing-proxy-fence"})


@pytest.mark.parametrize(("first", "kinds"), [(1, {"missing-proxy-fence"}), (0, set())])
def test_who_fences_behind_the_barrier(kernel: Kernel, first: int, kinds: set[str]) -> None:
    """The thread that issues the copy hears of the accesses, and only of its own warp's fence."""
    there = f"{PROXY}\nbar.sync 0;\n@!%p1 bra W1;"
    assert there in REFILL
    here = f"bar.sync 0; setp.lt.u32 %p3, %r1, {32 * first}; @%p3 bra GO;\n{PROXY}\n"
    text = REFILL.replace(there, f"{here}GO: @!%p1 bra W1;")
    assert found(kernel, text, "u64 in", [np.ones(128, np.uint32)], 128) == kinds


# --- copies that mbarriers announce ---------------------------------------------------------------

# Thread 0 has 128 bytes copied to each of two places, and waits for both copies; all of warps 0 and
# 1 read what came. Then the same once more to the same places, in the next phase.
_ROUND = """
@!%p1 bra BEGUN{phase};
mbarrier.arrive.expect_tx.shared.b64 _, [%r3], 128;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [x], 128, [%r3];
mbarrier.arrive.expect_tx.shared.b64 _, [%r3+8], 128;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2+128], [x], 128, [%r3+8];
FIRST{phase}: mbarrier.try_wait.parity.shared.b64 %p2, [%r3], {phase}; @!%p2 bra FIRST{phase};
SECOND{phase}: mbarrier.try_wait.parity.shared.b64 %p2, [%r3+8], {phase}; @!%p2 bra SECOND{phase};
BEGUN{phase}: bar.sync 0;
shl.b32 %r4, %r1, 2; add.u32 %r5, %r2, %r4;
ld.shared.b32 %r6, [%r5]; add.u32 %r7, %r7, %r6;
fence.proxy.async.shared::cta;
bar.sync 0;
"""
COPIED = f"""
.shared .align 16 .b8 data[256];
.shared .align 8 .b64 bars[2];
mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0; mov.u32 %r2, data; mov.u32 %r3, bars; mov.u32 %r7, 0;
@%p1 mbarrier.init.shared.b64 [%r3], 1; @%p1 mbarrier.init.shared.b64 [%r3+8], 1;
@%p1 fence.mbarrier_init.release.cluster;
bar.sync 0;
{_ROUND.format(phase=0)}
{_ROUND.format(phase=1)}
mul.wide.u32 %rd1, %r1, 4; add.u64 %rd2, out, %rd1; st.global.b32 [%rd2], %r7;
"""


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_copies_that_are_waited_for(kernel: Kernel, schedule: str) -> None:
    x, out = np.arange(32, dtype=np.uint32), np.zeros(64, np.uint32)
    assert not found(kernel, COPIED, "u64 x, u64 out", [x, out], 64, schedule=schedule)
    np.testing.assert_array_equal(out, np.tile(2 * x, 2))


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("phase", [0, 1])
def test_a_later_copy_says_nothing_of_an_earlier_one(
    kernel: Kernel, schedule: str, phase: int
) -> None:
    """The second one's end is waited for, and by then the first one has happened to end, too."""
    wait = rf"FIRST{phase}: mbarrier[^;]*; @!%p2 bra FIRST{phase};"
    text, count = re.subn(wait, "", COPIED)
    assert count == 1
    kinds = found_or_raised(kernel, text, schedule)
    assert kinds & {"missing-mbarrier-wait", "pending"}
    if schedule == "early":
        assert kinds == {"missing-mbarrier-wait"}


def found_or_raised(kernel: Kernel, text: str, schedule: str) -> set[str]:
    args = [np.arange(32, dtype=np.uint32), np.zeros(64, np.uint32)]
    try:
        return found(kernel, text, "u64 x, u64 out", args, 64, schedule=schedule)
    except SimError as error:
        return {error.kind}
