"""What L1 serves in the timing model: words of a sector that was there, to loads and `cp.async.ca`;
nothing to `cp.async.cg`.
"""

from __future__ import annotations

import numpy as np
import pytest
from tile_time.model import load_kernel, time_kernel
from tile_time.result import Result

from tile_core.machines import builtin_machines

_STEPS = 64
_WAYS = {
    "load": "ld.global.u32 %r3, [%rd2]; xor.b32 %r4, %r4, %r3;"
    "cvt.u64.u32 %rd3, %r3; add.u64 %rd2, %rd2, %rd3;",
    "cp.async.ca": "cp.async.ca.shared.global [%r2], [%rd2], 4;"
    "cp.async.commit_group; cp.async.wait_group 0;",
    "cp.async.cg": "cp.async.cg.shared.global [%r2], [%rd2], 16;"
    "cp.async.commit_group; cp.async.wait_group 0;",
}


def _timed(body: str, apart: int) -> Result:
    """A warp that does `body` at %rd2, one place behind the other, `apart` bytes each."""
    text = f""".version 8.3
.target sm_90
.address_size 64
.visible .entry k(.param .u64 .ptr .global .align 16 x, .param .u64 .ptr .global .align 16 out)
.reqntid 32 {{
.reg .b64 %rd<6>; .reg .b32 %r<6>; .reg .pred %p;
.shared .align 128 .b8 s[128];
ld.param.u64 %rd1, [x]; ld.param.u64 %rd4, [out]; mov.u64 %rd2, %rd1; mov.u32 %r2, s;
mov.u32 %r4, %tid.x; mul.wide.u32 %rd5, %r4, 4; mov.u32 %r4, 0; mov.u32 %r5, 0;
LOOP: {body}
add.u64 %rd2, %rd2, {apart}; add.u32 %r5, %r5, 1; setp.lt.u32 %p, %r5, {_STEPS}; @%p bra LOOP;
st.global.u32 [%rd4], %r4; ret;
}}
"""
    machine = builtin_machines()["h100-sxm"]
    arguments = [np.zeros(_STEPS * 512, np.uint8), np.zeros(8, np.uint32)]
    return time_kernel(load_kernel(text, machine, "k"), (1, 1, 1), None, arguments)


def _clk(way: str, apart: int) -> float:
    """Of lanes that read the same."""
    return _timed(_WAYS[way], apart).cycles


@pytest.mark.parametrize("way", ["load", "cp.async.ca"])
def test_neighbours_come_from_l1(way: str) -> None:
    """Of eight words of a sector one comes from L2, and the others sooner by most of the way."""
    memory = builtin_machines()["h100-sxm"].memory
    sooner = memory.l2_latency - memory.l1_latency
    assert _clk(way, 128) - _clk(way, 4) > 0.9 * sooner * _STEPS * 7 / 8


def test_what_passes_l1_by_finds_nothing_there() -> None:
    assert _clk("cp.async.cg", 16) == pytest.approx(_clk("cp.async.cg", 128), rel=0.02)


@pytest.mark.parametrize("words", [1, 3])
def test_lanes_that_are_a_word_further_find_their_sectors(words: int) -> None:
    """As those of a stencil are: what a warp reads of one line and a sector comes once."""
    part = "add.u64 %rd3, %rd2, %rd5; ld.global.u32 %r3, [%rd3 + {at}]; xor.b32 %r4, %r4, %r3;"
    body = "\n".join(part.format(at=4 * word) for word in range(words))
    line, sector, stored = 128, 32, 32
    wanted = line * _STEPS + (sector if words > 1 else 0) + stored
    assert _timed(body, line).bytes_l2 == wanted
