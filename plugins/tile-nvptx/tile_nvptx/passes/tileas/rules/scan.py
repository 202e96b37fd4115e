"""scan: prefixes within each thread's registers, then across lanes, then across warps.

The layout puts neighbours along the axis into low registers and low lanes (`tile_tileas.scans`).
A thread takes the prefixes of its own run; the totals of the runs are scanned over the lanes by
doubling distances (Hillis and Steele 1986). Totals of warps meet in shared memory, where each warp
reads those of the warps before it. What lies before a run, in other lanes and other warps, is
combined into its elements once. The region takes what lies before first.
"""

from __future__ import annotations

from dataclasses import dataclass

from tile_cute import gf2
from tile_cute.linear import LinearLayout
from tile_tileas.scans import scan_extents, scan_layout

from tile_core.mlir import ir
from tile_core.passes import error_at
from tile_nvptx.passes.tileas.rules.combine import Fragments, combine
from tile_nvptx.passes.tileas.ruleset import rules
from tile_nvptx.passes.tileas.thread.build import Builder
from tile_nvptx.passes.tileas.thread.shared import SharedBuffer, shuffle, when
from tile_nvptx.passes.tileas.thread.state import LANE_BITS, Kernel, tile_layout
from tile_nvptx.passes.tileas.thread.types import count_of, element_of, storage_type, vector_of

_UGE = 9  # arith.CmpIPredicate


@rules.on("nv_tileas.scan", "nv_tileas.scan_mixed", "nv_tileas.scan_across_warps")
def scan(op: ir.OpView, cx: Kernel) -> list[ir.Value]:
    """scan => prefixes over registers, then over lanes, then over warps"""
    layout = tile_layout(cx, op.operands[0])
    axis = ir.IntegerAttr(op.attributes["axis"]).value
    if layout != scan_layout(layout.shape, axis, cx.state.num_warps):
        raise error_at(op, f"cannot scan axis {axis} of layout {layout}")
    extents = scan_extents(layout, axis)
    reverse = ir.BoolAttr(op.attributes["reverse"]).value
    count = len(op.results)
    buffers = list(op.operands)[count:]
    if extents.warps > 1 and not buffers:
        raise error_at(op, "scans over warps; run 'tileas-materialize-convert-layout' before")
    prefixes = _Prefixes(op, cx, extents.registers, extents.lanes, reverse)
    values = prefixes.registers(list(op.operands)[:count])
    totals, before = prefixes.totals(values), None
    if extents.lanes > 1:
        totals, before = prefixes.over_lanes(totals)
    if extents.warps > 1:
        segments = _Segments(prefixes, layout, axis, extents.warps, buffers).before(totals)
        before = segments if before is None else prefixes.joined(before, segments)
    return values if before is None else prefixes.after(before, values)


@dataclass(frozen=True)
class _Before:
    """What lies before the runs of each thread; anything where `exists` (i1) is false."""

    exists: ir.Value
    values: Fragments


@dataclass
class _Prefixes:
    op: ir.OpView
    cx: Kernel
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
            so_far = combine(self.op, self.cx, so_far, own) if so_far else own
            found[place] = so_far
        joined = [b.concat([found[place][at] for place in places]) for at in range(len(values))]
        width = count // self.run
        order = [at % self.run * width + at // self.run for at in range(count)]
        return [b.shuffle(value, order) for value in joined]

    def totals(self, values: Fragments) -> Fragments:
        """The ends of the runs that `values` are prefixes of."""
        end, count = 0 if self.reverse else self.run - 1, count_of(values[0].type)
        return [self.builder.shuffle(value, range(end, count, self.run)) for value in values]

    def over_lanes(self, totals: Fragments) -> tuple[Fragments, _Before]:
        """Totals up to the end of each lane's run, and up to its beginning."""
        distance = 1
        while distance < self.lanes:
            has = self._has(distance)
            moved = self._moved(distance, totals)
            totals = self._chosen(has, combine(self.op, self.cx, moved, totals), totals)
            distance *= 2
        return totals, _Before(self._has(1), self._moved(1, totals))

    def joined(self, near: _Before, far: _Before) -> _Before:
        """What lies before in `near` and, before that, in `far`."""
        both = combine(self.op, self.cx, far.values, near.values)
        ahead = self._chosen(near.exists, both, far.values)
        exists = self.builder.binary("ori", near.exists, far.exists)
        return _Before(exists, self._chosen(far.exists, ahead, near.values))

    def after(self, before: _Before, values: Fragments) -> Fragments:
        """`values` with what lies before each run combined in."""
        places = [at // self.run for at in range(count_of(values[0].type))]
        spread = [self.builder.shuffle(value, places) for value in before.values]
        combined = combine(self.op, self.cx, spread, values)
        return self._chosen(before.exists, combined, values)

    def _chosen(self, condition: ir.Value, new: Fragments, old: Fragments) -> Fragments:
        return [
            self.cx.create("llvm.select", [condition, one, other], [other.type]).result
            for one, other in zip(new, old, strict=True)
        ]

    def _lane(self) -> ir.Value:
        return self.builder.with_constant("andi", self.cx.state.thread_index(self.cx), 31)

    def _moved(self, distance: int, values: Fragments) -> Fragments:
        """What the lane `distance` before this one holds; anything at the start."""
        by = self.builder.constant(distance if self.reverse else -distance)
        source = self.builder.binary("addi", self._lane(), by)
        return [shuffle(self.cx, value, "idx", source) for value in values]

    def _has(self, distance: int) -> ir.Value:
        """i1: some lane is that far before this one."""
        b = self.builder
        place = b.with_constant("andi", self._lane(), self.lanes - 1)
        if self.reverse:
            place = b.with_constant("xori", place, self.lanes - 1)
        return b.compare(_UGE, place, b.constant(distance))


@dataclass
class _Segments:
    """Warps that hold segments of the axis, the lowest bits of their number telling which."""

    prefixes: _Prefixes
    layout: LinearLayout
    axis: int
    warps: int
    places: list[ir.Value]  # for the totals of each tile: [row, segment]

    def before(self, totals: Fragments) -> _Before:
        """What lies before this warp's segments; `totals` are those up to each lane's end."""
        b = self.prefixes.builder
        buffers = self._buffers(totals)
        with when(self.prefixes.cx, self._holds_end()):
            for buffer, total in zip(buffers, totals, strict=True):
                self._write(buffer, total)
        b.barrier()
        has = b.compare(_UGE, self._number(), b.constant(1))
        return _Before(has, self._before(buffers, totals))

    def _number(self) -> ir.Value:
        """How many segments lie before this warp's, i32."""
        b, cx = self.prefixes.builder, self.prefixes.cx
        warp = b.with_constant("shrui", cx.state.thread_index(cx), LANE_BITS)
        own = b.with_constant("andi", warp, self.warps - 1)
        return b.with_constant("xori", own, self.warps - 1 if self.prefixes.reverse else 0)

    def _holds_end(self) -> ir.Value | None:
        """i1: the lane has a segment's total, and is the one of all copies that tells it."""
        prefixes, cx = self.prefixes, self.prefixes.cx
        lanes, warps = self.layout.free_mask("lane"), self.layout.free_mask("warp")
        b, last = prefixes.builder, prefixes.lanes - 1
        conditions = [cx.state.speaks(cx, lanes, warps)]
        if last:
            place = b.with_constant("andi", cx.state.thread_index(cx), last)
            conditions.append(b.compare(0, place, b.constant(0 if prefixes.reverse else last)))
        return b.all_of([condition for condition in conditions if condition is not None])

    def _buffers(self, totals: Fragments) -> list[SharedBuffer]:
        """For each folded tile the place for its totals."""
        cx = self.prefixes.cx
        return [
            SharedBuffer(cx, place, storage_type(element_of(total.type)))
            for place, total in zip(self.places, totals, strict=True)
        ]

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
            so_far = combine(prefixes.op, cx, so_far, part)
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
