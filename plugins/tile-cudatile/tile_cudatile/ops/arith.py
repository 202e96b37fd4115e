"""Elementwise arithmetic, comparison and mathematical functions."""

from __future__ import annotations

from tile_cudatile.ops.constraints import (
    FLOAT_TILE,
    I1_TILE,
    INT_TILE,
    MMAF_OPERAND,
    MMAF_RESULT,
    MMAI_ACC,
    MMAI_OPERAND,
    MMAI_RESULT,
    SCALED_OPERAND,
    SCALED_RESULT,
    SCALED_SCALE,
    SMALL_INT_TILE,
    Constraint,
)
from tile_cudatile.ops.enums import ORDERING, OVERFLOW, PREDICATE, ROUNDING, SIGNEDNESS
from tile_cudatile.ops.spec import (
    AttrSpec,
    OpSpec,
    enum,
    one,
    ones,
    same,
    same_element,
    same_rank,
    unit,
)
from tile_cudatile.versions import V13_1, V13_2, V13_3, V13_4, Version

ROUND = enum("rounding_mode", ROUNDING)
OVER = enum("overflow", OVERFLOW, default="none")
SIGN = enum("signedness", SIGNEDNESS)
FTZ = unit("flush_to_zero")
NAN = unit("propagate_nan")


def _elementwise(
    name: str,
    opcode: int,
    cls: str,
    tile: Constraint,
    operands: tuple[str, ...],
    attrs: tuple[AttrSpec, ...] = (),
    since: Version = V13_1,
) -> OpSpec:
    """All operands and the result have one type."""
    return OpSpec(
        name,
        opcode,
        since,
        ones(tile, *operands),
        attrs,
        (one("result", tile),),
        effects="pure",
        class_name=cls,
        rules=(same(*operands, "result"),),
    )


def _float1(name: str, opcode: int, cls: str, attrs: tuple[AttrSpec, ...] = ()) -> OpSpec:
    return _elementwise(name, opcode, cls, FLOAT_TILE, ("source",), attrs)


def _float2(
    name: str,
    opcode: int,
    cls: str,
    attrs: tuple[AttrSpec, ...] = (),
) -> OpSpec:
    return _elementwise(name, opcode, cls, FLOAT_TILE, ("lhs", "rhs"), attrs)


def _int2(name: str, opcode: int, cls: str, attrs: tuple[AttrSpec, ...] = ()) -> OpSpec:
    return _elementwise(name, opcode, cls, INT_TILE, ("lhs", "rhs"), attrs)


FLOAT_OPS = (
    _float1("absf", 0x00, "AbsFOp"),
    _float1("ceil", 0x0D, "CeilOp"),
    _float1("cos", 0x12, "CosOp"),
    _float1("cosh", 0x13, "CosHOp"),
    _float1("exp", 0x17, "ExpOp", (enum("rounding_mode", ROUNDING, default="full", since=V13_3),)),
    _float1("exp2", 0x18, "Exp2Op", (FTZ,)),
    _float1("floor", 0x27, "FloorOp"),
    _float1("log", 0x3F, "LogOp"),
    _float1("log2", 0x40, "Log2Op"),
    _float1("negf", 0x4F, "NegFOp"),
    _float1("rsqrt", 0x5D, "RsqrtOp", (FTZ,)),
    _float1("sin", 0x62, "SinOp"),
    _float1("sinh", 0x63, "SinHOp"),
    _float1("sqrt", 0x64, "SqrtOp", (ROUND, FTZ)),
    _float1("tan", 0x69, "TanOp"),
    _float1(
        "tanh", 0x6A, "TanHOp", (enum("rounding_mode", ROUNDING, default="full", since=V13_2),)
    ),
    _float2("addf", 0x02, "AddFOp", (ROUND, FTZ)),
    _float2("divf", 0x14, "DivFOp", (ROUND, FTZ)),
    _float2("maxf", 0x45, "MaxFOp", (NAN, FTZ)),
    _float2("minf", 0x47, "MinFOp", (NAN, FTZ)),
    _float2("mulf", 0x4C, "MulFOp", (ROUND, FTZ)),
    _float2("remf", 0x59, "RemFOp"),
    _float2("subf", 0x67, "SubFOp", (ROUND, FTZ)),
    _elementwise("fma", 0x28, "FmaOp", FLOAT_TILE, ("lhs", "rhs", "acc"), (ROUND, FTZ)),
    # Named `pow` before 13.4.
    OpSpec(
        "fpowf",
        0x54,
        operands=ones(FLOAT_TILE, "source", "exponent"),
        results=(one("result", FLOAT_TILE),),
        effects="pure",
        class_name="FPowFOp",
        rules=(same("result", "source", "exponent"),),
    ),
    _elementwise("atan2", 0x6E, "Atan2Op", FLOAT_TILE, ("x", "y"), since=V13_2),
    OpSpec(
        "fpowi",
        0x79,
        V13_4,
        (one("source", FLOAT_TILE), one("exponent", SMALL_INT_TILE)),
        results=(one("result", FLOAT_TILE),),
        effects="pure",
        class_name="FPowIOp",
        rules=(same("result", "source"), ("shape", ("source", "exponent"))),
    ),
    OpSpec(
        "cmpf",
        0x0E,
        operands=ones(FLOAT_TILE, "lhs", "rhs"),
        attrs=(enum("comparison_predicate", PREDICATE), enum("comparison_ordering", ORDERING)),
        results=(one("result", I1_TILE),),
        effects="pure",
        class_name="CmpFOp",
        rules=(same("lhs", "rhs"), ("i1_like", ("lhs", "result"))),
    ),
)

INT_OPS = (
    _elementwise("absi", 0x01, "AbsIOp", INT_TILE, ("source",)),
    _elementwise(
        "negi",
        0x50,
        "NegIOp",
        INT_TILE,
        ("source",),
        (enum("overflow", OVERFLOW, default="none", since=V13_2),),
    ),
    _elementwise("mulhii", 0x4D, "MulhiIOp", INT_TILE, ("x", "y")),
    _int2("addi", 0x03, "AddIOp", (OVER,)),
    _int2("andi", 0x04, "AndIOp"),
    _int2("maxi", 0x46, "MaxIOp", (SIGN,)),
    _int2("mini", 0x48, "MinIOp", (SIGN,)),
    _int2("muli", 0x4E, "MulIOp", (OVER,)),
    _int2("ori", 0x52, "OrIOp"),
    _int2("remi", 0x5A, "RemIOp", (SIGN,)),
    _int2("shli", 0x60, "ShLIOp", (OVER,)),
    _int2("shri", 0x61, "ShRIOp", (SIGN,)),
    _int2("subi", 0x68, "SubIOp", (OVER,)),
    _int2("xori", 0x6C, "XOrIOp"),
    OpSpec(
        "divi",
        0x15,
        operands=ones(INT_TILE, "lhs", "rhs"),
        attrs=(SIGN, enum("rounding", ROUNDING, default="zero")),
        results=(one("result", INT_TILE),),
        effects="none",
        class_name="DivIOp",
        rules=(same("lhs", "rhs", "result"),),
    ),
    OpSpec(
        "cmpi",
        0x0F,
        operands=ones(INT_TILE, "lhs", "rhs"),
        attrs=(enum("comparison_predicate", PREDICATE), SIGN),
        results=(one("result", I1_TILE),),
        effects="pure",
        class_name="CmpIOp",
        rules=(same("lhs", "rhs"), ("i1_like", ("lhs", "result"))),
    ),
)

MMA_OPS = (
    OpSpec(
        "mmaf",
        0x49,
        operands=(*ones(MMAF_OPERAND, "lhs", "rhs"), one("acc", MMAF_RESULT)),
        attrs=(unit("fast_acc", V13_3),),
        results=(one("result", MMAF_RESULT),),
        effects="pure",
        class_name="MmaFOp",
        rules=(same("acc", "result"), same_element("lhs", "rhs"), same_rank("lhs", "rhs", "acc")),
    ),
    OpSpec(
        "mmai",
        0x4A,
        operands=(*ones(MMAI_OPERAND, "lhs", "rhs"), one("acc", MMAI_ACC)),
        attrs=(enum("signedness_lhs", SIGNEDNESS), enum("signedness_rhs", SIGNEDNESS)),
        results=(one("result", MMAI_RESULT),),
        effects="pure",
        class_name="MmaIOp",
        rules=(same("acc", "result"), same_element("lhs", "rhs"), same_rank("lhs", "rhs", "acc")),
    ),
    OpSpec(
        "mmaf_scaled",
        0x72,
        V13_3,
        (
            *ones(SCALED_OPERAND, "lhs", "rhs"),
            one("acc", SCALED_RESULT),
            *ones(SCALED_SCALE, "lhs_scale", "rhs_scale"),
        ),
        results=(one("result", SCALED_RESULT),),
        effects="pure",
        class_name="MmaFScaledOp",
        rules=(
            same("acc", "result"),
            same_element("lhs", "rhs"),
            same_element("lhs_scale", "rhs_scale"),
            same_rank("lhs", "rhs", "acc", "lhs_scale", "rhs_scale"),
        ),
    ),
)
