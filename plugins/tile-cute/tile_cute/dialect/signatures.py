"""Signatures of operations: what their operands and results are, and how they go together."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tile_core.mlir import ir
from tile_cute.dialect.define import Check
from tile_cute.dialect.kinds import check_values

#: Operation -> kinds of its operands, kinds of its results (see `kinds`).
Kinds = Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]


@dataclass(frozen=True)
class Signatures:
    """The signatures of a dialect's operations.

    Attributes:
        kinds: of operands and results.
        relations: what several values have to do with each other, by operation.
    """

    kinds: Kinds
    relations: Mapping[str, Callable[[ir.OpView], None]]

    def check(self, op: ir.OpView, operands: Sequence[str], results: Sequence[str]) -> None:
        """LayoutError unless operands and results are of the kinds that the table says.

        Args:
            operands: names of the operands, for messages; results: likewise.
        """
        name = op.operation.name.partition(".")[2]
        wanted, given = self.kinds[name]
        check_values(operands, wanted, [value.type for value in op.operation.operands])
        check_values(results, given, [value.type for value in op.operation.results])
        relation = self.relations.get(name)
        if relation is not None:
            relation(op)

    def checked(
        self, name: str, operands: Sequence[str], results: Sequence[str], check: Check | None
    ) -> Check | None:
        """The verifier of an operation: its signature first, then `check`."""
        if name not in self.kinds:
            return check

        def both(op: ir.OpView) -> None:
            self.check(op, operands, results)
            if check is not None:
                check(op)

        return both
