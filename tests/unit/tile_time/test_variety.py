"""Clusters of a launch that do different amounts of work; requests that a warp makes once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from tile_sim import Module
from tile_time import model
from tile_time.model import WAY_ALONE, load_kernel, record, time_kernel
from tile_time.record import Bulk, Recorder
from tile_time.result import Result
from tile_time.variety import SAME, Counter, variety_of

from tile_core.machines import builtin_machines

# Each CTA adds so many times: `most` times, or as its number says.
_TURNS = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 .ptr .global .align 4 out, .param .u32 turns, .param .u32 ragged)
.reqntid 32 {
.reg .b32 %r<9>; .reg .f32 %f<4>; .reg .b64 %rd<4>; .reg .pred %p<4>;
ld.param.u32 %r1, [turns]; ld.param.u32 %r2, [ragged]; mov.u32 %r3, %ctaid.x;
setp.ne.u32 %p1, %r2, 0; @%p1 mad.lo.u32 %r1, %r3, %r2, 1; mov.u32 %r4, 0; mov.f32 %f1, 0f3f800000;
LOOP: fma.rn.f32 %f1, %f1, %f1, %f1; fma.rn.f32 %f1, %f1, %f1, %f1; add.u32 %r4, %r4, 1;
setp.lt.u32 %p2, %r4, %r1; @%p2 bra LOOP;
ld.param.u64 %rd1, [out]; st.global.f32 [%rd1], %f1; ret;
}
"""


def _turns(turns: int, ragged: int, ctas: int, sms: int) -> Result:
    machine = builtin_machines()["h100-sxm"].with_number("chip.sms", sms).with_number(
        "chip.ctas", 1
    )  # fmt: skip
    kernel = load_kernel(_TURNS, machine)
    out = np.zeros(1, np.float32)
    return time_kernel(kernel, (ctas, 1, 1), None, [out, np.uint32(turns), np.uint32(ragged)])


@pytest.mark.parametrize("ctas", [60, 200])
def test_ragged_clusters_take_the_time_of_their_mean(ctas: int) -> None:
    ragged = _turns(0, 8, ctas, 4)
    mean = _turns(4 * (ctas - 1) + 1, 0, ctas, 4)
    assert ragged.cycles == pytest.approx(mean.cycles, rel=0.12)


def test_of_clusters_side_by_side_the_longest_decides() -> None:
    ragged = _turns(0, 8, 64, 64)
    assert ragged.cycles == pytest.approx(_turns(8 * 63 + 1, 0, 64, 64).cycles, rel=0.01)


@pytest.mark.parametrize("ctas", [5, 9, 33])
def test_clusters_that_end_together_start_no_more_than_there_are(ctas: int) -> None:
    """A place is claimed when a cluster ends, though it is free a little later only."""
    machine = builtin_machines()["h100-sxm"].with_number("chip.sms", 1)
    machine = machine.with_number("chip.ctas", 4)
    arguments = [np.zeros(1, np.float32), np.uint32(8), np.uint32(0)]
    found = time_kernel(load_kernel(_TURNS, machine), (ctas, 1, 1), None, arguments)
    one = _turns(8, 0, 1, 1)
    assert found.issued == ctas * one.issued


def test_clusters_that_differ_are_played_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first of them say less of the others than of equal ones."""
    whole = _turns(0, 8, 60, 4)
    monkeypatch.setattr(model, "MOST_ISSUED", whole.issued // 8)
    assert _turns(0, 8, 60, 4).cycles == whole.cycles
    monkeypatch.setattr(model, "MOST_ISSUED_OF_KINDS", whole.issued // 8)
    assert _turns(0, 8, 60, 4).issued < whole.issued


def test_equal_clusters_are_one_kind() -> None:
    assert variety_of(lambda which: [7] * len(which), 7, 1000, 10, 100) == SAME
    assert variety_of(lambda which: [], 7, 1, 10, 1) == SAME


def test_kinds_keep_the_mean() -> None:
    def steps(which: Sequence[int]) -> list[int]:
        return [10 + n % 64 for n in which]

    found = variety_of(steps, 10, 2048, 132, 16)
    mean = sum(steps([found.clusters[kind]])[0] for kind in found.order) / len(found.order)
    assert mean == pytest.approx(10 + 31.5, rel=0.15)
    assert len(found.clusters) <= 4


def _triangle(which: Sequence[int], period: int) -> list[int]:
    """Steps of causal attention: the more, the later in its head a cluster is."""
    return [3 + 2 * (n % period) for n in which]


@pytest.mark.parametrize("period", [8, 64])
@pytest.mark.parametrize("places", [85, 108, 132, 148, 170])
def test_the_busiest_place_has_what_it_would_have(period: int, places: int) -> None:
    """Whatever the period, and however many clusters are counted: 13 at 2048 / 13 had two thirds of
    the steps for 170 places, as their distance is 2.5 periods.
    """
    clusters = 32 * period
    steps = _triangle(range(clusters), period)
    each = -(-clusters // places)
    found = variety_of(lambda which: _triangle(which, period), 3, clusters, places, each)
    kinds = [_triangle([n], period)[0] for n in found.clusters]
    ran = [kinds[found.kind(i, found.count)] for i in range(found.count)]
    ends = [0] * places
    for count in steps:  # to the place that is free first
        ends[ends.index(min(ends))] += count
    assert sum(ran) == pytest.approx(max(ends), rel=0.12)


def test_a_store_that_all_threads_ask_for_is_one_request() -> None:
    ptx = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 .ptr .global .align 16 out) .reqntid 32 {
.reg .b64 %rd<4>; .reg .b32 %r<4>; .shared .align 16 .b8 s[512];
ld.param.u64 %rd1, [out]; mov.u32 %r1, s; cvta.to.global.u64 %rd1, %rd1;
cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r1], 512;
cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; ret;
}
"""
    kernel = load_kernel(ptx, builtin_machines()["h100-sxm"])
    recorder = Recorder()
    record(kernel, recorder, (1, 1, 1), None, [np.zeros(128, np.float32)], [0], {})
    notes = [n for step in recorder.warps[0, 0] for v in (step.notes or {}).values() for n in v]
    assert [n.size for n in notes if isinstance(n, Bulk)] == [512]


# CTAs but the first loop as often as a number says that a bulk store has brought to global memory.
_READ_BACK = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 .ptr .global .align 16 out) .reqntid 32 {
.reg .b64 %rd<4>; .reg .b32 %r<9>; .reg .pred %p<4>; .shared .align 16 .b8 s[16];
ld.param.u64 %rd1, [out]; mov.u32 %r1, %ctaid.x; mov.u32 %r2, 1; mov.u32 %r3, 0;
setp.eq.u32 %p1, %r1, 0; @%p1 bra LOOP;
mul.lo.u32 %r4, %r1, 5; st.shared.v4.u32 [s], {%r4, %r4, %r4, %r4};
mov.u32 %r5, %tid.x; setp.eq.u32 %p2, %r5, 0; mov.u32 %r5, s;
fence.proxy.async.shared::cta; bar.sync 0;
@%p2 cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r5], 16;
@%p2 cp.async.bulk.commit_group; @%p2 cp.async.bulk.wait_group 0; bar.sync 0;
ld.global.u32 %r2, [%rd1];
LOOP: add.u32 %r3, %r3, 1; setp.lt.u32 %p3, %r3, %r2; @%p3 bra LOOP; ret;
}
"""


def test_what_bulk_stores_bring_to_a_branch_is_there_when_steps_are_counted() -> None:
    """Also where the first cluster, which is recorded before, has no such branch."""
    kernel = load_kernel(_READ_BACK, builtin_machines()["h100-sxm"])
    out = np.zeros(4, np.uint32)
    record(kernel, Recorder(), (4, 1, 1), None, [out], [0], {})
    steps = []
    for cta in range(4):
        counter = Counter(1000)
        record(kernel, counter, (4, 1, 1), None, [out], [cta], {}, WAY_ALONE)
        steps.append(counter.steps(0, 1))
    turns = [1, 5, 10, 15]
    assert [n - steps[1] for n in steps[2:]] == [n - turns[1] for n in turns[2:]]


def test_counting_moves_no_data_of_bulk_stores() -> None:
    """What they would write is not made; arrays stay as they are."""
    ptx = _READ_BACK.replace("ld.global.u32 %r2, [%rd1];", "mov.u32 %r2, 7;")
    kernel = load_kernel(ptx, builtin_machines()["h100-sxm"])
    out = np.arange(4, dtype=np.uint32)
    record(kernel, Counter(1000), (2, 1, 1), None, [out], [1], {}, WAY_ALONE)
    assert out.tolist() == [0, 1, 2, 3]
    assert not kernel.module.program("k").made
    Module(ptx).launch("k", (2, 1, 1), None, [out])
    assert out.tolist() == [5, 5, 5, 5]


# Each thread stores 16 words, a CTA 8 KiB of its own.
_STORES = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 .ptr .global .align 4 out)
.reqntid 128 {
.reg .b32 %r<5>; .reg .b64 %rd<4>; .reg .pred %p<2>;
ld.param.u64 %rd1, [out]; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %tid.x;
mad.lo.u32 %r3, %r1, 2048, %r2; mul.wide.u32 %rd2, %r3, 4; add.s64 %rd3, %rd1, %rd2; mov.u32 %r4, 0;
LOOP: st.global.u32 [%rd3], %r4; add.s64 %rd3, %rd3, 512; add.u32 %r4, %r4, 1;
setp.lt.u32 %p1, %r4, 16; @%p1 bra LOOP; ret;
}
"""


def test_what_is_stored_passes_dram(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for it, and the pace of a few clusters does not show it."""
    machine = builtin_machines()["h100-sxm"].with_number("chip.sms", 1)
    machine = machine.with_number("chip.l2", 1 << 20).with_number("memory.dram_bandwidth", 4)
    ctas = 400
    monkeypatch.setattr(model, "MOST_ISSUED", 20_000)
    out = [np.zeros(ctas * 2048, np.uint32)]
    found = time_kernel(load_kernel(_STORES, machine), (ctas, 1, 1), None, out)
    assert found.roofs["DRAM"] == pytest.approx(1.0)
