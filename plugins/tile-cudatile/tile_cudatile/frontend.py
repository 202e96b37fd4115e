"""The front end that the pipeline calls."""

from __future__ import annotations

from typing import Any

from tile_core.mlir import ir
from tile_cudatile.bytecode.reader import read_bytecode
from tile_cudatile.dialect.build import to_mlir


def read(data: bytes, cx: Any) -> ir.Module:
    """TileIR bytecode as an MLIR module of the current context."""
    return to_mlir(read_bytecode(data))
