"""Operations of nv_tileas on distributed tiles."""

# pyright: reportGeneralTypeIssues=false

from collections.abc import Sequence
from typing import Any

from tile_core.dialect import Operand, Operation, Pure, Region, Result, Terminator, reject
from tile_core.mlir import ir
from tile_tileas.dialect.base import NvTileAS


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
