"""Operations of nv_tileas on distributed tiles."""

# pyright: reportGeneralTypeIssues=false

from collections.abc import Sequence
from typing import Any, TypeVar

from tile_tileaa.dialect.shape import verify_cat, verify_extract_slice, verify_insert_slice

from tile_core.dialect import Operand, Operation, Pure, Region, Result, Terminator, reject
from tile_core.mlir import ir
from tile_tileas.dialect.base import NvTileAS

T = TypeVar("T", bound=Any)


class ConvertLayoutOp(Operation, dialect=NvTileAS, name="convert_layout", traits=[Pure]):
    """The same tile in another layout."""

    source: Operand[Any]
    result: Result[Any]

    @staticmethod
    def verify_invariants(op: "ConvertLayoutOp") -> bool:
        source, result = op.source.type, op.result.type
        if source.shape == result.shape and source.element_type == result.element_type:
            return True
        return reject(op, f"cannot convert {source} to {result}")


class ViewOp(Operation, dialect=NvTileAS, name="view", traits=[Pure]):
    """The same elements in row-major order under another shape; no data moves."""

    source: Operand[Any]
    result: Result[Any]


class CatOp(Operation, dialect=NvTileAS, name="cat", traits=[Pure]):
    """Two tiles behind each other along `axis`; each thread joins what it holds of them."""

    lhs: Operand[T]
    rhs: Operand[T]
    result: Result[Any]
    axis: ir.IntegerAttr

    @staticmethod
    def verify_invariants(op: "CatOp") -> bool:
        return verify_cat(op)


class ExtractSliceOp(Operation, dialect=NvTileAS, name="extract_slice", traits=[Pure]):
    """One tile of the grid that tiles of the result's shape form in the source.

    Threads pick registers where the layouts allow; otherwise the source goes through shared
    memory.
    """

    source: Operand[Any]
    indices: Sequence[Operand[Any]]
    result: Result[Any]

    @staticmethod
    def verify_invariants(op: "ExtractSliceOp") -> bool:
        return verify_extract_slice(op)


class InsertSliceOp(Operation, dialect=NvTileAS, name="insert_slice", traits=[Pure]):
    """The destination with one tile of the grid that tiles of the source's shape form in it
    replaced by the source.

    Threads replace registers where the layouts allow; otherwise the source goes through shared
    memory.
    """

    source: Operand[Any]
    destination: Operand[T]
    indices: Sequence[Operand[Any]]
    result: Result[T]

    @staticmethod
    def verify_invariants(op: "InsertSliceOp") -> bool:
        return verify_insert_slice(op)


class ReduceOp(Operation, dialect=NvTileAS, name="reduce"):
    """Fold `axis` away; the region combines (element, accumulator) pairs, one per operand."""

    inputs: Sequence[Operand[Any]]
    outputs: Sequence[Result[Any]]
    axis: ir.IntegerAttr
    identities: ir.ArrayAttr
    combiner: Region


class YieldOp(Operation, dialect=NvTileAS, name="yield", traits=[Pure, Terminator]):
    """Ends the region of `reduce`."""

    values: Sequence[Operand[Any]]
