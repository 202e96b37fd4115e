"""Reductions, control flow, and the containers that never occur inside a body."""

from __future__ import annotations

from tile_cudatile.ops.constraints import ANY, I1_SCALAR, INT_SCALAR, TILE
from tile_cudatile.ops.enums import VISIBILITY
from tile_cudatile.ops.spec import AttrSpec, OpSpec, enum, many, one, ones, same, unit
from tile_cudatile.versions import V13_2, V13_3, V13_5

_OPERANDS = (many("operands", ANY),)
_DIM = AttrSpec("dim", "i32")
_IDENTITIES = AttrSpec("identities", "array")

REGION_OPS = (
    OpSpec(
        "reduce",
        0x58,
        operands=(many("operands", TILE),),
        attrs=(_DIM, _IDENTITIES),
        results=(many("results", TILE),),
        regions=("body",),
        effects="recursive",
        class_name="ReduceOp",
        rules=(("operands_shape", ("operands",)),),
    ),
    OpSpec(
        "scan",
        0x5E,
        operands=(many("operands", TILE),),
        attrs=(_DIM, AttrSpec("reverse", "bool"), _IDENTITIES),
        results=(many("results", TILE),),
        regions=("body",),
        effects="recursive",
        class_name="ScanOp",
        rules=(("operands_shape", ("operands",)),),
    ),
    OpSpec(
        "for",
        0x29,
        operands=(*ones(INT_SCALAR, "lowerBound", "upperBound", "step"), many("initValues", ANY)),
        attrs=(unit("unsignedCmp", V13_2),),
        results=(many("resultValues", ANY),),
        regions=("region",),
        effects="recursive",
        class_name="ForOp",
        rules=(same("lowerBound", "upperBound", "step"), same("initValues", "resultValues")),
    ),
    OpSpec(
        "if",
        0x32,
        operands=(one("condition", I1_SCALAR),),
        results=(many("results", ANY),),
        regions=("thenRegion", "elseRegion"),
        effects="recursive",
        class_name="IfOp",
    ),
    OpSpec(
        "loop",
        0x41,
        operands=(many("initValues", ANY),),
        results=(many("resultValues", ANY),),
        regions=("region",),
        effects="recursive",
        class_name="LoopOp",
    ),
)

TERMINATOR_OPS = (
    OpSpec(
        "break",
        0x0A,
        operands=_OPERANDS,
        terminator=True,
        parents=("if", "loop"),
        class_name="BreakOp",
    ),
    OpSpec(
        "continue",
        0x11,
        operands=_OPERANDS,
        terminator=True,
        parents=("for", "if", "loop"),
        class_name="ContinueOp",
    ),
    OpSpec(
        "return",
        0x5C,
        operands=_OPERANDS,
        terminator=True,
        parents=("entry", "if", "loop"),  # loops since 13.5
        class_name="ReturnOp",
    ),
    OpSpec(
        "yield",
        0x6D,
        operands=_OPERANDS,
        terminator=True,
        effects="pure",
        parents=("if", "reduce", "scan"),
        class_name="YieldOp",
    ),
)

CONTAINER_OPS = (
    OpSpec(
        "module",
        0x4B,
        attrs=(
            AttrSpec("sym_name", "str"),
            AttrSpec("producer", "str", optional=True, since=V13_3),
        ),
        regions=("body",),
        effects="recursive",
        class_name="ModuleOp",
    ),
    OpSpec(
        "entry",
        0x16,
        attrs=(
            AttrSpec("sym_name", "str"),
            AttrSpec("function_type", "type"),
            AttrSpec("arg_attrs", "array", optional=True, since=V13_5),
            AttrSpec("res_attrs", "array", optional=True),
            AttrSpec("optimization_hints", "hints", optional=True),
        ),
        regions=("body",),
        effects="memory",
        class_name="EntryOp",
    ),
    OpSpec(
        "global",
        0x31,
        attrs=(
            AttrSpec("sym_name", "str"),
            AttrSpec("value", "dense"),
            AttrSpec("alignment", "i64", default=0),
            unit("constant", V13_3),
            enum("symbol_visibility", VISIBILITY, default="public", since=V13_3),
        ),
        class_name="GlobalOp",
    ),
)
