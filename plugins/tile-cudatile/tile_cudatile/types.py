"""The types of CUDA Tile IR as plain immutable values; `str(type)` is their assembly form.

Shapes and strides count elements; a dimension that is only known at run time is `None`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from tile_cudatile.versions import V13_1, V13_2, V13_3, V13_4, Version


@dataclass(frozen=True)
class Scalar:
    """A number format. `width` is in bits, as MLIR counts them (tf32 has 19)."""

    name: str
    width: int
    is_float: bool
    since: Version

    def __str__(self) -> str:
        return self.name


def _int(name: str, width: int, since: Version = V13_1) -> Scalar:
    return Scalar(name, width, False, since)


def _float(name: str, width: int, since: Version = V13_1) -> Scalar:
    return Scalar(name, width, True, since)


I1, I4, I8 = _int("i1", 1), _int("i4", 4, V13_3), _int("i8", 8)
I16, I32, I64 = _int("i16", 16), _int("i32", 32), _int("i64", 64)
F16, BF16, F32 = _float("f16", 16), _float("bf16", 16), _float("f32", 32)
TF32, F64 = _float("tf32", 19), _float("f64", 64)
F8E4M3FN, F8E5M2 = _float("f8E4M3FN", 8), _float("f8E5M2", 8)
F8E8M0FNU = _float("f8E8M0FNU", 8, V13_2)
F4E2M1FN = _float("f4E2M1FN", 4, V13_3)
F8E5M3FNU = _float("fnv8E5M3FNU", 8, V13_4)

SCALARS: dict[str, Scalar] = {
    s.name: s
    for s in (
        *(I1, I4, I8, I16, I32, I64),
        *(F16, BF16, F32, TF32, F64),
        *(F8E4M3FN, F8E5M2, F8E8M0FNU, F4E2M1FN, F8E5M3FNU),
    )
}

PADDING_VALUES = ("zero", "neg_zero", "nan", "pos_inf", "neg_inf")
POINTER_KINDS = ("none", "unicast", "multicast")


@dataclass(frozen=True)
class Pointer:
    """A global-memory address of `pointee` elements; `kind` (13.4) says what the address is."""

    pointee: Scalar
    kind: str | None = None

    def __str__(self) -> str:
        kind = "" if self.kind is None else f", <{self.kind}>"
        return f"ptr<{self.pointee}{kind}>"


@dataclass(frozen=True)
class Tile:
    """A value of `shape` (powers of two; rank 0 is a scalar) whose elements are one type."""

    shape: tuple[int, ...]
    element: Scalar | Pointer

    def __str__(self) -> str:
        return f"tile<{''.join(f'{d}x' for d in self.shape)}{self.element}>"


@dataclass(frozen=True)
class TensorView:
    """A pointer with a shape and strides, both in elements."""

    element: Scalar
    shape: tuple[int | None, ...]
    strides: tuple[int | None, ...]
    kind: str | None = None

    def __str__(self) -> str:
        dims = "".join(f"{_dim(d)}x" for d in self.shape)
        strides = ",".join(_dim(s) for s in self.strides)
        tail = f", strides=[{strides}]" if self.shape else ""
        kind = "" if self.kind is None else f", #cuda_tile.ptr_attr<{self.kind}>"
        return f"tensor_view<{dims}{self.element}{tail}{kind}>"


@dataclass(frozen=True)
class PartitionView:
    """Tiles laid side by side over a tensor view; tile dimension t runs along `dim_map[t]`."""

    tile_shape: tuple[int, ...]
    tensor_view: TensorView
    dim_map: tuple[int, ...]
    padding: str | None = None

    def __str__(self) -> str:
        return (
            f"partition_view<tile={_by_x(self.tile_shape)}{_padding(self.padding)}, "
            f"{self.tensor_view}{_dim_map(self.dim_map)}>"
        )


@dataclass(frozen=True)
class StridedView:
    """Tiles that start every `traversal_strides` elements, so that they may overlap or skip."""

    tile_shape: tuple[int, ...]
    traversal_strides: tuple[int, ...]
    tensor_view: TensorView
    dim_map: tuple[int, ...]
    padding: str | None = None

    def __str__(self) -> str:
        steps = ",".join(map(str, self.traversal_strides))
        return (
            f"strided_view<tile={_by_x(self.tile_shape)}, traversal_strides=[{steps}]"
            f"{_padding(self.padding)}, {self.tensor_view}{_dim_map(self.dim_map)}>"
        )


@dataclass(frozen=True)
class GatherScatterView:
    """Tiles whose coordinates along `sparse_dim` come one by one from an index tile."""

    tile_shape: tuple[int, ...]
    tensor_view: TensorView
    sparse_dim: int
    padding: str | None = None

    def __str__(self) -> str:
        return (
            f"gather_scatter_view<tile={_by_x(self.tile_shape)}{_padding(self.padding)}, "
            f"{self.tensor_view}, sparse_dim={self.sparse_dim}>"
        )


@dataclass(frozen=True)
class Token:
    """Orders memory operations; has no value at run time."""

    def __str__(self) -> str:
        return "token"


@dataclass(frozen=True)
class Function:
    """The signature of an entry."""

    inputs: tuple[Type, ...]
    results: tuple[Type, ...]

    def __str__(self) -> str:
        inputs = ", ".join(map(str, self.inputs))
        results = ", ".join(map(str, self.results))
        return f"({inputs}) -> ({results})"


TOKEN = Token()
View: TypeAlias = PartitionView | StridedView | GatherScatterView
Type: TypeAlias = Scalar | Pointer | Tile | TensorView | View | Token | Function


def tile_type_of(view: View) -> Tile:
    """The tile that one access through `view` moves."""
    return Tile(view.tile_shape, view.tensor_view.element)


def _dim(extent: int | None) -> str:
    return "?" if extent is None else str(extent)


def _by_x(shape: tuple[int, ...]) -> str:
    return f"({'x'.join(map(str, shape))})"


def _padding(padding: str | None) -> str:
    return "" if padding is None else f", padding_value = {padding}"


def _dim_map(dim_map: tuple[int, ...]) -> str:
    if dim_map == tuple(range(len(dim_map))):
        return ""
    return f", dim_map=[{', '.join(map(str, dim_map))}]"
