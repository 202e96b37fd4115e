"""What a Python-defined dialect is declared with.

    class NvTileAA(Dialect, name="nv_tileaa"): ...

    class AddPtrOp(Operation, dialect=NvTileAA, name="addptr", traits=[Pure]):
        '''base + offset, counted in elements.'''
        base: Operand[Any]
        offset: Operand[Any]
        result: Result[Any]

A thin layer over `dialects/ext.py` of MLIR's bindings (IRDL underneath). Names are `[a-z0-9_]+`,
optional attributes stay undeclared and are checked in `verify_invariants`, and dialect files must
not use `from __future__ import annotations`, because `ext` reads live annotations.
"""

import sys
from types import ModuleType

from tile_core.mlir import bindings_name, ext, ir

Attribute = ext.Attribute
Operand = ext.Operand
Operation = ext.Operation
Pure = ext.Pure
Region = ext.Region
Result = ext.Result
Type = ext.Type

__all__ = [
    "Attribute",
    "Dialect",
    "IsolatedFromAbove",
    "Operand",
    "Operation",
    "Pure",
    "Region",
    "Result",
    "Terminator",
    "Type",
    "reject",
]


class Dialect(ext.Dialect, name="tile_base"):
    """Base of every dialect of the project; `load()` adds it to the current context."""

    @classmethod
    def load(cls) -> None:
        """Declare the dialect in the current context; a second call does nothing."""
        if ir.Context.current.is_dialect_loaded(cls.DIALECT_NAMESPACE):
            return
        super().load()
        # The bindings look for a module of the dialect's name at every downcast of one of its
        # operations, and a failed import costs 20 us: show them an empty one.
        module = f"{bindings_name()}.dialects.{cls.DIALECT_NAMESPACE}"
        sys.modules.setdefault(module, ModuleType(module))


class Terminator:
    """Trait: the operation ends its block."""

    @staticmethod
    def attach(op_name: str) -> None:
        ir.IsTerminatorTrait.attach(op_name)


class IsolatedFromAbove:
    """Trait: the operation's regions use no value from outside."""

    @staticmethod
    def attach(op_name: str) -> None:
        ir.IsIsolatedFromAboveTrait.attach(op_name)


def reject(op: ir.OpView | ir.Operation, message: str) -> bool:
    """Report `'dialect.op' op <message>` at the operation; returns False for verifiers."""
    operation = op.operation
    operation.location.emit_error(f"'{operation.name}' op {message}")
    return False
