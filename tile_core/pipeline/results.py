"""Results of analyses, kept while they are valid."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tile_core.pipeline.build import keeps

if TYPE_CHECKING:
    from tile_core.mlir import ir


class Results:
    """Analysis name -> operation -> result.

    After every pass all results are dropped that the pass does not preserve, whatever operation
    they belong to: a pass may change what lies inside its anchor, and passes on the anchor's
    parents see those changes too.
    """

    def __init__(self) -> None:
        # Pairs instead of a dict: operations are equal by identity but hash by content.
        self._kept: dict[str, list[tuple[ir.Operation, Any]]] = {}
        self._fresh: set[str] = set()

    def find(self, name: str, op: ir.Operation) -> Any:
        """The result, or None."""
        wanted = op.operation
        return next((value for kept, value in self._kept.get(name, ()) if kept == wanted), None)

    def keep(self, name: str, op: ir.Operation, value: Any, *, fresh: bool = False) -> None:
        """Remember a result; a `fresh` one was made by the running pass and survives it."""
        wanted = op.operation
        others = [pair for pair in self._kept.get(name, ()) if pair[0] != wanted]
        self._kept[name] = [*others, (wanted, value)]
        if fresh:
            self._fresh.add(name)

    def drop(self, preserved: tuple[str, ...]) -> None:
        """Forget what the pass that just ran did not preserve."""
        self._kept = {
            name: pairs
            for name, pairs in self._kept.items()
            if name in self._fresh or keeps(preserved, name)
        }
        self._fresh.clear()
