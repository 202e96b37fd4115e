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
    ) -> ir.Operation:
        """A new operation before the one that the rule looks at, at its location."""
        return ir.Operation.create(
            name,
            results=results,
            operands=operands,
            attributes=attributes,
            regions=regions,
            loc=self._location,
            ip=self._ip,
        )
