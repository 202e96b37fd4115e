"""Rules of arithmetic and of shapes."""

from __future__ import annotations

from typing import Any

import pytest
from tile_cudatile import types as t
from unit.tile_cudatile.rule_support import RN, SCALAR, TRUTH, B4x4, F4x4, H4x4, I4x4, complaint

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
        "unsupported combination of element types. "
        "Input type 'f64' expects accumulator/result type to be one of {'f64'}, but got 'f32'",
    ),
    (
        "mmaf",
        [H4x4, F4x4, F4x4],
        [F4x4],
        {},
        "failed to verify that all of {lhs, rhs} have the same element type",
    ),
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
