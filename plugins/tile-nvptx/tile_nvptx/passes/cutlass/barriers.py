"""Sequences, named barriers, counters in global memory."""

from __future__ import annotations

from tile_cute.cutlass.dialect.around import integer
from tile_cute.cutlass.dialect.types import numbers_of
from tile_cute.cutlass.pipes import (
    CURSOR,
    advance,
    first_phase,
    next_group,
    sequence_slot,
)

from tile_core.convert import Replacement
from tile_core.mlir import ir
from tile_nvptx.passes.cutlass.numbers import Emitted
from tile_nvptx.passes.cutlass.pipes import cursor_of, everybody_meets, initialised
from tile_nvptx.passes.cutlass.state import (
    LANES,
    Cutlass,
    address,
    block_meets,
    is_first,
    is_lane,
    pack,
    place,
    rules,
    run,
    some_meet,
    thread,
    warp_meets,
    when,
    words_in_shared,
)
from tile_nvptx.passes.tileas.device import asynchronous as device
from tile_nvptx.passes.tileas.thread.build import Builder

_SINCE = 90
_STATE = "seq_bar_state"

# --- sequences -----------------------------------------------------------------------------------


@rules.on("cutlass.seq_bar_create")
def create(op: ir.OpView, cx: Cutlass) -> Replacement:
    """seq_bar_create => depth x length mbarriers"""
    depth, length = numbers_of(op.results[0].type)
    words = words_in_shared(cx, "sequence", depth * length)
    cx.state.sequences[words] = depth, length
    return words


def _sequence(op: ir.OpView, cx: Cutlass) -> tuple[int, int]:
    found = cx.state.sequences.get(op.operands[0])
    if found is None:
        raise cx.error("cannot tell which sequence this is: it has to be the result of create")
    return found


@rules.on("cutlass.seq_bar_init")
def init(op: ir.OpView, cx: Cutlass) -> Replacement:
    """seq_bar_init => mbarrier.init of all by one thread; the block meets"""
    depth, length = _sequence(op, cx)
    b = Builder(cx)
    with when(cx, b.compare(0, thread(cx), b.constant(0))):
        for at in range(depth * length):
            barrier = place(cx, op.operands[0], b.constant(at))
            run(cx, device.barrier_init(integer(op, "warps")), barrier)
        initialised(cx)
    everybody_meets(cx, 1)
    return None


@rules.on("cutlass.seq_bar_state_create")
def state_create(op: ir.OpView, cx: Cutlass) -> Replacement:
    """A cursor; the first group is a phase ahead"""
    n = Emitted(cx)
    zero = n.constant(0)
    phase = first_phase(n, op.operands[0])
    return pack(cx, {"index": zero, "phase": phase, "count": zero}, CURSOR, _STATE)


@rules.on("cutlass.seq_bar_wait")
def wait(op: ir.OpView, cx: Cutlass) -> Replacement:
    """seq_bar_wait => a loop around mbarrier.try_wait.parity of the group's barrier"""
    bar, state, group = op.operands
    cursor = cursor_of(cx, state)
    slot = sequence_slot(Emitted(cx), _sequence(op, cx)[1], cursor["index"], group)
    suspends = cx.target.sm >= _SINCE
    run(cx, device.barrier_wait(suspends=suspends), place(cx, bar, slot), cursor["phase"])
    return None


@rules.on("cutlass.seq_bar_arrive")
def arrive(op: ir.OpView, cx: Cutlass) -> Replacement:
    """seq_bar_arrive => mbarrier.arrive at the next group's barrier; the next cursor"""
    bar, state, group = op.operands
    n = Emitted(cx)
    depth, length = _sequence(op, cx)
    cursor = cursor_of(cx, state)
    slot = sequence_slot(n, length, cursor["index"], next_group(n, length, group))
    warp_meets(cx)
    with when(cx, is_lane(cx)):
        run(cx, device.barrier_arrive(), place(cx, bar, slot))
    return pack(cx, advance(n, depth, cursor), CURSOR, _STATE)


# --- named barriers ------------------------------------------------------------------------------


@rules.on("cutlass.named_barrier_arrive_and_wait")
def named_wait(op: ir.OpView, cx: Cutlass) -> Replacement:
    """bar.sync id, threads"""
    some_meet(cx, integer(op, "barrier_id"), _threads(op, cx))
    return None


@rules.on("cutlass.named_barrier_arrive")
def named_arrive(op: ir.OpView, cx: Cutlass) -> Replacement:
    """bar.arrive id, threads"""
    b = Builder(cx)
    operands = [b.constant(integer(op, "barrier_id")), b.constant(_threads(op, cx))]
    cx.create("nvvm.barrier.arrive", operands)
    return None


def _threads(op: ir.OpView, cx: Cutlass) -> int:
    """Not fewer threads than come here: those of the next round would be counted."""
    threads, come = integer(op, "threads"), cx.state.mask.bit_count() * LANES
    if come > threads:
        raise cx.error(f"is for {threads} threads, but {come} come here")
    return threads


# --- counters in global memory -------------------------------------------------------------------


def meet(op: ir.OpView, cx: Cutlass) -> None:
    """Those who come here: at the named barrier that the operation says, or all of the block."""
    number, mask = integer(op, "barrier_id", 0), cx.state.mask
    if number:
        threads = integer(op, "threads")
        if mask.bit_count() * LANES != threads:
            raise cx.error(f"is for {threads} threads, but {mask.bit_count() * LANES} come here")
        some_meet(cx, number, threads)
        return
    if mask != cx.state.all_warps:
        raise cx.error("is for some warps of the block: it needs a 'barrier_id' of their own")
    block_meets(cx)


def increment(op: ir.OpView, cx: Cutlass, counter: ir.Value) -> None:
    """What all did is released with one more in the counter."""
    meet(op, cx)
    with when(cx, is_first(cx)):
        run(cx, device.count_up(), counter)


def wait_for(
    op: ir.OpView, cx: Cutlass, counter: ir.Value, value: ir.Value, *, least: bool
) -> None:
    """Until the counter is `value`, or at least that; all then see what was released."""
    with when(cx, is_first(cx)):
        run(cx, device.count_wait(least=least), counter, value)
    meet(op, cx)


@rules.on("cutlass.generic_barrier_arrive_increment")
def arrive_increment(op: ir.OpView, cx: Cutlass) -> Replacement:
    """The threads meet; red.release.gpu.add by one"""
    increment(op, cx, address(cx, op.operands[0], 1))
    return None


@rules.on("cutlass.generic_barrier_wait_eq", "cutlass.generic_barrier_wait_less_than")
def generic_wait(op: ir.OpView, cx: Cutlass) -> Replacement:
    """A loop around ld.acquire.gpu by one; the threads meet"""
    counter, value = op.operands
    least = op.operation.name.endswith("less_than")
    wait_for(op, cx, address(cx, counter, 1), value, least=least)
    return None
