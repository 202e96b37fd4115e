"""What a mechanism is: a kernel whose loop does one thing, and what its time says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

_HEAD = """.version {version}
.target {target}
.address_size 64
.visible .entry k(.param .u64 .ptr .global .align 16 p, .param .u32 n,
.param .u64 .ptr .global .align 8 clocks) .reqntid {threads} {cluster}
{{
.reg .b64 %rd<16>; .reg .b32 %r<64>; .reg .f32 %f<200>; .reg .pred %p<8>; .reg .b16 %h<4>;
.reg .f64 %d<16>; .reg .b64 %clk<4>; .reg .pred %first;
{declare}
ld.param.u64 %rd1, [p];
ld.param.u32 %r1, [n];
ld.param.u64 %clk3, [clocks];
mov.u32 %r2, %tid.x;
mov.u32 %r3, 0;
{before}
{meet}
mov.u64 %clk1, %clock64;
LOOP:
{body}
add.u32 %r3, %r3, 1;
setp.lt.u32 %p1, %r3, %r1;
@%p1 bra LOOP;
{meet}
mov.u64 %clk2, %clock64;
sub.u64 %clk2, %clk2, %clk1;
setp.eq.u32 %first, %r2, 0;
@%first st.global.u64 [%clk3], %clk2;
{after}
ret;
}}
"""
VERSIONS = {"sm_80": "7.0", "sm_90a": "8.0", "sm_100a": "8.6", "sm_120a": "8.7"}


@dataclass(frozen=True)
class Mechanism:
    """One kernel `k(p, n, clocks)`, which leaves in `clocks` the clk of `n` turns of its loop.

    What is measured is the slope between two numbers of turns, so that what happens once does not
    count; `per` is what one turn does, in the unit's denominator. The result is `per / slope` where
    `rate` is set and `slope / per` elsewhere. `numbers.NUMBERS` says which numbers of the machine
    file follow.
    """

    name: str
    gpu: str
    target: str
    body: str
    expected: float
    unit: str
    per: float = 1.0
    rate: bool = False
    threads: int = 32
    before: str = ""
    after: str = ""
    declare: str = ""
    turns: tuple[int, int] = (8, 24)
    grid: int = 1
    cluster: int = 1
    warm: bool = False
    size: int = 1 << 16  # f32 elements of p
    fill: Callable[[np.ndarray], None] | None = field(default=None, compare=False)
    offset: float = 0.0  # clk of a turn that are none of the mechanism's: loop, address

    @property
    def ptx(self) -> str:
        cluster = f".reqnctapercluster {self.cluster}, 1, 1" if self.cluster > 1 else ""
        return _HEAD.format(
            version=VERSIONS[self.target], target=self.target, threads=self.threads,
            cluster=cluster, body=self.body, before=self.before, after=self.after,
            declare=self.declare, meet="bar.sync 0;" if self.threads > 32 else "",
        )  # fmt: skip

    def array(self) -> np.ndarray:
        made = np.zeros(self.size, np.float32)
        if self.fill is not None:
            self.fill(made)
        return made

    @property
    def gpu_turns(self) -> tuple[int, int]:
        """On a GPU more turns, but for those that need memory that nobody has touched."""
        many = 1 if self.size > 1 << 16 else 16
        return self.turns[0] * many, self.turns[1] * many

    def value(self, slope: float) -> float:
        """The measured quantity from the clk of one turn."""
        slope -= self.offset
        return self.per / slope if self.rate else slope / self.per
