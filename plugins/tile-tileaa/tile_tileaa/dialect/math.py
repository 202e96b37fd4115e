"""Elementwise arithmetic and conversions of nv_tileaa.

A table of shapes (how many operands, of which types) and what each operation does. Attributes that
may be absent: `rounding_mode`, the unit attribute `ftz`, `fastmath`.
"""

# pyright: reportGeneralTypeIssues=false

from typing import Any, TypeVar

from tile_core.dialect import Check, Operand, OperationSpec, Pure, Result, declare
from tile_core.mlir import ir
from tile_tileaa.dialect.base import NvTileAA, PtrType
from tile_tileaa.dialect.types import bits_of, element_of, is_float, is_integer, shape_of

T = TypeVar("T", bound=Any)

ROUNDING_MODES = (
    "nearest_even",
    "zero",
    "negative_inf",
    "positive_inf",
    "nearest_away",
    "approx",
    "full",
)
SIGNEDNESS = ("signed", "unsigned")

_UNARY: dict[str, Any] = {"source": Operand[T], "result": Result[T]}
_BINARY: dict[str, Any] = {"lhs": Operand[T], "rhs": Operand[T], "result": Result[T]}
_TERNARY: dict[str, Any] = {
    "lhs": Operand[T],
    "rhs": Operand[T],
    "acc": Operand[T],
    "result": Result[T],
}
_CLAMP: dict[str, Any] = {
    "source": Operand[T],
    "low": Operand[T],
    "high": Operand[T],
    "result": Result[T],
}
_CAST: dict[str, Any] = {"source": Operand[Any], "result": Result[Any]}


def _rounding(op: ir.OpView) -> str | None:
    attributes = op.attributes
    if "rounding_mode" not in attributes:
        return None
    mode = ir.StringAttr(attributes["rounding_mode"]).value
    if mode in ROUNDING_MODES:
        return None
    return f"expects a rounding mode of {', '.join(ROUNDING_MODES)}, but got '{mode}'"


def _floats(op: ir.OpView) -> str | None:
    element = element_of(op.operands[0].type)
    return None if is_float(element) else f"expects floats, but got {element}"


def _integers(op: ir.OpView) -> str | None:
    element = element_of(op.operands[0].type)
    return None if is_integer(element) else f"expects integers, but got {element}"


def _same_shape(op: ir.OpView) -> str | None:
    source, result = shape_of(op.source.type), shape_of(op.result.type)
    return None if source == result else f"cannot convert a tile of {source} to one of {result}"


def _float_to_float(op: ir.OpView) -> str | None:
    for name, value in (("source", op.source), ("result", op.result)):
        if not is_float(element_of(value.type)):
            return f"fp_to_fp {name} element type is not supported"
    return None


def _float_to_int(op: ir.OpView) -> str | None:
    source, result = element_of(op.source.type), element_of(op.result.type)
    if not is_float(source) or not is_integer(result):
        return f"cannot round {source} to {result}"
    return _signedness(op)


def _int_to_float(op: ir.OpView) -> str | None:
    source, result = element_of(op.source.type), element_of(op.result.type)
    if not is_integer(source) or not is_float(result):
        return f"cannot convert {source} to {result}"
    return _signedness(op)


def _signedness(op: ir.OpView) -> str | None:
    signedness = ir.StringAttr(op.signedness).value
    if signedness not in SIGNEDNESS:
        return f"expects signedness to be one of {', '.join(SIGNEDNESS)}, but got '{signedness}'"
    return None


def _same_bits(op: ir.OpView) -> str | None:
    source, result = element_of(op.source.type), element_of(op.result.type)
    width = bits_of(source)
    if width is not None and width == bits_of(result):
        return None
    return f"cannot take the bits of {source} for those of {result}"


def _address(pointer: str, integer: str) -> Check:
    def check(op: ir.OpView) -> str | None:
        kinds = {name: element_of(getattr(op, name).type) for name in (pointer, integer)}
        if isinstance(kinds[pointer], PtrType) and str(kinds[integer]) == "i64":
            return None
        return f"expects pointers and i64, but got {kinds['source']} and {kinds['result']}"

    return check


_ROUNDED = (_rounding, _floats)
_OF_FLOATS = (_floats,)

#: Functions that only the GPU computes: MLIR's own of these names fold constants with the host's
#: library, so that bits would depend on the machine, and differ from what the GPU gives.
FUNCTIONS = {
    "cos": "Cosine.", "sin": "Sine.", "tan": "Tangent.", "cosh": "Hyperbolic cosine.",
    "sinh": "Hyperbolic sine.", "tanh": "Hyperbolic tangent; `approx` is for f32.",
    "exp": "e to the power x; `approx` is for f32.", "log": "Natural logarithm.",
    "log2": "Logarithm to base 2.",
}  # fmt: skip

MATH = (
    OperationSpec("addf", _BINARY, "a + b.", (Pure,), _ROUNDED),
    OperationSpec("subf", _BINARY, "a - b.", (Pure,), _ROUNDED),
    OperationSpec("mulf", _BINARY, "a * b.", (Pure,), _ROUNDED),
    OperationSpec("divf", _BINARY, "a / b; `approx` and `full` are for f32.", (Pure,), _ROUNDED),
    OperationSpec("fma", _TERNARY, "a * b + c, rounded once.", (Pure,), _ROUNDED),
    OperationSpec("sqrt", _UNARY, "Square root; `approx` is for f32.", (Pure,), _ROUNDED),
    OperationSpec("rsqrt", _UNARY, "1 / sqrt(x).", (Pure,), _ROUNDED),
    OperationSpec("exp2", _UNARY, "2 to the power x.", (Pure,), _ROUNDED),
    *(OperationSpec(name, _UNARY, text, (Pure,), _ROUNDED) for name, text in FUNCTIONS.items()),
    OperationSpec("pow", _BINARY, "lhs to the power rhs.", (Pure,), _OF_FLOATS),
    OperationSpec(
        "atan2",
        _BINARY,
        "Angle of the point (rhs, lhs).",
        (Pure,),
        _OF_FLOATS,
    ),
    OperationSpec(
        "clampf",
        _CLAMP,
        "min(max(x, low), high); a NaN gives the other operand, or NaN with `propagate_nan`.",
        (Pure,),
        _OF_FLOATS,
    ),
    OperationSpec(
        "maxf",
        _BINARY,
        "The larger number, NaN if one is with `nan`. Without `ftz` it is MLIR's `arith.maxnumf` "
        "or `arith.maximumf`, which fold max(x, x) to x.",
        (Pure,),
        _OF_FLOATS,
    ),
    OperationSpec("minf", _BINARY, "The smaller number, as `maxf`.", (Pure,), _OF_FLOATS),
    OperationSpec(
        "mulhiui", _BINARY, "The high half of the unsigned product.", (Pure,), (_integers,)
    ),
    OperationSpec(
        "fp_to_fp",
        _CAST,
        "The one operation that changes a float's format.",
        (Pure,),
        (_rounding, _same_shape, _float_to_float),
    ),
    OperationSpec(
        "fp_to_int",
        {**_CAST, "signedness": Any},
        "Round towards zero to an integer of `signedness`; saturates, and NaN is 0. i1: x != 0.",
        (Pure,),
        (_same_shape, _float_to_int),
    ),
    OperationSpec(
        "int_to_fp",
        {**_CAST, "signedness": Any},
        "The nearest number of a format without arithmetic. MLIR's `arith.sitofp` folds negative "
        "integers to numbers of formats that have no sign.",
        (Pure,),
        (_same_shape, _int_to_float),
    ),
    OperationSpec(
        "bitcast",
        _CAST,
        "The same bits as another type of equal width; also pointer to pointer.",
        (Pure,),
        (_same_shape, _same_bits),
    ),
    OperationSpec(
        "int_to_ptr",
        _CAST,
        "The pointer whose address is an i64.",
        (Pure,),
        (_same_shape, _address("result", "source")),
    ),
    OperationSpec(
        "ptr_to_int",
        _CAST,
        "The address of a pointer as i64.",
        (Pure,),
        (_same_shape, _address("source", "result")),
    ),
)

for _spec in MATH:
    declare(NvTileAA, _spec, module=__name__)
