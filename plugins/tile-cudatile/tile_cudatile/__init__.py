"""TileIR bytecode and the cuda_tile dialect.

Everything is loaded on first use: importing this package, or reading bytecode, loads no MLIR.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tile_cudatile.bytecode.reader import read_bytecode
    from tile_cudatile.bytecode.writer import write_bytecode
    from tile_cudatile.dialect.build import to_mlir
    from tile_cudatile.dialect.read import from_mlir
    from tile_cudatile.errors import BytecodeError, VerifyError
    from tile_cudatile.evaluator import evaluate
    from tile_cudatile.rules.verify import verify
    from tile_cudatile.text.parser import parse_text
    from tile_cudatile.text.printer import print_text
    from tile_cudatile.tree import Module

_EXPORTS = {
    "BytecodeError": "errors",
    "Module": "tree",
    "VerifyError": "errors",
    "evaluate": "evaluator",
    "from_mlir": "dialect.read",
    "parse_text": "text.parser",
    "print_text": "text.printer",
    "read_bytecode": "bytecode.reader",
    "to_mlir": "dialect.build",
    "verify": "rules.verify",
    "write_bytecode": "bytecode.writer",
}

__all__ = [
    "BytecodeError",
    "Module",
    "VerifyError",
    "evaluate",
    "from_mlir",
    "parse_text",
    "print_text",
    "read_bytecode",
    "to_mlir",
    "verify",
    "write_bytecode",
]


def __getattr__(name: str) -> Any:
    if name not in _EXPORTS:
        raise AttributeError(f"module 'tile_cudatile' has no attribute '{name}'")
    value = getattr(import_module(f"tile_cudatile.{_EXPORTS[name]}"), name)
    globals()[name] = value
    return value
