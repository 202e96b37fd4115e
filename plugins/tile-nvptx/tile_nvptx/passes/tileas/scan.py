"""scan: prefixes within each thread's registers, then across lanes, then across warps.

The layout puts neighbours along the axis into low registers and low lanes (`tile_tileas.scans`).
A thread takes the prefixes of its own run; the totals of the runs are scanned over the lanes by
doubling distances (Hillis and Steele 1986); what lies before a run is then combined into it.
Totals of warps meet in shared memory, where each warp reads those of the warps before it.
"""

from __future__ import annotations

from dataclasses import dataclass

from tile_cute import gf2
from tile_cute.linear import LinearLayout
from tile_tileas.scans import scan_bytes, scan_extents, scan_layout

from tile_core.convert import Conversion
from tile_core.mlir import ir
from tile_core.passes import error_at
from tile_nvptx.passes.tileas.build import Builder
from tile_nvptx.passes.tileas.combine import Fragments, combine
from tile_nvptx.passes.tileas.rules import rules, state
from tile_nvptx.passes.tileas.shared import SharedBuffer, scratch_pointer, shuffle, when
from tile_nvptx.passes.tileas.state import LANE_BITS
from tile_nvptx.passes.tileas.types import count_of, element_of, storage_type, vector_of

_UGE = 9  # arith.CmpIPredicate


@rules.on("nv_tileas.scan", "nv_tileas.scan_mixed")
def scan(op: ir.OpView, cx: Conversion) -> list[ir.Value]:
    """scan => prefixes over registers, then over lanes, then over warps"""
    layout = state(cx).operand_layout(op, 0)
    axis = ir.IntegerAttr(op.attributes["axis"]).value
    if layout != scan_layout(layout.shape, axis, state(cx).num_warps):
        raise error_at(op, f"cannot scan axis {axis} of layout {layout}")
    if "barrier_before" in op.attributes:
        Builder(cx).barrier()
    extents = scan_extents(layout, axis)
    reverse = ir.BoolAttr(op.attributes["reverse"]).value
    prefixes = _Prefixes(op, cx, extents.registers, extents.lanes, reverse)
    values = prefixes.registers(list(op.operands))
    if extents.lanes > 1:
        values = prefixes.lanewise(values)
    if extents.warps > 1:
        values = _Segments(prefixes, layout, axis, extents.warps).joined(values)
    return values


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


@dataclass
class _Segments:
    """Warps that hold segments of the axis, the lowest bits of their number telling which."""

    prefixes: _Prefixes
    layout: LinearLayout
    axis: int
    warps: int

    def joined(self, values: Fragments) -> Fragments:
        """`values`, prefixes of segments, with all that lies before a segment combined in."""
        prefixes, cx = self.prefixes, self.prefixes.cx
        b, run = prefixes.builder, prefixes.run
        count = count_of(values[0].type)
        end = 0 if prefixes.reverse else run - 1
        totals = [b.shuffle(value, range(end, count, run)) for value in values]
        buffers = self._buffers(totals)
        ends = self._holds_end()
        with when(cx, ends):
            for buffer, total in zip(buffers, totals, strict=True):
                self._write(buffer, total)
        b.barrier()
        before = self._before(buffers, totals)
        spread = [b.shuffle(v, [at // run for at in range(count)]) for v in before]
        combined = combine(prefixes.op, cx, values, spread)
        has = b.compare(_UGE, self._number(), b.constant(1))
        return [
            cx.create("llvm.select", [has, new, old], [old.type]).result
            for new, old in zip(combined, values, strict=True)
        ]

    def _number(self) -> ir.Value:
        """How many segments lie before this warp's, i32."""
        b, cx = self.prefixes.builder, self.prefixes.cx
        warp = b.with_constant("shrui", state(cx).thread_index(cx), LANE_BITS)
        own = b.with_constant("andi", warp, self.warps - 1)
        return b.with_constant("xori", own, self.warps - 1 if self.prefixes.reverse else 0)

    def _holds_end(self) -> ir.Value | None:
        """i1: the lane has a segment's total, and is the one of all copies that tells it."""
        prefixes, cx = self.prefixes, self.prefixes.cx
        lanes, warps = self.layout.free_mask("lane"), self.layout.free_mask("warp")
        b, last = prefixes.builder, prefixes.lanes - 1
        conditions = [state(cx).speaks(cx, lanes, warps)]
        if last:
            place = b.with_constant("andi", state(cx).thread_index(cx), last)
            conditions.append(b.compare(0, place, b.constant(0 if prefixes.reverse else last)))
        return b.all_of([condition for condition in conditions if condition is not None])

    def _buffers(self, totals: Fragments) -> list[SharedBuffer]:
        """For each folded tile a place for its totals: [row, segment]."""
        prefixes, found, start = self.prefixes, [], 0
        for total in totals:
            stored = storage_type(element_of(total.type))
            base = scratch_pointer(prefixes.op, prefixes.cx, start)
            found.append(SharedBuffer(prefixes.cx, base, stored))
            start += -(-scan_bytes(self.layout, self.axis, stored.width) // 16) * 16
        return found

    def _places(self) -> tuple[tuple[int, ...], list[int]]:
        """Offsets of rows: what each bit of the thread index adds, and each register of a total."""
        bases = self.layout.bases
        threads = tuple(self._row(basis) for basis in (*bases["lane"], *bases["warp"]))
        rows = [self._row(basis) for basis in bases["register"] if not basis[self.axis]]
        return threads, gf2.table(rows)

    def _row(self, coords: tuple[int, ...]) -> int:
        """Row-major index among the axes that are not scanned, times the segments of a row."""
        index = 0
        for axis, (at, extent) in enumerate(zip(coords, self.layout.shape, strict=True)):
            index = index if axis == self.axis else index * extent + at
        return index * self.warps

    def _write(self, buffer: SharedBuffer, total: ir.Value) -> None:
        b = self.prefixes.builder
        stored, (threads, registers) = b.to_storage(total), self._places()
        segment = tuple(
            1 << at - LANE_BITS if 0 <= at - LANE_BITS < self.warps.bit_length() - 1 else 0
            for at in range(len(threads))
        )
        bases = tuple(row ^ own for row, own in zip(threads, segment, strict=True))
        for register, place in enumerate(registers):
            pointer = buffer.at(bases, place)
            b.store(b.shuffle(stored, [register]), pointer, buffer.element.width // 8)

    def _before(self, buffers: list[SharedBuffer], totals: Fragments) -> Fragments:
        """What all segments before this warp's come to; anything in the first."""
        prefixes, cx = self.prefixes, self.prefixes.cx
        b, number = prefixes.builder, self._number()
        order = range(self.warps)
        parts = [
            [self._read(buffer, total, at) for buffer, total in zip(buffers, totals, strict=True)]
            for at in (reversed(order) if prefixes.reverse else order)
        ]
        so_far = found = parts[0]
        for at, part in enumerate(parts[1:-1], 1):
            so_far = combine(prefixes.op, cx, part, so_far)
            past = b.compare(_UGE, number, b.constant(at + 1))
            found = [
                cx.create("llvm.select", [past, new, old], [old.type]).result
                for new, old in zip(so_far, found, strict=True)
            ]
        return found

    def _read(self, buffer: SharedBuffer, total: ir.Value, segment: int) -> ir.Value:
        b, (threads, registers) = self.prefixes.builder, self._places()
        size = buffer.element.width // 8
        loaded = [
            b.load(buffer.at(threads, place ^ segment), vector_of(1, buffer.element), size)
            for place in registers
        ]
        return b.from_storage(b.concat(loaded), element_of(total.type))
