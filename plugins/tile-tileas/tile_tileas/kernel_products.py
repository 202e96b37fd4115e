"""The products of a kernel in nv_tileaa, before instructions are chosen: whose they will be, and
what they read as it was loaded.
"""

from __future__ import annotations

from math import prod

from tile_core.mlir import ir
from tile_core.target import Target
from tile_tileas.analysis.axis import shape_of
from tile_tileas.analysis.pressure import used_values
from tile_tileas.analysis.users import operations
from tile_tileas.mma.tier import choose
from tile_tileas.mma.tiers import tier_of, tiers_up_to
from tile_tileas.passes.dot import product_of, scaled_choice
from tile_tileas.passes.turned_dot import turned_in_fragments
from tile_tileas.storage import storage_bits

DOT, _LOAD = "nv_tileaa.dot", "nv_tileaa.tiled_load"
#: Rows of tensor memory.
ROWS = 128
#: Operations behind which a tile is the same data.
_VIEWS = ("nv_tileaa.view", "nv_tileaa.permute")
_LOOPS = ("scf.for", "scf.while")
_POWERS = ("nv_tileaa.exp", "nv_tileaa.exp2")


def made_by(func: ir.Operation, target: Target, highest: str, warps: int) -> set[str | None]:
    """Families of instructions that make the products of a kernel in nv_tileaa, `highest` the
    highest tier allowed; None for what no tier takes.
    """
    dots = [op for op in operations(func.regions[0]) if op.operation.name == DOT]
    return {family_for(dot, target, highest, warps) for dot in dots}


def operand_bytes(func: ir.Operation) -> int:
    """Shared memory for one stage of all tiles that products of a block of code read as they were
    loaded, at most.
    """
    found: dict[ir.Block, int] = {}
    for load in (op for op in operations(func.regions[0]) if op.operation.name == _LOAD):
        tiles = until_product(load.results[0])
        if tiles:
            (use,) = tiles[-1].uses
            block = use.owner.operation.block
            found[block] = found.get(block, 0) + tile_bytes(load.results[0])
    return max(found.values(), default=0)


def chained_columns(func: ir.Operation) -> int:
    """Columns of the sums of two products of a loop of which the second reads what is made of the
    first, at most; 0 if a block of code has other products. Those that add to one another are one.
    """
    found: dict[ir.Block, list[ir.OpView]] = {}
    for op in operations(func.regions[0]):
        if op.operation.name == DOT and not _adds_to_product(op):
            found.setdefault(op.operation.block, []).append(op)
    if not all(len(dots) == 2 and is_chained(dots[1]) for dots in found.values()):
        return 0
    sums = [sum(map(_columns, dots)) for dots in found.values()]
    return max(sums, default=0)


def columns_at_once(func: ir.Operation) -> int:
    """Columns that the sums of a loop's products take at the same time, at least: of all that it
    carries, and of one that it does not.
    """
    carried: dict[ir.Block, int] = {}
    others: dict[ir.Block, int] = {}
    for op in operations(func.regions[0]):
        if op.operation.name != DOT or _adds_to_product(op):
            continue
        block, columns = op.operation.block, _columns(op)
        if isinstance(op.operands[2].owner, ir.Block):
            carried[block] = carried.get(block, 0) + columns
        else:
            others[block] = max(others.get(block, 0), columns)
    blocks = {*carried, *others}
    return max((carried.get(one, 0) + others.get(one, 0) for one in blocks), default=0)


def _adds_to_product(dot: ir.OpView) -> bool:
    """Whether a product adds to what another one of the same block of code gives, whose columns it
    takes: of a score's two halves, as in latent attention.
    """
    owner = dot.operands[2].owner
    if isinstance(owner, ir.Block) or owner.name != DOT:
        return False
    return owner.operation.block == dot.operation.block


def least_rows(func: ir.Operation) -> int:
    """The fewest rows of a product of a kernel; 0 if it has none."""
    dots = [op for op in operations(func.regions[0]) if op.operation.name == DOT]
    return min((shape_of(op.results[0])[-2] for op in dots), default=0)


def in_no_loop(func: ir.Operation) -> bool:
    """Whether the kernel has products, and no loop makes any."""
    dots = [op for op in operations(func.regions[0]) if op.operation.name == DOT]
    return bool(dots) and not any(_in_loop(dot.operation, func) for dot in dots)


def makes_powers(func: ir.Operation) -> bool:
    """Whether threads make powers of a tile beside products, as softmax does."""
    return any(
        op.operation.name in _POWERS
        and isinstance(op.results[0].type, ir.RankedTensorType)
        and any(other.operation.name == DOT for other in op.operation.block.operations)
        for op in operations(func.regions[0])
    )


def _in_loop(op: ir.Operation, func: ir.Operation) -> bool:
    """Whether a loop of the kernel runs `op`."""
    around = op.parent
    while around is not None and around.operation != func:
        if around.operation.name in _LOOPS:
            return True
        around = around.operation.parent
    return False


def _columns(dot: ir.OpView) -> int:
    """Columns of tensor memory for the sum of a product."""
    *_, rows, columns = shape_of(dot.results[0])
    return columns * max(1, rows // ROWS)


def is_chained(dot: ir.OpView) -> bool:
    """Whether A of a product is made of what another product of the same block of code gives."""
    block = dot.operation.block
    seen: set[ir.Value] = set()
    pending = [dot.operands[0]]
    while pending:
        value = pending.pop()
        owner = value.owner
        if value in seen or isinstance(owner, ir.Block) or owner.operation.block != block:
            continue
        if owner.name == DOT:
            return True
        seen.add(value)
        pending += used_values(owner.operation.opview)  # of branches, too, such as one of a mask
    return False


def tile_bytes(tile: ir.Value) -> int:
    """Bytes of a tile in memory."""
    return prod(shape_of(tile)) * storage_bits(tile.type.element_type) // 8


def family_for(dot: ir.OpView, target: Target, highest: str, warps: int) -> str | None:
    """The family that makes a product; None for what no tier takes."""
    if dot.sfa is not None:
        choice = scaled_choice(dot, target, highest, warps)
    else:
        product = product_of(dot, list(dot.operands), target, warps)
        tiers = tiers_up_to(highest)
        choice = turned_in_fragments(product, tiers) or choose(product, tiers)
    return None if choice is None else tier_of(choice.atom).family


def until_product(tile: ir.Value) -> list[ir.Value]:
    """The tile and views of it, if they go to one product and to nothing else; else nothing."""
    found = [tile]
    while True:
        uses = list(found[-1].uses)
        if len(uses) != 1:
            return []
        user = uses[0].owner
        if user.name == DOT:
            return found if uses[0].operand_number < 2 else []
        if user.name not in _VIEWS:
            return []
        found.append(user.results[0])
