"""Rules of memory operations."""

from __future__ import annotations

from typing import Any

import pytest
from tile_cudatile import types as t
from unit.tile_cudatile.rule_support import (
    DYNAMIC,
    GATHER,
    LOAD,
    POINTER,
    POINTERS,
    RMW,
    SCALAR,
    TENSOR,
    TRUTH,
    VIEW,
    B4x4,
    F4x4,
    H4x4,
    I4x4,
    complaint,
)

CASES: list[tuple[str, list[Any], list[t.Type], dict[str, Any], str]] = [
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
        "",
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
        "memory scope 'sys' is not supported "
        "for view-based atomic reductions; use 'tl_blk' or 'device' for TMA compatibility",
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
    assert complaint(name, operands, results, **attrs) == text
