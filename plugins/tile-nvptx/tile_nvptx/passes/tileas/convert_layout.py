"""convert_layout: the plan of `tile_cute` as shuffles of registers, lanes, or shared memory."""

from __future__ import annotations

from tile_cute.linear import (
    ConditionalXor,
    RegisterPermute,
    SharedRoundTrip,
    SharedSide,
    WarpShuffle,
    plan_conversion,
)
from tile_tileas.dialect import layout_of
from tile_tileas.scratch import OPERATION_LIMIT

from tile_core.convert import Conversion
from tile_core.mlir import ir
from tile_nvptx.passes.tileas.build import Builder
from tile_nvptx.passes.tileas.rules import rules, state
from tile_nvptx.passes.tileas.shared import scratch_pointer, shuffle
from tile_nvptx.passes.tileas.state import LANE_BITS
from tile_nvptx.passes.tileas.types import count_of, element_of, storage_type


@rules.on("nv_tileas.convert_layout")
def convert_layout(op: ir.OpView, cx: Conversion) -> ir.Value:
    """convert_layout => register permutation, warp shuffles or a shared-memory round trip"""
    value, result = op.operands[0], op.results[0]
    source, target = state(cx).operand_layout(op, 0), layout_of(result.type)
    assert target is not None
    bits = storage_type(element_of(value.type)).width
    plan = plan_conversion(source, target, bits, max_smem=OPERATION_LIMIT)
    if "barrier_before" in op.attributes:
        Builder(cx).barrier()
    if isinstance(plan, RegisterPermute):
        return Builder(cx).shuffle(value, plan.perm)
    if isinstance(plan, WarpShuffle):
        return _by_shuffles(cx, value, plan)
    return _through_shared(op, cx, value, plan)


def _conditional(cx: Conversion, value: ir.Value, steps: tuple[ConditionalXor, ...]) -> ir.Value:
    """Register r becomes register r ^ xor in the threads whose bit is set, step after step."""
    b = Builder(cx)
    for step in steps:
        bit = step.bit + (LANE_BITS if step.space == "warp" else 0)
        index = state(cx).thread_index(cx)
        flag = b.compare(1, b.with_constant("andi", index, 1 << bit), b.constant(0))
        flipped = b.shuffle(value, [r ^ step.xor for r in range(count_of(value.type))])
        value = cx.create("llvm.select", [flag, flipped, value], [value.type]).result
    return value


def _by_shuffles(cx: Conversion, value: ir.Value, plan: WarpShuffle) -> ir.Value:
    b = Builder(cx)
    ready = _conditional(cx, value, plan.before)
    received: list[ir.Value] = []
    slots: list[int] = []
    for step in plan.rounds:
        part = b.shuffle(ready, step.sources)
        if step.words:
            if plan.is_butterfly:
                part = shuffle(cx, part, "bfly", b.constant(step.lane_xor))
            else:
                part = shuffle(cx, part, "idx", _source_lane(cx, plan, step.lane_xor))
        received.append(part)
        slots += step.slots
    joined = _join(b, received)
    place = {slot: at for at, slot in enumerate(slots)}
    in_order = b.shuffle(joined, [place[slot] for slot in range(len(slots))])
    settled = _conditional(cx, in_order, plan.after)
    return b.shuffle(settled, plan.gather)


def _source_lane(cx: Conversion, plan: WarpShuffle, lane_xor: int) -> ir.Value:
    b = Builder(cx)
    lane = state(cx).linear(cx, (*plan.lane_map, *plan.warp_map))
    return b.constant(lane_xor) if lane is None else b.with_constant("xori", lane, lane_xor)


def _join(b: Builder, parts: list[ir.Value]) -> ir.Value:
    """Vectors of any lengths behind each other."""
    joined = parts[0]
    for part in parts[1:]:
        width = max(count_of(joined.type), count_of(part.type))
        picks = list(range(count_of(joined.type)))
        left = b.shuffle(joined, picks + [0] * (width - len(picks)))
        right = b.shuffle(part, [*range(count_of(part.type)), *[0] * (width - count_of(part.type))])
        picks += [width + at for at in range(count_of(part.type))]
        joined = b.shuffle(left, picks, right)
    return joined


def _through_shared(
    op: ir.OpView, cx: Conversion, value: ir.Value, plan: SharedRoundTrip
) -> ir.Value:
    b, element = Builder(cx), element_of(value.type)
    stored = b.to_storage(value)
    base = scratch_pointer(op, cx)
    loaded: list[ir.Value] = []
    slots: list[int] = []
    for number in range(plan.passes):
        if number:
            b.barrier()
        _write(cx, stored, base, plan, number)
        b.barrier()
        for access in plan.load.accesses[number]:
            pointer = _place(cx, base, plan.load, access.offset, stored)
            type_ = ir.VectorType.get([len(access.registers)], element_of(stored.type))
            loaded.append(b.load(pointer, type_, plan.load.vector * plan.elem_bytes))
            slots += access.registers
    place = {slot: at for at, slot in enumerate(slots)}
    joined = _join(b, loaded) if len(loaded) & (len(loaded) - 1) else b.concat(loaded)
    in_order = b.shuffle(joined, [place[slot] for slot in plan.gather])
    return b.from_storage(in_order, element)


def _write(
    cx: Conversion, stored: ir.Value, base: ir.Value, plan: SharedRoundTrip, number: int
) -> None:
    b = Builder(cx)
    mask = plan.redundant_lanes | plan.redundant_warps << LANE_BITS
    if not mask:
        _write_all(cx, stored, base, plan, number)
        return
    index = state(cx).thread_index(cx)
    speaks = b.compare(0, b.with_constant("andi", index, mask), b.constant(0))
    branch = cx.create("scf.if", [speaks], regions=2)
    with cx.at(ir.InsertionPoint(branch.regions[0].blocks.append())):
        _write_all(cx, stored, base, plan, number)
        cx.create("scf.yield")


def _write_all(
    cx: Conversion, stored: ir.Value, base: ir.Value, plan: SharedRoundTrip, number: int
) -> None:
    b = Builder(cx)
    for access in plan.store.accesses[number]:
        pointer = _place(cx, base, plan.store, access.offset, stored)
        part = b.shuffle(stored, access.registers)
        b.store(part, pointer, plan.store.vector * plan.elem_bytes)


def _place(
    cx: Conversion, base: ir.Value, side: SharedSide, offset: int, stored: ir.Value
) -> ir.Value:
    b = Builder(cx)
    thread = state(cx).linear(cx, (*side.lane_map, *side.warp_map))
    element = element_of(stored.type)
    if thread is None:
        return b.offset(base, offset, element)
    return b.offset(base, b.with_constant("xori", thread, offset), element)
