"""Views, loads, stores, atomics and tokens."""

from __future__ import annotations

from tile_cudatile.ops.constraints import (
    GATHER_SCATTER_VIEW,
    I1_TILE,
    INT_SCALAR,
    INT_TILE,
    NUMBER_TILE,
    PARTITION_VIEW,
    POINTER,
    POINTER_TILE,
    STRIDED_VIEW,
    TENSOR_VIEW,
    TILE,
    TOKEN_TYPE,
    VIEW,
    Constraint,
)
from tile_cudatile.ops.enums import REDUCTION, RMW_MODE, SCOPE, SEMANTICS
from tile_cudatile.ops.spec import (
    AttrSpec,
    OpSpec,
    enum,
    many,
    maybe,
    one,
    ones,
    same,
    same_shape,
    unit,
)
from tile_cudatile.versions import V13_1, V13_2, V13_3, V13_4, V13_5, Version

ORDER = enum("memory_ordering_semantics", SEMANTICS)
SCOPED = enum("memory_scope", SCOPE)
MAYBE_SCOPED = enum("memory_scope", SCOPE, optional=True)
HINTS = AttrSpec("optimization_hints", "hints", optional=True)
MODE = enum("mode", RMW_MODE)
REDUCE_BY = enum("reduction", REDUCTION, default="add")
MASK = maybe("mask", I1_TILE)
TOKEN_IN = maybe("token", TOKEN_TYPE)
TOKEN_OUT = one("result_token", TOKEN_TYPE)
INDEX = many("index", INT_TILE)


def _inbounds(since: Version) -> AttrSpec:
    """Per view dimension: the whole tile lies inside the tensor."""
    return AttrSpec("inbounds", "bool_array", default=(), since=since)


def _make_view(
    name: str, opcode: int, cls: str, view: Constraint, since: Version = V13_1
) -> OpSpec:
    return OpSpec(
        name,
        opcode,
        since,
        (one("tensor_view", TENSOR_VIEW),),
        results=(one("result", view),),
        effects="pure",
        class_name=cls,
    )


VIEW_OPS = (
    OpSpec(
        "make_tensor_view",
        0x43,
        operands=(
            one("base", POINTER),
            many("dynamicShape", INT_SCALAR),
            many("dynamicStrides", INT_SCALAR),
        ),
        results=(one("result", TENSOR_VIEW),),
        effects="none",
        segmented=True,
        class_name="MakeTensorViewOp",
    ),
    _make_view("make_partition_view", 0x42, "MakePartitionViewOp", PARTITION_VIEW),
    _make_view("make_strided_view", 0x74, "MakeStridedViewOp", STRIDED_VIEW, V13_3),
    _make_view(
        "make_gather_scatter_view", 0x73, "MakeGatherScatterViewOp", GATHER_SCATTER_VIEW, V13_3
    ),
    OpSpec(
        "get_tensor_shape",
        0x2F,
        operands=(one("src", TENSOR_VIEW),),
        results=(many("result", INT_SCALAR),),
        effects="none",
        class_name="GetTensorShapeOp",
    ),
    OpSpec(
        "get_index_space_shape",
        0x2D,
        operands=(one("src", VIEW),),
        results=(many("result", INT_SCALAR),),
        effects="none",
        class_name="GetIndexSpaceShapeOp",
    ),
)

ACCESS_OPS = (
    OpSpec(
        "load_view_tko",
        0x3E,
        operands=(one("view", VIEW), INDEX, TOKEN_IN),
        attrs=(ORDER, MAYBE_SCOPED, HINTS, _inbounds(V13_4)),
        results=(one("tile", TILE), TOKEN_OUT),
        segmented=True,
        class_name="LoadViewTkoOp",
    ),
    OpSpec(
        "store_view_tko",
        0x66,
        operands=(one("tile", TILE), one("view", VIEW), INDEX, TOKEN_IN),
        attrs=(ORDER, MAYBE_SCOPED, HINTS, _inbounds(V13_4)),
        results=(TOKEN_OUT,),
        segmented=True,
        class_name="StoreViewTkoOp",
    ),
    OpSpec(
        "load_ptr_tko",
        0x3D,
        operands=(one("source", POINTER_TILE), MASK, maybe("paddingValue", NUMBER_TILE), TOKEN_IN),
        attrs=(ORDER, MAYBE_SCOPED, HINTS),
        results=(one("result", TILE), TOKEN_OUT),
        segmented=True,
        class_name="LoadPtrTkoOp",
        rules=(
            ("points_to", ("source", "result")),
            ("mask", ("source", "mask")),
            ("padding", ("result", "paddingValue")),
        ),
    ),
    OpSpec(
        "store_ptr_tko",
        0x65,
        operands=(one("destination", POINTER_TILE), one("value", TILE), MASK, TOKEN_IN),
        attrs=(ORDER, MAYBE_SCOPED, HINTS),
        results=(TOKEN_OUT,),
        segmented=True,
        class_name="StorePtrTkoOp",
        rules=(("points_to", ("destination", "value")), ("mask", ("destination", "mask"))),
    ),
    OpSpec(
        "atomic_cas_tko",
        0x07,
        operands=(one("pointers", POINTER_TILE), *ones(TILE, "cmp", "val"), MASK, TOKEN_IN),
        attrs=(ORDER, SCOPED),
        results=(one("result", TILE), TOKEN_OUT),
        segmented=True,
        class_name="AtomicCASTkoOp",
        rules=(same_shape("pointers", "cmp", "val", "result"), same("cmp", "val", "result")),
    ),
    OpSpec(
        "atomic_rmw_tko",
        0x08,
        operands=(one("pointers", POINTER_TILE), one("arg", TILE), MASK, TOKEN_IN),
        attrs=(ORDER, SCOPED, MODE),
        results=(one("result", TILE), TOKEN_OUT),
        segmented=True,
        class_name="AtomicRMWTkoOp",
        rules=(same_shape("pointers", "arg", "result"), same("arg", "result")),
    ),
    OpSpec(
        "atomic_red_view_tko",
        0x75,
        V13_3,
        (one("view", VIEW), INDEX, one("value", TILE), TOKEN_IN),
        (ORDER, SCOPED, MODE, _inbounds(V13_5)),
        (TOKEN_OUT,),
        segmented=True,
        class_name="AtomicRedViewTkoOp",
    ),
    OpSpec(
        "multimem_load_reduce_view_tko",
        0x7B,
        V13_5,
        (one("view", VIEW), INDEX, TOKEN_IN),
        (ORDER, MAYBE_SCOPED, REDUCE_BY, _inbounds(V13_5)),
        (one("reduced_values", TILE), TOKEN_OUT),
        segmented=True,
        class_name="MultimemLoadReduceViewTkoOp",
    ),
    OpSpec(
        "multimem_reduce_view_tko",
        0x7C,
        V13_5,
        (one("view", VIEW), one("tile", TILE), INDEX, TOKEN_IN),
        (ORDER, SCOPED, REDUCE_BY, _inbounds(V13_5)),
        (TOKEN_OUT,),
        segmented=True,
        class_name="MultimemReduceViewTkoOp",
    ),
    OpSpec(
        "multimem_store_view_tko",
        0x7D,
        V13_5,
        (one("view", VIEW), one("tile", TILE), INDEX, TOKEN_IN),
        (ORDER, MAYBE_SCOPED, _inbounds(V13_5)),
        (TOKEN_OUT,),
        segmented=True,
        class_name="MultimemStoreViewTkoOp",
    ),
)

TOKEN_OPS = (
    OpSpec(
        "make_token",
        0x44,
        results=(one("result", TOKEN_TYPE),),
        effects="pure",
        class_name="MakeTokenOp",
    ),
    OpSpec(
        "join_tokens",
        0x3C,
        operands=(many("tokens", TOKEN_TYPE),),
        results=(one("result", TOKEN_TYPE),),
        effects="pure",
        class_name="JoinTokensOp",
    ),
    OpSpec(
        "gdc_launch_dependents_tko",
        0x77,
        V13_4,
        (TOKEN_IN,),
        results=(TOKEN_OUT,),
        class_name="GdcLaunchDependentsTkoOp",
    ),
    OpSpec(
        "gdc_wait_tko", 0x78, V13_4, (TOKEN_IN,), results=(TOKEN_OUT,), class_name="GdcWaitTkoOp"
    ),
    OpSpec(
        "memory_fence_alias_tko",
        0x7A,
        V13_4,
        (one("token", TOKEN_TYPE),),
        results=(TOKEN_OUT,),
        class_name="MemoryFenceAliasTkoOp",
    ),
    OpSpec(
        "alloca",
        0x71,
        V13_3,
        attrs=(AttrSpec("num_elem", "i64"), AttrSpec("alignment", "i64"), unit("global")),
        results=(one("result", POINTER),),
        class_name="AllocaOp",
    ),
    # `print` without token before 13.2.
    OpSpec(
        "print_tko",
        0x55,
        operands=(many("args", TILE), maybe("token", TOKEN_TYPE, V13_2)),
        attrs=(AttrSpec("str", "str"),),
        results=(one("result_token", TOKEN_TYPE, V13_2),),
        segmented=True,
        class_name="PrintTkoOp",
    ),
    OpSpec(
        "assert",
        0x05,
        operands=(one("condition", I1_TILE),),
        attrs=(AttrSpec("message", "str"),),
        class_name="AssertOp",
    ),
)
