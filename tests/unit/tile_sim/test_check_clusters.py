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
    """Block 1 waits for the first phase, when block 0 has arrived for the second."""
    begin = f"{INIT.format(128)} {ARRIVE} {WAIT} @%p1 {ARRIVAL}; {ARRIVE} {WAIT}"
    both = f"{_arrival(1)} {STORE} {_arrival(1)}"
    poll, more = POLL.format("AGAIN", 0), POLL.format("MORE", 1)
    wrong = begin + _apart(both, f"{poll} {LOAD} {ARRIVAL};") + ARRIVE + WAIT
    assert _findings(kernel, wrong, schedule) == ["race"]
    right = begin + _apart(both, f"{poll} {ARRIVAL}; {more} {LOAD}") + ARRIVE + WAIT
    assert _findings(kernel, right, schedule) == []


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_relaxed_meetings(kernel: Kernel, schedule: str) -> None:
    """They hand over what stands before a fence of all of the cluster, and mbarriers made."""
    there, here, relaxed = f"@!%p1 {STORE}", f"@%p1 {LOAD}", ARRIVE.replace("e;", "e.relaxed;")
    assert _findings(kernel, f"{there} {relaxed} {WAIT} {here}", schedule) == ["race"]
    for fence, found in (
        ("fence.acq_rel.cluster;", []), ("fence.sc.gpu;", []), ("membar.gl;", []),
        ("fence.acq_rel.cta;", ["race"]), ("fence.mbarrier_init.release.cluster;", ["race"]),
    ):  # fmt: skip
        body = f"{there} {fence} {relaxed} {WAIT} {here}"
        assert _findings(kernel, body, schedule) == found, fence
        assert _findings(kernel, f"{fence} {there} {relaxed} {WAIT} {here}", schedule) == ["race"]
    poll = POLL.format("AGAIN", 0)
    arrives = _apart(f"{STORE} {_arrival(1)}", f"{poll} {LOAD}")
    made = f"{INIT.format(64)} {relaxed} {WAIT} {arrives} {ARRIVE} {WAIT}"
    assert _findings(kernel, made, schedule) == []
    unfenced = made.replace("@%p2 fence.mbarrier_init.release.cluster;", "")
    assert unfenced != made
    assert "race" in _findings(kernel, unfenced, schedule)


def _through_a_flag(sets: str, polls: str, second: str = LOAD) -> str:
    """Block 0 stores and sets a flag, block 1 polls it and loads."""
    one = f"bar.sync 0; @!%p2 bra SET; {sets} SET:"
    wait = f"POLL: {polls} setp.eq.u32 %p4, %r9, 0; @%p4 bra POLL; PAST"
    return _apart(f"{STORE} {one}", f"{wait} {second}")


#: How a flag is set and seen, and whether that orders what stands before and behind it, of blocks
#: of one cluster, and of two.
FLAGS = {
    "device": ("red.release.gpu.global.add.u32 [flag], 1;",
               "ld.acquire.gpu.global.u32 %r9, [flag];", "", True, True),
    "cluster": ("st.release.cluster.global.u32 [flag], 1;",
                "ld.acquire.cluster.global.u32 %r9, [flag];", "", True, False),
    "cluster and device": ("st.release.cluster.global.u32 [flag], 1;",
                           "ld.acquire.sys.global.u32 %r9, [flag];", "", True, False),
    "one block": ("red.release.cta.global.add.u32 [flag], 1;",
                  "ld.acquire.gpu.global.u32 %r9, [flag];", "", False, False),
    "one block reads": ("red.release.gpu.global.add.u32 [flag], 1;",
                        "ld.acquire.cta.global.u32 %r9, [flag];", "", False, False),
    "relaxed write": ("red.relaxed.gpu.global.add.u32 [flag], 1;",
                      "ld.acquire.gpu.global.u32 %r9, [flag];", "", False, False),
    "relaxed read": ("red.release.gpu.global.add.u32 [flag], 1;",
                     "ld.relaxed.gpu.global.u32 %r9, [flag];", "", False, False),
    "volatile": ("st.volatile.global.u32 [flag], 1;", "ld.volatile.global.u32 %r9, [flag];", "",
                 False, False),
    "fences": ("fence.acq_rel.gpu; st.relaxed.gpu.global.u32 [flag], 1;",
               "ld.relaxed.gpu.global.u32 %r9, [flag];", "fence.acq_rel.gpu;", True, True),
    "fences of memory": ("membar.gl; st.volatile.global.u32 [flag], 1;",
                         "ld.volatile.global.u32 %r9, [flag];", "membar.gl;", True, True),
    "fences of the cluster": ("fence.acq_rel.cluster; st.relaxed.gpu.global.u32 [flag], 1;",
                              "ld.relaxed.gpu.global.u32 %r9, [flag];", "fence.sc.cluster;", True,
                              False),
    "a fence of one block": ("fence.acq_rel.cta; st.relaxed.gpu.global.u32 [flag], 1;",
                             "ld.acquire.gpu.global.u32 %r9, [flag];", "", False, False),
    "one fence": ("fence.acq_rel.gpu; st.relaxed.gpu.global.u32 [flag], 1;",
                  "ld.relaxed.gpu.global.u32 %r9, [flag];", "", False, False),
    "a fence too late": ("st.relaxed.gpu.global.u32 [flag], 1; fence.acq_rel.gpu;",
                         "ld.acquire.gpu.global.u32 %r9, [flag];", "", False, False),
}  # fmt: skip


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("how", FLAGS)
def test_flags_between_blocks(kernel: Kernel, how: str, schedule: str) -> None:
    sets, polls, behind, near, far = FLAGS[how]
    body = _through_a_flag(sets, polls).replace("PAST", behind)
    assert _findings(kernel, body, schedule) == ([] if near else ["race"])
    block = START.replace("%cluster_ctarank", "%ctaid.x")
    apart = lambda text, *rest: kernel(text.replace(START, block), *rest)  # noqa: E731
    assert _findings(apart, body, schedule, cluster=1) == ([] if far else ["race"])


@pytest.mark.parametrize("fence", ["fence.acq_rel.cta;", ""])
def test_scopes_of_one_block(kernel: Kernel, fence: str) -> None:
    """Warp 0 sets the flag, warp 1 of the same block sees it."""
    sets = f"{fence} st.relaxed.cta.global.u32 [flag], 1;"
    one = f"setp.lt.u32 %p1, %r1, 32; mov.u32 %r5, 0; @!%p1 bra SECOND; {STORE} {sets} bra END;"
    polls = "POLL: ld.acquire.cta.global.u32 %r9, [flag]; setp.eq.u32 %p4, %r9, 0; @%p4 bra POLL;"
    body = f"{one} SECOND: {polls} ld.global.b32 %r9, [%rd2+-128]; END:"
    assert _findings(kernel, body, "late", 1, 1) == ([] if fence else ["race"])


COPY = "cp.async.bulk.global.shared::cta.bulk_group [data], [%r4], 256; "
COPY += "cp.async.bulk.commit_group; {0}"
BULK = "mbarrier.arrive.expect_tx.shared.b64 _, [%r3], 256; cp.async.bulk.tensor.1d.shared::cluster"
BULK += ".global.tile.mbarrier::complete_tx::bytes [%r4], [map, {0}], [%r3];"


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_copies_of_the_blocks_of_a_cluster(kernel: Kernel, schedule: str) -> None:
    """Block 0 copies by the asynchronous proxy to, or from, what block 1 accesses behind a meeting:
    the copy has to be over, and block 1's stores fenced.
    """
    begin = f"{INIT.format(1)} mul.wide.u32 %rd3, %r1, 4; cvt.u32.u64 %r8, %rd3; "
    begin += "add.u32 %r8, %r4, %r8; st.shared.b32 [%r8], %r1; fence.proxy.async.shared::cta; "
    begin += f"bar.sync 0; {ARRIVE} {WAIT} not.pred %p3, %p1; and.pred %p3, %p2, %p3;"
    meets = f"{ARRIVE} {WAIT}"
    done = COPY.format("cp.async.bulk.wait_group 0;")
    for copy, found in (
        (done, []),
        (COPY.format("cp.async.bulk.wait_group.read 0;"), ["destination-in-flight"]),
    ):
        only = f"@!%p3 bra PAST; {copy} PAST:"
        assert _findings(kernel, f"{begin} {only} {meets} @%p1 {LOAD}", schedule) == found
        assert _findings(kernel, f"{begin} {only} @%p1 {LOAD} {meets}", schedule) != []
    load = f"@!%p3 bra PAST; {BULK} PAST:"
    waits = f"@%p1 bra GO; {POLL.format('AGAIN', 0)} GO:"
    assert _findings(kernel, f"{begin} {load} {waits} {meets} @%p1 {STORE}", schedule) == []
    assert _findings(kernel, f"{begin} {load} {meets} @%p1 {STORE} {waits}", schedule) != []
    for fence, kinds in (("fence.proxy.async.global;", []), ("", ["missing-proxy-fence"])):
        body = f"{begin} @%p1 {STORE} {fence} {meets} {load} {waits} {meets}"
        assert _findings(kernel, body, schedule) == kinds
    unmet = f"{begin} @%p1 {STORE} fence.proxy.async.global; {load} {waits} {meets}"
    assert "race" in _findings(kernel, unmet, schedule)
