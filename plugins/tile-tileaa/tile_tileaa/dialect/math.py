"""Elementwise arithmetic, conversions and tensor-core products of nv_tileaa."""

# pyright: reportGeneralTypeIssues=false

from typing import Any, TypeVar

from tile_core.dialect import Operand, Operation, Pure, Result, reject
from tile_tileaa.dialect.base import NvTileAA

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


def _verify_rounding(op: Operation) -> bool:
    """`rounding_mode`, where present, is a known mnemonic."""
    attributes = op.attributes
    if "rounding_mode" not in attributes:
        return True
    mode = attributes["rounding_mode"].value
    if mode in ROUNDING_MODES:
        return True
    return reject(op, f"expects a rounding mode of {', '.join(ROUNDING_MODES)}, but got '{mode}'")


class AddFOp(Operation, dialect=NvTileAA, name="addf", traits=[Pure]):
    """a + b. Optional: rounding_mode, ftz."""

    lhs: Operand[T]
    rhs: Operand[T]
    result: Result[T]
    verify_invariants = staticmethod(_verify_rounding)


class SubFOp(Operation, dialect=NvTileAA, name="subf", traits=[Pure]):
    """a - b. Optional: rounding_mode, ftz."""

    lhs: Operand[T]
    rhs: Operand[T]
    result: Result[T]
    verify_invariants = staticmethod(_verify_rounding)


class MulFOp(Operation, dialect=NvTileAA, name="mulf", traits=[Pure]):
    """a * b. Optional: rounding_mode, ftz."""

    lhs: Operand[T]
    rhs: Operand[T]
    result: Result[T]
    verify_invariants = staticmethod(_verify_rounding)


class DivFOp(Operation, dialect=NvTileAA, name="divf", traits=[Pure]):
    """a / b. Optional: rounding_mode (approx and full for f32), ftz."""

    lhs: Operand[T]
    rhs: Operand[T]
    result: Result[T]
    verify_invariants = staticmethod(_verify_rounding)


class FmaOp(Operation, dialect=NvTileAA, name="fma", traits=[Pure]):
    """a * b + c, rounded once. Optional: rounding_mode, ftz."""

    lhs: Operand[T]
    rhs: Operand[T]
    acc: Operand[T]
    result: Result[T]
    verify_invariants = staticmethod(_verify_rounding)


class SqrtOp(Operation, dialect=NvTileAA, name="sqrt", traits=[Pure]):
    """Square root. Optional: rounding_mode (approx for f32), ftz."""

    source: Operand[T]
    result: Result[T]
    verify_invariants = staticmethod(_verify_rounding)


class Atan2Op(Operation, dialect=NvTileAA, name="atan2", traits=[Pure]):
    """Angle of the point (rhs, lhs). MLIR's `math.atan2` folds two zeros to NaN."""

    lhs: Operand[T]
    rhs: Operand[T]
    result: Result[T]


class RsqrtOp(Operation, dialect=NvTileAA, name="rsqrt", traits=[Pure]):
    """1 / sqrt(x). Optional: ftz."""

    source: Operand[T]
    result: Result[T]


class Exp2Op(Operation, dialect=NvTileAA, name="exp2", traits=[Pure]):
    """2 to the power x. Optional: ftz."""

    source: Operand[T]
    result: Result[T]


class FpToFpOp(Operation, dialect=NvTileAA, name="fp_to_fp", traits=[Pure]):
    """The one operation that changes a float's format. Optional: rounding_mode."""

    source: Operand[Any]
    result: Result[Any]
    verify_invariants = staticmethod(_verify_rounding)


class BitcastOp(Operation, dialect=NvTileAA, name="bitcast", traits=[Pure]):
    """The same bits as another type of equal width; also pointer to pointer."""

    source: Operand[Any]
    result: Result[Any]


class MulHiUIOp(Operation, dialect=NvTileAA, name="mulhiui", traits=[Pure]):
    """The high half of the unsigned product."""

    lhs: Operand[T]
    rhs: Operand[T]
    result: Result[T]


class FpToIntOp(Operation, dialect=NvTileAA, name="fp_to_int", traits=[Pure]):
    """Round towards zero to an integer of `signedness`; saturates, and NaN is 0. i1: x != 0."""

    source: Operand[Any]
    result: Result[Any]
    signedness: Any


class IntToPtrOp(Operation, dialect=NvTileAA, name="int_to_ptr", traits=[Pure]):
    """The pointer whose address is an i64."""

    source: Operand[Any]
    result: Result[Any]


class PtrToIntOp(Operation, dialect=NvTileAA, name="ptr_to_int", traits=[Pure]):
    """The address of a pointer as i64."""

    source: Operand[Any]
    result: Result[Any]
