"""`clusterlaunchcontrol`: taking over clusters of the grid that have not been launched."""

from __future__ import annotations

import numpy as np

from tile_sim.isa.address import address
from tile_sim.isa.bulk import addresses_of, receivers, signal
from tile_sim.isa.common import B32, PRED
from tile_sim.machine import shared
from tile_sim.machine.asyncs import Operation
from tile_sim.machine.group import Group
from tile_sim.machine.wave import Wave
from tile_sim.program.decode import Decode, Exec, Getter, instruction

Array = np.ndarray
_BYTES = 16
_COMPLETE = "mbarrier::complete_tx::bytes"


@instruction("clusterlaunchcontrol.try_cancel")
def try_cancel(cx: Decode) -> Exec:
    """Write a response of 16 bytes to shared memory (of all CTAs of the cluster) and signal.

    The response: x, y, z of the first CTA of the cluster taken, and 1; or zeros.
    """
    cx.flag("async")
    cx.option("shared::cta", "shared")
    cx.one_of(_COMPLETE)
    everywhere = cx.flag("multicast::cluster::all")
    if not cx.flag("b128"):
        cx.fail("needs .b128")
    cx.done(2)
    _, to = address(cx, 0, "shared")
    _, bar = address(cx, 1, "shared")

    def execute(g: Group) -> None:
        wave = g.wave
        for row, target, barrier in zip(
            g.lane_rows(), addresses_of(g, to), addresses_of(g, bar), strict=True
        ):
            response = _take(wave, wave.first_cta + int(wave.cta_of[row]))
            cta, offset = shared.locate(wave, int(row), target, "try_cancel")
            bar_cta, bar_offset = shared.locate(wave, int(row), barrier, "try_cancel")
            ends = [(cta, bar_cta)]
            if everywhere:
                whole = (1 << wave.cluster_size) - 1
                ends = [(c, c) for c in receivers(wave, int(row), whole)]
            if wave.trace is not None:
                known = [(end, shared.barrier_place(wave, end, bar_offset)) for _, end in ends]
                wave.trace.bulk(wave, int(row), _BYTES, -1, _BYTES, known)
            for end, bar_end in ends:
                where = shared.flat(wave, end, offset + np.arange(_BYTES), "try_cancel")
                shared.mark_pending(wave, int(row), where, "try_cancel")
                write = _writer(wave, where, response, bar_end, bar_offset)
                wave.asyncs.issue(int(row), Operation(write, signals=True))

    return execute


def _take(wave: Wave, cta: int) -> Array:
    """A cluster that waits to be launched is not launched any more: `cta` has it."""
    first = wave.backlog.take(cta) if wave.backlog is not None else None
    words = np.zeros(4, np.uint32)
    if first is not None:
        words[:3], words[3] = first, 1
    return words.view(np.uint8)


def _writer(wave: Wave, where: Array, response: Array, cta: int, barrier: int):
    def write() -> None:
        shared.write(wave, where, response)
        signal(wave, cta, barrier, _BYTES, where)

    return write


def _halves(cx: Decode, which: int) -> tuple[Getter, Getter]:
    """The two 64-bit words of a 128-bit register."""
    reg = cx.reg(which)
    if reg.halves is None:
        cx.fail(f"{reg.name} is no 128-bit register")
    low, high = (cx.program.file.slot(half, "<u8") for half in reg.halves)
    return (lambda g: g.v[low][g.sel]), (lambda g: g.v[high][g.sel])


@instruction("clusterlaunchcontrol.query_cancel.is_canceled")
def is_canceled(cx: Decode) -> Exec:
    cx.flag("pred")
    cx.flag("b128")
    cx.done(2)
    put, (_, high) = cx.put(0, PRED), _halves(cx, 1)
    return lambda g: put(g, (high(g) >> np.uint64(32)) != 0)


_PARTS = ("get_first_ctaid", *(f"get_first_ctaid::{axis}" for axis in "xyz"))


@instruction(*(f"clusterlaunchcontrol.query_cancel.{part}" for part in _PARTS))
def get_first_ctaid(cx: Decode) -> Exec:
    """All coordinates as a vector of four, or one of them."""
    axis = "xyz".find(cx.ins.mods[1][-1]) if "::" in cx.ins.mods[1] else None
    cx.flag("v4")
    cx.flag("b32")
    cx.flag("b128")
    cx.done(2)
    low, high = _halves(cx, 1)
    items = cx.vector(0)
    puts = [cx.put(item, B32) for item in items]
    if len(puts) != (4 if axis is None else 1):
        cx.fail("needs a vector of four registers, or one for a single coordinate")

    def execute(g: Group) -> None:
        words = (low(g), low(g) >> np.uint64(32), high(g), high(g) & np.uint64(0))
        wanted = words if axis is None else words[axis : axis + 1]
        for put, word in zip(puts, [w.astype(np.uint32) for w in wanted], strict=True):
            put(g, word)

    return execute
