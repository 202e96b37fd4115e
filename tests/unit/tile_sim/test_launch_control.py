"""Kernels that take over clusters which have not been launched."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tile_sim import Module

Kernel = Callable[..., Module]
BODY = """
.shared .align 16 .b8 response[16];
.shared .align 8 .b64 bar;
.reg .b128 answer;
mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0; mov.u32 %r2, response; mov.u32 %r3, bar;
mov.u32 %r4, %ctaid.x; mov.u32 %r9, %ctaid.y; mov.u32 %r5, 0; mov.u32 %r20, %ctaid.x;
@%p1 mbarrier.init.shared.b64 [%r3], 1;
bar.sync 0;
AGAIN:
@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r3], 16;
@%p1 clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128
    [%r2], [%r3];
mad.lo.u32 %r6, %r9, 8, %r4; mul.wide.u32 %rd1, %r6, 4; add.u64 %rd2, out, %rd1;
@%p1 red.global.add.u32 [%rd2], 1;
WAIT: mbarrier.try_wait.parity.shared.b64 %p2, [%r3], %r5; @!%p2 bra WAIT;
ld.shared.b128 answer, [%r2];
xor.b32 %r5, %r5, 1;
bar.sync 0;
clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p3, answer;
@!%p3 bra END;
clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%r4, %r9, %r7, %r8}, answer;
clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %r10, answer;
setp.ne.u32 %p4, %r10, %r4; @%p4 trap;
@%p1 red.global.add.u32 [taken], 1;
bra AGAIN;
END:
"""


@pytest.mark.parametrize("schedule", ["late", "early", "random"])
@pytest.mark.parametrize("wave_threads", [32, 128, 16384])
def test_every_tile_is_done_once(kernel: Kernel, schedule: str, wave_threads: int) -> None:
    out, taken = np.zeros((4, 8), np.uint32), np.zeros(1, np.uint32)
    module = kernel(BODY, "u64 out, u64 taken", target="sm_100a")
    report = module.launch(
        "k", (8, 4, 1), (32, 1, 1), [out, taken], wave_threads=wave_threads, schedule=schedule
    )
    assert (out == 1).all()
    resident = min(wave_threads // 32, 32)
    assert report.waves == 1
    assert taken[0] == 32 - resident
