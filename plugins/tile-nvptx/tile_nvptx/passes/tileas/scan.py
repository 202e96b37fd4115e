"""scan: prefixes within each thread's registers, then across lanes.

The layout puts neighbours along the axis into low registers and low lanes (`tile_tileas.scans`).
A thread takes the prefixes of its own run; the totals of the runs are scanned over the lanes by
doubling distances (Hillis and Steele 1986); what lies before a run is then combined into it.
"""

from __future__ import annotations

from dataclasses import dataclass

from tile_tileas.scans import scan_extents, scan_layout

from tile_core.convert import Conversion
from tile_core.mlir import ir
from tile_core.passes import error_at
from tile_nvptx.passes.tileas.build import Builder
from tile_nvptx.passes.tileas.combine import Fragments, combine
from tile_nvptx.passes.tileas.rules import rules, state
from tile_nvptx.passes.tileas.shared import shuffle
from tile_nvptx.passes.tileas.types import count_of

_UGE = 9  # arith.CmpIPredicate


@rules.on("nv_tileas.scan", "nv_tileas.scan_mixed")
def scan(op: ir.OpView, cx: Conversion) -> list[ir.Value]:
    """scan => prefixes over registers, then over lanes"""
    layout = state(cx).operand_layout(op, 0)
    axis = ir.IntegerAttr(op.attributes["axis"]).value
    if layout != scan_layout(layout.shape, axis, state(cx).num_warps):
        raise error_at(op, f"cannot scan axis {axis} of layout {layout}")
    run, lanes = scan_extents(layout, axis)
    reverse = ir.BoolAttr(op.attributes["reverse"]).value
    prefixes = _Prefixes(op, cx, run, lanes, reverse)
    values = prefixes.registers(list(op.operands))
    return prefixes.lanewise(values) if lanes > 1 else values


@dataclass
class _Prefixes:
    op: ir.OpView
    cx: Conversion
    run: int  # registers along the axis, the fastest ones
    lanes: int  # lanes along the axis, the fastest ones
    reverse: bool

    def __post_init__(self) -> None:
        self.builder = Builder(self.cx)

    def registers(self, values: Fragments) -> Fragments:
        """Prefixes within each thread."""
        b, found = self.builder, {}
        count = count_of(values[0].type)
        so_far: Fragments = []
        places = range(self.run)
        for place in reversed(places) if self.reverse else places:
            own = [b.shuffle(value, range(place, count, self.run)) for value in values]
            so_far = combine(self.op, self.cx, own, so_far) if so_far else own
            found[place] = so_far
        joined = [b.concat([found[place][at] for place in places]) for at in range(len(values))]
        width = count // self.run
        order = [at % self.run * width + at // self.run for at in range(count)]
        return [b.shuffle(value, order) for value in joined]

    def lanewise(self, values: Fragments) -> Fragments:
        """Each run combined with all that lies before it in other lanes."""
        b, count = self.builder, count_of(values[0].type)
        end = 0 if self.reverse else self.run - 1
        totals = [b.shuffle(value, range(end, count, self.run)) for value in values]
        distance = 1
        while distance < self.lanes:
            totals = self._after(distance, totals, self._moved(distance, totals))
            distance *= 2
        before = self._moved(1, totals)
        spread = [b.shuffle(v, [at // self.run for at in range(count)]) for v in before]
        return self._after(1, values, spread)

    def _lane(self) -> ir.Value:
        return self.builder.with_constant("andi", state(self.cx).thread_index(self.cx), 31)

    def _moved(self, distance: int, values: Fragments) -> Fragments:
        """What the lane `distance` before this one holds; anything at the start."""
        by = self.builder.constant(distance if self.reverse else -distance)
        source = self.builder.binary("addi", self._lane(), by)
        return [shuffle(self.cx, value, "idx", source) for value in values]

    def _after(self, distance: int, values: Fragments, before: Fragments) -> Fragments:
        """`values` with `before` combined in, in lanes that have one that far before them."""
        b = self.builder
        place = b.with_constant("andi", self._lane(), self.lanes - 1)
        if self.reverse:
            place = b.with_constant("xori", place, self.lanes - 1)
        has = b.compare(_UGE, place, b.constant(distance))
        combined = combine(self.op, self.cx, values, before)
        return [
            self.cx.create("llvm.select", [has, new, old], [old.type]).result
            for new, old in zip(combined, values, strict=True)
        ]
