"""tiled_load, tiled_store and pad_outside: addresses, bounds, padding.

The tile's origin and what is left of the view behind it are the same for all threads and are
computed once. Accesses are predicated where a tile may reach past the end. If vectors could be half
inside, they are split then, and a tile that lies inside its view takes a path of its own with whole
vectors and no checks. Loads outside give the padding value, stores outside vanish.
"""

from __future__ import annotations

from collections.abc import Callable

from tile_cute.linear import LinearLayout
from tile_tileas.access import AccessPlan
from tile_tileas.analysis.views import TiledView, tiled_view

from tile_core.mlir import ir
from tile_nvptx.passes.tileas.device.memory import Manner
from tile_nvptx.passes.tileas.ruleset import rules
from tile_nvptx.passes.tileas.thread.access import VectorAccess, manner, reader
from tile_nvptx.passes.tileas.thread.build import Builder, token, wrap
from tile_nvptx.passes.tileas.thread.formats import FORMATS
from tile_nvptx.passes.tileas.thread.state import Kernel, tile_layout
from tile_nvptx.passes.tileas.thread.types import count_of, element_of, storage_type, vector_of

_EQ, _SLT, _SGE, _ULT = 0, 2, 5, 6  # arith.CmpIPredicate
PADDING = {"neg_zero": -0.0, "nan": float("nan"), "pos_inf": float("inf"), "neg_inf": float("-inf")}


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
    ) -> None:
        super().__init__(cx, view, coords, layout, plan)
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

    def address(self, register: int) -> ir.Value:
        """Address of the register's element."""
        b, pointer, constant = self.builder, self.pointer, 0
        for axis, own in enumerate(self._registers[register]):
            step = self._strides[axis]
            if not self._separate[axis]:
                wide = b.widen(self.coordinate(axis, register), b.i64)
                pointer = b.offset(pointer, self._scaled(wide, axis), self.stored)
            elif isinstance(step, int):
                constant += own * step
            elif own:
                by = b.with_constant("muli", step, own)
                pointer = b.offset(pointer, by, self.stored)
        return b.offset(pointer, constant, self.stored)


def prepare(op: ir.OpView, cx: Kernel, layout: LinearLayout) -> TileAddress:
    """Where the tile of an access of a view lies; without a plan, element by element."""
    view = tiled_view(op.view)
    return TileAddress(cx, view, list(op.coords), layout, _plan(op, view))


def _plan(op: ir.OpView, view: TiledView) -> AccessPlan:
    every = tuple(range(len(view.tile)))
    return AccessPlan.of(op) or AccessPlan(tuple(reversed(every)), 1, True, every)


@rules.on("nv_tileas.tiled_load")
def tiled_load(op: ir.OpView, cx: Kernel) -> list[ir.Value]:
    """tiled_load => vector loads; padded and predicated where the tile leaves the view"""
    layout = tile_layout(cx, op.result)
    where = prepare(op, cx, layout)
    type_ = cx.type(op.result.type)
    held = vector_of(count_of(type_), where.stored)
    access, owner = manner(op), reader(op, cx, layout)

    def inside() -> ir.Value:
        return _load(where, where.width, access, owner, checked=False)

    def partly() -> ir.Value:
        return _load(where, where.together, access, owner, checked=True)

    if not where.checked:
        value = inside()
    elif cx.state.fast_path and where.splits:
        value = _either(cx, where.is_full(), held, inside, partly).result
    else:
        value = partly()
    return [where.builder.from_storage(value, element_of(type_)), token(cx)]


def _either(
    cx: Kernel,
    condition: ir.Value | None,
    type_: ir.Type | None,
    then: Callable[[], ir.Value | None],
    otherwise: Callable[[], ir.Value | None],
) -> ir.Operation:
    """scf.if with a body per side."""
    assert condition is not None
    branch = cx.create("scf.if", [condition], [] if type_ is None else [type_], regions=2)
    for region, body in zip(branch.regions, (then, otherwise), strict=True):
        with cx.at(ir.InsertionPoint(region.blocks.append())):
            value = body()
            cx.create("scf.yield", [] if value is None else [value])
    return branch


def _load(
    where: TileAddress, width: int, extra: Manner, owner: ir.Value | None, *, checked: bool
) -> ir.Value:
    """The fragment, of storage type."""
    b, access = where.builder, VectorAccess(where.cx, where.stored, width, extra)
    parts = []
    for register in range(0, where.layout.elements_per_thread, width):
        bounds = where.in_bounds(register) if checked else None
        conditions = [flag for flag in (owner, bounds) if flag is not None]
        value = access.load(where.address(register), b.all_of(conditions))
        parts.append(_padded(where, value, bounds))
    return b.concat(parts)


@rules.on("nv_tileas.pad_outside")
def pad_outside(op: ir.OpView, cx: Kernel) -> list[ir.Value]:
    """pad_outside => selects, passed by where the whole tile is inside the view"""
    layout, view = tile_layout(cx, op.result), tiled_view(op.view)
    where = TileBounds(cx, view, list(op.coords), layout, _plan(op, view))
    if not where.checked:
        return [op.value]
    b, value = where.builder, where.builder.to_storage(op.value)

    def partly() -> ir.Value:
        parts = []
        for register in range(0, layout.elements_per_thread, where.together):
            part = b.shuffle(value, range(register, register + where.together))
            parts.append(_padded(where, part, where.in_bounds(register)))
        return b.concat(parts)

    padded = _either(cx, where.is_full(), value.type, lambda: value, partly).result
    return [b.from_storage(padded, element_of(cx.type(op.result.type)))]


def _padded(where: TileBounds, value: ir.Value, condition: ir.Value | None) -> ir.Value:
    """Out of bounds the accesses give zero; any other padding value is selected here."""
    number = PADDING.get(where.view.padding or "zero")
    if number is None or condition is None:
        return value
    type_ = value.type
    element = where.view.memref.element
    if str(element) in FORMATS:
        code = wrap(FORMATS[str(element)].encode(number), 8)
        scalar: ir.Attribute = ir.IntegerAttr.get(element_of(type_), code)
    else:
        scalar = ir.FloatAttr.get(element_of(type_), number)
    attr = ir.DenseElementsAttr.get_splat(type_, scalar)
    padding = where.cx.create("arith.constant", [], [type_], {"value": attr}).result
    return where.cx.create("arith.select", [condition, value, padding], [type_]).result


@rules.on("nv_tileas.tiled_store")
def tiled_store(op: ir.OpView, cx: Kernel) -> list[ir.Value]:
    """tiled_store => vector stores; predicated where the tile leaves the view"""
    layout = tile_layout(cx, op.operands[1])
    value = op.value
    where = prepare(op, cx, layout)
    owner = cx.state.holds_unique(cx, layout)
    extra = manner(op)

    def inside() -> None:
        _store(where, value, where.width, extra, owner, checked=False)

    def partly() -> None:
        _store(where, value, where.together, extra, owner, checked=True)

    if not where.checked:
        inside()
    elif cx.state.fast_path and where.splits and owner is None:
        _either(cx, where.is_full(), None, inside, partly)
    else:
        partly()
    return [token(cx)]


def _store(
    where: TileAddress,
    value: ir.Value,
    width: int,
    extra: Manner,
    owner: ir.Value | None,
    *,
    checked: bool,
) -> None:
    b, access = where.builder, VectorAccess(where.cx, where.stored, width, extra)
    stored = b.to_storage(value)
    copies = where.layout.free_mask("register")
    for register in range(0, where.layout.elements_per_thread, width):
        if register & copies:
            continue
        conditions = [owner] if owner is not None else []
        bounds = where.in_bounds(register) if checked else None
        conditions += [bounds] if bounds is not None else []
        part = b.shuffle(stored, range(register, register + width))
        access.store(part, where.address(register), b.all_of(conditions))
