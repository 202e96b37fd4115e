"""The types of the MLIR dialect `cuda_tile`, and quick ways to read them from Python.

| MLIR type | parameters |
|---|---|
| `!cuda_tile.tile` | shape (`array<i64: ..>`), element type |
| `!cuda_tile.ptr` | pointee |
| `!cuda_tile.kind_ptr` | pointee, kind (string): pointers marked unicast or multicast, 13.4 |
| `!cuda_tile.tensor_view` | element, shape, strides (`array<i64>`), pointer kind |
| `!cuda_tile.partition_view` | tile shape (`array<i32>`), tensor view, dim map, padding |
| `!cuda_tile.strided_view` | tile shape, traversal strides, tensor view, dim map, padding |
| `!cuda_tile.gather_scatter_view` | tile shape, tensor view, sparse dim (`i32`), padding |
| `!cuda_tile.token` | |

Extents known only at run time are INT64_MIN, as everywhere in MLIR. Padding and pointer kind are
strings, empty where there is none.
"""

import weakref
from collections.abc import Callable
from typing import Any

from tile_core.dialect import Dialect, Type
from tile_core.mlir import ir
from tile_cudatile import types as tree

DYNAMIC = -(1 << 63)


class CudaTile(Dialect, name="cuda_tile"):
    """The public input language of the compiler."""


class TileType(Type, dialect=CudaTile, name="tile"):
    """A value of static shape."""

    shape: Any
    element: Any


class PtrType(Type, dialect=CudaTile, name="ptr"):
    """A global-memory address."""

    pointee: Any


class KindPtrType(Type, dialect=CudaTile, name="kind_ptr"):
    """A global-memory address of a special kind."""

    pointee: Any
    kind: Any


class TensorViewType(Type, dialect=CudaTile, name="tensor_view"):
    """A pointer with shape and strides."""

    element: Any
    shape: Any
    strides: Any
    kind: Any


class PartitionViewType(Type, dialect=CudaTile, name="partition_view"):
    """Tiles laid side by side."""

    tile_shape: Any
    tensor_view: Any
    dim_map: Any
    padding: Any


class StridedViewType(Type, dialect=CudaTile, name="strided_view"):
    """Tiles that start every so many elements."""

    tile_shape: Any
    traversal_strides: Any
    tensor_view: Any
    dim_map: Any
    padding: Any


class GatherScatterViewType(Type, dialect=CudaTile, name="gather_scatter_view"):
    """Tiles whose rows are picked one by one."""

    tile_shape: Any
    tensor_view: Any
    sparse_dim: Any
    padding: Any


class TokenType(Type, dialect=CudaTile, name="token"):
    """Orders memory operations."""


_SCALARS: dict[str, Callable[[], ir.Type]] = {
    "f16": ir.F16Type.get,
    "bf16": ir.BF16Type.get,
    "f32": ir.F32Type.get,
    "tf32": ir.FloatTF32Type.get,
    "f64": ir.F64Type.get,
    "f8E4M3FN": ir.Float8E4M3FNType.get,
    "f8E5M2": ir.Float8E5M2Type.get,
    "f8E8M0FNU": ir.Float8E8M0FNUType.get,
    "f4E2M1FN": ir.Float4E2M1FNType.get,
    "fnv8E5M3FNU": ir.Float8E5M3FNUType.get,
}
#: How MLIR spells a scalar, where that differs.
_FROM_MLIR = {"f8E5M3FNU": "fnv8E5M3FNU"}


class TypeMap:
    """Builds MLIR types of the current context from tree types, each once."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[tree.Type, ir.Type]] = {}

    def __call__(self, type_: tree.Type) -> ir.Type:
        found = self._known.get(id(type_))
        if found is None:
            # The tree type is kept so that its id stays taken.
            found = self._known[id(type_)] = (type_, build_type(type_))
        return found[1]


def build_type(type_: tree.Type) -> ir.Type:
    """The MLIR type, in the current context, of a tree type."""
    if isinstance(type_, tree.Scalar):
        if type_.is_float:
            return _SCALARS[type_.name]()
        return ir.IntegerType.get_signless(type_.width)
    return _BUILDERS[type(type_)](type_)


def _pointer(type_: tree.Pointer) -> ir.Type:
    if type_.kind is None:
        return PtrType.get(build_type(type_.pointee))
    return KindPtrType.get(build_type(type_.pointee), ir.StringAttr.get(type_.kind))


def _tensor_view(type_: tree.TensorView) -> ir.Type:
    return TensorViewType.get(
        build_type(type_.element), _i64s(type_.shape), _i64s(type_.strides), _text(type_.kind)
    )


_BUILDERS: dict[type, Callable[[Any], ir.Type]] = {
    tree.Pointer: _pointer,
    tree.Tile: lambda t: TileType.get(_i64s(t.shape), build_type(t.element)),
    tree.TensorView: _tensor_view,
    tree.PartitionView: lambda t: PartitionViewType.get(
        _i32s(t.tile_shape), build_type(t.tensor_view), _i32s(t.dim_map), _text(t.padding)
    ),
    tree.StridedView: lambda t: StridedViewType.get(
        _i32s(t.tile_shape),
        _i32s(t.traversal_strides),
        build_type(t.tensor_view),
        _i32s(t.dim_map),
        _text(t.padding),
    ),
    tree.GatherScatterView: lambda t: GatherScatterViewType.get(
        _i32s(t.tile_shape),
        build_type(t.tensor_view),
        ir.IntegerAttr.get(ir.IntegerType.get_signless(32), t.sparse_dim),
        _text(t.padding),
    ),
    tree.Token: lambda t: TokenType.get(),
    tree.Function: lambda t: ir.FunctionType.get(
        [build_type(i) for i in t.inputs], [build_type(r) for r in t.results]
    ),
}


def _i64s(values: tuple[int | None, ...]) -> ir.Attribute:
    return ir.DenseI64ArrayAttr.get([DYNAMIC if v is None else v for v in values])


def _i32s(values: tuple[int, ...]) -> ir.Attribute:
    return ir.DenseI32ArrayAttr.get(list(values))


def _text(value: str | None) -> ir.Attribute:
    return ir.StringAttr.get(value or "")


# Reading. Decoded types are plain values, kept per context under the type's address, which its
# hash is; nothing here keeps a context alive.
_decoded: dict[int, dict[int, tree.Type]] = {}


def describe(type_: ir.Type) -> tree.Type:
    """What an MLIR type of this dialect, a number type or a function type is, as a plain value.

    Quick on repetition: decoded once per type and context. Raises `TypeError` for other types.
    """
    context = type_.context
    cache = _decoded.get(id(context))
    if cache is None:
        cache = _decoded[id(context)] = {}
        weakref.finalize(context, _decoded.pop, id(context), None)
    found = cache.get(hash(type_))
    if found is None:
        found = cache[hash(type_)] = _decode(type_)
    return found


def tile_shape(type_: ir.Type) -> tuple[int, ...]:
    """The shape of a `!cuda_tile.tile`; () for a scalar tile."""
    described = describe(type_)
    if not isinstance(described, tree.Tile):
        raise TypeError(f"expected a tile, not {type_}")
    return described.shape


def tile_element(type_: ir.Type) -> ir.Type:
    """The element type of a `!cuda_tile.tile`: a number or a pointer type."""
    return _type_param(type_, 1)


def pointee(type_: ir.Type) -> ir.Type:
    """The number type that a `!cuda_tile.ptr` or `!cuda_tile.kind_ptr` points to."""
    return _type_param(type_, 0)


def _type_param(type_: ir.Type, index: int) -> ir.Type:
    return ir.TypeAttr(ir.DynamicType(type_).params[index]).value


def _decode(type_: ir.Type) -> tree.Type:
    if isinstance(type_, ir.FunctionType):
        return tree.Function(
            tuple(map(describe, type_.inputs)), tuple(map(describe, type_.results))
        )
    text = str(type_)
    scalar = tree.SCALARS.get(_FROM_MLIR.get(text, text))
    if scalar is not None:
        return scalar
    if not text.startswith("!cuda_tile."):
        raise TypeError(f"{type_} is no type of CUDA Tile IR")
    dynamic = ir.DynamicType(type_)
    return _DECODERS[dynamic.type_name](dynamic.params)


def _inner(param: ir.Attribute) -> Any:
    return describe(ir.TypeAttr(param).value)


def _extents(param: ir.Attribute) -> tuple[int | None, ...]:
    return tuple(None if v == DYNAMIC else v for v in ir.DenseI64ArrayAttr(param))


def _ints(param: ir.Attribute) -> tuple[int, ...]:
    return tuple(ir.DenseI32ArrayAttr(param))


def _string(param: ir.Attribute) -> str | None:
    return ir.StringAttr(param).value or None


_DECODERS: dict[str, Callable[[Any], tree.Type]] = {
    "cuda_tile.tile": lambda p: tree.Tile(tuple(ir.DenseI64ArrayAttr(p[0])), _inner(p[1])),
    "cuda_tile.ptr": lambda p: tree.Pointer(_inner(p[0])),
    "cuda_tile.kind_ptr": lambda p: tree.Pointer(_inner(p[0]), _string(p[1])),
    "cuda_tile.tensor_view": lambda p: tree.TensorView(
        _inner(p[0]), _extents(p[1]), _extents(p[2]), _string(p[3])
    ),
    "cuda_tile.partition_view": lambda p: tree.PartitionView(
        _ints(p[0]), _inner(p[1]), _ints(p[2]), _string(p[3])
    ),
    "cuda_tile.strided_view": lambda p: tree.StridedView(
        _ints(p[0]), _ints(p[1]), _inner(p[2]), _ints(p[3]), _string(p[4])
    ),
    "cuda_tile.gather_scatter_view": lambda p: tree.GatherScatterView(
        _ints(p[0]), _inner(p[1]), ir.IntegerAttr(p[2]).value, _string(p[3])
    ),
    "cuda_tile.token": lambda p: tree.TOKEN,
}
