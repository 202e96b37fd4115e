"""Check mode for tensor maps that a kernel writes again: fences, and copies under way."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tile_sim import Module, TensorMap

Kernel = Callable[..., Module]
SCHEDULES = ["late", "early", "random"]
OPEN = """
.shared .align 1024 .b8 buf[1024]; .shared .align 128 .b8 copy[128]; .shared .align 8 .b64 bar;
mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0; setp.ge.u32 %p4, %r1, 32;
mov.u32 %r2, buf; mov.u32 %r3, bar; mov.u32 %r20, copy;
@%p1 mbarrier.init.shared.b64 [%r3], 1;
@%p1 fence.mbarrier_init.release.cluster;
shl.b32 %r22, %r1, 2; @%p4 bra FETCHED;
cvt.u64.u32 %rd3, %r22; add.u64 %rd4, map, %rd3; ld.global.b32 %r23, [%rd4];
add.u32 %r24, %r20, %r22; st.shared.b32 [%r24], %r23;
FETCHED: bar.sync 0;
"""
#: The first warp makes the map one of other memory, `n` times.
WRITE = """
@%p4 bra MADE{n};
@%p1 tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%r20], {memory};
bar.warp.sync 0xffffffff;
tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned
    [map], [%r20], 128;
{fence}
MADE{n}:
"""
ACQUIRE = "fence.proxy.tensormap::generic.acquire.gpu [map], 128;"
LOAD = """
@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r3], 64;
@%p1 cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes
    [%r2], [map, {0}], [%r3];
"""
WAIT = """
WAIT{n}: mbarrier.try_wait.parity.shared.b64 %p2, [%r3], {n};
@!%p2 bra WAIT{n};
"""
#: By a thread of the second warp: the first one learns of it where all meet.
WAIT_APART = "@!%p4 bra MET{n};" + WAIT + "MET{n}: bar.sync 0;"
FILL = "add.u32 %r25, %r2, %r22; st.shared.b32 [%r25], %r1; fence.proxy.async; bar.sync 0;"
STORE = """
@%p1 cp.async.bulk.tensor.1d.global.shared::cta.tile.bulk_group [map, {0}], [%r2];
@%p1 cp.async.bulk.commit_group;
"""
READ = "@%p1 cp.async.bulk.wait_group.read 0;"


def _write(n: int, fence: str = ACQUIRE) -> str:
    return WRITE.format(n=n, memory="xy"[n], fence=fence)


def _found(kernel: Kernel, body: str, schedule: str) -> list[str]:
    """Kinds of findings of a kernel that copies by a map, changes it, and copies again."""
    x, y = (np.arange(64, dtype=np.float32) + n for n in range(2))
    tensor = TensorMap(np.zeros(64, np.float32), box=(16,))
    module = kernel(OPEN + body, "u64 map, u64 x, u64 y")
    report = module.launch(
        "k", (1, 1, 1), (64, 1, 1), [tensor, x, y], check=True, schedule=schedule
    )
    return sorted({finding.kind for finding in report.findings})


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("wait", [WAIT, WAIT_APART], ids=["itself", "another warp"])
def test_a_load_is_awaited_before_its_map_is_written(
    kernel: Kernel, wait: str, schedule: str
) -> None:
    def body(between: str, fence: str = ACQUIRE) -> str:
        return _write(0) + LOAD + between + _write(1, fence) + LOAD + WAIT.format(n=1)

    right = wait.format(n=0)
    assert _found(kernel, body(right), schedule) == []
    once = _write(0) + LOAD + _write(1) + WAIT.format(n=0)
    assert _found(kernel, once, schedule) == ["map-in-use"]
    assert _found(kernel, body(right, ""), schedule) == ["missing-proxy-fence"]


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_who_waits_has_to_tell_the_warp_that_writes(kernel: Kernel, schedule: str) -> None:
    apart = WAIT_APART.format(n=0).replace("bar.sync 0;", "")
    body = _write(0) + LOAD + apart + _write(1) + "bar.sync 0;"
    assert _found(kernel, body, schedule) == ["map-in-use"]


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_store_has_been_read_before_its_map_is_written(kernel: Kernel, schedule: str) -> None:
    def body(wait: str) -> str:
        return FILL + _write(0) + STORE + wait + _write(1) + STORE + READ

    assert _found(kernel, body(READ), schedule) == []
    assert _found(kernel, body(""), schedule) == ["map-in-use"]
