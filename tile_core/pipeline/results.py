"""Results of analyses, kept while they are valid."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tile_core.pipeline.build import keeps

if TYPE_CHECKING:
    from tile_core.mlir import ir


class Results:
    """(analysis name, operation) -> result.

    After every pass all results are dropped that the pass does not preserve, whatever operation
    they belong to: a pass may change what lies inside its anchor, and passes on the anchor's
    parents see those changes too.
    """

    def __init__(self) -> None:
        self._kept: dict[tuple[str, ir.Operation], Any] = {}

    def find(self, name: str, op: ir.Operation) -> Any:
        """The result, or None."""
        value = self._kept.get((name, op.operation))
        return value.value if isinstance(value, _Fresh) else value

    def keep(self, name: str, op: ir.Operation, value: Any, *, fresh: bool = False) -> None:
        """Remember a result; a `fresh` one was made by the running pass and survives it."""
        self._kept[(name, op.operation)] = _Fresh(value) if fresh else value

    def drop(self, preserved: tuple[str, ...]) -> None:
        """Forget what the pass that just ran did not preserve."""
        survivors: dict[tuple[str, ir.Operation], Any] = {}
        for key, value in self._kept.items():
            if isinstance(value, _Fresh):
                survivors[key] = value.value
            elif keeps(preserved, key[0]):
                survivors[key] = value
        self._kept = survivors


class _Fresh:
    """A result published by the pass that is running."""

    def __init__(self, value: Any) -> None:
        self.value = value
