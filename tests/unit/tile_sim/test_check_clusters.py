"""Check mode for blocks of one cluster that access the same global memory: what orders them, and
what only seems to.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tile_sim import Module, SimError, TensorMap

Kernel = Callable[..., Module]
SCHEDULES = ("late", "early", "random")
#: Two blocks of two warps; each thread has a word of `data`, block 1 is %p1, thread 0 %p2.
START = """
.shared .align 128 .b8 buf[256];
.shared .align 8 .b64 bar;
mov.u32 %r1, %tid.x; mov.u32 %r2, %cluster_ctarank; setp.ne.u32 %p1, %r2, 0;
setp.eq.u32 %p2, %r1, 0; mov.u32 %r3, bar; mov.u32 %r4, buf;
mul.wide.u32 %rd1, %r1, 4; add.u64 %rd2, data, %rd1;
"""
ARRIVE, WAIT = "barrier.cluster.arrive;", "barrier.cluster.wait;"
STORE, LOAD = "st.global.b32 [%rd2], %r1;", "ld.global.b32 %r9, [%rd2];"
ALIGNED = "barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;"


def _findings(
    kernel: Kernel, body: str, schedule: str = "late", blocks: int = 2, cluster: int = 2
) -> list[str]:
    """The kinds of what is found in a launch of clusters of 64 threads each."""
    data, flag = np.zeros(64, np.uint32), np.zeros(1, np.uint32)
    module = kernel(START + body, "u64 data, u64 map, u64 flag")
    try:
        report = module.launch(
            "k", (blocks, 1, 1), (64, 1, 1), [data, TensorMap(data, box=(64,)), flag],
            cluster=(cluster, 1, 1), check=True, schedule=schedule, max_steps=5000,
        )  # fmt: skip
    except SimError as error:
        return [error.kind]
    return sorted({finding.kind for finding in report.findings})


def _apart(first: str, second: str) -> str:
    """Block 0 does one thing, block 1 another; all come to the end."""
    return f"@%p1 bra SECOND; {first} bra END; SECOND: {second} END:"


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(("first", "second"), [(STORE, LOAD), (LOAD, STORE), (STORE, STORE)])
def test_a_meeting_of_the_cluster_orders_accesses(
    kernel: Kernel, first: str, second: str, schedule: str
) -> None:
    there, here = f"@!%p1 {first}", f"@%p1 {second}"
    for meeting in (f"{ARRIVE} {WAIT}", ALIGNED):
        assert _findings(kernel, f"{there} {meeting} {here}", schedule) == []
    for wrong in (
        f"{there} {here}",
        f"{there} bar.sync 0; {here}",
        f"{there} {here} {ARRIVE} {WAIT}",
        f"{ARRIVE} {WAIT} {there} {here}",
        f"{ARRIVE} {there} {WAIT} {here}",
        f"{there} {ARRIVE} {here} {WAIT}",
    ):
        assert _findings(kernel, wrong, schedule) == ["race"], wrong


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_accesses_that_are_in_need_of_no_order(kernel: Kernel, schedule: str) -> None:
    """Reads, other places, and sums."""
    other = "add.u32 %r5, %r1, 32; and.b32 %r5, %r5, 63; mul.wide.u32 %rd3, %r5, 4;"
    other += "add.u64 %rd4, data, %rd3; setp.lt.u32 %p3, %r1, 32;"
    first = "@!%p3 bra END; st.global.b32 [%rd2], %r1; bra END;"
    second = "@!%p3 bra END; st.global.b32 [%rd4], %r1; bra END;"
    assert _findings(kernel, LOAD, schedule) == []
    assert _findings(kernel, f"{other} {_apart(first, second)}", schedule) == []
    assert _findings(kernel, "red.global.add.u32 [%rd2], 1;", schedule) == []
    assert _findings(kernel, STORE, schedule, cluster=1) == ["race"]
    assert _findings(kernel, STORE, schedule) == ["race"]


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_blocks_that_meet_at_different_places(kernel: Kernel, schedule: str) -> None:
    """Block 0 meets once more than block 1, before its store: block 1 is past its last meeting
    when block 0 has stored, though block 0 arrives there, too.
    """
    meet = f"{ARRIVE} {WAIT}"
    right = f"@%p1 bra SECOND; {STORE} SECOND: {meet} {meet} @%p1 {LOAD}"
    wrong = f"@%p1 bra SECOND; {meet} {STORE} {meet} SECOND: {meet} @%p1 {LOAD}"
    assert _findings(kernel, right, schedule) == []
    assert _findings(kernel, wrong, schedule) == ["race"]
    late = wrong.replace(f"SECOND: {meet}", f"SECOND: {meet} {meet} {meet}")
    assert late != wrong
    assert _findings(kernel, late, schedule) == []


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_warps_that_meet_at_different_places(kernel: Kernel, schedule: str) -> None:
    """The same of a named barrier in one block: warp 0 is %p3."""
    start = "setp.lt.u32 %p3, %r1, 32; and.b32 %r5, %r1, 31; mul.wide.u32 %rd1, %r5, 4;"
    start += "add.u64 %rd2, data, %rd1;"
    meet = "bar.sync 1, 64;"
    first = f"{start} @!%p3 bra SECOND; {meet} {STORE} {meet} bra END; SECOND: {meet}"
    assert _findings(kernel, f"{first} {LOAD} {meet} END:", schedule, 1, 1) == ["race"]
    assert _findings(kernel, f"{first} {meet} {LOAD} END:", schedule, 1, 1) == []


INIT = "@%p2 mbarrier.init.shared.b64 [%r3], {0}; @%p2 fence.mbarrier_init.release.cluster;"
ARRIVAL = "mbarrier.arrive.shared.b64 _, [%r3]"
POLL = "{0}: mbarrier.try_wait.parity.acquire.cluster.shared.b64 %p4, [%r3], {1}; @!%p4 bra {0};"


def _arrival(rank: int) -> str:
    """Threads arrive at the mbarrier of a block."""
    there = f"mapa.shared::cluster.u32 %r6, %r3, {rank};"
    return f"{there} mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r6];"


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_mbarriers_order_accesses(kernel: Kernel, schedule: str) -> None:
    """Each thread of block 0 arrives at the mbarrier of block 1, which waits for that."""
    begin = f"{INIT.format(64)} {ARRIVE} {WAIT}"
    poll = POLL.format("AGAIN", 0)
    for first, second in ((STORE, LOAD), (LOAD, STORE), (STORE, STORE)):
        right = begin + _apart(f"{first} {_arrival(1)}", f"{poll} {second}") + ARRIVE + WAIT
        assert _findings(kernel, right, schedule) == []
        early = begin + _apart(f"{_arrival(1)} {first}", f"{poll} {second}") + ARRIVE + WAIT
        assert _findings(kernel, early, schedule) == ["race"]
        unmet = begin + _apart(f"{first} {_arrival(1)}", second) + ARRIVE + WAIT
        assert _findings(kernel, unmet, schedule) == ["race"]


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_arrivals_for_the_next_phase(kernel: Kernel, schedule: str) -> None:
    """Block 1 waits for the first phase, when block 0 may have stored and arrived for the second."""
    begin = f"{INIT.format(128)} {ARRIVE} {WAIT} @%p1 {ARRIVAL}; {ARRIVE} {WAIT}"
    both = f"{_arrival(1)} {STORE} {_arrival(1)}"
    poll, more = POLL.format("AGAIN", 0), POLL.format("MORE", 1)
    wrong = begin + _apart(both, f"{poll} {LOAD} {ARRIVAL};") + ARRIVE + WAIT
    assert _findings(kernel, wrong, schedule) == ["race"]
    right = begin + _apart(both, f"{poll} {ARRIVAL}; {more} {LOAD}") + ARRIVE + WAIT
    assert _findings(kernel, right, schedule) == []
