"""The front ends that the pipeline calls, and the rules for programs that come as MLIR."""

from __future__ import annotations

import re
from typing import Any

from tile_core.diagnostics import CompileError, InputError, SourceLocation
from tile_core.mlir import ir
from tile_cudatile.bytecode.reader import read_bytecode
from tile_cudatile.dialect.build import to_mlir
from tile_cudatile.errors import VerifyError

_PLACE = re.compile(r"(.*):(\d+):(\d+)")


def read(data: bytes, cx: Any) -> ir.Module:
    """TileIR bytecode as an MLIR module of the current context."""
    return to_mlir(read_bytecode(data))


def read_text(data: bytes, cx: Any) -> ir.Module:
    """CUDA Tile IR in its own syntax, verified, as an MLIR module of the current context."""
    from tile_cudatile.rules.verify import verify
    from tile_cudatile.text.parser import parse_text

    program = parse_text(data.decode(), name=cx.name)
    verify(program)
    return to_mlir(program)


def check(module: ir.Module) -> None:
    """Verify every `cuda_tile.module` of a module by the rules of the language.

    One set of rules serves bytecode, text and this form, which is read back for them.

    Raises:
        InputError: the first rule that is broken, at its place.
    """
    from tile_cudatile.dialect.read import from_mlir
    from tile_cudatile.rules.verify import verify

    for view in module.body.operations:
        if view.operation.name != "cuda_tile.module":
            continue
        try:
            verify(from_mlir(view.operation))
        except VerifyError as error:
            raise InputError(error.lines[0], where=_where(error.where)) from None
        except CompileError as error:  # of the reading: no such operation, or attribute
            raise InputError(error.message, where=_where(error.where)) from None


def _where(where: SourceLocation | str | None) -> SourceLocation | str | None:
    match = (
        _PLACE.fullmatch(where.removeprefix("loc(").rstrip(")").replace('"', ""))
        if isinstance(where, str)
        else None
    )
    return where if match is None else SourceLocation(match[1], int(match[2]), int(match[3]))
