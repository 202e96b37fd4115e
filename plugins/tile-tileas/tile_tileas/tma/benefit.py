"""Where a copy by a tensor map is worth its barrier: next to products, which read shared memory
anyway, for results of products, whose fragments are no rows of memory, and for tiles that go from
memory to memory as they are.

Tiles that are read once and go to registers are better read by threads themselves: rows of norms
lost a tenth to a third of their speed by TMA stores (TileGym, "perf-knobs-catalog").
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tile_core.mlir import ir
from tile_tileas.analysis.axis import element_bytes, shape_of
from tile_tileas.analysis.tile_views import origin
from tile_tileas.copying.ahead import is_in_a_loop
from tile_tileas.dot_plan import tensor_plan_of
from tile_tileas.dots import SCALED_FAMILY
from tile_tileas.mma.families import FAMILIES, TENSOR, WARP, WARPGROUP
from tile_tileas.mma.tensor_scaled import ScaledTensorPlan
from tile_tileas.mma.tiers import tier_of
from tile_tileas.storage import row_major
from tile_tileas.tile_graph import kind_of
from tile_tileas.tma.element_types import is_rounding

_DOT = "nv_tileas.dot"
#: Operations behind which a tile is the same data in the same memory.
_SAME_DATA = ("nv_tileas.view", "nv_tileaa.permute", "nv_tileas.convert_layout")
#: Operations behind which a tile lies in memory as it did.
_SAME_ORDER = ("nv_tileas.view", "nv_tileas.convert_layout")
#: Instructions whose operands lie in shared memory as tensor maps leave them.
_FROM_BOXES = (TENSOR, WARPGROUP, WARP)
#: All, those that take block scales included.
_ALL = (*FAMILIES, SCALED_FAMILY)
#: Those that one thread begins, for all.
_BY_ONE_THREAD = (TENSOR,)
_LOAD, _STORE = "nv_tileas.tiled_load", "nv_tileas.tiled_store"
#: The first operand of a product that is block scales; warps of a block, on which places of scales
#: do not depend.
_SCALES, _ANY_WARPS = 3, 4
#: A smaller tile leaves sooner from the threads that hold it, bytes.
LEAST_STORE = 4096
#: A smaller tile is copied sooner by the threads, bytes.
LEAST_COPY = 4096
#: Bytes of elements of which an instruction reads four matrices at once (PTX ISA, "ldmatrix").
_HALF = 2
#: Operations that a search for the origin of a tile looks at.
_EFFORT = 256


def load_loss(op: ir.OpView) -> str | None:
    """Why a load gains nothing by a tensor map; None if it does."""
    if feeds_product(op.results[0]) or is_copied(op) or is_made_into_left(op):
        return None
    return "it does not pay: the tile goes to registers, neither into a product nor as it is back"


def single_loss(op: ir.OpView) -> str | None:
    """Why a load that a tensor map may make gains nothing where it stands; None if it does.

    The thread that begins products by tcgen05 waits for their operands alone, as for stages of
    loops, which are filled meanwhile.
    """
    if is_in_a_loop(op) or is_copied(op) or feeds_product(op.results[0], _BY_ONE_THREAD):
        return None
    return "it does not pay: no loop runs it, of which other iterations would hide its barrier"


def bulk_loss(op: ir.OpView) -> str | None:
    """Why a load gains nothing by bulk copies of its runs; None if it does."""
    if feeds_product(op.results[0]):
        return "a product reads swizzled rows, which runs are not"
    return "it does not pay: threads that copy what they read themselves meet nobody"


def store_loss(op: ir.OpView) -> str | None:
    """Why a store gains nothing by a tensor map; None if it does."""
    value = op.value
    size = prod(shape_of(value)) * element_bytes(value.type.element_type)
    if size < LEAST_STORE:
        return f"it does not pay: the tile has {size} bytes, less than {LEAST_STORE}"
    if comes_from_product(value) or is_copy(value):
        return None
    if is_sum_of_products(value) and not is_in_a_loop(op):
        return None  # whose threads, too, would go through shared memory for whole rows
    return "it does not pay: no product made the tile, or it was reshaped since, and it is no copy"


def is_copied(load: ir.OpView) -> bool:
    """Whether all that is done with a loaded tile is to store it as it is.

    Both copies of such a tile may be the engine's then: 12 to 15 % (docs/benchmarks.md). Any
    other use brings it to registers, where threads had better loaded it.
    """
    tile = load.results[0]
    size = prod(shape_of(tile)) * element_bytes(tile.type.element_type)
    if size < LEAST_COPY or load.operation.name != _LOAD:
        return False
    stack, stored = [tile], False
    while stack:
        for use in stack.pop().uses:
            user = use.owner
            if user.name in _SAME_ORDER:
                stack.append(user.results[0])
            elif user.name == _STORE:
                stored = True
            else:
                return False
    return stored


def is_copy(tile: ir.Value) -> bool:
    """Whether `tile` was loaded to be stored as it is."""
    while not isinstance(tile.owner, ir.Block):
        owner = tile.owner
        if owner.name == _LOAD:
            return is_copied(owner.opview if isinstance(owner, ir.Operation) else owner)
        if owner.name not in _SAME_ORDER:
            return False
        tile = owner.operands[0]
    return False


def feeds_product(tile: ir.Value, families: Sequence[str] = _ALL) -> bool:
    """Whether `tile` is an operand of a product of `families`, as it is or after its axes were
    renamed, or its block scales as it lies in memory.

    Maps round f32 to tf32 on the way to products that read boxes, and to no others.
    """
    stack = [(tile, False)]
    while stack:
        value, rounded = stack.pop()
        for use in value.uses:
            user = use.owner
            if user.name == _DOT and _family(user) in families:
                if use.operand_number >= _SCALES:
                    if _lies_as_read(user, use.operand_number):
                        return True
                elif use.operand_number < 2 and (not rounded or _family(user) in _FROM_BOXES):
                    return True
            elif user.name in _SAME_DATA:
                stack.append((user.results[0], rounded))
            elif is_rounding(user):
                stack.append((user.results[0], True))
    return False


def is_made_into_left(load: ir.OpView) -> bool:
    """Whether threads make A of a product by tcgen05 of the tile, element by element, in a loop:
    they hold A in tensor memory, and store it from a layout in which they read the tile as well.
    """
    tile = load.results[0]
    shape, pending, seen = shape_of(tile), [tile], set[ir.Value]()
    if not is_in_a_loop(load) or element_bytes(tile.type.element_type) != _HALF:
        return False
    while pending and len(seen) < _EFFORT:
        value = pending.pop()
        if value in seen or shape_of(value) != shape:
            continue
        seen.add(value)
        for use in value.uses:
            user = use.owner
            if user.name == _DOT and use.operand_number == 0:
                return value != tile and _family(user) == TENSOR
            if kind_of(user) == "same" and not len(user.regions):
                pending += user.results
    return False


def _lies_as_read(dot: ir.Operation | ir.OpView, at: int) -> bool:
    """Whether block scales, operand `at`, are loaded in the order of memory in which tcgen05 reads
    them.
    """
    if _family(dot) != TENSOR:
        return False
    plan = tensor_plan_of(dot, _ANY_WARPS)
    assert isinstance(plan, ScaledTensorPlan), "it has scales"
    loaded, order = origin(dot.operands[at], plan.scale_buffers[at - _SCALES])
    return order == row_major(shape_of(loaded))


def _family(dot: ir.Operation | ir.OpView) -> str:
    return tier_of(ir.StringAttr(dot.attributes["atom"]).value).family


def comes_from_product(tile: ir.Value) -> bool:
    """Whether a product, or a loop of products, is among what `tile` is computed from, element by
    element.

    Results that were reshaped are left to threads: those of attention (16 x 2048 x 128, `tilec
    time`) take as long by maps on an H100, 2.8 % longer on a B200 and 2.7 % on an RTX 5090.
    """
    stack, seen = [tile], set()
    while stack and len(seen) < _EFFORT:
        value = stack.pop()
        if value in seen or shape_of(value) == ():
            continue
        seen.add(value)
        owner = value.owner
        if isinstance(owner, ir.Block):
            continue
        if owner.name == _DOT:
            return True
        stack += _origins(value, owner)
    return False


def is_sum_of_products(tile: ir.Value) -> bool:
    """Whether `tile` is what products by tcgen05 add up to, each element by itself changed, with
    other axes of one element.
    """
    for _ in range(_EFFORT):
        owner = tile.owner
        if isinstance(owner, ir.Block):
            return False
        if owner.name == _DOT:
            return _family(owner) in _BY_ONE_THREAD
        if owner.name == "scf.for":
            (tile,) = _origins(tile, owner)
            continue
        wide = [one for one in owner.operands if _is_computed(one)]
        if len(owner.regions) or len(wide) != 1 or _long(wide[0]) != _long(tile):
            return False
        tile = wide[0]
    return False


def _is_computed(value: ir.Value) -> bool:
    """Whether a value is a tile, and no constant."""
    owner = value.owner
    constant = not isinstance(owner, ir.Block) and owner.name == "arith.constant"
    return shape_of(value) != () and not constant


def _long(tile: ir.Value) -> list[int]:
    """Extents of axes of more than one element."""
    return [extent for extent in shape_of(tile) if extent > 1]


def _origins(value: ir.Value, owner: ir.Operation | ir.OpView) -> list[ir.Value]:
    number = ir.OpResult(value).result_number
    if owner.name == "nv_tileaa.permute":
        return [owner.operands[0]]
    if owner.name == "scf.for":
        block = owner.regions[0].blocks[0]
        return [block.operations[len(block.operations) - 1].operands[number]]
    if owner.name == "scf.if":
        ends = [region.blocks[0] for region in owner.regions]
        return [end.operations[len(end.operations) - 1].operands[number] for end in ends]
    if len(owner.regions):
        return []
    return [operand for operand in owner.operands if shape_of(operand) == shape_of(value)]
