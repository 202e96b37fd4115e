"""Launch control: asking for a tile block that has not been launched, and reading the answer."""

from __future__ import annotations

from tile_tileas.dialect.barriers import CTAS

from tile_core.mlir import ir
from tile_nvptx.passes.tileas.device import asynchronous as device
from tile_nvptx.passes.tileas.rules.synchronization import (
    barrier_at,
    first_thread,
    leads_cluster,
    leads_warp,
    next_turn,
    run,
    wait_at,
)
from tile_nvptx.passes.tileas.ruleset import rules
from tile_nvptx.passes.tileas.thread.build import Builder
from tile_nvptx.passes.tileas.thread.shared import when
from tile_nvptx.passes.tileas.thread.state import Kernel

_ANSWER_BITS = 128
_AXES = "xyz"


@rules.on("nv_tileas.async_cancel_next_program_id")
def cancel(op: ir.OpView, cx: Kernel) -> None:
    """async_cancel_next_program_id => clusterlaunchcontrol.try_cancel, by one thread"""
    answer, barrier, stage = op.operands
    place = barrier_at(cx, barrier, stage)
    attributes, asks = {}, first_thread(cx)
    if CTAS in op.attributes:
        attributes, asks = {"multicast": ir.UnitAttr.get()}, leads_cluster(cx)
    with when(cx, asks):
        cx.create("nvvm.clusterlaunchcontrol.try.cancel", [answer, place], [], attributes)


@rules.on("nv_tileas.is_valid_program_id")
def is_valid(op: ir.OpView, cx: Kernel) -> ir.Value:
    """is_valid_program_id => clusterlaunchcontrol.query_cancel.is_canceled"""
    return _valid(cx, _read(cx, op.operands[0]))


@rules.on("nv_tileas.next_program_id")
def next_id(op: ir.OpView, cx: Kernel) -> ir.Value:
    """next_program_id => clusterlaunchcontrol.query_cancel.get_first_ctaid, or 0"""
    answer = _read(cx, op.operands[0])
    return _id(cx, answer, ir.IntegerAttr(op.attributes["axis"]).value)


@rules.on("nv_tileas.take_program_id")
def take_id(op: ir.OpView, cx: Kernel) -> list[ir.Value]:
    """take_program_id => a wait, both questions, and an arrival of each warp"""
    answers, asked, read = op.operands
    b, (stage, phase) = Builder(cx), next_turn(cx, asked)
    wait_at(cx, barrier_at(cx, asked, stage), phase)
    place = b.offset(answers, b.with_constant("muli", stage, _ANSWER_BITS // 8), b.i8)
    answer = _read(cx, place)
    found = [_valid(cx, answer), *(_id(cx, answer, axis) for axis in range(len(_AXES)))]
    # The next answer comes by another proxy than this one has been read by.
    run(cx, device.fence("async"))
    with when(cx, leads_warp(cx)):
        _say_read(cx, op, barrier_at(cx, read, stage))
    return found


def _say_read(cx: Kernel, op: ir.OpView, place: ir.Value) -> None:
    """Arrive at an mbarrier, or at that of each block of the cluster."""
    if CTAS not in op.attributes:
        run(cx, device.barrier_arrive(), place)
        return
    for rank in range(ir.IntegerAttr(op.attributes[CTAS]).value):
        run(cx, device.barrier_arrive_at(), place, Builder(cx).constant(rank))


def _read(cx: Kernel, place: ir.Value) -> ir.Value:
    return cx.create("llvm.load", [place], [ir.IntegerType.get_signless(_ANSWER_BITS)]).result


def _valid(cx: Kernel, answer: ir.Value) -> ir.Value:
    return _asked(cx, answer, "is_canceled", ir.IntegerType.get_signless(1))


def _id(cx: Kernel, answer: ir.Value, axis: int) -> ir.Value:
    """The place of the tile block along an axis: what counts blocks counts those of a cluster."""
    b = Builder(cx)
    found = _asked(cx, answer, f"get_first_cta_id_{_AXES[axis]}", b.i32)
    if not axis and cx.state.num_ctas > 1:  # clusters lie along the first axis
        found = b.with_constant("divui", found, cx.state.num_ctas)
    # Of no block it is undefined.
    return cx.create("arith.select", [_valid(cx, answer), found, b.constant(0)], [b.i32]).result


def _asked(cx: Kernel, answer: ir.Value, what: str, type_: ir.Type) -> ir.Value:
    kind = ir.Attribute.parse(f"#nvvm<cluster_launch_control_query_type {what}>")
    name = "nvvm.clusterlaunchcontrol.query.cancel"
    return cx.create(name, [answer], [type_], {"query_type": kind}).result
