"""Conversions, constants, and operations that move elements without computing."""

from __future__ import annotations

from tile_cudatile.ops.constraints import (
    ANY,
    ANY_FLOAT_TILE,
    I1_TILE,
    I8_TILE,
    I32_SCALAR,
    I64_TILE,
    INT_TILE,
    INT_TILE_I4,
    NUMBER_TILE,
    NUMBER_TILE_I4,
    POINTER,
    POINTER_TILE,
    TILE,
    Constraint,
)
from tile_cudatile.ops.enums import OVERFLOW, ROUNDING, SIGNEDNESS
from tile_cudatile.ops.spec import (
    AttrSpec,
    OpSpec,
    enum,
    many,
    one,
    ones,
    same,
    same_element,
    same_rank,
    same_shape,
    unit,
)
from tile_cudatile.versions import V13_1, V13_3, V13_4, Version

SIGN = enum("signedness", SIGNEDNESS)
ROUND = enum("rounding_mode", ROUNDING)


def _cast(
    name: str,
    opcode: int,
    cls: str,
    source: Constraint,
    result: Constraint,
    attrs: tuple[AttrSpec, ...] = (),
    names: tuple[str, str] = ("from", "to"),
) -> OpSpec:
    """One operand, one result of the same shape."""
    return OpSpec(
        name,
        opcode,
        operands=(one(names[0], source),),
        attrs=attrs,
        results=(one(names[1], result),),
        effects="pure",
        class_name=cls,
        rules=(same_shape(*names),),
    )


_SOURCE = ("source", "result")

CONVERSION_OPS = (
    _cast("bitcast", 0x09, "BitcastOp", NUMBER_TILE, NUMBER_TILE, names=_SOURCE),
    _cast("exti", 0x25, "ExtIOp", INT_TILE_I4, INT_TILE_I4, (SIGN,)),
    _cast(
        "trunci",
        0x6B,
        "TruncIOp",
        INT_TILE_I4,
        INT_TILE_I4,
        (enum("overflow", OVERFLOW, default="none"),),
    ),
    _cast(
        "ftof",
        0x2A,
        "FToFOp",
        ANY_FLOAT_TILE,
        ANY_FLOAT_TILE,
        (enum("rounding_mode", ROUNDING, default="nearest_even"),),
    ),
    _cast(
        "ftoi", 0x2B, "FToIOp", ANY_FLOAT_TILE, INT_TILE, (SIGN, ROUND, unit("saturating", V13_4))
    ),
    _cast("itof", 0x3B, "IToFOp", INT_TILE, ANY_FLOAT_TILE, (SIGN, ROUND)),
    _cast("int_to_ptr", 0x33, "IntToPtrOp", I64_TILE, POINTER_TILE, names=_SOURCE),
    _cast("ptr_to_int", 0x56, "PtrToIntOp", POINTER_TILE, I64_TILE, names=_SOURCE),
    _cast("ptr_to_ptr", 0x57, "PtrToPtrOp", POINTER_TILE, POINTER_TILE, names=_SOURCE),
)


def _move(
    name: str,
    opcode: int,
    cls: str,
    *,
    attrs: tuple[AttrSpec, ...] = (),
    source: Constraint = TILE,
    result: Constraint = TILE,
    since: Version = V13_1,
    rules: tuple[tuple[str, tuple[str, ...]], ...] = (),
) -> OpSpec:
    """One tile in, one tile out."""
    return OpSpec(
        name,
        opcode,
        since,
        (one("source", source),),
        attrs,
        (one("result", result),),
        effects="pure",
        class_name=cls,
        rules=rules,
    )


SHAPE_OPS = (
    OpSpec(
        "constant",
        0x10,
        attrs=(AttrSpec("value", "dense"),),
        results=(one("result", NUMBER_TILE),),
        effects="pure",
        class_name="ConstantOp",
    ),
    OpSpec("iota", 0x3A, results=(one("result", INT_TILE),), effects="pure", class_name="IotaOp"),
    _move(
        "broadcast",
        0x0B,
        "BroadcastOp",
        rules=(same_rank("source", "result"), ("elementwise_element", ())),
    ),
    _move("reshape", 0x5B, "ReshapeOp", rules=(("elementwise_element", ()),)),
    _move(
        "permute",
        0x53,
        "PermuteOp",
        attrs=(AttrSpec("permutation", "i32_array"),),
        rules=(same_element("source", "result"), same_rank("source", "result")),
    ),
    _move(
        "pack",
        0x6F,
        "PackOp",
        source=NUMBER_TILE_I4,
        result=I8_TILE,
        since=V13_3,
        rules=(same_rank("source", "result"),),
    ),
    _move(
        "unpack",
        0x70,
        "UnpackOp",
        source=I8_TILE,
        result=NUMBER_TILE_I4,
        since=V13_3,
        rules=(same_rank("source", "result"),),
    ),
    OpSpec(
        "cat",
        0x0C,
        operands=ones(TILE, "lhs", "rhs"),
        attrs=(AttrSpec("dim", "i64"),),
        results=(one("result", TILE),),
        effects="pure",
        class_name="CatOp",
        rules=(same_rank("lhs", "rhs", "result"), same_element("lhs", "rhs", "result")),
    ),
    OpSpec(
        "extract",
        0x26,
        operands=(one("source", TILE), many("indices", I32_SCALAR)),
        results=(one("result", TILE),),
        effects="pure",
        class_name="ExtractOp",
        rules=(same_rank("source", "result"),),
    ),
    OpSpec(
        "insert",
        0x76,
        V13_4,
        (one("source", TILE), one("destination", TILE), many("indices", I32_SCALAR)),
        results=(one("result", TILE),),
        effects="pure",
        class_name="InsertOp",
        rules=(same("destination", "result"),),
    ),
    OpSpec(
        "select",
        0x5F,
        operands=(one("cond", I1_TILE), *ones(TILE, "val_if_true", "val_if_false")),
        results=(one("result", TILE),),
        effects="pure",
        class_name="SelectOp",
        rules=(
            same("val_if_true", "val_if_false", "result"),
            same_shape("cond", "val_if_true", "val_if_false", "result"),
        ),
    ),
    OpSpec(
        "offset",
        0x51,
        operands=(one("ptr", POINTER_TILE), one("offset", INT_TILE)),
        results=(one("result", POINTER_TILE),),
        effects="pure",
        class_name="OffsetOp",
        rules=(same("result", "ptr"), ("elementwise_shape", ())),
    ),
    OpSpec(
        "get_tile_block_id",
        0x30,
        results=ones(I32_SCALAR, "blockId_x", "blockId_y", "blockId_z"),
        effects="pure",
        class_name="GetTileBlockIdOp",
    ),
    OpSpec(
        "get_num_tile_blocks",
        0x2E,
        results=ones(I32_SCALAR, "gridSize_x", "gridSize_y", "gridSize_z"),
        effects="pure",
        class_name="GetNumTileBlocksOp",
    ),
    OpSpec(
        "get_global",
        0x2C,
        attrs=(AttrSpec("name", "symbol"),),
        results=(one("result", POINTER),),
        effects="pure",
        class_name="GetGlobalOp",
    ),
    OpSpec(
        "assume",
        0x06,
        operands=(one("value", ANY),),
        attrs=(AttrSpec("predicate", "predicate"),),
        results=(one("result", ANY),),
        class_name="AssumeOp",
        rules=(same("value", "result"),),
    ),
)
