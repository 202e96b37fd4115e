"""reduce: registers fold in a tree, then lanes by butterfly, then warps through shared memory.

The order is fixed by the layout, so results are the same from run to run.
"""

from __future__ import annotations

from dataclasses import dataclass

from tile_cute.linear import slice_registers
from tile_tileas.reductions import ReductionPlan, plan_reduction

from tile_core.mlir import ir
from tile_core.passes import error_at
from tile_nvptx.passes.tileas.rules.across_warps import AcrossWarps
from tile_nvptx.passes.tileas.rules.combine import Fragments, combine, is_symmetric
from tile_nvptx.passes.tileas.rules.redux import over_all_lanes
from tile_nvptx.passes.tileas.ruleset import rules
from tile_nvptx.passes.tileas.thread.build import Builder
from tile_nvptx.passes.tileas.thread.shared import shuffle
from tile_nvptx.passes.tileas.thread.state import LANE_BITS, Kernel, tile_layout
from tile_nvptx.passes.tileas.thread.types import count_of, element_of

#: Elements of a chunk that a thread folds at once, and chunks that it folds halves at a time.
_CHUNK = 8
_MANY = 4


@rules.on("nv_tileas.reduce", "nv_tileas.reduce_mixed", "nv_tileas.reduce_across_warps")
def reduce(op: ir.OpView, cx: Kernel) -> list[ir.Value]:
    """reduce => folds over registers, lanes and warps that run along the axis"""
    layout = tile_layout(cx, op.operands[0])
    axis = ir.IntegerAttr(op.attributes["axis"]).value
    plan = plan_reduction(layout, axis)
    if plan is None:
        raise error_at(op, f"cannot fold axis {axis} of layout {layout}")
    count = len(op.results)
    buffers = list(op.operands)[count:]
    if plan.warp_bits and not buffers:
        raise error_at(op, "folds over warps; run 'tileas-materialize-convert-layout' before")
    fold = _Fold(op, cx, plan, axis, buffers)
    values = fold.registers(list(op.operands)[:count])
    values = fold.lanes(values)
    if plan.warp_bits:
        values = fold.warps(values)
    return [
        value if isinstance(cx.type(result.type), ir.VectorType) else Builder(cx).extract(value, 0)
        for value, result in zip(values, op.results, strict=True)
    ]


@dataclass
class _Fold:
    op: ir.OpView
    cx: Kernel
    plan: ReductionPlan
    axis: int
    buffers: list[ir.Value]  # a place for the partials of each tile, if warps hold parts

    def __post_init__(self) -> None:
        self.builder = Builder(self.cx)

    # -- the three levels ---------------------------------------------------------------------

    def registers(self, values: Fragments) -> Fragments:
        """Fold the registers of each thread that run along the axis."""
        targets = slice_registers(self.plan.source, self.axis)
        kept = self.plan.result.elements_per_thread
        members: list[list[int]] = [[] for _ in range(kept)]
        copies = self.plan.source.free_mask("register")
        for register, target in enumerate(targets):
            if not register & copies:
                members[target].append(register)
        # Member-major order: halves of the vector are then what folds together.
        order = [group[k] for k in range(len(members[0])) for group in members]
        return self._tree([self.builder.shuffle(value, order) for value in values], kept)

    def lanes(self, values: Fragments) -> Fragments:
        """Butterfly over the lane bits that run along the axis; all lanes get the result."""
        if len(self.plan.lane_bits) == LANE_BITS:
            folded = over_all_lanes(self.op, self.cx, values)
            if folded is not None:
                return folded
        for bit in self.plan.lane_bits:
            lane = self.builder.constant(1 << bit)
            moved = [shuffle(self.cx, value, "bfly", lane) for value in values]
            values = self.combine(moved, values)
        if self.plan.lane_bits and not is_symmetric(self.op):
            # Lanes have combined in different orders: all take what the first one found.
            index = self.cx.state.thread_index(self.cx)
            along = sum(1 << bit for bit in self.plan.lane_bits)
            first = self.builder.with_constant("andi", index, (1 << LANE_BITS) - 1 & ~along)
            values = [shuffle(self.cx, value, "idx", first) for value in values]
        return values

    def warps(self, values: Fragments) -> Fragments:
        """Partial results of the warps meet in shared memory."""
        types = [element_of(value.type) for value in values]
        return AcrossWarps(self.cx, self.plan, types, self.buffers).exchanged(values, self._tree)

    # -- combining ----------------------------------------------------------------------------

    def _tree(self, values: Fragments, width: int) -> Fragments:
        """Fold vectors of k * width elements, k a power of two, to `width`.

        Halves at a time; many elements chunk by chunk before, so that few are wanted at once.
        """
        chunk = max(width, _CHUNK)
        if count_of(values[0].type) > _MANY * chunk:
            values = self._in_chunks(values, chunk)
        while count_of(values[0].type) > width:
            half = count_of(values[0].type) // 2
            low = [self.builder.shuffle(value, range(half)) for value in values]
            high = [self.builder.shuffle(value, range(half, 2 * half)) for value in values]
            values = self.combine(high, low)
        return values

    def _in_chunks(self, values: Fragments, chunk: int) -> Fragments:
        """Fold vectors to `chunk` elements: two chunks, two such pairs, and so on, in order.

        Rounding errors grow with the logarithm, as they do where halves are folded.
        """
        waiting: list[tuple[int, Fragments]] = []  # how many times folded
        for first in range(0, count_of(values[0].type), chunk):
            part = [self.builder.shuffle(value, range(first, first + chunk)) for value in values]
            level = 0
            while waiting and waiting[-1][0] == level:
                part = self.combine(part, waiting.pop()[1])
                level += 1
            waiting.append((level, part))
        return waiting[0][1]

    def combine(self, elements: Fragments, accumulators: Fragments) -> Fragments:
        return combine(self.op, self.cx, elements, accumulators)
