"""Functions from text, for tests of analyses and of single passes' parts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from support.tiles import registry
from tile_core.mlir import ir
from tile_core.session import session_of


@contextmanager
def function(text: str) -> Iterator[ir.OpView]:
    """The first `func.func` of `text`, which may be a bare function; verified."""
    with session_of(registry()) as session:
        module = session.parse(text)
        with session.context, ir.Location.unknown():
            assert module.operation.verify()
            yield _first_function(module.operation)


def _first_function(op: ir.Operation) -> ir.OpView:
    for inner in op.regions[0].blocks[0].operations:
        if inner.operation.name == "func.func":
            return inner
        if inner.operation.name == "gpu.module":
            return _first_function(inner.operation)
    raise AssertionError("the text has no function")
