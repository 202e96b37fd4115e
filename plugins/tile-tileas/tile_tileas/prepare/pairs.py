"""Two iterations of a loop as one, whatever the number of iterations.

    for i in [a, b) step s:  f(i)    =>    for i in [a, m) step 2 s:  f(i); f(i + s)
                                           if m < b:  f(m)

with m so many pairs of steps behind a as there are.
"""

from __future__ import annotations

from tile_cute.atoms.tensor_memory import COLUMNS

from tile_core.mlir import ir
from tile_core.target import Target
from tile_tileas.analysis.accumulators import tensor_products
from tile_tileas.analysis.constants import is_zero, splat_integer
from tile_tileas.analysis.tokens import LOADS
from tile_tileas.cloning import mapped_operands, replace_operands
from tile_tileas.dot_plan import tensor_plan_of
from tile_tileas.kernel_spec import num_warps, occupancy
from tile_tileas.pipelining.writer import Writer
from tile_tileas.prepare.loops import FACTOR
from tile_tileas.sched.nodes import trip_count
from tile_tileas.storage import tile_bytes

_YIELD, _VIEWS = "scf.yield", ("nv_tileaa.permute", "nv_tileaa.view")
#: Iterations, where they are known, from which on the products of a pair run ahead of the loop.
_LEAST = 8
#: Stages of a pair with which its products run ahead (`pipelining.tcgen05_a_step_ahead`).
_STAGES = 3


def pays(loop: ir.OpView, func: ir.Operation, target: Target) -> bool:
    """Whether a loop of `func` does nothing but make one sum by tcgen05, and work on it, and tensor
    memory and shared memory have room for two.
    """
    block, step = loop.regions[0].blocks[0], splat_integer(loop.operands[2])
    known = trip_count(loop)
    if step is None or step <= 0 or {"unsignedCmp", FACTOR} & set(loop.attributes):
        return False
    if (known is not None and known < _LEAST) or any(len(op.regions) for op in block.operations):
        return False
    products = list(tensor_products(loop))
    if len(products) != 1 or len(list(tensor_products(func))) != 1 or not _is_read(products[0]):
        return False
    read = [_loaded(value, block) for value in list(products[0].operands)[:2]]
    loads = [load for load in read if load is not None]
    if not loads or len(list(products[0].operands)) != len(read) + 1:
        return False
    blocks, sum_ = occupancy(func), tensor_plan_of(products[0], num_warps(func)).taken
    bytes_ = sum(tile_bytes(ir.RankedTensorType(load.results[0].type)) for load in loads)
    sums_ = 3 if known is None or known % 2 else 2  # with that of the iteration left over
    fits = blocks * _STAGES * 2 * bytes_ <= target.max_shared
    return fits and blocks * sums_ * sum_ <= COLUMNS


def _is_read(product: ir.OpView) -> bool:
    """Whether a sum begins anew in each iteration, which uses it itself."""
    users = [use.owner.operation.name for use in product.results[0].uses]
    return is_zero(product.operands[2]) and bool(users) and _YIELD not in users


def _loaded(tile: ir.Value, block: ir.Block) -> ir.OpView | None:
    """The load in `block` that a tile, or what it is a view of, comes from; None if none does."""
    while not isinstance(tile.owner, ir.Block) and tile.owner.operation.block == block:
        owner = tile.owner.opview if isinstance(tile.owner, ir.Operation) else tile.owner
        if owner.operation.name in LOADS:
            return owner
        if owner.operation.name not in _VIEWS:
            return None
        tile = owner.operands[0]
    return None


def in_pairs(loop: ir.OpView) -> ir.OpView:
    """Let each iteration of a loop of a constant step be two of them; returns the loop."""
    step = splat_integer(loop.operands[2])
    assert step is not None, "asked before"
    assert step > 0, "asked before"
    at = Writer(loop.location)
    at.move(ir.InsertionPoint(loop))
    lower, upper = list(loop.operands)[:2]
    middle = _middle(at, lower, upper, step)
    _leave_last(at, loop, middle, upper)
    loop.operands[1] = middle
    at.move(ir.InsertionPoint(loop))
    loop.operands[2] = at.constant(2 * step, lower.type)
    block = loop.regions[0].blocks[0]
    index, *arguments = block.arguments
    *ops, end = block.operations
    at.move(ir.InsertionPoint(end))
    second = at.binary("addi", index, at.constant(step, index.type))
    carried = _copied(at, ops, end, dict(zip(arguments, end.operands, strict=True)), index, second)
    for place, value in enumerate(carried):
        end.operands[place] = value
    return loop


def _middle(at: Writer, lower: ir.Value, upper: ir.Value, step: int) -> ir.Value:
    """The first index that no pair has."""
    low, high = splat_integer(lower), splat_integer(upper)
    if low is not None and high is not None:
        pairs = max(0, -(-(high - low) // step)) // 2
        return at.constant(low + 2 * step * pairs, lower.type)
    # Of 64 bits: a difference of two indices may be no index.
    zero, each = at.constant(0, at.i64), at.constant(step, at.i64)
    span = at.binary("subi", at.wide(upper), at.wide(lower))
    span = at.binary("maxsi", span, zero)
    trips = at.binary("divsi", at.binary("addi", span, at.constant(step - 1, at.i64)), each)
    even = at.binary("andi", trips, at.constant(-2, at.i64))
    ahead = at.binary("muli", even, each)
    found = at.binary("addi", at.wide(lower), ahead)
    if found.type == lower.type:
        return found
    name = "arith.index_cast" if isinstance(lower.type, ir.IndexType) else "arith.trunci"
    return at.create(name, [found], [lower.type]).result


def _leave_last(at: Writer, loop: ir.OpView, middle: ir.Value, upper: ir.Value) -> None:
    """The iteration that no pair has, behind the loop."""
    known = trip_count(loop)
    if known is not None and known % 2 == 0:
        return
    block = loop.regions[0].blocks[0]
    index, *arguments = block.arguments
    *ops, end = block.operations
    results = list(loop.results)
    uses = [list(result.uses) for result in results]
    at.move(ir.InsertionPoint.after(loop))
    left = at.is_less(at.wide(middle), at.wide(upper))
    given: dict[ir.Value, ir.Value] = dict(zip(arguments, results, strict=True))
    chosen = at.choice(left, lambda: _copied(at, ops, end, given, index, middle), results)
    for found, new in zip(uses, chosen, strict=True):
        for use in found:
            use.owner.operands[use.operand_number] = new


def _copied(
    at: Writer,
    ops: list[ir.OpView],
    end: ir.OpView,
    values: dict[ir.Value, ir.Value],
    index: ir.Value,
    there: ir.Value,
) -> list[ir.Value]:
    """A copy of a body, with `values` for what is carried; what it hands on."""
    known = {**values, index: there}
    for op in ops:
        with at.instead_of(op):
            wanted = mapped_operands(op, known.get)
            clone = op.operation.clone(ip=at.place)
            replace_operands(clone, wanted)
            known |= dict(zip(op.results, clone.results, strict=True))
    return [known.get(value, value) for value in end.operands]
