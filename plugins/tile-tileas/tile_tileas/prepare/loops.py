"""Stage 4, runCanonicalizer: tiny loops become straight-line code, wrappers of one operation go.

A loop of few operations and few iterations leaves a scheduler nothing to overlap; written out, its
operations are scheduled with those around it. Loops with products, or with loads that other passes
let run ahead, keep their form; loads that threads make in passing come together where loops are
written out (`prepare.loads`).
"""

from __future__ import annotations

from tile_core.insertion import Before, Inserter
from tile_core.mlir import ir
from tile_tileas.cloning import mapped_operands, replace_operands
from tile_tileas.prepare.loads import is_in_passing
from tile_tileas.sched.facts import facts_of, is_pure
from tile_tileas.sched.nodes import constant_of, trip_count

#: Iterations, and operations in all, of loops that are written out; more of these where there are
#: loads, which cost what many operations do.
MOST_TRIPS, MOST_OPERATIONS, MOST_WITH_LOADS = 4, 32, 128
_KEPT = ("mma", "load")
_LOOPS = ("scf.for", "scf.while")


def unroll_small_loops(func: ir.Operation) -> int:
    """Write out the tiny loops of a function, inner ones first; how many."""
    return sum(_block(block) for region in func.regions for block in region.blocks)


def _block(block: ir.Block) -> int:
    done = 0
    for op in list(block.operations):
        for region in op.regions:
            done += sum(_block(inner) for inner in region.blocks)
        if op.operation.name == "scf.for" and _is_tiny(op):
            _Unroller(op).run()
            done += 1
    return done


def _is_tiny(loop: ir.OpView) -> bool:
    trips = trip_count(loop)
    if trips is None or not 0 < trips <= MOST_TRIPS or "unsignedCmp" in loop.attributes:
        return False
    inside = list(_inside(loop))
    most = MOST_WITH_LOADS if any(map(is_in_passing, inside)) else MOST_OPERATIONS
    if len(inside) * trips > most:
        return False
    return not any(_keeps(op) for op in inside)


def _keeps(op: ir.OpView) -> bool:
    """Whether a loop with this operation stays a loop."""
    if is_in_passing(op):
        return False
    return facts_of(op.operation.name).kind in _KEPT or op.operation.name in _LOOPS


def _inside(op: ir.OpView) -> list[ir.OpView]:
    return [
        one
        for region in op.regions
        for block in region.blocks
        for inner in block.operations
        for one in (inner, *_inside(inner))
    ]


class _Unroller(Inserter):
    """Clones the body of a loop of constant bounds once for every iteration."""

    def __init__(self, loop: ir.OpView) -> None:
        super().__init__()
        self._loop, self._location = loop, loop.location
        self._ip = ir.InsertionPoint(loop)

    def run(self) -> None:
        loop = self._loop
        first, _, step = (constant_of(value) or 0 for value in list(loop.operands)[:3])
        block = loop.regions[0].blocks[0]
        *ops, end = block.operations
        induction, *arguments = block.arguments
        carried: list[ir.Value] = list(loop.operands)[3:]
        for trip in range(trip_count(loop) or 0):
            known: dict[ir.Value, ir.Value] = dict(zip(arguments, carried, strict=True))
            known[induction] = self._number(induction.type, first + trip * step)
            for op in ops:
                wanted = mapped_operands(op, known.get)
                clone = op.operation.clone(ip=self._ip)
                replace_operands(clone, wanted)
                known |= dict(zip(op.results, clone.results, strict=True))
            yielded: list[ir.Value] = list(end.operands)
            carried = [known.get(value, value) for value in yielded]
        for old, new in zip(loop.results, carried, strict=True):
            old.replace_all_uses_with(new)
        loop.operation.erase()

    def _number(self, type_: ir.Type, value: int) -> ir.Value:
        attribute = {"value": ir.IntegerAttr.get(type_, value)}
        return self.create("arith.constant", [], [type_], attribute).result


# --- wrappers ------------------------------------------------------------------------------------


def decompose_single_ops(func: ir.Operation) -> int:
    """Replace branches around one scalar operation by that operation and a select; how many."""
    return sum(_unwrapped(block) for region in func.regions for block in region.blocks)


def _unwrapped(block: ir.Block) -> int:
    done = 0
    for op in list(block.operations):
        for region in op.regions:
            done += sum(_unwrapped(inner) for inner in region.blocks)
        if op.operation.name == "scf.execute_region" and len(op.regions[0].blocks) == 1:
            _inline(op, op.regions[0].blocks[0])
            done += 1
        elif op.operation.name == "scf.if" and _chooses(op):
            _select(op)
            done += 1
    return done


def _inline(wrapper: ir.OpView, block: ir.Block) -> list[ir.Value]:
    """Move the operations of `block` before `wrapper`; the values it yields stand for results."""
    *ops, end = block.operations
    values = list(end.operands)
    for op in ops:
        op.operation.move_before(wrapper.operation)
    if wrapper.operation.name == "scf.execute_region":
        for old, new in zip(wrapper.results, values, strict=True):
            old.replace_all_uses_with(new)
        wrapper.operation.erase()
    return values


def _chooses(branch: ir.OpView) -> bool:
    """Whether a branch only chooses between scalars, by one operation on each side at most that
    may run in vain: pure, no division, which another value than 0 may have been tested for.
    """
    if not len(branch.results) or any(
        isinstance(result.type, ir.RankedTensorType) or not _is_scalar(result.type)
        for result in branch.results
    ):
        return False
    for region in branch.regions:
        if not len(region.blocks):
            return False
        *ops, _ = region.blocks[0].operations
        if len(ops) > 1 or not all(is_pure(op) and _may_run_in_vain(op) for op in ops):
            return False
    return True


def _is_scalar(type_: ir.Type) -> bool:
    return isinstance(type_, (ir.IntegerType, ir.IndexType, ir.FloatType))


def _may_run_in_vain(op: ir.OpView) -> bool:
    return op.operation.name.startswith("arith.") and facts_of(op.operation.name).class_ != "divide"


def _select(branch: ir.OpView) -> None:
    before = Before(branch)
    then, other = (_inline(branch, region.blocks[0]) for region in branch.regions)
    for result, yes, no in zip(branch.results, then, other, strict=True):
        chosen = before.create("arith.select", [branch.operands[0], yes, no], [result.type])
        result.replace_all_uses_with(chosen.result)
    branch.operation.erase()
