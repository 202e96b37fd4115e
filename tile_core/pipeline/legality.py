"""Checking that nothing of a dialect survives the segment that removes it."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from tile_core.diagnostics import CompileError
from tile_core.locations import source_location

if TYPE_CHECKING:
    from tile_core.mlir import ir


def check_removed(module: ir.Module, dialects: Sequence[str], segment: str) -> None:
    """Raise for the first operation, type or attribute of `dialects` in `module`.

    Names of discardable attributes do not count: dialects hand facts on with them.

    Raises:
        CompileError: naming the operation and its place.
    """
    if not dialects:
        return
    names = "|".join(re.escape(dialect) for dialect in dialects)
    if not _may_hold(module, names):
        return
    pattern = re.compile(rf"[!#](?:{names})\.[\w.]*")
    for op in _walk(module.operation):
        dialect = op.name.partition(".")[0]
        if dialect in dialects:
            raise _survivor(op, f"survived segment '{segment}', which removes '{dialect}'")
        for thing, spelled in _parts(op):
            hit = pattern.search(spelled)
            if hit is not None:
                gone = hit[0][1:].partition(".")[0]
                raise _survivor(
                    op, f"has {thing} {hit[0]} after segment '{segment}', which removes '{gone}'"
                )


def _may_hold(module: ir.Module, names: str) -> bool:
    """Whether anything of the dialects may be in `module`; `names` is a pattern of their names.

    Bytecode lists the dialects of all that it holds (MLIR Bytecode Format, "Dialect Section"),
    strings that end with a zero; a type that is a parameter of another dialect's type may be in
    that one's text. To write it takes a sixth of the time of a generic print, and a print a tenth
    of that of a walk in Python.
    """
    found = io.BytesIO()
    module.operation.write_bytecode(found)
    pattern = rf"(?:{names})\0|[!#](?:{names})\."
    return re.search(pattern.encode(), found.getvalue()) is not None


def _walk(op: ir.Operation) -> Iterator[ir.Operation]:
    yield op
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                yield from _walk(inner.operation)


def _parts(op: ir.Operation) -> Iterable[tuple[str, str]]:
    for result in op.results:
        yield "result type", str(result.type)
    for region in op.regions:
        for block in region.blocks:
            for argument in block.arguments:
                yield "block argument type", str(argument.type)
    for name in op.attributes:
        yield f"attribute '{name}'", str(op.attributes[name])


def _survivor(op: ir.Operation, message: str) -> CompileError:
    return CompileError(
        f"'{op.name}' op {message}",
        where=source_location(op.location),
        hint="a conversion has no rule for it; `tilec pipeline show` tells which pass should",
    )
