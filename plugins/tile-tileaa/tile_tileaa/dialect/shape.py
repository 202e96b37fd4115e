"""Operations of nv_tileaa that make, reshape and fold tiles."""

# pyright: reportGeneralTypeIssues=false

from collections.abc import Sequence
from typing import Any

from tile_core.dialect import Operand, Operation, Pure, Region, Result, Terminator, reject
from tile_core.mlir import ir
from tile_tileaa.dialect.base import NvTileAA


def shape_of(type_: ir.Type) -> list[int]:
    """The extents of a tile type; [] for a scalar."""
    return list(type_.shape) if isinstance(type_, ir.RankedTensorType) else []


def _count(shape: list[int]) -> int:
    total = 1
    for extent in shape:
        total *= extent
    return total


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
