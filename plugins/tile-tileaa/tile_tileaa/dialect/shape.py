"""Operations of nv_tileaa that make, reshape and fold tiles."""

# pyright: reportGeneralTypeIssues=false

from collections.abc import Sequence
from typing import Any, TypeVar

from tile_core.dialect import Operand, Operation, Pure, Region, Result, Terminator, reject
from tile_core.mlir import ir
from tile_tileaa.dialect.base import NvTileAA

T = TypeVar("T", bound=Any)


def shape_of(type_: ir.Type) -> list[int]:
    """The extents of a tile type; [] for a scalar."""
    return list(type_.shape) if isinstance(type_, ir.RankedTensorType) else []


def _count(shape: list[int]) -> int:
    total = 1
    for extent in shape:
        total *= extent
    return total


def verify_cat(op: Operation) -> bool:
    """The result is twice the operands' extent along `axis`."""
    source, result = shape_of(op.lhs.type), shape_of(op.result.type)
    axis = op.axis.value
    doubled = [extent * (1 + (at == axis)) for at, extent in enumerate(source)]
    if 0 <= axis < len(source) and result == doubled:
        return True
    return reject(op, f"cannot join two tiles of {source} along {axis} to {result}")


def verify_extract_slice(op: Operation) -> bool:
    """The result's shape divides the source's; an index per axis."""
    tile, *indices = op.operands
    source, result = shape_of(tile.type), shape_of(op.results[0].type)
    if len(indices) != len(source):
        return reject(op, f"expects {len(source)} indices, but got {len(indices)}")
    if len(source) == len(result) and all(
        not whole % part for whole, part in zip(source, result, strict=True)
    ):
        return True
    return reject(op, f"cannot cut {source} into tiles of {result}")


def verify_insert_slice(op: Operation) -> bool:
    """The source's shape divides the destination's, which is the result's; an index per axis."""
    tile, whole, *indices = op.operands
    source, target = shape_of(tile.type), shape_of(whole.type)
    if whole.type != op.results[0].type:
        return reject(op, f"expects a result of type {whole.type}, but got {op.results[0].type}")
    if len(indices) != len(target):
        return reject(op, f"expects {len(target)} indices, but got {len(indices)}")
    if len(source) == len(target) and all(
        not whole % part for whole, part in zip(target, source, strict=True)
    ):
        return True
    return reject(op, f"cannot cut {target} into tiles of {source}")


class SplatOp(Operation, dialect=NvTileAA, name="splat", traits=[Pure]):
    """A tile that holds one scalar everywhere."""

    source: Operand[Any]
    result: Result[Any]


class BroadcastOp(Operation, dialect=NvTileAA, name="broadcast", traits=[Pure]):
    """Axes of extent 1 repeat up to the result's extents."""

    source: Operand[Any]
    result: Result[Any]

    @staticmethod
    def verify_invariants(op: "BroadcastOp") -> bool:
        source, result = shape_of(op.source.type), shape_of(op.result.type)
        if len(source) == len(result) and all(
            a in (1, b) for a, b in zip(source, result, strict=True)
        ):
            return True
        return reject(op, f"cannot broadcast {source} to {result}")


class ExpandDimsOp(Operation, dialect=NvTileAA, name="expand_dims", traits=[Pure]):
    """Insert an axis of extent 1 at `axis`."""

    source: Operand[Any]
    result: Result[Any]
    axis: ir.IntegerAttr


class ViewOp(Operation, dialect=NvTileAA, name="view", traits=[Pure]):
    """The same elements in row-major order under another shape."""

    source: Operand[Any]
    result: Result[Any]

    @staticmethod
    def verify_invariants(op: "ViewOp") -> bool:
        source, result = shape_of(op.source.type), shape_of(op.result.type)
        if _count(source) == _count(result):
            return True
        return reject(op, f"cannot view {source} as {result}")


class ExtractOp(Operation, dialect=NvTileAA, name="extract", traits=[Pure]):
    """The single element of a one-element tile, as a scalar."""

    source: Operand[Any]
    result: Result[Any]

    @staticmethod
    def verify_invariants(op: "ExtractOp") -> bool:
        if _count(shape_of(op.source.type)) == 1:
            return True
        return reject(op, "expects a tile of one element")


class PermuteOp(Operation, dialect=NvTileAA, name="permute", traits=[Pure]):
    """Axis i of the result is axis `permutation[i]` of the source."""

    source: Operand[Any]
    result: Result[Any]
    permutation: Any  # array<i32>

    @staticmethod
    def verify_invariants(op: "PermuteOp") -> bool:
        source, result = shape_of(op.source.type), shape_of(op.result.type)
        axes = list(op.permutation)
        if sorted(axes) == list(range(len(source))) and result == [source[a] for a in axes]:
            return True
        return reject(op, f"cannot permute {source} by {axes} to {result}")


class CatOp(Operation, dialect=NvTileAA, name="cat", traits=[Pure]):
    """Two tiles of one shape behind each other along `axis`."""

    lhs: Operand[T]
    rhs: Operand[T]
    result: Result[Any]
    axis: ir.IntegerAttr

    @staticmethod
    def verify_invariants(op: "CatOp") -> bool:
        return verify_cat(op)


class ExtractSliceOp(Operation, dialect=NvTileAA, name="extract_slice", traits=[Pure]):
    """One tile of the grid that tiles of the result's shape form in the source.

    `indices` count such tiles, one per axis.
    """

    source: Operand[Any]
    indices: Sequence[Operand[Any]]
    result: Result[Any]

    @staticmethod
    def verify_invariants(op: "ExtractSliceOp") -> bool:
        return verify_extract_slice(op)


class InsertSliceOp(Operation, dialect=NvTileAA, name="insert_slice", traits=[Pure]):
    """The destination with one tile of the grid that tiles of the source's shape form in it
    replaced by the source.

    `indices` count such tiles, one per axis.
    """

    source: Operand[Any]
    destination: Operand[T]
    indices: Sequence[Operand[Any]]
    result: Result[T]

    @staticmethod
    def verify_invariants(op: "InsertSliceOp") -> bool:
        return verify_insert_slice(op)


class MakeRangeOp(Operation, dialect=NvTileAA, name="make_range", traits=[Pure]):
    """0, 1, ..., n-1 along one axis."""

    result: Result[Any]


class ReduceOp(Operation, dialect=NvTileAA, name="reduce"):
    """Fold `axis` away; the region combines (element, accumulator) pairs, one pair per operand."""

    inputs: Sequence[Operand[Any]]
    outputs: Sequence[Result[Any]]
    axis: ir.IntegerAttr
    identities: ir.ArrayAttr
    combiner: Region


class YieldOp(Operation, dialect=NvTileAA, name="yield", traits=[Pure, Terminator]):
    """Ends the region of `reduce`."""

    values: Sequence[Operand[Any]]
