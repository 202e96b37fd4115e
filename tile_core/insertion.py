"""Making operations where a rule stands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tile_core.mlir import ir


class Inserter:
    """Makes operations before the one that a rule looks at, at its location."""

    def __init__(self) -> None:
        self._ip: ir.InsertionPoint | None = None
        self._location: ir.Location | None = None

    def create(
        self,
        name: str,
        operands: Sequence[ir.Value] = (),
        results: Sequence[ir.Type] = (),
        attributes: Mapping[str, ir.Attribute] | None = None,
        regions: int = 0,
        location: ir.Location | None = None,
    ) -> ir.Operation:
        """A new operation before the one that the rule looks at, at its location or another."""
        return ir.Operation.create(
            name,
            results=results,
            operands=operands,
            attributes=attributes,
            regions=regions,
            loc=location or self._location,
            ip=self._ip,
        )


class Before(Inserter):
    """Makes operations before a given one, at its location."""

    def __init__(self, op: ir.OpView) -> None:
        super().__init__()
        self.insertion_point = ir.InsertionPoint(op)
        self._ip, self._location = self.insertion_point, op.location
        self.i1 = ir.IntegerType.get_signless(1)
        self.i32 = ir.IntegerType.get_signless(32)

    def constant(self, value: int) -> ir.Value:
        """An i32."""
        attr = ir.IntegerAttr.get(self.i32, value)
        return self.create("arith.constant", [], [self.i32], {"value": attr}).result

    def with_constant(self, name: str, value: ir.Value, number: int) -> ir.Value:
        """`arith.<name>` of an i32 with a constant on the right."""
        return self.create(f"arith.{name}", [value, self.constant(number)], [self.i32]).result
