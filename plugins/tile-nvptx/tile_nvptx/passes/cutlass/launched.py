"""A scheduler that takes over clusters of the grid that were not launched yet."""

from __future__ import annotations

from tile_cute.cutlass import schedules
from tile_cute.cutlass.dialect.checks.schedulers import raster_of
from tile_cute.cutlass.pipes import FULL

from tile_core.convert import Replacement
from tile_core.mlir import ir
from tile_nvptx.passes.cutlass.numbers import Emitted
from tile_nvptx.passes.cutlass.pipes import (
    arrive,
    barrier_of,
    check_comes,
    cursor_of,
    shape_in,
    wait,
)
from tile_nvptx.passes.cutlass.schedulers import linear, packed
from tile_nvptx.passes.cutlass.state import (
    Cutlass,
    address,
    convert_type,
    get,
    given,
    is_lane,
    params_of,
    place,
    put,
    rules,
    run,
    when,
)
from tile_nvptx.passes.tileas.device import asynchronous as device

_PREFIX = "cutlass.tile_scheduler_"
_SINCE = 100
#: Bytes of an answer (PTX ISA, "clusterlaunchcontrol").
_ANSWER = 16


@rules.on(_PREFIX + "create_sm100_scheduler")
def create(op: ir.OpView, cx: Cutlass) -> Replacement:
    """Parameters, and where answers come to: 16 bytes for each stage, 16-byte aligned"""
    if cx.target.sm < _SINCE:
        raise cx.error(
            f"asks for clusters that were not launched, which {cx.target.chip} cannot; use a "
            "static persistent scheduler"
        )
    if cx.state.ctas > 1:
        raise cx.error("is for clusters of one block")
    params, answers = op.operands
    record = cx.create("llvm.mlir.poison", [], [convert_type(op.results[0].type)]).result
    return put(cx, put(cx, record, 0, params), 1, address(cx, answers, 3))


def _answer(cx: Cutlass, scheduler: ir.Value, state: ir.Value) -> ir.Value:
    """The address of a stage's answer."""
    answers = get(cx, scheduler, 1, ir.Type.parse("!llvm.ptr<3>"))
    return place(cx, answers, cursor_of(cx, state)["index"], _ANSWER)


@rules.on(_PREFIX + "get_workid_response_ptr")
def response(op: ir.OpView, cx: Cutlass) -> Replacement:
    """The address of a stage's answer"""
    return given(cx, _answer(cx, *op.operands), op.results[0].type)


@rules.on(_PREFIX + "query_next_work")
def query(op: ir.OpView, cx: Cutlass) -> Replacement:
    """query_next_work => acquire the stage, expect 16 bytes, clusterlaunchcontrol.try_cancel"""
    scheduler, pipe, state = op.operands
    shape, cursor = shape_in(op, cx), cursor_of(cx, state)
    check_comes(cx, shape, "producer_acquire")
    if shape.arrivals()[0] != 1:
        raise cx.error("is asked once for a stage: its pipe has one producer")
    wait(cx, "producer_acquire", pipe, shape, cursor)
    arrive(cx, "producer_commit", pipe, shape, cursor, _ANSWER)
    with when(cx, is_lane(cx)):
        barrier = barrier_of(cx, pipe, shape, FULL, cursor["index"])
        operands = [_answer(cx, scheduler, state), barrier]
        cx.create("nvvm.clusterlaunchcontrol.try.cancel", operands)
    return None


@rules.on(_PREFIX + "get_current_work")
def current(op: ir.OpView, cx: Cutlass) -> Replacement:
    """The work of an answer: valid if a cluster was taken over"""
    return _decoded(op, cx, *op.operands)


@rules.on(_PREFIX + "fetch_next_work")
def fetch(op: ir.OpView, cx: Cutlass) -> Replacement:
    """fetch_next_work => wait for the stage, read the answer, release the stage"""
    scheduler, pipe, state, _ = op.operands
    shape, cursor = shape_in(op, cx), cursor_of(cx, state)
    check_comes(cx, shape, "consumer_wait")
    wait(cx, "consumer_wait", pipe, shape, cursor)
    work = _decoded(op, cx, scheduler, state)
    # The next answer is written by the asynchronous proxy.
    run(cx, device.fence("async"))
    arrive(cx, "consumer_release", pipe, shape, cursor)
    return work


def _decoded(op: ir.OpView, cx: Cutlass, scheduler: ir.Value, state: ir.Value) -> ir.Value:
    n = Emitted(cx)
    wide = ir.IntegerType.get_signless(128)
    answer = cx.create("llvm.load", [_answer(cx, scheduler, state)], [wide]).result
    taken = _asked(cx, answer, "is_canceled", n.b.i1)
    at = [_asked(cx, answer, f"get_first_cta_id_{axis}", n.type) for axis in "xyz"]
    at = [n.select(taken, part, n.constant(0)) for part in at]  # of no cluster they are undefined
    params = get(cx, scheduler, 0, convert_type(ir.Type.parse(_PARAMS)))
    number = linear(cx, "ctaid", at)
    work = schedules.work_of(n, "dp", params_of(cx, params), number, *raster_of(op))
    return packed(cx, {**work, "valid": n.select(taken, work["valid"], n.constant(0))})


_PARAMS = '!cutlass.tile_scheduler_params<"dp">'


def _asked(cx: Cutlass, answer: ir.Value, what: str, type_: ir.Type) -> ir.Value:
    kind = ir.Attribute.parse(f"#nvvm<cluster_launch_control_query_type {what}>")
    name = "nvvm.clusterlaunchcontrol.query.cancel"
    return cx.create(name, [answer], [type_], {"query_type": kind}).result
