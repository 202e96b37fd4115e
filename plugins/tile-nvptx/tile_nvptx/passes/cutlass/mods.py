"""What CUTLASS's main loops report, and throttles."""

from __future__ import annotations

from tile_cute.cutlass.dialect.around import integer
from tile_cute.cutlass.dialect.checks.mods import COOPERATIVE

from tile_core.convert import Replacement
from tile_core.mlir import ir
from tile_nvptx.passes.cutlass.pipes import drain
from tile_nvptx.passes.cutlass.state import Cutlass, block_meets, rules
from tile_nvptx.passes.tileas.thread.build import Builder

_PREFIX = "cutlass.tile_scheduler_mods_"
_SINCE = 90
#: How long the profile that sleeps does, in nanoseconds at most.
_NANOSECONDS = 128


def _time(cx: Cutlass) -> ir.Value:
    i64 = ir.IntegerType.get_signless(64)
    return cx.create("nvvm.read.ptx.sreg.globaltimer", [], [i64]).result


def _cluster(cx: Cutlass, name: str) -> None:
    if cx.target.sm < _SINCE:
        raise cx.error(f"meets in a cluster, which {cx.target.chip} does not have")
    if cx.state.mask != cx.state.all_warps:
        raise cx.error("is for all warps of the block: a cluster's barrier counts them")
    cx.create(f"nvvm.cluster.{name}", [], [], {"aligned": ir.UnitAttr.get()})


@rules.on(_PREFIX + "report_mainloop_start")
def start(op: ir.OpView, cx: Cutlass) -> Replacement:
    """cluster.arrive; the time"""
    _cluster(cx, "arrive")
    return _time(cx)


@rules.on(_PREFIX + "report_mainloop_end")
def end(op: ir.OpView, cx: Cutlass) -> Replacement:
    """cp.async.bulk.wait_group 0, cluster.wait; the time since the start"""
    drain(cx)
    _cluster(cx, "wait")
    return Builder(cx).binary("subi", _time(cx), op.operands[2])


@rules.on(_PREFIX + "report_smid")
def smid(op: ir.OpView, cx: Cutlass) -> Replacement:
    """%smid"""
    return cx.create("nvvm.read.ptx.sreg.smid", [], [op.results[0].type]).result


@rules.on(_PREFIX + "throttle")
def throttle(op: ir.OpView, cx: Cutlass) -> Replacement:
    """Nothing; nanosleep; the block meets"""
    profile = integer(op, "profile")
    if profile == 1:
        cx.create("nvvm.nanosleep", [Builder(cx).constant(_NANOSECONDS)])
    elif profile == COOPERATIVE:
        if cx.state.mask != cx.state.all_warps:
            raise cx.error("is for all warps of the block: they meet")
        block_meets(cx)
    return None
