"""What a kernel shares with the host besides its arguments: globals, printing, assertions."""

# pyright: reportGeneralTypeIssues=false

from collections.abc import Sequence
from typing import Any

from tile_core.dialect import Operand, Operation, Pure, Result
from tile_core.mlir import ir
from tile_tileaa.dialect.base import NvTileAA


class GlobalOp(Operation, dialect=NvTileAA, name="global"):
    """An array in global memory, filled when the module is loaded.

    `value` is a dense constant of rank 1, `alignment` is in bytes (0: the element's).
    """

    sym_name: ir.StringAttr
    value: Any  # dense constant
    alignment: ir.IntegerAttr
    symbol_visibility: ir.StringAttr


class GetGlobalOp(Operation, dialect=NvTileAA, name="get_global", traits=[Pure]):
    """The address of a global's first element."""

    result: Result[Any]
    symbol: ir.FlatSymbolRefAttr


class AssertOp(Operation, dialect=NvTileAA, name="assert"):
    """Report `message` to the host if any element of the condition is false."""

    condition: Operand[Any]
    message: ir.StringAttr


class PrintOp(Operation, dialect=NvTileAA, name="print"):
    """C's printf; operands come in runs of one type. Whole tiles print as nested lists."""

    args_0: Sequence[Operand[Any]]
    args_1: Sequence[Operand[Any]]
    args_2: Sequence[Operand[Any]]
    args_3: Sequence[Operand[Any]]
    args_4: Sequence[Operand[Any]]
    args_5: Sequence[Operand[Any]]
    args_6: Sequence[Operand[Any]]
    args_7: Sequence[Operand[Any]]
    args_8: Sequence[Operand[Any]]
    args_9: Sequence[Operand[Any]]
    args_10: Sequence[Operand[Any]]
    args_11: Sequence[Operand[Any]]
    args_12: Sequence[Operand[Any]]
    args_13: Sequence[Operand[Any]]
    args_14: Sequence[Operand[Any]]
    args_15: Sequence[Operand[Any]]
    token: Operand[Any] | None
    result_token: Result[Any]
    format: ir.StringAttr
