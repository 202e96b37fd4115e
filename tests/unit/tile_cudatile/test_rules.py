"""Every rule of types and operations, with its words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tile_cudatile import VerifyError, read_bytecode, verify
from tile_cudatile import types as t
from tile_cudatile.attrs import Bounded, Dense, DivBy, Float, Integer, SameElements
from tile_cudatile.locations import CallSite, CompileUnit, DebugLoc, File, LexicalBlock, Subprogram
from tile_cudatile.rules.types import type_problem
from tile_cudatile.tree import Block, Entry, Global, Module, Op, Region, Value
from tile_cudatile.versions import SUPPORTED, V13_5
from unit.tile_cudatile import samples
from unit.tile_cudatile.apply import operation
from unit.tile_cudatile.everything import Maker, everything

F4x4, I4x4 = t.Tile((4, 4), t.F32), t.Tile((4, 4), t.I32)
B4x4, H4x4 = t.Tile((4, 4), t.I1), t.Tile((4, 4), t.F16)
SCALAR, TRUTH, POINTER = t.Tile((), t.I32), t.Tile((), t.I1), t.Tile((), t.Pointer(t.F32))
POINTERS = t.Tile((4, 4), t.Pointer(t.F32))
TENSOR = t.TensorView(t.F32, (16, 16), (16, 1))
VIEW = t.PartitionView((4, 4), TENSOR, (0, 1))
ITENSOR = t.TensorView(t.I32, (16, 16), (16, 1))
DYNAMIC = t.TensorView(t.F32, (None, 16), (None, 1))
STRIDED = t.StridedView((4, 4), (1, 2), TENSOR, (0, 1))
GATHER = t.GatherScatterView((4, 4), TENSOR, 0)


@pytest.mark.parametrize("version", SUPPORTED, ids=str)
def test_valid_programs_are_accepted(version) -> None:
    verify(everything(version))


@pytest.mark.parametrize("name", samples.NAMES)
def test_samples_are_accepted(name: str) -> None:
    verify(read_bytecode(samples.sample(name)))


TYPES: list[tuple[t.Type, str | None]] = [
    (t.Tile((4096, 4096), t.F32), None),
    (t.Tile((), t.F32), None),
    (t.Tile((4096, 8192), t.F32), "tile would exceed the maximum of 16777216 elements"),
    (t.Tile((5, 5), t.F32), "all dimensions must be powers of two, got 5, 5"),
    (t.Tile((0,), t.F32), "all dimensions must be positive constants, got 0"),
    (t.Tile((1, 1), t.F4E2M1FN), "F4E2M1FN tiles must have an even number of elements"),
    (t.Tile((), t.F4E2M1FN), "F4E2M1FN tiles must have an even number of elements"),
    (
        t.Tile((2,), t.Pointer(t.F4E2M1FN)),
        "tiles of ptr<f4E2M1FN> must have rank 0; use an f4 tile view for element access",
    ),
    (
        t.TensorView(t.F32, (4,), ()),
        "expected shape and stride to be of same rank but got shape of rank 1 and stride of rank 0",
    ),
    (
        t.TensorView(t.F32, (0, None), (1, 1)),
        "dimensions must have strictly positive constant sizes but got [0, ?]",
    ),
    (
        t.TensorView(t.F32, (4,), (-1,)),
        "dimensions must have strictly positive constant strides but got [-1]",
    ),
    (
        t.PartitionView((), t.TensorView(t.F32, (), ()), ()),
        "0-dimension tile shape is not supported",
    ),
    (
        t.PartitionView((4,), TENSOR, (0,)),
        "expected tensor_view rank and tile rank to match, got "
        "tensor_view of rank 2 and tiles of rank 1",
    ),
    (
        t.PartitionView((4, 4), TENSOR, (0,)),
        "expected dim_map to map exactly all 2 dimensions of the tile, got 1 mappings",
    ),
    (
        t.PartitionView((4, -4), TENSOR, (0, 1)),
        "tile shape dimensions must have positive length but got [4, -4]",
    ),
    (
        t.PartitionView((4, 3), TENSOR, (0, 1)),
        "tile shape dimensions must have power of two length but got [4, 3]",
    ),
    (t.PartitionView((4, 4), TENSOR, (0, -1)), "target dimension must not be negative, got -1"),
    (
        t.PartitionView((4, 4), TENSOR, (0, 2)),
        "target dimension is outside of tensor view "
        "dimensions, expected strictly less than 2, got 2",
    ),
    (
        t.PartitionView((4, 4), TENSOR, (1, 1)),
        "target dimension 1 mapped at least twice (for tile dimensions 0 and 1)",
    ),
    (
        t.PartitionView((4, 4), ITENSOR, (0, 1), "nan"),
        "padding_value nan can only be used with floating point element types, got 'i32'",
    ),
    (t.PartitionView((4, 4), ITENSOR, (0, 1), "zero"), None),
    (t.StridedView((4, 4), (1,), TENSOR, (0, 1)), "expected 2 traversal strides, got 1"),
    (
        t.StridedView((4, 4), (1, 0), TENSOR, (0, 1)),
        "traversal strides must be strictly positive but got [1, 0]",
    ),
    (
        t.GatherScatterView((4, 4), TENSOR, 2),
        "gather dimension is outside of tensor view "
        "dimensions, expected strictly less than 2, got 2",
    ),
]


@pytest.mark.parametrize(("type_", "problem"), TYPES, ids=lambda v: str(v)[:60])
def test_types(type_: t.Type, problem: str | None) -> None:
    assert type_problem(type_) == problem


def _verify(ops: list[Op], arguments: list[Value] | None = None) -> str:
    """What is wrong with a kernel of these operations; "" if nothing is.

    Operands that no operation defines become arguments of a block around.
    """
    args = tuple(arguments or ())
    block = Block(args, [*ops, operation("return", [()], [])])
    entry = Entry("k", t.Function((), ()), Region([block]))
    module = Module(V13_5, [Global("g", Dense(t.Tile((2,), t.F32), bytes(4)))], [entry])
    try:
        verify(module)
    except VerifyError as error:
        return error.lines[0]
    return ""


def _one(name: str, operands: list[Any], results: list[t.Type], /, **attrs: Any) -> str:
    """The complaint about one operation on operands of the given types."""
    groups = [
        tuple(Value(o) for o in operand)
        if isinstance(operand, tuple)
        else None
        if operand is None
        else Value(operand)
        for operand in operands
    ]
    text = _verify([operation(name, groups, results, **attrs)])
    return text.removeprefix(f"'cuda_tile.{name}' op ")


RN = {"rounding_mode": "nearest_even"}
LOAD = {"memory_ordering_semantics": "weak"}
RMW = {"memory_ordering_semantics": "relaxed", "memory_scope": "device"}

CASES: list[tuple[str, list[Any], list[t.Type], dict[str, Any], str]] = [
    (
        "addf",
        [I4x4, F4x4],
        [F4x4],
        RN,
        "operand #0 must be tile of f16 or bf16 or f32 or f64 "
        "values, but got '!cuda_tile.tile<4x4xi32>'",
    ),
    (
        "addf",
        [F4x4, H4x4],
        [F4x4],
        RN,
        "failed to verify that all of {lhs, rhs, result} have same type",
    ),
    (
        "addf",
        [F4x4, F4x4],
        [F4x4],
        {"rounding_mode": "full"},
        "invalid rounding mode specified, "
        "expect one of [nearest_even, zero, negative_inf, positive_inf]",
    ),
    (
        "addf",
        [H4x4, H4x4],
        [H4x4],
        {**RN, "flush_to_zero": True},
        "flush_to_zero modifier only supported for f32 data type, but got: 'f16'",
    ),
    (
        "divf",
        [F4x4, F4x4],
        [F4x4],
        {"rounding_mode": "nearest_away"},
        "invalid rounding mode "
        "specified, expect one of [nearest_even, zero, negative_inf, positive_inf, approx, full]",
    ),
    (
        "divf",
        [H4x4, H4x4],
        [H4x4],
        {"rounding_mode": "full"},
        "full modifier only supported for f32 data type, but got: 'f16'",
    ),
    (
        "sqrt",
        [F4x4],
        [F4x4],
        {"rounding_mode": "full"},
        "invalid rounding mode specified, expect "
        "one of [nearest_even, zero, negative_inf, positive_inf, approx]",
    ),
    ("exp", [F4x4], [F4x4], RN, "invalid rounding mode specified, expect one of [approx, full]"),
    (
        "tanh",
        [H4x4],
        [H4x4],
        {"rounding_mode": "approx"},
        "approx modifier only supported for f32 data type, but got: 'f16'",
    ),
    (
        "divi",
        [I4x4, I4x4],
        [I4x4],
        {"signedness": "signed", "rounding": "full"},
        "invalid rounding mode specified, expect one of [zero, negative_inf, positive_inf]",
    ),
    (
        "divi",
        [I4x4, I4x4],
        [I4x4],
        {"signedness": "unsigned", "rounding": "negative_inf"},
        "rounding mode 'negative_inf' is not allowed with 'unsigned' flag",
    ),
    (
        "negi",
        [I4x4],
        [I4x4],
        {"overflow": "no_unsigned_wrap"},
        "'no_unsigned_wrap' overflow flag is not supported",
    ),
    ("exti", [I4x4], [I4x4], {"signedness": "signed"}, "extending to smaller or identical integer"),
    ("trunci", [I4x4], [I4x4], {}, "truncating to larger or identical integer"),
    ("ftof", [F4x4], [F4x4], RN, "converting tiles must not be a no-op"),
    (
        "ftof",
        [F4x4],
        [t.Tile((4, 4), t.F8E8M0FNU)],
        RN,
        "invalid rounding mode specified for "
        "conversion to f8E8M0FNU. Only 'zero' and 'positive_inf' are supported",
    ),
    (
        "ftof",
        [F4x4],
        [t.Tile((4, 4), t.F8E5M2)],
        {"rounding_mode": "zero"},
        "invalid rounding mode "
        "specified for conversion to low-precision type. Only 'nearest_even' is supported",
    ),
    (
        "ftof",
        [F4x4],
        [H4x4],
        {"rounding_mode": "positive_inf"},
        "invalid rounding mode specified. "
        "Only 'nearest_even' and 'zero' are supported for narrowing conversions to standard types",
    ),
    ("ftof", [F4x4], [H4x4], {"rounding_mode": "zero"}, ""),
    (
        "itof",
        [I4x4],
        [F4x4],
        {"rounding_mode": "zero", "signedness": "signed"},
        "invalid rounding mode specified. Only 'nearest_even' is supported",
    ),
    (
        "itof",
        [I4x4],
        [t.Tile((4, 4), t.F8E8M0FNU)],
        {**RN, "signedness": "signed"},
        "integer to "
        "f8E8M0FNU conversion is not supported, please first convert to another float type",
    ),
    (
        "ftoi",
        [F4x4],
        [I4x4],
        {**RN, "signedness": "signed"},
        "invalid rounding mode specified. Only 'nearest_int_to_zero' is supported",
    ),
    (
        "bitcast",
        [F4x4],
        [H4x4],
        {},
        "types must be equal width, cannot convert "
        "'!cuda_tile.tile<4x4xf32>' of width 32 to type '!cuda_tile.tile<4x4xf16>' of width 16",
    ),
    (
        "broadcast",
        [F4x4],
        [t.Tile((4, 8), t.F32)],
        {},
        "expects the shape of source tile to be "
        "compatible with that of the result tile, but got: 4, 4 and 4, 8",
    ),
    (
        "broadcast",
        [F4x4],
        [t.Tile((4,), t.F32)],
        {},
        "failed to verify that all of {source, result} have same rank",
    ),
    (
        "reshape",
        [F4x4],
        [t.Tile((8,), t.F32)],
        {},
        "expected source tile and result tile to have the same number of elements",
    ),
    (
        "reshape",
        [F4x4],
        [t.Tile((16,), t.F16)],
        {},
        "requires the same element type for all operands and results",
    ),
    (
        "cat",
        [F4x4, F4x4],
        [t.Tile((4, 8), t.F32)],
        {"dim": 2},
        "expect dim to be [0, 2), but got: 2",
    ),
    (
        "cat",
        [F4x4, F4x4],
        [t.Tile((4, 16), t.F32)],
        {"dim": 1},
        "invalid concat at position 1, expected: 8 but got: 16",
    ),
    (
        "cat",
        [F4x4, t.Tile((2, 4), t.F32)],
        [t.Tile((4, 8), t.F32)],
        {"dim": 1},
        "expect lhs and rhs shapes to match at non-concat position 0, expected: 4 but got: 2",
    ),
    (
        "cat",
        [F4x4, F4x4],
        [t.Tile((2, 8), t.F32)],
        {"dim": 1},
        "expect lhs and result shapes to match at non-concat position 0, expected: 4 but got: 2",
    ),
    (
        "extract",
        [F4x4, (SCALAR, SCALAR)],
        [t.Tile((2, 2), t.F16)],
        {},
        "source and result element type do not match",
    ),
    (
        "extract",
        [F4x4, (SCALAR, SCALAR)],
        [t.Tile((8, 2), t.F32)],
        {},
        "source dimension 0 size (4) must be evenly divisible by result dimension 0 size (8)",
    ),
    ("extract", [F4x4, (SCALAR,)], [t.Tile((2, 2), t.F32)], {}, "expected 2 indices, but got 1"),
    (
        "extract",
        [F4x4, (TRUTH, SCALAR)],
        [t.Tile((2, 2), t.F32)],
        {},
        "operand #1 must be variadic of 0D tile of i32 values, but got '!cuda_tile.tile<i1>'",
    ),
    (
        "permute",
        [t.Tile((4,), t.F32)],
        [t.Tile((4,), t.F32)],
        {"permutation": (0,)},
        "expects at least rank 2, but got: 1",
    ),
    (
        "permute",
        [F4x4],
        [F4x4],
        {"permutation": (0,)},
        "expect permutation size (1) to equal the rank of the source (2)",
    ),
    (
        "permute",
        [F4x4],
        [F4x4],
        {"permutation": (0, 0)},
        "expect permutation elements to be unique",
    ),
    (
        "permute",
        [F4x4],
        [F4x4],
        {"permutation": (0, 2)},
        "permutation element at index 1 (2) is out of bound [0, 2)",
    ),
    (
        "permute",
        [F4x4],
        [t.Tile((4, 8), t.F32)],
        {"permutation": (1, 0)},
        "result shape invalid at index 1, expected: 4, but got: 8",
    ),
    ("iota", [], [I4x4], {}, "expects result type to be 1-d tile"),
    (
        "iota",
        [],
        [t.Tile((512,), t.I8)],
        {},
        "the number of elements 512 exceeds the maximum value of element type 'i8'",
    ),
    (
        "select",
        [B4x4, t.Tile((4, 4), t.F4E2M1FN), t.Tile((4, 4), t.F4E2M1FN)],
        [t.Tile((4, 4), t.F4E2M1FN)],
        {},
        "cannot operate on sub-byte type F4E2M1FN",
    ),
    (
        "select",
        [TRUTH, F4x4, F4x4],
        [F4x4],
        {},
        "failed to verify that all of {cond, val_if_true, val_if_false, result} have same shape",
    ),
    ("pack", [F4x4], [t.Tile((8, 8), t.I8)], {}, "expects source and result to be rank-1 tiles"),
    (
        "pack",
        [t.Tile((8,), t.I8)],
        [t.Tile((8,), t.I8)],
        {},
        "expects source and result to have different element type widths",
    ),
    (
        "pack",
        [t.Tile((4,), t.I1)],
        [t.Tile((1,), t.I8)],
        {},
        "expects source tile to be byte-aligned",
    ),
    (
        "pack",
        [t.Tile((4,), t.F32)],
        [t.Tile((8,), t.I8)],
        {},
        "expects source and result to have "
        "the same size in bytes, but got source tile size 16 bytes and result tile size 8 bytes",
    ),
    (
        "cmpf",
        [F4x4, F4x4],
        [t.Tile((4,), t.I1)],
        {"comparison_predicate": "equal", "comparison_ordering": "ordered"},
        "failed to verify that Result type has i1 element type and same shape as operands",
    ),
    (
        "mmaf",
        [t.Tile((4,), t.F16)] * 2 + [t.Tile((4,), t.F32)],
        [t.Tile((4,), t.F32)],
        {},
        "operands must be 2D or 3D tiles",
    ),
    (
        "mmaf",
        [H4x4, t.Tile((8, 4), t.F16), F4x4],
        [F4x4],
        {},
        " shape error: dim 1 of lhs (4) and "
        "dim 0 of rhs (8) must match, but got lhs shape (4, 4) and rhs shape (8, 4)",
    ),
    (
        "mmaf",
        [t.Tile((4, 4), t.F64)] * 2 + [F4x4],
        [F4x4],
        {},
        "unsupported combination of element "
        "types. Input type 'f64' expects accumulator/result type to be one of {'f64'}, but got 'f32'",
    ),
    (
        "mmaf",
        [H4x4, F4x4, F4x4],
        [F4x4],
        {},
        "failed to verify that all of {lhs, rhs} have the same element type",
    ),
    (
        "offset",
        [POINTERS, SCALAR],
        [POINTERS],
        {},
        "requires the same shape for all operands and results",
    ),
    ("get_global", [], [POINTER], {"name": "h"}, "'h' does not reference a valid global"),
    (
        "get_global",
        [],
        [t.Tile((), t.Pointer(t.I8))],
        {"name": "g"},
        "pointee type of result type "
        "'!cuda_tile.ptr<i8>' does not match type 'f32' of the global @g",
    ),
    (
        "make_tensor_view",
        [t.Tile((), t.Pointer(t.F16)), (), ()],
        [TENSOR],
        {},
        "expected pointer to 'f32' to build tensor_view of this type, got 'f16'",
    ),
    (
        "make_tensor_view",
        [POINTER, (), (SCALAR,)],
        [DYNAMIC],
        {},
        "expected 1 dynamic shape operands, got 0",
    ),
    (
        "make_tensor_view",
        [POINTER, (SCALAR,), ()],
        [DYNAMIC],
        {},
        "expected 1 dynamic stride operands, got 0",
    ),
    (
        "make_tensor_view",
        [POINTER, (SCALAR,), (t.Tile((), t.I64),)],
        [DYNAMIC],
        {},
        "expected "
        "dynamic stride index 0 to be of the same type as the other dynamic values "
        "('!cuda_tile.tile<i32>'), got '!cuda_tile.tile<i64>'",
    ),
    (
        "make_partition_view",
        [DYNAMIC],
        [VIEW],
        {},
        "expected the type of the provided tensor_view "
        "value ('!cuda_tile.tensor_view<?x16xf32, strides=[?,1]>') to be the same as the view's "
        "tensor_view type ('!cuda_tile.tensor_view<16x16xf32, strides=[16,1]>')",
    ),
    (
        "get_tensor_shape",
        [TENSOR],
        [SCALAR],
        {},
        "expected 2 results due to tensor rank, but got 1",
    ),
    (
        "get_index_space_shape",
        [VIEW],
        [SCALAR],
        {},
        "expected 2 results due to view index space rank, but got 1",
    ),
    (
        "load_view_tko",
        [VIEW, (SCALAR,)],
        [F4x4, t.TOKEN],
        LOAD,
        "expected 2 index operands (based on view type), got 1",
    ),
    (
        "load_view_tko",
        [VIEW, (SCALAR, SCALAR)],
        [H4x4, t.TOKEN],
        LOAD,
        "expected tile type to be "
        "'!cuda_tile.tile<4x4xf32>' (based on view type), got '!cuda_tile.tile<4x4xf16>'",
    ),
    (
        "load_view_tko",
        [VIEW, (SCALAR, t.Tile((4,), t.I32))],
        [F4x4, t.TOKEN],
        LOAD,
        "expected index type to be a scalar tile, got '!cuda_tile.tile<4xi32>'",
    ),
    (
        "load_view_tko",
        [VIEW, (SCALAR, t.Tile((), t.I64))],
        [F4x4, t.TOKEN],
        LOAD,
        "expected index "
        "type 1 to be the same as other index types ('!cuda_tile.tile<i32>'), got "
        "'!cuda_tile.tile<i64>'",
    ),
    (
        "load_view_tko",
        [GATHER, (SCALAR, SCALAR)],
        [F4x4, t.TOKEN],
        LOAD,
        "expected index at "
        "sparse_dim position 0 to be a 1D tensor for GatherScatterView, got rank 0",
    ),
    (
        "load_view_tko",
        [GATHER, (t.Tile((8,), t.I32), SCALAR)],
        [F4x4, t.TOKEN],
        LOAD,
        "expected "
        "gather/scatter index size (8) to match tile shape at gather/scatter dimension 0 (4)",
    ),
    (
        "load_view_tko",
        [GATHER, (t.Tile((4,), t.I32), t.Tile((4,), t.I32))],
        [F4x4, t.TOKEN],
        LOAD,
        "expected index 1 to be a scalar tile for GatherScatterView",
    ),
    (
        "load_view_tko",
        [VIEW, (SCALAR, SCALAR)],
        [F4x4, t.TOKEN],
        {**LOAD, "inbounds": (True,)},
        "inbounds size (1) must match the number of index dimensions (2)",
    ),
    (
        "load_view_tko",
        [VIEW, (SCALAR, SCALAR)],
        [F4x4, t.TOKEN],
        {"memory_ordering_semantics": "release"},
        "expect one of: weak, relaxed, or acquire, but got: release",
    ),
    (
        "load_ptr_tko",
        [POINTERS],
        [F4x4, t.TOKEN],
        {**LOAD, "memory_scope": "sys"},
        "weak load must not have memory scope",
    ),
    (
        "load_ptr_tko",
        [POINTERS],
        [F4x4, t.TOKEN],
        {"memory_ordering_semantics": "acquire"},
        "memory scope is required for acquire load",
    ),
    (
        "load_ptr_tko",
        [POINTERS],
        [I4x4, t.TOKEN],
        LOAD,
        "failed to verify that `source` type is expected a pointer type of `result` type",
    ),
    (
        "load_ptr_tko",
        [POINTERS, t.Tile((4,), t.I1)],
        [F4x4, t.TOKEN],
        LOAD,
        "failed to verify that shape of 'mask' must match the shape of 'source'",
    ),
    (
        "load_ptr_tko",
        [POINTERS, B4x4, H4x4],
        [F4x4, t.TOKEN],
        LOAD,
        "failed to verify that type of 'paddingValue' must match the type of 'result'",
    ),
    (
        "store_ptr_tko",
        [POINTERS, I4x4],
        [t.TOKEN],
        LOAD,
        "failed to verify that `destination` type is expected a pointer type of `value` type",
    ),
    (
        "store_ptr_tko",
        [POINTERS, F4x4, TRUTH],
        [t.TOKEN],
        LOAD,
        "failed to verify that shape of 'destination' must match the shape of 'mask'",
    ),
    (
        "store_ptr_tko",
        [POINTERS, F4x4],
        [t.TOKEN],
        {"memory_ordering_semantics": "acquire"},
        "expect one of: weak, relaxed, or release, but got: acquire",
    ),
    (
        "atomic_rmw_tko",
        [POINTERS, I4x4],
        [I4x4, t.TOKEN],
        {**RMW, "mode": "add"},
        "expected pointee type ('f32') to match element type of 'arg' ('i32')",
    ),
    (
        "atomic_rmw_tko",
        [POINTERS, F4x4, TRUTH],
        [F4x4, t.TOKEN],
        {**RMW, "mode": "addf"},
        "failed to verify that all of {pointers, arg, mask} have same shape",
    ),
    (
        "atomic_rmw_tko",
        [POINTERS, F4x4],
        [F4x4, t.TOKEN],
        {**RMW, "mode": "umax"},
        "'umax' works only with integers i32 and i64",
    ),
    (
        "atomic_rmw_tko",
        [t.Tile((4, 4), t.Pointer(t.I32)), I4x4],
        [I4x4, t.TOKEN],
        {**RMW, "mode": "addf"},
        "'addf' works only with floats f16, bf16, f32, and f64",
    ),
    (
        "atomic_rmw_tko",
        [t.Tile((4, 4), t.Pointer(t.F16)), H4x4],
        [H4x4, t.TOKEN],
        {**RMW, "mode": "xchg"},
        "'xchg' works only with integers or float of 32 or 64 bitwidth",
    ),
    (
        "atomic_rmw_tko",
        [POINTERS, F4x4],
        [F4x4, t.TOKEN],
        {**RMW, "mode": "addf", "memory_ordering_semantics": "weak"},
        "memory ordering semantics must be one of: relaxed, acquire, release, acq_rel",
    ),
    (
        "atomic_cas_tko",
        [t.Tile((4, 4), t.Pointer(t.F16)), H4x4, H4x4],
        [H4x4, t.TOKEN],
        RMW,
        "expect only float or integer types with 32 or 64 bit",
    ),
    (
        "atomic_cas_tko",
        [POINTERS, F4x4, F4x4, TRUTH],
        [F4x4, t.TOKEN],
        RMW,
        "failed to verify that all of {pointers, val, cmp and mask} have same shape",
    ),
    (
        "atomic_red_view_tko",
        [GATHER, (SCALAR, SCALAR), F4x4],
        [t.TOKEN],
        {**RMW, "mode": "addf"},
        "gather_scatter_view is not supported; use partition_view instead",
    ),
    (
        "atomic_red_view_tko",
        [t.PartitionView((4, 4), TENSOR, (0, 1), "zero"), (SCALAR, SCALAR), F4x4],
        [t.TOKEN],
        {**RMW, "mode": "addf"},
        "views with padding_value are not supported for atomic reductions",
    ),
    (
        "atomic_red_view_tko",
        [VIEW, (SCALAR, SCALAR), H4x4],
        [t.TOKEN],
        {**RMW, "mode": "addf"},
        "view element type ('f32') must match value element type ('f16')",
    ),
    (
        "atomic_red_view_tko",
        [VIEW, (SCALAR, SCALAR), t.Tile((4, 8), t.F32)],
        [t.TOKEN],
        {**RMW, "mode": "addf"},
        "view tile shape 4, 4 must match value shape 4, 8 for element-wise atomic operations",
    ),
    (
        "atomic_red_view_tko",
        [VIEW, (SCALAR, SCALAR), F4x4],
        [t.TOKEN],
        {**RMW, "mode": "xchg"},
        "atomic_red_view_tko op cannot use xchg operation",
    ),
    (
        "atomic_red_view_tko",
        [VIEW, (SCALAR, SCALAR), F4x4],
        [t.TOKEN],
        {"mode": "addf", "memory_ordering_semantics": "acquire", "memory_scope": "device"},
        "only 'relaxed' memory ordering is supported for view-based atomic reductions",
    ),
    (
        "atomic_red_view_tko",
        [VIEW, (SCALAR, SCALAR), F4x4],
        [t.TOKEN],
        {"mode": "addf", "memory_ordering_semantics": "relaxed", "memory_scope": "sys"},
        "memory scope 'sys' is not "
        "supported for view-based atomic reductions; use 'tl_blk' or 'device' for TMA compatibility",
    ),
    (
        "atomic_red_view_tko",
        [VIEW, (SCALAR,), F4x4],
        [t.TOKEN],
        {**RMW, "mode": "addf"},
        "expected 2 index operand(s) for view with tile rank 2, got 1",
    ),
    ("join_tokens", [(t.TOKEN,)], [t.TOKEN], {}, "expect two or more tokens"),
    ("alloca", [], [POINTER], {"num_elem": 4, "alignment": 3}, "'alignment' must be power of two"),
    (
        "alloca",
        [],
        [POINTER],
        {"num_elem": 4, "alignment": 2},
        "'alignment' (2) must be at least the natural size (4 bytes) for element type 'f32'",
    ),
    ("print_tko", [()], [t.TOKEN], {"str": "100 %"}, "found unterminated format expression"),
    (
        "print_tko",
        [(F4x4,)],
        [t.TOKEN],
        {"str": "%% %d %d"},
        "incorrect number of operands: expected 2, found 1",
    ),
    (
        "assume",
        [I4x4],
        [I4x4],
        {"predicate": DivBy(3)},
        "'cuda_tile.div_by' divisor must be a power of 2",
    ),
    (
        "assume",
        [I4x4],
        [I4x4],
        {"predicate": DivBy(4, 2)},
        "'cuda_tile.div_by' 'every'/'along' must be used in combination",
    ),
    (
        "assume",
        [I4x4],
        [I4x4],
        {"predicate": DivBy(1 << 63)},
        "'cuda_tile.div_by' divisor is too large",
    ),
    (
        "assume",
        [TENSOR],
        [TENSOR],
        {"predicate": DivBy(4, 2, 0)},
        "'cuda_tile.div_by' "
        "'every'/'along' cannot be used if the constrained value is a tensor_view",
    ),
    (
        "assume",
        [F4x4],
        [F4x4],
        {"predicate": DivBy(4)},
        "'cuda_tile.div_by' is valid only for tile of integer/pointer or tensor_view values",
    ),
    (
        "assume",
        [SCALAR],
        [SCALAR],
        {"predicate": DivBy(4, 1, 0)},
        "'cuda_tile.div_by' 'every'/'along' cannot be used if the constrained value is a 0D tile",
    ),
    (
        "assume",
        [I4x4],
        [I4x4],
        {"predicate": DivBy(4, 1, 2)},
        "'cuda_tile.div_by' every_dim (2) must be >= 0 and < tile rank (2)",
    ),
    (
        "assume",
        [I4x4],
        [I4x4],
        {"predicate": DivBy(4, 8, 1)},
        "expected 'cuda_tile.div_by' "
        "every_dim to be within 0 and the size of the respective dimension (4)",
    ),
    (
        "assume",
        [F4x4],
        [F4x4],
        {"predicate": SameElements((1, 1))},
        "'cuda_tile.same_elements' is valid only for tile of integer/pointer values",
    ),
    (
        "assume",
        [I4x4],
        [I4x4],
        {"predicate": SameElements((1,))},
        "expected number of values in "
        "'cuda_tile.same_elements' (1) to match rank of constrained tile (2)",
    ),
    (
        "assume",
        [I4x4],
        [I4x4],
        {"predicate": SameElements((1, 8))},
        "expected "
        "'cuda_tile.same_elements' value 1 to be within 0 and the size of the respective dimension "
        "(4)",
    ),
    (
        "assume",
        [F4x4],
        [F4x4],
        {"predicate": Bounded(0)},
        "'cuda_tile.bounded' is valid only for tile of integer values",
    ),
    (
        "assume",
        [t.Tile((), t.I8)],
        [t.Tile((), t.I8)],
        {"predicate": Bounded(-129)},
        "'cuda_tile.bounded' expects lower bound to be within [-128, 127]",
    ),
    (
        "assume",
        [t.Tile((), t.I8)],
        [t.Tile((), t.I8)],
        {"predicate": Bounded(0, 128)},
        "'cuda_tile.bounded' expects upper bound to be within [-128, 127]",
    ),
    (
        "assume",
        [SCALAR],
        [SCALAR],
        {"predicate": Bounded(2, 1)},
        "'cuda_tile.bounded' expects lower bound to be less than or equal to upper bound",
    ),
    ("yield", [()], [], {}, "must be the last operation in the parent block"),
    ("return", [(SCALAR,)], [], {}, "must be the last operation in the parent block"),
]


@pytest.mark.parametrize(
    ("name", "operands", "results", "attrs", "text"),
    CASES,
    ids=[f"{c[0]}: {c[4][:40]}" for c in CASES],
)
def test_operations(
    name: str, operands: list[Any], results: list[t.Type], attrs: dict[str, Any], text: str
) -> None:
    assert _one(name, operands, results, **attrs) == text


# Regions.


def _kernel(build: Callable[[Maker], None]) -> str:
    maker = Maker(V13_5)
    build(maker)
    return _verify(maker.ops)


ZERO = (Float(t.F32, 0),)


def _aggregate(
    m: Maker,
    *,
    args: list[t.Type],
    yields: list[t.Type],
    dim: int = 0,
    name: str = "reduce",
    results: list[t.Type] | None = None,
    identities: Any = ZERO,
    inner: str | None = None,
) -> None:
    x = m.constant(F4x4)

    def body(*values: Value) -> tuple[str, list[Value]]:
        if inner:
            m.emit(inner, [], t.TOKEN)
        return "yield", [m.constant(y) if isinstance(y, t.Tile) else values[0] for y in yields]

    extra = {"reverse": False} if name == "scan" else {}
    default = [F4x4 if name == "scan" else t.Tile((4,), t.F32)]
    m.with_regions(
        name,
        [(x,)],
        default if results is None else results,
        [m.region(args, body)],
        dim=dim,
        identities=identities,
        **extra,
    )


F = t.Tile((), t.F32)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({}, ""),
        ({"dim": 2}, "dimension (2) is out of bound [0, 2)"),
        (
            {"identities": ()},
            "expect identities to match the number of operands but got: 1 "
            "operands and 0 identities",
        ),
        (
            {"identities": (Integer(t.I32, 0),)},
            "expect same type for operand at index: 0 and "
            "identity at index: 0 but got: 'f32' and 'i32'",
        ),
        ({"results": []}, "expect same number of operands and results"),
        (
            {"name": "scan", "results": [t.Tile((4,), t.F32)]},
            "expect same type for operand at index: 0 and result at index: 0",
        ),
        ({"args": [F]}, "expect 2 block arguments but got: 1"),
        (
            {"args": [F, F4x4]},
            "expect 0-rank tile type at index: 1 but got: '!cuda_tile.tile<4x4xf32>'",
        ),
        (
            {"args": [F, SCALAR]},
            "expect same element type for block argument at index: 0 and 1 but "
            "got: 'f32' and 'i32'",
        ),
        (
            {"args": [SCALAR, SCALAR]},
            "expect same type for operand at index: 0 and block argument "
            "at index: 0 but got: 'f32' and 'i32'",
        ),
        (
            {"yields": []},
            "expect number of terminators operands (0) to match number of operands (1)",
        ),
        (
            {"yields": [SCALAR]},
            "expect same type for operand at index: 0 and terminator argument "
            "at index: 0 but got: 'f32' and 'i32'",
        ),
        ({"inner": "gdc_wait_tko"}, "only pure operations are allowed inside 'cuda_tile.reduce'"),
    ],
)
def test_reductions(options: dict[str, Any], text: str) -> None:
    settings = {"args": [F, F], "yields": [F], **options}
    found = _kernel(lambda m: _aggregate(m, **settings))
    assert found.split(" op ", 1)[-1] == text


def _if(m: Maker, results: list[t.Type], then: list[t.Tile] | None, other: Any) -> None:
    condition = m.constant(TRUTH)
    branches = [
        Region()
        if types is None
        else m.region([], lambda types=types: ("yield", [m.constant(y) for y in types]))
        for types in (then, other)
    ]
    m.with_regions("if", [condition], results, branches)


@pytest.mark.parametrize(
    ("results", "then", "other", "text"),
    [
        ([], [], None, ""),
        (
            [F],
            [],
            [F],
            "has return type of '!cuda_tile.tile<f32>' but then branch does not yield anything",
        ),
        ([], [F], None, "does not return a value, but then branch yields '!cuda_tile.tile<f32>'"),
        (
            [F],
            [SCALAR],
            [F],
            "type does not match yield type, then branch yields "
            "'!cuda_tile.tile<i32>' but op result type is '!cuda_tile.tile<f32>'",
        ),
        (
            [F],
            [F],
            [SCALAR],
            "type does not match yield type, else branch yields "
            "'!cuda_tile.tile<i32>' but op result type is '!cuda_tile.tile<f32>'",
        ),
        ([F], [F], None, "has non-empty return type, must define else branch"),
        ([TENSOR], [F], [F], "result type 0 is a tensor_view, which is not supported"),
        ([VIEW], [F], [F], "result type 0 is a tile view, which is not supported"),
        (
            [],
            None,
            None,
            "region #0 ('thenRegion') failed to verify constraint: region with 1 blocks",
        ),
    ],
)
def test_branches(results: list[t.Type], then: Any, other: Any, text: str) -> None:
    found = _kernel(lambda m: _if(m, results, then, other))
    assert found.split(" op ", 1)[-1] == text


def _loop(
    m: Maker,
    name: str,
    args: list[t.Type],
    end: str,
    carried: list[t.Tile],
    results: list[t.Type],
    init: list[t.Tile],
) -> None:
    starts = tuple(m.constant(i) for i in init)
    bounds = [m.constant(SCALAR) for _ in range(3)] if name == "for" else []
    region = m.region(args, lambda *_: (end, [m.constant(c) for c in carried]))
    m.with_regions(name, [*bounds, starts], results, [region])


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("for", [SCALAR, F], "continue", [F], [F], [F]), ""),
        (("loop", [F], "break", [], [], [F]), ""),
        (
            ("for", [], "continue", [], [], []),
            "expected at least one block argument for induction variable",
        ),
        (
            ("for", [F], "continue", [], [], []),
            "expected induction variable to be same type as "
            "bounds and step: '!cuda_tile.tile<f32>' vs '!cuda_tile.tile<i32>'",
        ),
        (
            ("for", [SCALAR], "continue", [F], [F], [F]),
            "mismatch in number of region iterator values and loop iterator inits: 0 vs 1",
        ),
        (
            ("loop", [SCALAR], "continue", [F], [], [F]),
            "init value 0 and region iter_value 0 have "
            "different type: '!cuda_tile.tile<f32>' != '!cuda_tile.tile<i32>'",
        ),
        (
            ("loop", [TENSOR], "continue", [F], [], [F]),
            "loop-carried value 0 is a tensor_view, which is not supported",
        ),
        (
            ("loop", [VIEW], "continue", [F], [], [F]),
            "loop-carried value 0 is a tile view, which is not supported",
        ),
        (
            ("for", [SCALAR], "break", [], [], []),
            "expects parent op to be one of 'cuda_tile.if, cuda_tile.loop'",
        ),
        (
            ("for", [SCALAR], "yield", [], [], []),
            "expects parent op to be one of 'cuda_tile.if, cuda_tile.reduce, cuda_tile.scan'",
        ),
        (
            ("loop", [], "break", [F], [], []),
            "operand types must correspond to the parent loop "
            "result types: ('!cuda_tile.tile<f32>') vs ()",
        ),
        (
            ("loop", [], "continue", [F], [], []),
            "`loop` is missing a valid terminator. `continue` "
            "op should have operand types that match the parent loop iter_values: (), but found: "
            "('!cuda_tile.tile<f32>')",
        ),
        (
            ("for", [SCALAR], "continue", [F], [], []),
            "`for` is missing a valid terminator. "
            "`continue` op should have operand types that match the parent loop return types: (), "
            "but found: ('!cuda_tile.tile<f32>')",
        ),
        (
            ("loop", [], "return", [], [], []),
            "expects parent op to be one of 'cuda_tile.entry, cuda_tile.if'",
        ),
    ],
)
def test_loops(arguments: tuple[Any, ...], text: str) -> None:
    found = _kernel(lambda m: _loop(m, *arguments))
    assert (found if found.startswith("`") else found.split(" op ", 1)[-1]) == text


def test_exits_need_a_loop() -> None:
    def build(m: Maker) -> None:
        region = m.region([], lambda: ("break", []))
        m.with_regions("if", [m.constant(TRUTH)], [], [region, Region()])

    assert _kernel(build) == (
        "'cuda_tile.break' op can only be nested within a ancestor chain of 'cuda_tile.loop', "
        "'cuda_tile.if' operations"
    )


# Modules, kernels and debug information.


def _entry(name: str = "k", inputs: tuple[t.Type, ...] = (), **fields: Any) -> Entry:
    block = Block(tuple(map(Value, inputs)), [operation("return", [()], [])])
    return Entry(name, t.Function(inputs, ()), Region([block]), **fields)


def _module_problem(module: Module) -> str:
    with pytest.raises(VerifyError) as caught:
        verify(module)
    return caught.value.lines[0]


FILE = File("a.py", "/a")
SUBPROGRAM = Subprogram(FILE, 1, "k", "k", CompileUnit(FILE), 1)
OTHER = Subprogram(FILE, 2, "h", "h", CompileUnit(FILE), 2)
AT = DebugLoc(SUBPROGRAM, "a.py", 1, 2)


def test_modules() -> None:
    twice = Module(entries=[_entry(), _entry()])
    assert _module_problem(twice) == "redefinition of symbol named 'k'"
    square = Global("g", Dense(F4x4, bytes(4)))
    assert _module_problem(Module(globals=[square])) == (
        "'cuda_tile.global' op type must have rank 1"
    )


def test_kernels() -> None:
    wide = Module(entries=[_entry(inputs=(F4x4,))])
    assert _module_problem(wide) == (
        "'cuda_tile.entry' op entry op must have scalar types (rank 0 !cuda_tile.tile)"
    )
    token = Module(entries=[_entry(inputs=(SCALAR, t.TOKEN))])
    assert _module_problem(token) == (
        "unsupported type in bytecode for entry argument #1: '!cuda_tile.token'; expected a "
        "rank-0 !cuda_tile.tile type"
    )


@pytest.mark.parametrize(
    ("where", "inside", "text"),
    [
        (CallSite(AT, AT), None, "Function location must not be a CallSiteLoc."),
        (
            DebugLoc(LexicalBlock(SUBPROGRAM, FILE, 1, 1), "a.py", 1, 1),
            None,
            "Function location must have cuda_tile.di_subprogram debug info scope.",
        ),
        (
            DebugLoc(OTHER, "a.py", 1, 1),
            None,
            'Function name "k" does not match subprogram scope linkage name "h".',
        ),
        (None, AT, "Operation has debug info scope, but function debug info scope is undefined."),
        (
            AT,
            DebugLoc(OTHER, "a.py", 1, 1),
            "Operation debug info scope does not match function debug info scope: "
            '#cuda_tile.di_subprogram<file = <"a.py" in "/a">, line = 1, name = "k", linkageName = '
            '"k", compileUnit = <file = <"a.py" in "/a">>, scopeLine = 1>.',
        ),
    ],
)
def test_debug_information(where: Any, inside: Any, text: str) -> None:
    entry = _entry(**({"loc": where} if where else {}))
    if inside:
        entry.body.block.ops[0].loc = inside
    assert _module_problem(Module(entries=[entry])).endswith(text)


def test_inlined_code_counts_by_its_caller() -> None:
    entry = _entry(loc=AT)
    inlined = CallSite(DebugLoc(OTHER, "a.py", 2, 1), AT)
    entry.body.block.ops[0].loc = inlined
    verify(Module(entries=[entry]))
    entry.body.block.ops[0].loc = DebugLoc(LexicalBlock(SUBPROGRAM, FILE, 1, 1), "a.py", 1, 1)
    verify(Module(entries=[entry]))
