"""How kernels of the corpus are declared. Needs the `cuda-tile` package."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import cuda.tile as ct
from cuda.tile.compilation import ArrayConstraint, ConstantConstraint, ScalarConstraint

#: Every number format that cuTile names, signed and unsigned.
DTYPES: tuple[ct.DType, ...] = (
    *(ct.bool_, ct.int8, ct.int16, ct.int32, ct.int64),
    *(ct.uint8, ct.uint16, ct.uint32, ct.uint64),
    *(ct.float16, ct.bfloat16, ct.float32, ct.tfloat32, ct.float64),
    *(ct.float8_e4m3fn, ct.float8_e5m2, ct.float8_e8m0fnu, ct.float8_e5m3fnu, ct.float4_e2m1fn),
)
#: Those that arithmetic with a rounding mode or flushing may take.
REALS = (ct.float16, ct.bfloat16, ct.float32, ct.float64)
Parameters = list[object]
Variants = Iterable[tuple[str, Parameters]]


@dataclass(frozen=True)
class Case:
    """A kernel and the parameters to compile it for, each with a label.

    What cuTile refuses (an operation does not take a format, a version lacks a feature) is left
    out of the file; a case of which nothing remains at the newest version is an error.
    """

    name: str
    kernel: object
    variants: tuple[tuple[str, Parameters], ...]


CASES: dict[str, Case] = {}


def case(name: str, kernel: object, variants: Variants) -> None:
    """Adds a case."""
    assert name not in CASES, name
    CASES[name] = Case(name, kernel, tuple(variants))


def array(
    dtype: ct.DType, ndim: int = 1, *, divisible: int = 16, may_alias: bool = False, **given: object
) -> ArrayConstraint:
    """A row-major array whose last stride is one, as a framework passes it."""
    options: dict[str, object] = {
        "index_dtype": ct.int32,
        "stride_lower_bound_incl": 0,
        "alias_groups": ("memory",) if may_alias else (),
        "may_alias_internally": may_alias,
        "stride_constant": [None] * (ndim - 1) + [1] * bool(ndim),
        "stride_divisible_by": [divisible] * (ndim - 1) + [1] * bool(ndim),
        "shape_divisible_by": divisible,
        "base_addr_divisible_by": divisible,
    }
    return ArrayConstraint(dtype, ndim, **{**options, **given})  # type: ignore[arg-type]


def const(value: object) -> ConstantConstraint:
    """A value known when compiling."""
    return ConstantConstraint(value)  # type: ignore[arg-type]


def scalar(dtype: ct.DType) -> ScalarConstraint:
    """A number passed at launch."""
    return ScalarConstraint(dtype)


def each(
    parameters: Callable[[ct.DType], Parameters], dtypes: Iterable[ct.DType] = DTYPES
) -> Variants:
    """The same parameters for each format."""
    return [(str(dtype), parameters(dtype)) for dtype in dtypes]


def alike(count: int, ndim: int = 1) -> Callable[[ct.DType], Parameters]:
    """`count` arrays of one format."""
    return lambda dtype: [array(dtype, ndim) for _ in range(count)]
