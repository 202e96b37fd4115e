"""Control of the machine: trap, nanosleep and the like."""

from __future__ import annotations

from tile_sim.errors import SimError
from tile_sim.isa.common import U32
from tile_sim.machine.group import Group
from tile_sim.program.decode import Decode, Exec, instruction


@instruction("trap", "brkpt")
def trap(cx: Decode) -> Exec:
    cx.done(0)
    op = cx.ins.op

    def execute(g: Group) -> None:
        row, lane = int(g.lane_rows()[0]), int(g.lane_ids()[0])
        wave = g.wave
        cta = tuple(int(axis[row, 0]) for axis in wave.ctaid)
        thread = int(wave.warpid[row, 0]) * 32 + lane
        raise SimError(op, f"executed by thread {thread} of CTA {cta} ({g.count()} threads)")

    return execute


@instruction("nanosleep")
def nanosleep(cx: Decode) -> Exec:
    cx.type("u32")
    cx.done(1)
    cx.src(0, U32)

    def execute(g: Group) -> None:
        g.wave.polled = True

    return execute


@instruction("pmevent")
def pmevent(cx: Decode) -> Exec:
    cx.flag("mask")
    cx.done(1)
    return lambda g: None


@instruction("alloca", "stacksave", "stackrestore")
def dynamic_stack(cx: Decode) -> Exec:
    """A stack of dynamic size."""
    cx.fail("dynamic allocation on the stack is not supported", "unknown-instruction")
