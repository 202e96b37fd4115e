"""Operands of wgmma and tcgen05: in shared memory as they are read, stored as rarely as can be."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from tile_cute.atoms.records import SHARED
from tile_cute.linear import LinearLayout

from tile_core.mlir import ir
from tile_core.passes import error_at
from tile_core.target import Target
from tile_tileas.analysis.buffers import ALLOC, allocation_of, stage_bytes
from tile_tileas.analysis.tile_views import erase_unused, origin, pulled_back, with_views
from tile_tileas.dialect import distributed
from tile_tileas.dialect.buffers import Buffer
from tile_tileas.dot_plan import atom_name, tensor_plan_of, warps_of
from tile_tileas.dots import product_shape
from tile_tileas.materialize.exchange import Exchange
from tile_tileas.materialize.held_operands import hold_left
from tile_tileas.mma.interleaved import buffer_of
from tile_tileas.mma.operands import OPERAND_ALIGNMENT, staged_operand
from tile_tileas.mma.tensor_scaled import ScaledTensorPlan
from tile_tileas.mma.tier import Planned
from tile_tileas.mma.warpgroup import WarpgroupPlan, planned_warpgroups
from tile_tileas.storage import OPERATION_LIMIT, storage_bits, tile_bytes

_DOT, _COPY, _SYNC = "nv_tileas.dot", "nv_tileas.copy", "nv_tileas.sync"
_ANEW = "nv_tileas.buffer_reinterpret"
_LOOPS = ("scf.for", "scf.while")


def warpgroup_level(op: ir.OpView, layouts: list[LinearLayout], target: Target) -> None:
    """B becomes a buffer, and A where it is no fragment; A along M, of elements that are read along
    K, is read from such a buffer as fragments.

    Raises:
        CompileError: the accumulator is no tile of the instruction.
    """
    plan = _plan(op, layouts)
    held = layouts[0] == plan.a_fragment
    if plan.along_m and not held:
        _read_along_m(op, plan, target)
    share_operands(op, layouts, range(int(held or plan.along_m), 2), plan.atom.row.majors, target)


def _read_along_m(op: ir.OpView, plan: WarpgroupPlan, target: Target) -> None:
    """A becomes what threads read of it where the product stands."""
    tile = ir.RankedTensorType(op.operands[0].type)
    m, _, k = plan.shape
    _share(op, 0, buffer_of(m, k, storage_bits(tile.element_type)), target)
    plain = ir.RankedTensorType.get(tile.shape, tile.element_type)
    op.operands[0] = Exchange(op).load(op.operands[0], distributed(plain, plan.a_read))


def tensor_level(op: ir.OpView, layouts: list[LinearLayout], target: Target) -> None:
    """A, B and block scales become buffers, stored as rarely as those of wgmma; A that threads make
    where the product stands is in tensor memory, if there is room for it.
    """
    warps = layouts[2].in_size("warp")
    plan = tensor_plan_of(op, warps)
    first = int(_before_loops(op, op.operands[0], target) == op and hold_left(op, plan, target))
    share_operands(op, layouts, range(first, 2), plan.majors, target)
    if isinstance(plan, ScaledTensorPlan):
        for at, buffer in enumerate(plan.scale_buffers, start=3):
            _share(op, at, buffer, target)


def share_operands(
    op: ir.OpView,
    layouts: list[LinearLayout],
    which: Iterable[int],
    majors: tuple[str, ...],
    target: Target,
) -> None:
    """Operands of these numbers become buffers in a canonical layout along one of `majors`.

    What comes from outside of a loop is stored before it, where there is room to keep it.

    Raises:
        CompileError: an operand has no such layout.
    """
    for at in which:
        tile, name = op.operands[at], "ab"[at]
        bits = storage_bits(tile.type.element_type)
        buffer = staged_operand(layouts[at], name, bits, majors)
        if buffer is None:
            raise error_at(op, f"cannot have operand {name} in shared memory: {layouts[at]}")
        _share(op, at, buffer, target)


def _share(op: ir.OpView, at: int, buffer: LinearLayout, target: Target) -> None:
    """Operand `at` becomes a buffer of that layout."""
    tile = op.operands[at]
    place = _before_loops(op, tile, target)
    shared = stored_already(tile, buffer, place, OPERAND_ALIGNMENT)
    if shared is None:
        shared = _staged(tile, buffer, place, ahead=place != op)
    op.operands[at] = shared
    erase_unused(tile)


def _staged(
    tile: ir.Value, layout: LinearLayout, place: ir.OpView | ir.Operation, *, ahead: bool
) -> ir.Value:
    """The tile in a new buffer, stored before `place`; `ahead` of a loop threads meet there once,
    and not in each of its turns.
    """
    if not ahead:
        return Exchange(place).staged(tile, layout, OPERAND_ALIGNMENT)
    block = [inner.operation for inner in place.operation.block.operations]
    at = block.index(place.operation)
    meeting = block[at - 1] if at and block[at - 1].name == _SYNC else None
    if meeting is None:
        meeting = Exchange(place).create(_SYNC)
    return Exchange(meeting).staged(tile, layout, OPERAND_ALIGNMENT)


def _plan(op: ir.OpView, layouts: list[LinearLayout]) -> WarpgroupPlan:
    a, b, c = layouts
    shape = product_shape(a.shape, b.shape)
    planned = Planned(atom_name(op), shape, c.rank, c.in_size("warp"))
    plan = planned_warpgroups(planned, warps_of(op))
    if plan.accumulator != c:
        raise error_at(op, f"has an accumulator that is no tile of {plan.atom}: {c}")
    return plan


def _before_loops(op: ir.OpView, tile: ir.Value, target: Target) -> ir.OpView | ir.Operation:
    """Before what the tile is stored: `op`, or the outermost loop in which it stays the same."""
    around = list(_around(op.operation))
    owner = tile.owner
    made = owner.owner.operation if isinstance(owner, ir.Block) else owner.operation
    # The operation that has the block in which the tile is made; it holds all of its uses.
    home = made if isinstance(owner, ir.Block) else made.parent
    loops: list[ir.Operation] = []
    for outer in around:
        if outer == home:
            break
        if outer.name in _LOOPS:
            loops.append(outer)
    if not loops or not _is_room(op, ir.RankedTensorType(tile.type), loops[-1], target):
        return op
    return loops[-1]


def _around(op: ir.Operation) -> Iterator[ir.Operation]:
    """Operations around `op`, the innermost first."""
    parent = op.parent
    while parent is not None:
        yield parent
        parent = None if parent.name == "func.func" else parent.parent


def _is_room(op: ir.OpView, tile: ir.RankedTensorType, loop: ir.Operation, target: Target) -> bool:
    """Whether a tile may stay in shared memory while a loop runs, beside all that may need some."""
    held = sum(
        stage_bytes(buffer)
        for inner in loop.block.operations
        if inner.operation.name == ALLOC
        and (buffer := Buffer.of(inner.results[0].type)) is not None
    )
    most = max((_operand_bytes(dot, loop) for dot in _dots(loop.regions)), default=0)
    wanted = held + tile_bytes(tile) + max(most, OPERATION_LIMIT) + 2 * OPERAND_ALIGNMENT
    return wanted <= target.max_shared


def _operand_bytes(dot: ir.OpView, loop: ir.Operation) -> int:
    """What A and B of a product may need, or have got, in turns of `loop`."""
    return sum(_bytes_in_turns(value, loop) for value in list(dot.operands)[:2])


def _bytes_in_turns(operand: ir.Value, loop: ir.Operation) -> int:
    if isinstance(operand.type, ir.RankedTensorType):
        return tile_bytes(operand.type)
    buffer, made = Buffer.of(operand.type), allocation_of(operand)
    if buffer is None or buffer.space != SHARED:
        return 0
    # What is allocated beside the loop is held while it runs, and counted there.
    beside = made is not None and made.operation.block == loop.block
    return 0 if beside else stage_bytes(buffer)


def _dots(regions: ir.RegionSequence) -> Iterator[ir.OpView]:
    for region in regions:
        for block in region.blocks:
            for op in block.operations:
                if op.operation.name == _DOT:
                    yield op
                yield from _dots(op.regions)


def stored_already(
    tile: ir.Value, layout: LinearLayout, place: ir.OpView | ir.Operation, alignment: int
) -> ir.Value | None:
    """The buffer of this layout that an earlier product has stored the tile in, at a multiple of
    `alignment` bytes, or a view of it that lies there as the tile would, such as what it is a
    transpose of; None if there is none before `place`, in its block.
    """
    block = place.operation.block
    source, wanted = origin(tile, layout)
    for value, views in with_views(source):
        for use in value.uses:
            copy = use.owner.operation
            if copy.name != _COPY or len(copy.results) or copy.block != block:
                continue
            seen = _layout_through(views, copy.operands[1])
            if seen != wanted or _alignment_of(copy.operands[1]) % alignment:
                continue
            if _is_before(copy, place.operation):
                return _by_type_of(tile, layout, copy.operands[1], place)
    return None


def _alignment_of(stored: ir.Value) -> int:
    """What the place of a buffer is a multiple of, in bytes."""
    made = allocation_of(stored)
    return 1 if made is None else ir.IntegerAttr(made.attributes["alignment"]).value


def _layout_through(views: Sequence[ir.OpView], stored: ir.Value) -> LinearLayout | None:
    """The layout of a buffer in shared memory, in coordinates of the tile before `views`."""
    buffer = Buffer.of(stored.type)
    if buffer is None or buffer.space != SHARED or buffer.layout is None:
        return None
    layout = buffer.layout
    for view in reversed(views):
        layout = pulled_back(layout, view)
    return layout


def _by_type_of(
    tile: ir.Value, layout: LinearLayout, stored: ir.Value, place: ir.OpView | ir.Operation
) -> ir.Value:
    """A buffer as it is if it held `tile` laid out as `layout`."""
    held = ir.RankedTensorType(distributed(ir.RankedTensorType(tile.type), layout))
    type_ = Buffer(held, SHARED, 1).type
    if stored.type == type_:
        return stored
    return Exchange(place).create(_ANEW, [stored], [type_]).result


def _is_before(first: ir.Operation, second: ir.Operation) -> bool:
    """Whether `first` stands before `second` in their block."""
    for op in first.block.operations:
        if op.operation == first:
            return True
        if op.operation == second:
            return False
    return False
