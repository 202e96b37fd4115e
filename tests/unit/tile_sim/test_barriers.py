"""Named barriers with counts, arrivals without waiting, reductions over barriers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tile_sim import Module, SimError

Kernel = Callable[..., Module]


def test_producers_and_consumers_on_named_barriers(kernel: Kernel) -> None:
    """Warp 0 fills a buffer that warp 1 reads, three times, with arrivals that do not wait."""
    body = """
    .shared .align 4 .b32 s[32];
    mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 31; mov.u32 %r3, s; shl.b32 %r4, %r2, 2;
    add.u32 %r5, %r3, %r4; mov.u32 %r6, 0; setp.ge.u32 %p1, %r1, 32; @%p1 bra CONSUME;
    PRODUCE: bar.sync 2, 64;
    mad.lo.u32 %r7, %r6, 100, %r2; st.shared.b32 [%r5], %r7; bar.arrive 1, 64;
    add.u32 %r6, %r6, 1; setp.lt.u32 %p2, %r6, 3; @%p2 bra PRODUCE;
    bra END;
    CONSUME: bar.arrive 2, 64; bar.sync 1, 64;
    ld.shared.b32 %r8, [%r5]; mad.lo.u32 %r9, %r6, 32, %r2; mul.wide.u32 %rd1, %r9, 4;
    add.u64 %rd2, out, %rd1; st.global.b32 [%rd2], %r8;
    add.u32 %r6, %r6, 1; setp.lt.u32 %p2, %r6, 3; @%p2 bra CONSUME;
    END:
    """
    out = np.zeros((2, 3, 32), np.uint32)
    body = body.replace(
        "add.u64 %rd2, out, %rd1;",
        "mov.u32 %r20, %ctaid.x; mul.wide.u32 %rd3, %r20, 384; add.u64 %rd2, out, %rd1;"
        " add.u64 %rd2, %rd2, %rd3;",
    )
    module = kernel(body, "u64 out")
    report = module.launch("k", (2, 1, 1), (64, 1, 1), [out], check=True)
    assert report.findings == []
    expected = 100 * np.arange(3)[:, None] + np.arange(32)
    np.testing.assert_array_equal(out, np.broadcast_to(expected, (2, 3, 32)))


@pytest.mark.parametrize("threads", [64, 70, 128])
def test_reductions(kernel: Kernel, threads: int) -> None:
    """Also for a block whose last warp is not full."""
    body = """
    mov.u32 %r1, %tid.x; rem.u32 %r2, %r1, 3; setp.eq.u32 %p1, %r2, 0; setp.lt.u32 %p2, %r1, 1000;
    bar.red.popc.u32 %r3, 0, %p1; bar.red.and.pred %p3, 0, %p2; bar.red.or.pred %p4, 1, %p1;
    bar.red.and.pred %p5, 0, %p1; selp.u32 %r4, 1, 0, %p3; selp.u32 %r5, 1, 0, %p4;
    selp.u32 %r6, 1, 0, %p5; mul.wide.u32 %rd1, %r1, 16; add.u64 %rd2, out, %rd1;
    st.global.v4.b32 [%rd2], {%r3, %r4, %r5, %r6};
    """
    out = np.zeros((threads, 4), np.uint32)
    kernel(body, "u64 out").launch("k", (1, 1, 1), (threads, 1, 1), [out])
    expected = [len(range(0, threads, 3)), 1, 1, 0]
    np.testing.assert_array_equal(out, np.broadcast_to(expected, (threads, 4)))


def test_exited_threads_do_not_hold_a_barrier(kernel: Kernel) -> None:
    body = """
    mov.u32 %r1, %tid.x; setp.ge.u32 %p1, %r1, 96; @%p1 exit;
    bar.sync 0; mul.wide.u32 %rd1, %r1, 4; add.u64 %rd2, out, %rd1; st.global.b32 [%rd2], %r1;
    """
    out = np.zeros(128, np.uint32)
    kernel(body, "u64 out").launch("k", (1, 1, 1), (128, 1, 1), [out])
    np.testing.assert_array_equal(out, np.where(np.arange(128) < 96, np.arange(128), 0))


def test_unaligned_barrier_of_diverged_threads(kernel: Kernel) -> None:
    """`barrier.sync` may be reached at different places by the threads of a warp."""
    body = """
    mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 1; setp.eq.u32 %p1, %r2, 0; @%p1 bra EVEN;
    barrier.sync 0; mov.u32 %r3, 7; bra OUT;
    EVEN: barrier.sync 0; mov.u32 %r3, 8;
    OUT: mul.wide.u32 %rd1, %r1, 4; add.u64 %rd2, out, %rd1; st.global.b32 [%rd2], %r3;
    """
    out = np.zeros(64, np.uint32)
    kernel(body, "u64 out").launch("k", (1, 1, 1), (64, 1, 1), [out])
    np.testing.assert_array_equal(out, np.where(np.arange(64) % 2, 7, 8))


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("bar.sync 16;", "there are 16"),
        ("bar.sync 1, 40;", "multiple of 32"),
        ("mov.u32 %r1, %tid.x; shr.u32 %r2, %r1, 5; mad.lo.u32 %r2, %r2, 32, 64; bar.sync 1, %r2;",
         "disagree"),
    ],
)  # fmt: skip
def test_wrong_barriers(kernel: Kernel, text: str, word: str) -> None:
    with pytest.raises(SimError, match=word) as caught:
        kernel(text).launch("k", (1, 1, 1), (64, 1, 1), [])
    assert caught.value.kind == "bad-barrier"
