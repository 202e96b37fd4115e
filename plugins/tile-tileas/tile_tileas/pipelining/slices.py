"""What an access of a loop is computed from, so that it can be computed for a later iteration."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from tile_core.dialect import Pure
from tile_core.mlir import ir


@dataclass(frozen=True)
class Slice:
    """Operations of a loop's body, in program order, that give values of any iteration from its
    induction variable and the values that it carries.

    `carried` are the positions of those, closed under what computes their next values.
    """

    ops: tuple[ir.OpView, ...]
    carried: tuple[int, ...]


def slice_of(
    values: Iterable[ir.Value],
    loop: ir.OpView,
    may_read: Callable[[ir.OpView], bool] = lambda op: False,
) -> Slice | str:
    """What `values` are computed from inside of `loop`, or why that cannot be done ahead of it.
    `may_read`: whether a load may be made earlier.
    """
    growth = _Growth(loop.regions[0].blocks[0], may_read)
    for value in values:
        problem = growth.add(value)
        if problem is not None:
            return problem
    return growth.found()


def updates_of(carried: Iterable[int], loop: ir.OpView) -> Slice:
    """What computes the next ones of values that a slice carries."""
    block = loop.regions[0].blocks[0]
    found = slice_of((_next(block, at) for at in carried), loop)
    assert isinstance(found, Slice), "closed"
    return found


def _next(block: ir.Block, at: int) -> ir.Value:
    return block.operations[len(block.operations) - 1].operands[at]


class _Growth:
    def __init__(self, block: ir.Block, may_read: Callable[[ir.OpView], bool]) -> None:
        self.block, self._may_read = block, may_read
        self._values: set[ir.Value] = set()
        self._carried: set[int] = set()

    def add(self, value: ir.Value) -> str | None:
        """Take in what `value` is computed from; why that is impossible, if it is."""
        owner = value.owner
        if isinstance(owner, ir.Block):
            return self._argument(value) if owner == self.block else None
        if owner.operation.block != self.block or value in self._values:
            return None
        op = owner.opview if isinstance(owner, ir.Operation) else owner
        if len(op.regions) or not (is_pure(op) or self._may_read(op)):
            return f"its place comes from '{op.operation.name}'"
        self._values.update(op.results)
        return next(filter(None, map(self.add, op.operands)), None)

    def _argument(self, value: ir.Value) -> str | None:
        at = ir.BlockArgument(value).arg_number - 1
        if at < 0 or at in self._carried:
            return None
        self._carried.add(at)
        problem = self.add(_next(self.block, at))
        return None if problem is None else f"it depends on an earlier iteration, where {problem}"

    def found(self) -> Slice:
        ops = self.block.operations
        order = [op for op in ops if len(op.results) and op.results[0] in self._values]
        return Slice(tuple(order), tuple(sorted(self._carried)))


def is_pure(op: ir.OpView) -> bool:
    """Whether an operation has no effect."""
    name = op.operation.name
    return name.startswith(("arith.", "ub.")) or Pure in getattr(type(op), "_traits", ())


def move_before(place: ir.Operation, ops: Iterable[ir.OpView]) -> None:
    """Put those of `ops` that stand behind `place` in front of it, in their order."""
    order = {op.operation: at for at, op in enumerate(place.block.operations)}
    for op in ops:
        if order[op.operation] > order[place]:
            op.operation.move_before(place)
