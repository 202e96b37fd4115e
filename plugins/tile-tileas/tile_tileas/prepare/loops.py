"""Stage 4, runCanonicalizer: tiny loops become straight-line code, wrappers of one operation go.

A loop of few operations and few iterations leaves a scheduler nothing to overlap; written out, its
operations are scheduled with those around it. Loops with products, or with loads that other passes
let run ahead, keep their form; loads that threads make in passing come together where loops are
written out (`prepare.loads`).

A loop that says `tt.loop_unroll_factor` is written out so many times, whatever is in it.
"""

from __future__ import annotations

from tile_core.insertion import Before, Inserter
from tile_core.mlir import ir
from tile_core.passes import PassContext, error_at
from tile_tileas.cloning import mapped_operands, replace_operands
from tile_tileas.prepare.loads import is_in_passing
from tile_tileas.sched.facts import facts_of, is_pure
from tile_tileas.sched.nodes import constant_of, trip_count

#: Iterations, and operations in all, of loops that are written out; more of these where there are
#: loads, which cost what many operations do.
MOST_TRIPS, MOST_OPERATIONS, MOST_WITH_LOADS = 4, 32, 128
_KEPT = ("mma", "load")
_LOOPS = ("scf.for", "scf.while")
#: Attribute of a loop, an integer: how many of its iterations become one; with 1 it stays as it is.
FACTOR = "tt.loop_unroll_factor"
_INDEX_BITS = 64


def unroll_by_factor(func: ir.Operation, cx: PassContext) -> int:
    """Unroll loops that say by how much, inner ones first; how many.

    Raises:
        CompileError: a factor is no number of iterations.
    """
    return sum(_asked(block, cx) for region in func.regions for block in region.blocks)


def _asked(block: ir.Block, cx: PassContext) -> int:
    done = 0
    for op in list(block.operations):
        for region in op.regions:
            done += sum(_asked(inner, cx) for inner in region.blocks)
        if op.operation.name == "scf.for" and FACTOR in op.attributes:
            done += _by_factor(op, cx)
    return done


def _by_factor(loop: ir.OpView, cx: PassContext) -> bool:
    given = loop.attributes[FACTOR]
    factor = given.value if isinstance(given, ir.IntegerAttr) else 0
    if factor < 1:
        raise error_at(loop, f"expects {FACTOR} to be an integer of at least 1, but got {given}")
    if factor == 1:
        return False
    del loop.attributes[FACTOR]
    trips = trip_count(loop)
    if trips is None or "unsignedCmp" in loop.attributes:
        cx.missed(loop.operation, f"not unrolled by {factor}: how often it runs is not known")
        return False
    first, step = (constant_of(loop.operands[at]) or 0 for at in (0, 2))
    type_ = loop.operands[0].type
    beyond = 1 << ((type_.width if isinstance(type_, ir.IntegerType) else _INDEX_BITS) - 1)
    if trips > factor and max(first + trips * step, factor * step) >= beyond:
        cx.missed(loop.operation, f"not unrolled by {factor}: {type_} does not hold its numbers")
        return False
    _Unroller(loop).by(factor, trips)
    return True


def unroll_small_loops(func: ir.Operation) -> int:
    """Write out the tiny loops of a function, inner ones first; how many."""
    return sum(_block(block) for region in func.regions for block in region.blocks)


def _block(block: ir.Block) -> int:
    done = 0
    for op in list(block.operations):
        for region in op.regions:
            done += sum(_block(inner) for inner in region.blocks)
        if op.operation.name == "scf.for" and _is_tiny(op):
            write_out(op)
            done += 1
    return done


def _is_tiny(loop: ir.OpView) -> bool:
    trips = trip_count(loop)
    if trips is None or not 0 < trips <= MOST_TRIPS or "unsignedCmp" in loop.attributes:
        return False
    if FACTOR in loop.attributes:
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


def write_out(loop: ir.OpView) -> None:
    """Put the iterations of a loop of constant bounds in its place, one after the other."""
    _Unroller(loop).run()


class _Unroller(Inserter):
    """Clones the body of a loop of constant bounds once for every iteration, or for some."""

    def __init__(self, loop: ir.OpView) -> None:
        super().__init__()
        self._loop, self._location = loop, loop.location
        self._ip = ir.InsertionPoint(loop)
        block = loop.regions[0].blocks[0]
        *self._ops, self._end = block.operations
        self._induction, *self._arguments = block.arguments
        self._yielded: list[ir.Value] = list(self._end.operands)
        self._first, _, self._step = (constant_of(v) or 0 for v in list(loop.operands)[:3])

    def run(self) -> None:
        """Write all iterations out."""
        self._finish(self._iterations(trip_count(self._loop) or 0))

    def by(self, factor: int, trips: int) -> None:
        """Let each iteration be `factor` of them; those that are left over come before the loop."""
        loop = self._loop
        left = trips % factor if trips > factor else trips
        carried = self._iterations(left)
        if left == trips:
            self._finish(carried)
            return
        first = self._number(self._induction.type, self._first + left * self._step)
        step = self._number(self._induction.type, factor * self._step)
        loop.operands[0], loop.operands[2] = first, step
        for at, value in enumerate(carried):
            loop.operands[3 + at] = value
        self._ip = ir.InsertionPoint(self._end)
        carried = list(self._yielded)
        for later in range(1, factor):
            by = self._number(self._induction.type, later * self._step)
            at = self.create("arith.addi", [self._induction, by], [by.type]).result
            carried = self._iteration(at, carried)
        for at, value in enumerate(carried):
            self._end.operands[at] = value

    def _iterations(self, count: int) -> list[ir.Value]:
        """The first ones, before the loop; what they carry on."""
        carried: list[ir.Value] = list(self._loop.operands)[3:]
        for trip in range(count):
            number = self._number(self._induction.type, self._first + trip * self._step)
            carried = self._iteration(number, carried)
        return carried

    def _iteration(self, number: ir.Value, carried: list[ir.Value]) -> list[ir.Value]:
        known: dict[ir.Value, ir.Value] = dict(zip(self._arguments, carried, strict=True))
        known[self._induction] = number
        for op in self._ops:
            wanted = mapped_operands(op, known.get)
            clone = op.operation.clone(ip=self._ip)
            replace_operands(clone, wanted)
            known |= dict(zip(op.results, clone.results, strict=True))
        return [known.get(value, value) for value in self._yielded]

    def _finish(self, carried: list[ir.Value]) -> None:
        """Nothing is left of the loop."""
        for old, new in zip(self._loop.results, carried, strict=True):
            old.replace_all_uses_with(new)
        self._loop.operation.erase()

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
