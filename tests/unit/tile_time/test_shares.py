"""An SM's part of L2 and DRAM, and the order in which SASS is issued."""

from __future__ import annotations

import numpy as np
import pytest
from tile_time.engine.state import Share, Sm
from tile_time.flow import topological
from tile_time.model import load_kernel, time_kernel
from tile_time.variety import _busiest

from tile_core.machines import builtin_machines

H100 = builtin_machines()["h100-sxm"]


def test_bursts_have_what_was_left_within_the_longest_queue() -> None:
    share = Share(2.0)
    assert share.take(0.0, 100) == 50.0  # together with all others: the part alone
    assert share.take(1000.0, 100) == 1000.0  # 50 clk of the part were not used by then
    assert share.take(1000.0, 100) == 1050.0
    assert share.take(1000.0, 100) == 1100.0


def test_in_the_long_run_nobody_gets_more_than_the_part() -> None:
    share = Share(2.0)
    ends = [share.take(10.0 * n, 100) for n in range(200)]
    assert ends[-1] == pytest.approx(200 * 50.0)


def test_a_slower_server_is_never_earlier() -> None:
    fast, slow = Share(4.0), Share(2.0)
    for t, size in ((0, 400), (500, 100), (510, 900), (520, 10), (4000, 700)):
        assert slow.take(float(t), size) >= fast.take(float(t), size)


def test_the_wait_for_dram_grows_with_its_load() -> None:
    idle, busy = Sm(H100, 132.0, H100.clock.boost), Sm(H100, 132.0, H100.clock.boost)
    part = busy.dram.rate
    for t in range(0, 20_000, 10):
        busy.through_dram(float(t), part * 5)  # half of the part
    waits = [sm.through_dram(30_000.0 if sm is idle else 20_000.0, 32) for sm in (idle, busy)]
    assert waits[0] - 30_000 < 5
    assert waits[1] - 20_000 == pytest.approx(H100.memory.dram_wait, rel=0.2)


#: Four loads in blocks of their own, which ptxas makes predicated loads side by side.
_BRANCHES = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 .ptr .global .align 4 a, .param .u32 n)
.reqntid 32 {{
.reg .b32 %r<9>; .reg .f32 %f<9>; .reg .b64 %rd<4>; .reg .pred %p<9>;
ld.param.u64 %rd1, [a]; ld.param.u32 %r1, [n]; mov.u32 %r2, %tid.x; mul.wide.u32 %rd2, %r2, 4;
add.u64 %rd1, %rd1, %rd2; mov.f32 %f0, 0f00000000;
{loads}
st.global.f32 [%rd1], %f0; ret;
}}
"""


def _branches(count: int) -> float:
    loads = "\n".join(
        f"mov.f32 %f{n}, 0f00000000; setp.le.u32 %p{n}, %r1, {n}; @%p{n} bra L{n};\n"
        f"ld.global.f32 %f{n}, [%rd1+{4096 * n}];\nL{n}: add.f32 %f0, %f0, %f{n};"
        for n in range(1, count + 1)
    )
    kernel = load_kernel(_BRANCHES.format(loads=loads), H100)
    arguments = [np.zeros(1 << 16, np.float32), np.uint32(100)]
    return time_kernel(kernel, (1, 1, 1), None, arguments).cycles


def test_loads_of_several_blocks_are_in_flight_together() -> None:
    one, four = _branches(1), _branches(4)
    assert one > H100.memory.dram_latency
    assert four < one + 0.5 * H100.memory.dram_latency


def test_blocks_come_behind_those_that_lead_to_them() -> None:
    # A block that stands last and leads back to the middle; a loop; one that nothing leads to.
    order = topological([[1, 4], [2], [2, 3], [], [1], [3]])
    place = {node: n for n, node in enumerate(order)}
    assert sorted(order) == list(range(6))
    assert place[0] < place[4] < place[1] < place[2] < place[3]
    assert place[5] < place[3]


def test_the_place_that_ends_last_has_the_clusters_that_it_got() -> None:
    assert _busiest([2, 2, 2, 1], 2) == [0, 2]
    assert _busiest([5, 1, 1, 1], 2) == [0]


#: Two warps, of which the second one is at work for long when its load has come.
_TWO = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 .ptr .global .align 4 a)
.reqntid 64 {{
.reg .b32 %r<9>; .reg .f32 %f<3>; .reg .b64 %rd<4>; .reg .pred %p<2>;
ld.param.u64 %rd1, [a]; mov.u32 %r1, %tid.x; and.b32 %r2, %r1, {lanes}; mul.wide.u32 %rd2, %r2, 4;
add.u64 %rd1, %rd1, %rd2; ld.global.f32 %f1, [%rd1]; setp.lt.u32 %p1, %r1, 32; @%p1 bra OUT;
{work}
OUT: st.global.f32 [%rd1+65536], %f1; ret;
}}
"""


def test_a_line_that_is_on_its_way_is_waited_for() -> None:
    def clk(lanes: int) -> float:
        text = _TWO.format(lanes=lanes, work="fma.rn.f32 %f1, %f1, %f1, %f1;\n" * 200)
        return time_kernel(
            load_kernel(text, H100), (1, 1, 1), None, [np.zeros(1 << 15, np.float32)]
        ).cycles

    apart, together = clk(63), clk(31)
    assert together == pytest.approx(apart, rel=0.01)
    assert apart > H100.memory.dram_latency + 200 * H100.pipes.fma.latency
