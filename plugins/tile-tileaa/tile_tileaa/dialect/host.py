"""What a kernel shares with the host besides its arguments: globals, printing, assertions."""

# pyright: reportGeneralTypeIssues=false

from typing import Any

from tile_core.dialect import Operand, OperationSpec, Pure, Result, Writes, declare
from tile_core.mlir import ir
from tile_tileaa.dialect.base import NvTileAA
from tile_tileaa.dialect.folds import slots
from tile_tileaa.dialect.types import element_of, is_token, pointee_of


def _global(op: ir.OpView) -> str | None:
    """One axis of values, and an alignment that memory has."""
    value, alignment = op.value, op.alignment.value
    if not isinstance(value, ir.DenseElementsAttr) or len(ir.ShapedType(value.type).shape) != 1:
        return "expects a dense constant of rank 1"
    if alignment < 0 or alignment & (alignment - 1):
        return f"expects an alignment that is 0 or a power of two, but got {alignment}"
    return None


def _address(op: ir.OpView) -> str | None:
    return None if pointee_of(op.result.type) else f"expects a pointer, but got {op.result.type}"


def _condition(op: ir.OpView) -> str | None:
    element = element_of(op.condition.type)
    return None if str(element) == "i1" else f"expects a condition of i1, but got {element}"


def _tokens(op: ir.OpView) -> str | None:
    for value in (op.token, op.result_token):
        if value is not None and not is_token(value.type):
            return f"expects a memory token, but got {value.type}"
    return None


SPECS = (
    OperationSpec(
        "global",
        {
            "sym_name": ir.StringAttr,
            "value": Any,
            "alignment": ir.IntegerAttr,
            "symbol_visibility": ir.StringAttr,
        },
        "An array in global memory, filled when the module is loaded. `value` is a dense constant "
        "of rank 1, `alignment` is in bytes (0: the element's).",
        checks=(_global,),
    ),
    OperationSpec(
        "get_global",
        {"result": Result[Any], "symbol": ir.FlatSymbolRefAttr},
        "The address of a global's first element.",
        (Pure,),
        (_address,),
    ),
    OperationSpec(
        "assert",
        {"condition": Operand[Any], "message": ir.StringAttr},
        "Report `message` to the host if any element of the condition is false.",
        (Writes,),
        (_condition,),
    ),
    OperationSpec(
        "print",
        {
            **slots("args", Operand[Any]),
            "token": Operand[Any] | None,
            "result_token": Result[Any],
            "format": ir.StringAttr,
        },
        "C's printf; operands come in runs of one type. Whole tiles print as nested lists.",
        (Writes,),
        (_tokens,),
    ),
)

for _spec in SPECS:
    declare(NvTileAA, _spec, module=__name__)
