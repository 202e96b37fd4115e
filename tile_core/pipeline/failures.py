"""Failures of a run that do not end it at once, so that every function is told what is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tile_core.diagnostics import CompileError

if TYPE_CHECKING:
    from tile_core.mlir import ir


class Failures:
    """Errors by the operation on which a pass failed; passes run on the others to the end of the
    segment, where `raise_all` ends the run.
    """

    def __init__(self) -> None:
        self._failed: list[ir.Operation] = []
        self._errors: list[CompileError] = []

    def __bool__(self) -> bool:
        return bool(self._errors)

    def add(self, op: ir.Operation, error: CompileError) -> None:
        """A pass failed on `op`, which it may have left half changed."""
        self._failed.append(op)
        self._errors.append(error)

    def without(self, ops: list[ir.Operation]) -> list[ir.Operation]:
        """Those of `ops` on which no pass has failed."""
        return [op for op in ops if op not in self._failed] if self._failed else ops

    def raise_all(self) -> None:
        """Raise the first error, which carries the others; nothing if there is none.

        Raises:
            CompileError: a pass failed.
        """
        if self._errors:
            first, *rest = self._errors
            raise together(first, rest) from first.__cause__


def together(first: CompileError, rest: list[CompileError]) -> CompileError:
    """`first`, which carries what is wrong besides."""
    first.also = (*first.also, *rest)
    return first
