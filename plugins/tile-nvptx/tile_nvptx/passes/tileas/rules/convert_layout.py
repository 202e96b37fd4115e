"""convert_layout: the plan of `tile_cute` as shuffles of registers, lanes, or shared memory."""

from __future__ import annotations

from dataclasses import dataclass

from tile_cute import gf2
from tile_cute.linear import (
    ConditionalXor,
    MatrixSide,
    RegisterPermute,
    SharedRoundTrip,
    SharedSide,
    WarpShuffle,
    matrix_side,
)
from tile_tileas.scratch import plan_move

from tile_core.mlir import ir
from tile_nvptx.passes.tileas.device.memory import load_matrices, store_matrices
from tile_nvptx.passes.tileas.ruleset import rules
from tile_nvptx.passes.tileas.thread.build import Builder, join
from tile_nvptx.passes.tileas.thread.shared import SharedBuffer, scratch_pointer, shuffle, when
from tile_nvptx.passes.tileas.thread.state import LANE_BITS, Kernel, tile_layout
from tile_nvptx.passes.tileas.thread.types import count_of, element_of, storage_type, vector_of

#: Compute capability from which stmatrix exists, times 10 (PTX ISA, "stmatrix").
_STORES_SINCE = 90


@rules.on("nv_tileas.convert_layout")
def convert_layout(op: ir.OpView, cx: Kernel) -> ir.Value:
    """convert_layout => register permutation, warp shuffles or a shared-memory round trip"""
    value, result = op.operands[0], op.results[0]
    source, target = tile_layout(cx, op.operands[0]), tile_layout(cx, result)
    bits = storage_type(element_of(value.type)).width
    plan = plan_move(source, target, bits)
    if isinstance(plan, RegisterPermute):
        return Builder(cx).shuffle(value, plan.perm)
    if isinstance(plan, WarpShuffle):
        return _by_shuffles(cx, value, plan)
    return _through_shared(op, cx, value, plan)


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


def _through_shared(op: ir.OpView, cx: Kernel, value: ir.Value, plan: SharedRoundTrip) -> ir.Value:
    b = Builder(cx)
    trip = RoundTrip(cx, plan, scratch_pointer(op, cx), b.to_storage(value))
    return b.from_storage(trip.run(), element_of(value.type))


def _is_shorter(matrices: MatrixSide, side: SharedSide) -> bool:
    return len(matrices.accesses) < len(side.accesses[0])


@dataclass
class RoundTrip:
    """Stores and loads of a plan, pass by pass.

    In pass p a warp performs the accesses of group p ^ pass(warp); if the plan is not guarded,
    pass(warp) is 0 everywhere. Each group is loaded once, in the pass that is the warp's turn.
    Where a matrix instruction does the same as vector accesses, with no more wavefronts, it does.
    """

    cx: Kernel
    plan: SharedRoundTrip
    base: ir.Value
    stored: ir.Value

    def __post_init__(self) -> None:
        plan, since = self.plan, self.cx.target.sm
        whole = not plan.redundant_lanes  # all lanes of a warp take part in a matrix instruction
        self._store_matrix = self._matrix(plan.store) if whole and since >= _STORES_SINCE else None
        self._load_matrix = self._matrix(plan.load)

    def _matrix(self, side: SharedSide) -> MatrixSide | None:
        bits = 8 * self.plan.elem_bytes
        for transposed in (False, True):
            found = matrix_side(side, bits, transposed=transposed)
            if found and found.wavefronts <= side.wavefronts and _is_shorter(found, side):
                return found
        return None

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
        side = self._load_matrix
        groups = [side.accesses] if side else [self.plan.load.accesses[group] for group in order]
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
        if self._store_matrix is not None:
            self._store_matrices(self._store_matrix)
            return
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

    def _store_matrices(self, side: MatrixSide) -> None:
        b = Builder(self.cx)
        name, body = store_matrices(side.matrices, transposed=side.transposed)
        for access in side.accesses:
            part = b.shuffle(self.stored, access.registers)
            words = b.bitcast(part, vector_of(side.matrices, b.i32))
            place = self._place(side, access.offset)
            self.cx.state.helpers.call(self.cx, name, body, [place, words], None)

    def _load_matrices(self, side: MatrixSide) -> ir.Value:
        b, element = Builder(self.cx), element_of(self.stored.type)
        name, body = load_matrices(side.matrices, transposed=side.transposed)
        words, parts = vector_of(side.matrices, b.i32), []
        for access in side.accesses:
            place = self._place(side, access.offset)
            found = self.cx.state.helpers.call(self.cx, name, body, [place], words).result
            parts.append(b.bitcast(found, vector_of(len(access.registers), element)))
        return join(b, parts)

    def _load(self, group: int) -> ir.Value:
        b, side = Builder(self.cx), self.plan.load
        if self._load_matrix is not None:
            return self._load_matrices(self._load_matrix)
        parts = []
        for access in side.accesses[group]:
            type_ = vector_of(len(access.registers), element_of(self.stored.type))
            pointer = self._place(side, access.offset)
            parts.append(b.load(pointer, type_, side.vector * self.plan.elem_bytes))
        return b.concat(parts) if len(parts) & (len(parts) - 1) == 0 else join(b, parts)

    def _place(self, side: SharedSide | MatrixSide, offset: int) -> ir.Value:
        memory = SharedBuffer(self.cx, self.base, element_of(self.stored.type))
        return memory.at((*side.lane_map, *side.warp_map), offset)
