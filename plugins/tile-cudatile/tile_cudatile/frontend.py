"""The front ends that the pipeline calls, and the rules for programs that come as MLIR."""

from __future__ import annotations

import re
from typing import Any

from tile_core.diagnostics import CompileError, InputError, SourceLocation
from tile_core.mlir import ir
from tile_cudatile.bytecode.reader import read_bytecode
from tile_cudatile.dialect.build import to_mlir
from tile_cudatile.errors import VerifyError
from tile_cudatile.handed import Handed
from tile_cudatile.tree import Module

_PLACE = re.compile(r"(.*):(\d+):(\d+)")


def read(data: bytes, cx: Any) -> ir.Module:
    """TileIR bytecode as an MLIR module of the current context."""
    return _with_source(read_bytecode(data), cx)


def read_text(data: bytes, cx: Any) -> ir.Module:
    """CUDA Tile IR in its own syntax, verified, as an MLIR module of the current context."""
    from tile_cudatile.rules.verify import verify
    from tile_cudatile.text.parser import parse_text

    program = parse_text(data.decode(), name=cx.name)
    verify(program)
    return _with_source(program, cx)


def _with_source(program: Module, cx: Any) -> ir.Module:
    """The module; where debug information is asked for, with the program's text as the source that
    stands between the user's and the machine's.

    The tree is left for the first pass that would read it back.
    """
    module = to_mlir(program)
    cx.leave(Handed.name, module.body.operations[0].operation, Handed(program))
    wanted = cx.options.get("lineinfo") or cx.options.get("device-debug")
    if wanted and program.entries:
        from tile_cudatile.text.intermediate import ATTRIBUTE, record

        module.operation.attributes[ATTRIBUTE] = ir.StringAttr.get(record(program), module.context)
    return module


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
