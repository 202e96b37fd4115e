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
from tile_tileas.pipelining.multistage import is_inside_loop

from tile_core.mlir import ir
from tile_nvptx.passes.tileas.device.memory import Manner
from tile_nvptx.passes.tileas.ruleset import rules
from tile_nvptx.passes.tileas.thread.access import VectorAccess, manner, reader
from tile_nvptx.passes.tileas.thread.build import token, wrap
from tile_nvptx.passes.tileas.thread.formats import FORMATS
from tile_nvptx.passes.tileas.thread.state import Kernel, tile_layout
from tile_nvptx.passes.tileas.thread.tile_address import TileAddress, TileBounds
from tile_nvptx.passes.tileas.thread.types import count_of, element_of, vector_of

PADDING = {"neg_zero": -0.0, "nan": float("nan"), "pos_inf": float("inf"), "neg_inf": float("-inf")}


def prepare(op: ir.OpView, cx: Kernel, layout: LinearLayout) -> TileAddress:
    """Where the tile of an access of a view lies; without a plan, element by element."""
    view = tiled_view(op.view)
    again = is_inside_loop(op)
    return TileAddress(cx, view, list(op.coords), layout, _plan(op, view), again=again)


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
    parts, walk = [], where.walk()
    for register in range(0, where.layout.elements_per_thread, width):
        bounds = where.in_bounds(register) if checked else None
        conditions = [flag for flag in (owner, bounds) if flag is not None]
        value = access.load(walk.address(register), b.all_of(conditions))
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
    copies, walk = where.layout.free_mask("register"), where.walk()
    for register in range(0, where.layout.elements_per_thread, width):
        if register & copies:
            continue
        conditions = [owner] if owner is not None else []
        bounds = where.in_bounds(register) if checked else None
        conditions += [bounds] if bounds is not None else []
        part = b.shuffle(stored, range(register, register + width))
        access.store(part, walk.address(register), b.all_of(conditions))
