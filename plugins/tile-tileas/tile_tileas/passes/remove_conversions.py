"""tileas-remove-layout-conversions: conversions that need not happen, or not here.

convert_layout(x : L) : L                    => x
convert_layout(convert_layout(x))            => convert_layout(x)
f(convert_layout(a), convert_layout(b))      => convert_layout(f(a, b))         where cheaper
convert_layout(f(a, b))                      => f(convert_layout(a), ..)        where cheaper
for { convert_layout(x) }, x from outside    => convert_layout(x), for { .. }
for { x += convert_layout(y) }               => for { x += y }, convert_layout(x)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from tile_cute.linear import LayoutError, LinearLayout
from tile_tileaa.dialect.math import FUNCTIONS

from tile_core.mlir import ir
from tile_core.passes import Pass, PassContext
from tile_tileas.carried_layouts import keep_carried
from tile_tileas.dialect import distributed, layout_of
from tile_tileas.moves import plan_move
from tile_tileas.relayout import clone_in, converted, converted_behind, operand_layout
from tile_tileas.remat import Wanted, cheapest
from tile_tileas.storage import storage_bits
from tile_tileas.tile_graph import is_free, is_tile, kind_of, only_computes

_CONVERT = "nv_tileas.convert_layout"
_LOOPS = ("scf.for", "scf.while")
_MOVABLE = ("same", "view", "broadcast", "permute")
#: Operations that one conversion may repeat.
_SLICE_LIMIT = 32
#: Quarter cycles per register of one warp, by operation, else by dialect.
_REDO = {
    "arith.divf": 40, "arith.divsi": 80, "arith.divui": 80, "arith.remf": 80, "arith.remsi": 80,
    "arith.remui": 80, "math": 60, "nv_tileaa.atan2": 60, "nv_tileaa.divf": 40, "nv_tileaa.exp2": 8,
    "nv_tileaa.rsqrt": 16, "nv_tileaa.sqrt": 24,
    **dict.fromkeys((f"nv_tileaa.{name}" for name in (*FUNCTIONS, "pow")), 60),
}  # fmt: skip
_FREE_KINDS = ("source", "view", "broadcast", "permute")


@dataclass(frozen=True)
class RemoveLayoutConversions(Pass):
    """Remove conversions, move them to cheaper tiles, and out of loops."""

    name = "tileas-remove-layout-conversions"
    anchor = "func.func"
    statistics = {
        "removed": "conversions that disappeared",
        "sunk": "operations that moved before the conversion of their operands",
        "recomputed": "operations computed in the wanted layout",
        "hoisted": "conversions that left a loop",
        "carried": "values that a loop carries in the layout in which it makes them",
    }

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        body = op.regions[0]
        for conversion in list(_conversions(body)):
            _collapse(conversion, cx)
        for movable in list(_operations(body)):
            if _sink(movable):
                cx.count("sunk")
        for conversion in list(_conversions(body)):
            if _is_used(conversion):
                cx.count("recomputed", _recompute(conversion))
        for conversion in list(_conversions(body)):
            cx.count("hoisted", _hoist(conversion))
        for loop in [one for one in _operations(body) if one.operation.name == _LOOPS[0]]:
            cx.count("carried", keep_carried(loop))
        cx.count("removed", _erase_unused(body))


def _operations(region: ir.Region) -> Iterator[ir.OpView]:
    for block in region.blocks:
        for op in list(block.operations):
            for inner in op.regions:
                yield from _operations(inner)
            yield op


def _conversions(region: ir.Region) -> Iterator[ir.OpView]:
    return (op for op in _operations(region) if op.operation.name == _CONVERT)


def _maker(value: ir.Value) -> ir.OpView | ir.Operation | None:
    """The operation that `value` comes from; None for arguments of blocks."""
    owner = value.owner
    return None if isinstance(owner, ir.Block) else owner


def _conversion_source(value: ir.Value) -> ir.Value | None:
    """What a conversion made `value` of; None if none did."""
    maker = _maker(value)
    return maker.operands[0] if maker is not None and maker.operation.name == _CONVERT else None


def _is_used(op: ir.OpView) -> bool:
    return any(True for _ in op.results[0].uses)


# --- chains --------------------------------------------------------------------------------------


def _collapse(conversion: ir.OpView, cx: PassContext) -> None:
    """Convert what the chain of conversions started from, or nothing if it has the layout."""
    source = conversion.operands[0]
    while (before := _conversion_source(source)) is not None:
        source = before
    if source != conversion.operands[0]:
        conversion.operands[0] = source
        cx.count("removed")
    if source.type == conversion.results[0].type:
        conversion.results[0].replace_all_uses_with(source)
        conversion.operation.erase()
        cx.count("removed")


# --- costs ---------------------------------------------------------------------------------------


@lru_cache(maxsize=4096)
def _move_cost(src: LinearLayout, dst: LinearLayout, bits: int) -> int | None:
    try:
        return plan_move(src, dst, bits).cost
    except LayoutError:
        return None


def _convert_cost(value: ir.Value, layout: LinearLayout) -> int | None:
    """Quarter cycles of the conversion; None if it cannot be done."""
    source = layout_of(value.type)
    assert source is not None
    if source == layout:
        return 0
    return _move_cost(source, layout, storage_bits(value.type.element_type))


def _redo_cost(op: ir.OpView | ir.Operation, layout: LinearLayout, *, moves: bool) -> int:
    """Of computing the result in `layout`; if nothing else uses the old one, what it adds."""
    if kind_of(op) in _FREE_KINDS:
        return 0
    name = op.operation.name
    each = _REDO.get(name) or _REDO.get(name.split(".", 1)[0]) or 1
    now = layout_of(op.results[0].type)
    assert now is not None
    before = now.in_size("register") if moves else 0
    return each * max(0, layout.in_size("register") - before)


# --- forward: after the operation instead of before it ------------------------------------------


def _sink(op: ir.OpView) -> bool:
    """f(convert_layout(a), convert_layout(b), constant) => convert_layout(f(a, b, constant))"""
    if kind_of(op) != "same" or len(op.results) != 1 or op.operation.name.startswith("scf."):
        return False
    result, source, before = op.results[0], None, 0
    wanted = layout_of(result.type)
    if wanted is None:
        return False
    for operand in filter(is_tile, op.operands):
        if is_free(operand):
            continue
        origin = _conversion_source(operand)
        if origin is None or len(list(operand.uses)) != 1:
            return False
        source = source or layout_of(origin.type)
        cost = _convert_cost(origin, wanted)
        if source != layout_of(origin.type) or cost is None:
            return False
        before += cost
    if source is None or source.in_size("register") > wanted.in_size("register"):
        return False
    after = _move_cost(source, wanted, storage_bits(result.type.element_type))
    if after is None or after >= before:
        return False
    _compute_before_conversion(op, source)
    return True


def _compute_before_conversion(op: ir.OpView, source: LinearLayout) -> None:
    for at, operand in enumerate(op.operands):
        if not is_tile(operand):
            continue
        origin, maker = _conversion_source(operand), _maker(operand)
        if origin is not None:
            op.operands[at] = origin
        elif maker is not None:
            type_ = distributed(operand.type, source)
            op.operands[at] = clone_in(maker, type_, ir.InsertionPoint(op)).result
    result = op.results[0]
    type_ = result.type
    result.set_type(distributed(type_, source))
    converted_behind(result, type_, op)


# --- backward: before the operation instead of after it -----------------------------------------


@dataclass
class _Slice:
    """What a conversion could be computed from, tile by tile, uses before definitions."""

    tiles: list[tuple[ir.Value, LinearLayout]] = field(default_factory=list)
    wanted: list[Wanted] = field(default_factory=list)

    @staticmethod
    def of(conversion: ir.OpView) -> _Slice:
        layout = layout_of(conversion.results[0].type)
        assert layout is not None
        found = _Slice()
        found._grow(conversion.operands[0], layout, conversion, moves=True)
        return found

    def _grow(
        self, value: ir.Value, layout: LinearLayout, user: ir.OpView | ir.Operation, *, moves: bool
    ) -> int:
        """Number `value` in `layout`; `moves` if the operation that uses it leaves its place."""
        at = len(self.tiles)
        self.tiles.append((value, layout))
        self.wanted.append(Wanted(_convert_cost(value, layout), None))
        maker = _maker(value)
        if layout == layout_of(value.type) or maker is None or at >= _SLICE_LIMIT:
            return at
        if kind_of(maker) == "source":
            self.wanted[at] = Wanted(self.wanted[at].convert, 0)
            return at
        if not _is_movable(maker) or maker.operation.block != user.operation.block:
            return at
        moves = moves and len(list(value.uses)) == 1
        operands = []
        for operand in filter(is_tile, maker.operands):
            needed = operand_layout(maker, operand, layout)
            if needed is None:
                return at
            operands.append(self._grow(operand, needed, maker, moves=moves))
        redo = _redo_cost(maker, layout, moves=moves)
        self.wanted[at] = Wanted(self.wanted[at].convert, redo, tuple(operands))
        return at


def _is_movable(op: ir.OpView | ir.Operation) -> bool:
    simple = len(op.results) == 1 and not len(op.regions)
    simple = simple and not op.operation.name.startswith("scf.") and only_computes(op)
    return simple and kind_of(op) in _MOVABLE


def _recompute(conversion: ir.OpView) -> int:
    """Compute the converted tile from others where that is cheaper; how many operations."""
    if not _recomputable(conversion.operands[0]):
        return 0
    found = _Slice.of(conversion)
    again = cheapest(found.wanted)
    if not again[0]:
        return 0
    made: dict[tuple[ir.Value, LinearLayout], ir.Value] = {}
    count = 0
    for at in reversed(range(len(again))):
        value, layout = found.tiles[at]
        if (value, layout) in made or not _reached(found, again, at):
            continue
        maker = _maker(value)
        if maker is None or not again[at]:
            has = layout_of(value.type) == layout
            made[value, layout] = value if has else converted(value, layout, conversion)
            continue
        type_ = distributed(value.type, layout) if at else conversion.results[0].type
        clone = clone_in(maker, type_, ir.InsertionPoint(conversion))
        for place, operand in enumerate(clone.operands):
            if is_tile(operand):
                needed = operand_layout(clone, operand, layout)
                assert needed is not None
                clone.operands[place] = made[operand, needed]
        made[value, layout] = clone.result
        count += 1
    conversion.results[0].replace_all_uses_with(made[found.tiles[0]])
    return count


def _recomputable(value: ir.Value) -> bool:
    maker = _maker(value)
    return maker is not None and (kind_of(maker) == "source" or _is_movable(maker))


def _reached(found: _Slice, again: tuple[bool, ...], at: int) -> bool:
    """Whether tile `at` is the first one or an operand of something computed again."""
    if at == 0:
        return True
    return any(
        again[user] and at in wanted.operands and _reached(found, again, user)
        for user, wanted in enumerate(found.wanted[:at])
    )


# --- loops ---------------------------------------------------------------------------------------


def _hoist(conversion: ir.OpView) -> int:
    """Move the conversion before every loop in which its operand does not change."""
    count = 0
    while True:
        loop = conversion.operation.parent
        if loop is None or loop.operation.name not in _LOOPS:
            return count
        if _is_inside(conversion.operands[0], loop):
            return count
        conversion.operation.move_before(loop.operation)
        count += 1


def _is_inside(value: ir.Value, loop: ir.OpView | ir.Operation) -> bool:
    """Whether a region of `loop` defines the value."""
    owner = value.owner
    op = owner.owner if isinstance(owner, ir.Block) else owner.operation.parent
    while op is not None:
        if op.operation == loop.operation:
            return True
        op = op.operation.parent
    return False


def _erase_unused(region: ir.Region) -> int:
    count = 0
    for op in reversed(list(_operations(region))):
        if op.operation.name == _CONVERT and not _is_used(op):
            op.operation.erase()
            count += 1
    return count
