"""Where a thread's part of a tile lies in memory, and which of it is inside of the view."""

from __future__ import annotations

from tile_cute.linear import LinearLayout
from tile_tileas.access import AccessPlan
from tile_tileas.analysis.views import TiledView

from tile_core.mlir import ir
from tile_nvptx.passes.tileas.thread.build import Builder
from tile_nvptx.passes.tileas.thread.state import Kernel
from tile_nvptx.passes.tileas.thread.types import storage_type

_EQ, _SLT, _SGE, _ULT = 0, 2, 5, 6  # arith.CmpIPredicate


class TileBounds:
    """Which of a thread's registers of one tile are inside its view."""

    def __init__(
        self,
        cx: Kernel,
        view: TiledView,
        coords: list[ir.Value],
        layout: LinearLayout,
        plan: AccessPlan,
    ) -> None:
        self.cx, self.view, self.layout = cx, view, layout
        self.builder = Builder(cx)
        self.stored = storage_type(view.memref.element)
        self.checked, self.near = plan.checked, plan.near
        run = layout.registers_contiguous_along(plan.order[0]) if plan.order else 1
        self.width = min(plan.vector, run)
        self.whole = plan.whole_vectors
        self._registers = layout.coords("register")
        self._origins = [
            self.builder.with_constant("muli", self.builder.widen(c, self.builder.i64), extent)
            for c, extent in zip(coords, view.steps, strict=True)
        ]
        remaining = self._nearby if self.near else self._remaining
        self._left = {axis: remaining(axis, coords[axis]) for axis in self.checked}

    @property
    def together(self) -> int:
        """Registers that are in bounds together, where some may not be."""
        return self.width if self.whole else 1

    def _remaining(self, axis: int, _: ir.Value) -> ir.Value:
        """min(max(size - origin, 0), tile extent), i32: how much of the tile is in bounds."""
        b = self.builder
        size = self.view.memref.sizes[self.view.dim_map[axis]]
        wide = b.constant(size, b.i64) if isinstance(size, int) else b.widen(size, b.i64)
        left = self._clamped(b.binary("subi", wide, self._origins[axis]), axis)
        return self.cx.create("arith.trunci", [left], [b.i32]).result

    def _clamped(self, left: ir.Value, axis: int) -> ir.Value:
        """min(max(left, 0), tile extent)."""
        b = self.builder
        left = b.binary("maxsi", left, b.constant(0, left.type))
        return b.binary("minsi", left, b.constant(self.view.tile[axis], left.type))

    def _nearby(self, axis: int, coordinate: ir.Value) -> ir.Value:
        """size - origin, i32, of numbers of 31 bits: a signed comparison needs no more."""
        b = self.builder
        size = self.view.memref.sizes[self.view.dim_map[axis]]
        wide = b.constant(size) if isinstance(size, int) else b.resize(size, b.i32)
        steps = b.with_constant("muli", b.resize(coordinate, b.i32), self.view.steps[axis])
        return b.binary("subi", wide, steps)

    def left(self, axis: int) -> ir.Value:
        """How much of the tile is inside the view along a checked axis, i32."""
        left = self._left[axis]
        return self._clamped(left, axis) if self.near else left

    def is_inside(self, axis: int, register: int) -> ir.Value:
        """i1: the register's coordinate along a checked axis is inside the view."""
        less = _SLT if self.near else _ULT
        return self.builder.compare(less, self.coordinate(axis, register), self._left[axis])

    def coordinate(self, axis: int, register: int) -> ir.Value:
        """The register's coordinate in the tile, i32."""
        thread = self.cx.state.coordinate(self.cx, self.layout, axis)
        own = self._registers[register][axis]
        if thread is None:
            return self.builder.constant(own)
        return self.builder.with_constant("xori", thread, own)

    def in_bounds(self, register: int) -> ir.Value | None:
        """i1: every coordinate of the register's element is inside the view."""
        return self.builder.all_of([self.is_inside(axis, register) for axis in self.checked])

    def is_full(self) -> ir.Value | None:
        """i1, the same in all threads: the whole tile is inside the view."""
        b, whole = self.builder, _SGE if self.near else _EQ
        return b.all_of(
            [
                b.compare(whole, self._left[axis], b.constant(self.view.tile[axis]))
                for axis in self.checked
            ]
        )


class TileAddress(TileBounds):
    """Where a thread's registers of one tile lie, and which of them are in bounds."""

    def __init__(
        self,
        cx: Kernel,
        view: TiledView,
        coords: list[ir.Value],
        layout: LinearLayout,
        plan: AccessPlan,
        *,
        again: bool,
    ) -> None:
        """`again`: a loop runs the access."""
        super().__init__(cx, view, coords, layout, plan)
        self._again = again
        #: Checked accesses are narrower, which makes a second path without checks worth it.
        self.splits = self.width > 1 and not self.whole
        self._strides = [self._stride(axis) for axis in range(len(view.tile))]
        self._separate = [self._is_separate(axis) for axis in range(len(view.tile))]
        self.pointer = self._thread_pointer(self._origins)

    def _stride(self, axis: int) -> int | ir.Value:
        step = self.view.memref.strides[self.view.dim_map[axis]]
        return step if isinstance(step, int) else self.builder.widen(step, self.builder.i64)

    def _scaled(self, value: ir.Value, axis: int) -> ir.Value:
        step = self._strides[axis]
        if isinstance(step, int):
            return self.builder.with_constant("muli", value, step)
        return self.builder.binary("muli", value, step)

    def _thread_pointer(self, origins: list[ir.Value]) -> ir.Value:
        """Address of register 0: uniform part first, so that it stays in uniform registers."""
        b, pointer = self.builder, self.view.memref.base
        for axis, origin in enumerate(origins):
            pointer = b.offset(pointer, self._scaled(origin, axis), self.stored)
        for axis in range(len(origins)):
            thread = self.cx.state.coordinate(self.cx, self.layout, axis)
            if thread is not None and self._separate[axis]:
                wide = b.widen(thread, b.i64)
                pointer = b.offset(pointer, self._scaled(wide, axis), self.stored)
        return pointer

    def _is_separate(self, axis: int) -> bool:
        """Whether thread and register parts of a coordinate share no bits, so that they add."""
        threads = registers = 0
        for value in self.cx.state.thread_bases(self.layout, axis):
            threads |= value
        for coords in self._registers:
            registers |= coords[axis]
        return not threads & registers

    def walk(self) -> Walk:
        """Addresses of registers, one after the other, in code without branches."""
        return Walk(self, again=self._again)

    def steps_of(self, register: int) -> tuple[int, ...]:
        """How many steps lie before the register along each axis of which it is not known how far
        apart they are; 0 along others.
        """
        return tuple(
            at if self._separate[axis] and not isinstance(self._strides[axis], int) else 0
            for axis, at in enumerate(self._registers[register])
        )

    def moved(self, pointer: ir.Value, axis: int, steps: int) -> ir.Value:
        """The address so many steps behind `pointer`."""
        b = self.builder
        return b.offset(pointer, self._scaled(b.constant(steps, b.i64), axis), self.stored)

    def ended(self, pointer: ir.Value, register: int) -> ir.Value:
        """`pointer`, which has the register's `steps_of`, with the rest of its place."""
        b, constant = self.builder, 0
        for axis, own in enumerate(self._registers[register]):
            step = self._strides[axis]
            if not self._separate[axis]:
                wide = b.widen(self.coordinate(axis, register), b.i64)
                pointer = b.offset(pointer, self._scaled(wide, axis), self.stored)
            elif isinstance(step, int):
                constant += own * step
        return b.offset(pointer, constant, self.stored)


class Walk:
    """Makes addresses of registers; for accesses that come `again`, of one another: each of that
    whose number of steps lacks its lowest bit. A loop around keeps as many distances as those
    numbers have bits, and not that of each register from the first; and no address waits for more
    than that many others.

    Model, without and with: sparse attention on a B200 175.7 us and 165.8, on an RTX 5090 463 and
    455. Where no loop is, it saves nothing: attention of heads of 256 by 64 x 64, whose result is
    stored so, took 1634 us there, and 1714.

    (What each thread has left of a view, compared with numbers of registers as they are, would
    spare more registers, but takes 1 to 2 % longer on an RTX 5090.)
    """

    def __init__(self, where: TileAddress, *, again: bool) -> None:
        self._where, self._again = where, again
        self._known = {(0,) * len(where.view.tile): where.pointer}

    def address(self, register: int) -> ir.Value:
        """Address of the register's element."""
        return self._where.ended(self._behind(self._where.steps_of(register)), register)

    def _behind(self, steps: tuple[int, ...]) -> ir.Value:
        """The address so many steps along each axis behind that of register 0."""
        if steps not in self._known:
            axis = max(axis for axis, count in enumerate(steps) if count)
            further = steps[axis] & -steps[axis] if self._again else steps[axis]
            before = self._behind((*steps[:axis], steps[axis] - further, *steps[axis + 1 :]))
            self._known[steps] = self._where.moved(before, axis, further)
        return self._known[steps]
