"""A of tcgen05 in tensor memory: what threads make for a product is stored to where it is read."""

from __future__ import annotations

from collections.abc import Iterator

from tile_cute.atoms.records import TENSOR
from tile_cute.atoms.tensor_access import tensor_access
from tile_cute.atoms.tensor_memory import COLUMNS
from tile_cute.errors import LayoutError
from tile_cute.linear import LinearLayout, WarpShuffle

from tile_core.mlir import ir
from tile_core.target import Target
from tile_tileas.analysis.accumulators import added_to
from tile_tileas.analysis.buffers import ALLOC, stage_bytes
from tile_tileas.analysis.pressure import used_values
from tile_tileas.analysis.tile_views import origin, with_views
from tile_tileas.dialect import distributed, layout_of
from tile_tileas.dialect.buffers import Buffer
from tile_tileas.dialect.tensor import LEAST_COLUMNS, tensor_columns
from tile_tileas.dot_plan import family_of, tensor_plan_of
from tile_tileas.kernel_spec import occupancy
from tile_tileas.materialize.exchange import Exchange
from tile_tileas.mma.families import TENSOR as FAMILY
from tile_tileas.mma.tensor import TensorPlan
from tile_tileas.mma.tensor_scaled import ScaledTensorPlan
from tile_tileas.moves import plan_move
from tile_tileas.relayout import converted
from tile_tileas.storage import storage_bits, tile_bytes

_DOT, _COPY = "nv_tileas.dot", "nv_tileas.copy"
#: Loads, whose tiles the asynchronous proxy may bring to shared memory, and what moves no data.
_LOADED = ("nv_tileas.load", "nv_tileas.tiled_load")
_SAME_DATA = ("nv_tileas.convert_layout", "nv_tileaa.reshape", "nv_tileaa.permute")


def hold_left(op: ir.OpView, plan: TensorPlan, target: Target) -> bool:
    """Put A of a product into tensor memory, stored in front of it; False, and nothing is done,
    where it is loaded, another product has it in shared memory anyway, it lies in threads as no
    tcgen05.st stores it, and they cannot make that by shuffles of their own warp, or has no room.

    More than half of the columns are taken only where two blocks of a multiprocessor would not
    have registers for their sums anyway. It takes the columns of a sum that it is made of, so that
    that product cannot begin ahead, only there or where shared memory has no room for it: model,
    B200, causal attention of 16 heads, 4096 x 4096, 64 x 64 of heads of 64, in four blocks 84 us,
    72 through shared memory; latent attention of 64 x 128 in two 493, and 886 in the one that
    shared memory leaves.
    """
    tile = op.operands[0]
    layout, home = layout_of(tile.type), plan.held
    if isinstance(plan, ScaledTensorPlan) or layout is None or home is None:
        return False
    if _is_loaded(tile) or _is_stored_anyway(tile, layout, op):
        return False
    bits = storage_bits(ir.RankedTensorType(tile.type).element_type)
    stored = layout if _is_stored(layout, home) else in_whole_words(layout, home, bits)
    if stored is None:
        return False
    buffer = _buffer_type(ir.RankedTensorType(tile.type), home)
    if not _is_room(op, plan, tensor_columns(buffer), target):
        return False
    cx = Exchange(op)
    attributes = {"alignment": ir.IntegerAttr.get(ir.IntegerType.get_signless(32), LEAST_COLUMNS)}
    held = cx.create("nv_tileas.alloc_tensor", [], [buffer.type], attributes).result
    if stored != layout:
        tile = converted(tile, stored, op)
    cx.store(tile, held)
    op.operands[0] = held
    return True


def _is_stored(layout: LinearLayout, home: LinearLayout) -> bool:
    """Whether some tcgen05.st stores what threads hold."""
    try:
        tensor_access(layout, home)
    except LayoutError:
        return False
    return True


def in_whole_words(layout: LinearLayout, home: LinearLayout, bits: int) -> LinearLayout | None:
    """Another layout, in which threads have all elements of a column of tensor memory, which
    shuffles of each warp make of `layout`; None if there is none.

    Lanes side by side have neighbours along a row, as of sums of words (tcgen05.ld 16x256b), of
    which narrower elements leave too few to a thread: each gets more of them and fewer of those
    further on, which lanes have for it.
    """
    registers, lanes = list(layout.bases["register"]), layout.bases["lane"]
    missing = [step for step in home.bases["element"] if step not in registers]
    along = [step for step in lanes if step[-1]]
    further = {step: tuple(n << len(missing) for n in step) for step in along}
    given = [step for step in further.values() if step not in along]
    if not missing or any(step not in along for step in missing):
        return None
    if len(given) != len(missing) or any(step not in registers for step in given):
        return None
    kept = [step for step in registers if step not in given]
    own = len(home.bases["element"]) - len(missing)
    bases = {
        "register": [*kept[:own], *missing, *kept[own:]],
        "lane": [further.get(step, step) for step in lanes],
        "warp": list(layout.bases["warp"]),
    }
    found = LinearLayout(bases, layout.shape)
    made = isinstance(plan_move(layout, found, bits), WarpShuffle)
    return found if made and _is_stored(found, home) else None


def _buffer_type(tile: ir.RankedTensorType, layout: LinearLayout) -> Buffer:
    plain = ir.RankedTensorType.get(tile.shape, tile.element_type)
    return Buffer(ir.RankedTensorType(distributed(plain, layout)), TENSOR, 1)


def _is_loaded(tile: ir.Value) -> bool:
    """Whether memory has the tile as it is."""
    while not isinstance(tile.owner, ir.Block):
        owner = tile.owner
        if owner.name in _LOADED:
            return True
        if owner.name not in _SAME_DATA:
            return False
        tile = owner.operands[0]
    return False


def _is_stored_anyway(tile: ir.Value, layout: LinearLayout, op: ir.OpView) -> bool:
    """Whether another product reads the tile, or a view of it, from shared memory, where this one
    may, too. B200 (model), gradients of attention of 16 heads of 64, 4096 x 4096: 419 us, and 461
    where they are stored twice.
    """
    whole, _ = origin(tile, layout)
    users = [use.owner for value, _ in with_views(whole) for use in value.uses]
    return any(
        user.operation != op.operation and user.operation.name in (_DOT, _COPY) for user in users
    )


def _is_room(op: ir.OpView, plan: TensorPlan, columns: int, target: Target) -> bool:
    """Whether all that may live at once fits beside so many `columns` more."""
    func = _function(op.operation)
    beside = _columns_at_once(func.regions, plan.num_warps)
    threads = target.warp_size * plan.num_warps
    block = op.operation.block
    sums = sum(
        tensor_plan_of(inner, plan.num_warps).registers
        for inner in block.operations
        if _is_product(inner)
    )
    alone = 2 * threads * sums >= target.registers
    room = COLUMNS if alone else COLUMNS // max(2, occupancy(func))
    if beside + columns <= room:
        return True
    over = alone or occupancy(func) * _shared_bytes(block) > target.max_shared
    return over and beside <= room and _is_of_a_sum(op, columns, plan.num_warps)


def _shared_bytes(block: ir.Block) -> int:
    """Shared memory for one stage of all that products of a block of code read there."""
    read = {v for op in block.operations if _is_product(op) for v in list(op.operands)[:2]}
    found = 0
    for value in read:
        buffer = Buffer.of(value.type)
        if buffer is None:
            found += tile_bytes(ir.RankedTensorType(value.type))
        elif buffer.space != TENSOR:
            found += stage_bytes(buffer)
    return found


def _is_of_a_sum(op: ir.OpView, columns: int, warps: int) -> bool:
    """Whether A is made of what another product of its block gives, which takes as many columns:
    they are A's as soon as threads have read it.
    """
    block, pending = op.operation.block, [op.operands[0]]
    known: set[ir.Value] = set()
    while pending:
        value = pending.pop()
        owner = value.owner
        if value in known or isinstance(owner, ir.Block) or owner.operation.block != block:
            continue
        known.add(value)
        made = owner.operation.opview
        if _is_product(made):
            return tensor_plan_of(made, warps).taken >= columns
        pending += used_values(made)
    return False


def _function(op: ir.Operation) -> ir.Operation:
    while op.name != "func.func":
        assert op.parent is not None
        op = op.parent.operation if isinstance(op.parent, ir.OpView) else op.parent
    return op


def _is_product(op: ir.OpView) -> bool:
    return op.operation.name == _DOT and family_of(op) == FAMILY


def _columns_at_once(regions: ir.RegionSequence, warps: int) -> int:
    """Columns of sums, and of what is held already: those of a block live while its inner blocks
    run, of which one runs at a time. Products that add to one another have one sum.
    """
    most = 0
    for block in (block for region in regions for block in region.blocks):
        own = sum(_columns_of(op, warps) for op in block.operations)
        inner = max((_columns_at_once(op.regions, warps) for op in block.operations), default=0)
        most = max(most, own + inner)
    return most


def _columns_of(op: ir.OpView, warps: int) -> int:
    if _is_product(op):
        return 0 if added_to(op) is not None else tensor_plan_of(op, warps).taken
    return sum(map(tensor_columns, _held_by(op)))


def _held_by(op: ir.OpView) -> Iterator[Buffer]:
    if op.operation.name == ALLOC:
        buffer = Buffer.of(op.results[0].type)
        if buffer is not None and buffer.space == TENSOR:
            yield buffer
