"""convert_layout: the plan of `tile_cute` as shuffles of registers, lanes, or shared memory."""

from __future__ import annotations

from dataclasses import dataclass

from tile_cute import gf2
from tile_cute.linear import (
    ConditionalXor,
    RegisterPermute,
    SharedRoundTrip,
    SharedSide,
    WarpShuffle,
)
from tile_tileas.analysis.buffers import stage_bytes
from tile_tileas.dialect.buffers import Buffer
from tile_tileas.moves import plan_move

from tile_core.mlir import ir
from tile_core.passes import error_at
from tile_nvptx.passes.tileas.ruleset import rules
from tile_nvptx.passes.tileas.thread.build import Builder, join
from tile_nvptx.passes.tileas.thread.shared import SharedBuffer, shuffle, when
from tile_nvptx.passes.tileas.thread.state import LANE_BITS, Kernel, tile_layout
from tile_nvptx.passes.tileas.thread.types import count_of, element_of, storage_type, vector_of


@rules.on("nv_tileas.convert_layout")
def convert_layout(op: ir.OpView, cx: Kernel) -> ir.Value:
    """convert_layout => register permutation or warp shuffles"""
    value, result = op.operands[0], op.results[0]
    source, target = tile_layout(cx, op.operands[0]), tile_layout(cx, result)
    bits = storage_type(element_of(value.type)).width
    plan = plan_move(source, target, bits)
    if isinstance(plan, RegisterPermute):
        return Builder(cx).shuffle(value, plan.perm)
    if isinstance(plan, WarpShuffle):
        return _by_shuffles(cx, value, plan)
    raise error_at(
        op, "passes through shared memory; run 'tileas-materialize-convert-layout' before"
    )


@rules.on("nv_tileas.convert_in_parts")
def convert_in_parts(op: ir.OpView, cx: Kernel) -> ir.Value:
    """convert_in_parts => a shared-memory round trip, pass by pass"""
    b, value = Builder(cx), op.operands[0]
    source, target = tile_layout(cx, value), tile_layout(cx, op.results[0])
    plan = plan_move(source, target, storage_type(element_of(value.type)).width)
    if not isinstance(plan, SharedRoundTrip) or plan.bytes > _bytes_of(cx, op.operands[1]):
        raise error_at(op, "has a buffer that does not fit its conversion")
    trip = RoundTrip(cx, plan, op.operands[1], b.to_storage(value))
    return b.from_storage(trip.run(), element_of(value.type))


def _bytes_of(cx: Kernel, buffer: ir.Value) -> int:
    found = Buffer.of(cx.before(buffer))
    assert found is not None, "the verifier sees to it that this is a buffer"
    return stage_bytes(found)


def _conditional(cx: Kernel, value: ir.Value, steps: tuple[ConditionalXor, ...]) -> ir.Value:
    """Register r becomes register r ^ xor in the threads whose bit is set, step after step."""
    b = Builder(cx)
    for step in steps:
        bit = step.bit + (LANE_BITS if step.space == "warp" else 0)
        index = cx.state.thread_index(cx)
        flag = b.compare(1, b.with_constant("andi", index, 1 << bit), b.constant(0))
        flipped = b.shuffle(value, [r ^ step.xor for r in range(count_of(value.type))])
        value = cx.create("llvm.select", [flag, flipped, value], [value.type]).result
    return value


def _by_shuffles(cx: Kernel, value: ir.Value, plan: WarpShuffle) -> ir.Value:
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
    joined = join(b, received)
    place = {slot: at for at, slot in enumerate(slots)}
    in_order = b.shuffle(joined, [place[slot] for slot in range(len(slots))])
    settled = _conditional(cx, in_order, plan.after)
    return b.shuffle(settled, plan.gather)


def _source_lane(cx: Kernel, plan: WarpShuffle, lane_xor: int) -> ir.Value:
    b = Builder(cx)
    lane = cx.state.linear(cx, (*plan.lane_map, *plan.warp_map))
    return b.constant(lane_xor) if lane is None else b.with_constant("xori", lane, lane_xor)


@dataclass
class RoundTrip:
    """Stores and loads of a plan, pass by pass.

    In pass p a warp performs the accesses of group p ^ pass(warp); if the plan is not guarded,
    pass(warp) is 0 everywhere. Each group is loaded once, in the pass that is the warp's turn.
    """

    cx: Kernel
    plan: SharedRoundTrip
    base: ir.Value
    stored: ir.Value

    def run(self) -> ir.Value:
        """The destination registers, in storage form."""
        b, loaded = Builder(self.cx), dict[int, ir.Value]()
        for number in range(self.plan.passes):
            if number:
                b.barrier()
            for group in self._groups(self.plan.store, number):
                self._write(group, self._turn(self.plan.store, number ^ group))
            b.barrier()
            for group in self._groups(self.plan.load, number):
                turn = self._turn(self.plan.load, number ^ group)
                loaded[group] = self._read(group, turn, loaded.get(group))
        order = sorted(loaded)
        groups = [self.plan.load.accesses[group] for group in order]
        accesses = [access for group in groups for access in group]
        slots = [slot for access in accesses for slot in access.registers]
        place = {slot: at for at, slot in enumerate(slots)}
        joined = join(b, [loaded[group] for group in order])
        return b.shuffle(joined, [place[slot] for slot in self.plan.gather])

    def _groups(self, side: SharedSide, number: int) -> list[int]:
        """Groups that some warp performs in this pass."""
        warps = range(1 << len(side.warp_pass))
        turns = {gf2.combine(side.warp_pass, warp) for warp in warps}
        return sorted(g for g in (number ^ turn for turn in turns) if side.accesses[g])

    def _turn(self, side: SharedSide, turn: int) -> ir.Value | None:
        """i1: pass(warp) is `turn`; None if that goes for every warp."""
        mine = self.cx.state.linear(self.cx, (*[0] * LANE_BITS, *side.warp_pass))
        if mine is None:
            return None
        b = Builder(self.cx)
        return b.compare(0, mine, b.constant(turn))

    def _write(self, group: int, turn: ir.Value | None) -> None:
        b, plan = Builder(self.cx), self.plan
        speaks = self.cx.state.speaks(self.cx, plan.redundant_lanes, plan.redundant_warps)
        with when(self.cx, b.all_of([flag for flag in (turn, speaks) if flag is not None])):
            self._store(group)

    def _store(self, group: int) -> None:
        b, side = Builder(self.cx), self.plan.store
        for access in side.accesses[group]:
            part = b.shuffle(self.stored, access.registers)
            b.store(part, self._place(side, access.offset), side.vector * self.plan.elem_bytes)

    def _read(self, group: int, turn: ir.Value | None, before: ir.Value | None) -> ir.Value:
        """The group's slots, if it is the warp's turn; else what it has had so far."""
        if turn is None:
            return self._load(group)
        count = sum(len(access.registers) for access in self.plan.load.accesses[group])
        type_ = vector_of(count, element_of(self.stored.type))
        branch = self.cx.create("scf.if", [turn], [type_], regions=2)
        with self.cx.at(ir.InsertionPoint(branch.regions[0].blocks.append())):
            self.cx.create("scf.yield", [self._load(group)])
        with self.cx.at(ir.InsertionPoint(branch.regions[1].blocks.append())):
            kept = before or self.cx.create("llvm.mlir.poison", [], [type_]).result
            self.cx.create("scf.yield", [kept])
        return branch.result

    def _load(self, group: int) -> ir.Value:
        b, side = Builder(self.cx), self.plan.load
        parts = []
        for access in side.accesses[group]:
            type_ = vector_of(len(access.registers), element_of(self.stored.type))
            pointer = self._place(side, access.offset)
            parts.append(b.load(pointer, type_, side.vector * self.plan.elem_bytes))
        return b.concat(parts) if len(parts) & (len(parts) - 1) == 0 else join(b, parts)

    def _place(self, side: SharedSide, offset: int) -> ir.Value:
        memory = SharedBuffer(self.cx, self.base, element_of(self.stored.type))
        return memory.at((*side.lane_map, *side.warp_map), offset)
