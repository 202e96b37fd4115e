"""What an agent computes by itself to run some loops of a kernel, and no other of its work.

Loops that only begin copies need places and bounds: scalars that every warp can compute. A value
that comes from memory, a tile, or an operation with an effect is known to one agent only.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from tile_core.mlir import ir
from tile_tileas.dialect.launched import TAKE
from tile_tileas.pipelining.slices import is_pure

FOR, WHILE, IF = "scf.for", "scf.while", "scf.if"
_CONTROL = (FOR, WHILE, IF)


class Needs:
    """Values, and the loops and branches around them, that agents other than one compute, too.

    Attributes:
        values: what is computed.
        control: loops and branches that are run.
    """

    def __init__(self, turned: Collection[ir.Operation] = ()) -> None:
        """`turned`: operations that each agent will do otherwise."""
        self._turned = turned
        self.values: set[ir.Value] = set()
        self.control: set[ir.Operation] = set()

    def add_places(self, values: Iterable[ir.Value], op: ir.OpView) -> str | None:
        """Take in what `values` are computed from, where `op` stands, and all that is around it.

        Returns why that cannot be computed twice, if it cannot.
        """
        return self._all(values) or self._around(op.operation)

    def _all(self, values: Iterable[ir.Value]) -> str | None:
        return next(filter(None, map(self.add, values)), None)

    def _around(self, op: ir.Operation) -> str | None:
        """The loops and branches that `op` stands in."""
        parent = op.parent
        if parent is None or parent.operation.name == "func.func":
            return None
        return self._run(parent.operation)

    def _run(self, op: ir.Operation) -> str | None:
        """Run a loop or a branch as often as the other agent does."""
        if op in self.control:
            return None
        if op.name not in _CONTROL:
            return f"it stands in '{op.name}'"
        self.control.add(op)
        number = {FOR: 3, IF: 1, WHILE: 0}[op.name]
        values = list(op.operands)[:number]
        if op.name == WHILE:
            values = [_end(op.regions[0]).operands[0]]
        return self._all(values) or self._around(op)

    def add(self, value: ir.Value) -> str | None:
        """Take in what `value` is computed from; why that is impossible, if it is."""
        if value in self.values:
            return None
        self.values.add(value)
        if isinstance(value.type, ir.RankedTensorType):
            return "its place is computed from tiles"
        owner = value.owner
        if isinstance(owner, ir.Block):
            return self._argument(value, owner)
        op = owner.operation
        if op.name == TAKE or op in self._turned:  # each agent does, with memory that all have
            return self._around(op)
        if op.name in _CONTROL:
            at = ir.OpResult(value).result_number
            return self._given(op, at) or self._run(op)
        if len(op.regions) or not is_pure(op.opview):
            return f"its place comes from '{op.name}', which one agent alone can do"
        return self._all(op.operands)

    def _argument(self, value: ir.Value, block: ir.Block) -> str | None:
        op, at = block.owner.operation, ir.BlockArgument(value).arg_number
        if op.name not in _CONTROL:
            return None  # the kernel's own
        if op.name == FOR:
            problem = self._carried(op, at - 1) if at else None
        elif block == op.regions[0].blocks[0]:
            problem = self._carried(op, at)
        else:
            problem = self.add(_end(op.regions[0]).operands[at + 1])
        return problem or self._run(op)

    def _given(self, op: ir.Operation, at: int) -> str | None:
        """Result `at` of a loop or a branch."""
        if op.name == FOR:
            return self._carried(op, at)
        if op.name == WHILE:
            return self.add(_end(op.regions[0]).operands[at + 1])
        return self._all(_end(region).operands[at] for region in op.regions)

    def _carried(self, op: ir.Operation, at: int) -> str | None:
        """What a loop carries at place `at`: its start, its name inside, what comes back."""
        first = 3 if op.name == FOR else 0
        inside = op.regions[0].blocks[0].arguments[at + (1 if op.name == FOR else 0)]
        back = _end(op.regions[-1]).operands[at]
        return self._all([op.operands[first + at], inside, back])


def _end(region: ir.Region) -> ir.OpView:
    """The last operation of a region of one block."""
    block = region.blocks[0]
    return block.operations[len(block.operations) - 1]


def used_outside(op: ir.Operation | ir.OpView) -> list[ir.Value]:
    """Values from around `op` that it uses, in its regions too."""
    inside: set[ir.Value] = set()
    found: list[ir.Value] = []

    def walk(one: ir.Operation | ir.OpView) -> None:
        found.extend(value for value in one.operands if value not in inside)
        for region in one.regions:
            for block in region.blocks:
                inside.update(block.arguments)
                for inner in block.operations:
                    walk(inner)
                    inside.update(inner.results)

    walk(op)
    return [value for value in found if value not in inside]
