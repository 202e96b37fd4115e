"""A product of warpgroups that is begun in parts, as threads make the parts of what it reads.

Of two products of a step, the second of which reads what threads make of the first one's result, in
registers:

    wait for S = Q K
    what needs all of a row (its maximum)
    for each part of S's columns:
        P = exp(S - ..) of the part         beside the product of the part before
        begin O += P V of the part          which are rows of V
    sums of rows; wait for O

A part's product needs nothing but that part, so that all but the first part of P is made while
tensor cores multiply. It takes no registers: those of a part of S are free when its P is there.
"""

from __future__ import annotations

from tile_core.mlir import ir
from tile_tileas.analysis.pressure import used_values
from tile_tileas.dialect.dot import FROM_ROW
from tile_tileas.dot_plan import IN_FLIGHT, PROMOTES, family_of
from tile_tileas.mma.families import WARPGROUP
from tile_tileas.pipelining.sliced import Dependents, Part, is_divisible
from tile_tileas.pipelining.writer import Writer

_DOT, _DONE, _WAIT = "nv_tileas.dot", "nv_tileas.dot_wait", "nv_tileas.barrier_wait"
#: Columns of a part, four of f16's steps along K.
WIDTH = 64


def may_be_begun(op: ir.OpView) -> bool:
    """Whether it is a product of warpgroups that need not be waited for where it stands."""
    return (
        op.operation.name == _DOT and family_of(op) == WARPGROUP and PROMOTES not in op.attributes
    )


def begun(at: Writer, op: ir.OpView) -> ir.Operation:
    """The wait for a product that is only begun where it stands now; right behind it."""
    op.attributes[IN_FLIGHT] = ir.UnitAttr.get()
    at.move(ir.InsertionPoint.after(op))
    result = op.results[0]
    held = [op.operands[0]] if isinstance(op.operands[0].type, ir.RankedTensorType) else []
    done = at.create(_DONE, [result, *held], [result.type])
    result.replace_all_uses_except(done.results[0], done)
    return done


def _waits(op: ir.OpView) -> list[ir.OpView]:
    """Those for a product that is begun."""
    users = [use.owner.operation.opview for use in op.results[0].uses]
    return [user for user in users if user.operation.name == _DONE]


def begin_in_parts(loop: ir.Operation) -> None:
    """Begin products of `loop` in parts where that can be, of those that are waited for where they
    stand.
    """
    for op in filter(may_be_begun, list(loop.regions[0].blocks[0].operations)):
        known = _made_in_parts(op)
        if known is not None:
            _Parts(op, known).run()


def _made_in_parts(op: ir.OpView) -> Dependents | None:
    """What the left operand is made of, if threads can make it in parts, for this product alone."""
    a = op.operands[0]
    if not isinstance(a.type, ir.RankedTensorType) or list(a.type.shape)[-1] < 2 * WIDTH:
        return None
    roots = [root for root in _roots(a, op.operation.block) if _is_of_product(root)]
    if len(roots) != 1 or list(roots[0].type.shape) != list(a.type.shape):
        return None
    known = Dependents(roots[0], a, op)
    if known.folds_reach(op):
        # As a sum that is divided in each step by what its weights come to.
        return None
    return known if known.is_divisible(WIDTH) and _is_for(known, op) else None


def _roots(value: ir.Value, block: ir.Block) -> list[ir.Value]:
    """Tiles of the block of which `value` is made element by element, or row by row, and which are
    not made so themselves.
    """
    shape = list(value.type.shape)
    found: list[ir.Value] = []
    seen: set[ir.Value] = set()
    pending: list[ir.Value] = [value]
    while pending:
        one = pending.pop()
        owner = one.owner
        if one in seen or isinstance(owner, ir.Block) or owner.operation.block != block:
            continue
        seen.add(one)
        if is_divisible(owner.operation.opview):
            tiles = (used for used in used_values(owner.operation) if _is_tile(used, shape))
            pending += tiles
        else:
            found.append(one)
    return found


def _is_of_product(value: ir.Value) -> bool:
    """Whether it is what a product gives, or chosen by a branch, as where that is masked."""
    owner = value.owner
    if isinstance(owner, ir.Block):
        return False
    return owner.name in (_DOT, _DONE, "scf.if")


def _is_tile(value: ir.Value, shape: list[int]) -> bool:
    return isinstance(value.type, ir.RankedTensorType) and list(value.type.shape) == shape


def _is_for(known: Dependents, op: ir.OpView) -> bool:
    """Whether nobody else needs all of what would be made in parts."""
    users = {other.operation for other in (*known.late, *known.folds, op, *_waits(op))}
    results = (result for late in known.late for result in late.results)
    return all(use.owner.operation in users for result in results for use in result.uses)


class _Parts:
    """Rewrites one product, whose left operand is `known`."""

    def __init__(self, op: ir.OpView, known: Dependents) -> None:
        self._op, self._known = op, known
        self._at = Writer(op.location)

    def run(self) -> None:
        """Begin it in parts, and wait for all of them where it stood."""
        at, op, known = self._at, self._op, self._known
        if IN_FLIGHT not in op.attributes:
            begun(at, op)
        (done,) = _waits(op)
        _, b, total = list(op.operands)[:3]
        folds: list[list[ir.Value]] = []
        parts: list[ir.Value] = []
        first = _before_waits(op)
        count = list(known.tile.type.shape)[-1] // WIDTH
        for number in range(count):
            # The first part needs no stage of B's yet.
            at.move(ir.InsertionPoint(done if number else first))
            part = Part(at, known, number, WIDTH, known.tile)
            parts.append(part.of(op.operands[0]))
            folds.append([part.folded(fold) for fold in known.folds])
            at.move(ir.InsertionPoint(done if number else op))
            total = self._begin(parts[-1], b, total, number)
        known.combine(at, folds)
        result = at.create(_DONE, [total, *parts], [total.type]).result
        done.results[0].replace_all_uses_with(result)
        done.operation.erase()
        op.operation.erase()
        for late in reversed(known.late):
            late.operation.erase()

    def _begin(self, a: ir.Value, b: ir.Value, total: ir.Value, number: int) -> ir.Value:
        at, op = self._at, self._op
        attributes = {name: op.attributes[name] for name in op.attributes}
        attributes[FROM_ROW] = ir.IntegerAttr.get(at.i32, number * WIDTH)
        return at.create(_DOT, [a, b, total], [total.type], attributes).result


def _before_waits(op: ir.OpView) -> ir.OpView:
    """The first of the waits for stages right before `op`; it itself if there is none."""
    ops = [other.operation for other in op.operation.block.operations]
    place = ops.index(op.operation)
    while place and ops[place - 1].name == _WAIT:
        place -= 1
    return ops[place].opview
