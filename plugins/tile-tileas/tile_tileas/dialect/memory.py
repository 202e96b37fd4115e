"""Memory accesses of nv_tileas. `access` is the plan that `tileas-plan-accesses` found."""

# pyright: reportGeneralTypeIssues=false

from collections.abc import Sequence
from typing import Any

from tile_tileaa.dialect.memory import verify_ordering

from tile_core.dialect import Operand, Operation, Result, reject
from tile_core.mlir import ir
from tile_tileas.dialect.base import NvTileAS


def _verify_tiled(op: Operation, which: str, kinds: tuple[str, ...]) -> bool:
    """The view comes straight from block_tile, and there is one coordinate per tile axis."""
    view = op.view
    if isinstance(view.owner, ir.Block) or view.owner.name != "nv_tileaa.block_tile":
        return reject(op, f"{which}'s tiled_view type must be produced by block_tile directly")
    rank = len(ir.DenseI32ArrayAttr(view.type.tile))
    if len(op.coords) != rank:
        return reject(op, f"expects {rank} coordinates, but got {len(op.coords)}")
    return verify_ordering(op, kinds)


class TiledLoadOp(Operation, dialect=NvTileAS, name="tiled_load"):
    """Read one tile of a view; elements outside the memref read its padding value."""

    view: Operand[Any]
    coords: Sequence[Operand[Any]]
    token: Operand[Any] | None
    result: Result[Any]
    result_token: Result[Any]
    mem_semantic: ir.StringAttr

    @staticmethod
    def verify_invariants(op: "TiledLoadOp") -> bool:
        return _verify_tiled(op, "tiled_load", ("weak", "relaxed", "acquire"))


class TiledStoreOp(Operation, dialect=NvTileAS, name="tiled_store"):
    """Write one tile of a view; elements outside the memref are dropped."""

    view: Operand[Any]
    value: Operand[Any]
    coords: Sequence[Operand[Any]]
    token: Operand[Any] | None
    result_token: Result[Any]
    mem_semantic: ir.StringAttr

    @staticmethod
    def verify_invariants(op: "TiledStoreOp") -> bool:
        return _verify_tiled(op, "tiled_store", ("weak", "relaxed", "release"))


class LoadOp(Operation, dialect=NvTileAS, name="load"):
    """Read through a tile of pointers; masked-off elements read `other`, or anything."""

    base: Operand[Any]
    mask: Operand[Any] | None
    other: Operand[Any] | None
    token: Operand[Any] | None
    result: Result[Any]
    result_token: Result[Any]
    mem_semantic: ir.StringAttr

    @staticmethod
    def verify_invariants(op: "LoadOp") -> bool:
        return verify_ordering(op, ("weak", "relaxed", "acquire"))


class StoreOp(Operation, dialect=NvTileAS, name="store"):
    """Write through a tile of pointers, where the mask is true."""

    base: Operand[Any]
    value: Operand[Any]
    mask: Operand[Any] | None
    token: Operand[Any] | None
    result_token: Result[Any]
    mem_semantic: ir.StringAttr

    @staticmethod
    def verify_invariants(op: "StoreOp") -> bool:
        return verify_ordering(op, ("weak", "relaxed", "release"))
