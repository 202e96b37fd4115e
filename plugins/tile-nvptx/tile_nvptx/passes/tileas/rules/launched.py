"""Launch control: asking for a tile block that has not been launched, and reading the answer."""

from __future__ import annotations

from tile_core.mlir import ir
from tile_nvptx.passes.tileas.rules.synchronization import barrier_at, first_thread
from tile_nvptx.passes.tileas.ruleset import rules
from tile_nvptx.passes.tileas.thread.build import Builder
from tile_nvptx.passes.tileas.thread.shared import when
from tile_nvptx.passes.tileas.thread.state import Kernel

_ANSWER_BITS = 128


@rules.on("nv_tileas.async_cancel_next_program_id")
def cancel(op: ir.OpView, cx: Kernel) -> None:
    """async_cancel_next_program_id => clusterlaunchcontrol.try_cancel, by one thread"""
    answer, barrier, stage = op.operands
    place = barrier_at(cx, barrier, stage)
    with when(cx, first_thread(cx)):
        cx.create("nvvm.clusterlaunchcontrol.try.cancel", [answer, place])


@rules.on("nv_tileas.is_valid_program_id")
def is_valid(op: ir.OpView, cx: Kernel) -> ir.Value:
    """is_valid_program_id => clusterlaunchcontrol.query_cancel.is_canceled"""
    return _asked(cx, op.operands[0], "is_canceled", ir.IntegerType.get_signless(1))


@rules.on("nv_tileas.next_program_id")
def next_id(op: ir.OpView, cx: Kernel) -> ir.Value:
    """next_program_id => clusterlaunchcontrol.query_cancel.get_first_ctaid, or 0"""
    b, answer = Builder(cx), op.operands[0]
    axis = "xyz"[ir.IntegerAttr(op.attributes["axis"]).value]
    found = _asked(cx, answer, f"get_first_cta_id_{axis}", b.i32)
    # Of no block it is undefined.
    taken = _asked(cx, answer, "is_canceled", ir.IntegerType.get_signless(1))
    return cx.create("arith.select", [taken, found, b.constant(0)], [b.i32]).result


def _asked(cx: Kernel, place: ir.Value, what: str, type_: ir.Type) -> ir.Value:
    wide = ir.IntegerType.get_signless(_ANSWER_BITS)
    answer = cx.create("llvm.load", [place], [wide]).result
    kind = ir.Attribute.parse(f"#nvvm<cluster_launch_control_query_type {what}>")
    name = "nvvm.clusterlaunchcontrol.query.cancel"
    return cx.create(name, [answer], [type_], {"query_type": kind}).result
