"""Memory views, accesses and tokens of nv_tileaa, and the program's place in its grid."""

# pyright: reportGeneralTypeIssues=false

from collections.abc import Sequence
from typing import Any

from tile_core.dialect import Operand, Operation, Pure, Result, reject
from tile_core.mlir import ir
from tile_tileaa.dialect.base import NvTileAA


def verify_ordering(op: Operation, kinds: tuple[str, ...]) -> bool:
    """`mem_semantic` is one of `kinds`, and a scope stands with every non-weak one."""
    attributes = op.attributes
    semantic = attributes["mem_semantic"].value
    if semantic not in kinds:
        return reject(op, f"unsupported mem_semantic: {semantic}")
    if semantic == "weak" and "mem_scope" in attributes:
        return reject(op, "weak memory ordering must not carry a scope")
    if semantic != "weak" and "mem_scope" not in attributes:
        return reject(op, "non-weak memory ordering requires explicit scope")
    return True


class MakeMemRefOp(Operation, dialect=NvTileAA, name="make_memref", traits=[Pure]):
    """A strided view: base pointer, one operand per dynamic size and per dynamic stride."""

    base: Operand[Any]
    sizes: Sequence[Operand[Any]]
    strides: Sequence[Operand[Any]]
    result: Result[Any]


class BlockTileOp(Operation, dialect=NvTileAA, name="block_tile", traits=[Pure]):
    """Cut a memref into a grid of tiles; the tile is part of the result type.

    With `steps` (array<i32>), tiles begin that many elements apart instead of side by side.
    """

    source: Operand[Any]
    result: Result[Any]


class GetDimSizeOp(Operation, dialect=NvTileAA, name="get_dim_size", traits=[Pure]):
    """The extent of axis `dim` of a memref."""

    source: Operand[Any]
    result: Result[Any]
    dim: ir.IntegerAttr


class AddPtrOp(Operation, dialect=NvTileAA, name="addptr", traits=[Pure]):
    """base + offset, counted in elements, signed."""

    base: Operand[Any]
    offset: Operand[Any]
    result: Result[Any]


class LoadOp(Operation, dialect=NvTileAA, name="load"):
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


class StoreOp(Operation, dialect=NvTileAA, name="store"):
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


class TiledLoadOp(Operation, dialect=NvTileAA, name="tiled_load"):
    """Read one tile of a tiled view at grid coordinates, outer axis first."""

    view: Operand[Any]
    coords: Sequence[Operand[Any]]
    token: Operand[Any] | None
    result: Result[Any]
    result_token: Result[Any]
    mem_semantic: ir.StringAttr

    @staticmethod
    def verify_invariants(op: "TiledLoadOp") -> bool:
        return verify_ordering(op, ("weak", "relaxed", "acquire"))


class TiledStoreOp(Operation, dialect=NvTileAA, name="tiled_store"):
    """Write one tile of a tiled view; elements outside the memref are dropped."""

    view: Operand[Any]
    value: Operand[Any]
    coords: Sequence[Operand[Any]]
    token: Operand[Any] | None
    result_token: Result[Any]
    mem_semantic: ir.StringAttr

    @staticmethod
    def verify_invariants(op: "TiledStoreOp") -> bool:
        return verify_ordering(op, ("weak", "relaxed", "release"))


class CreateMemTokenOp(Operation, dialect=NvTileAA, name="create_mem_token", traits=[Pure]):
    """A token that waits for nothing."""

    result: Result[Any]


class JoinMemTokenOp(Operation, dialect=NvTileAA, name="join_mem_token", traits=[Pure]):
    """A token that is complete when all of its inputs are."""

    tokens: Sequence[Operand[Any]]
    result: Result[Any]


class AssumeOp(Operation, dialect=NvTileAA, name="assume", traits=[Pure]):
    """x, of which `predicate` holds: a dictionary whose `kind` says which one it is.

    `div_by` {divisor, every?, along?}, `bounded` {lb?, ub?}, `same_elements` {values}.
    """

    source: Operand[Any]
    result: Result[Any]
    predicate: ir.DictAttr


class GetProgramIdOp(Operation, dialect=NvTileAA, name="get_program_id", traits=[Pure]):
    """The coordinate of this tile block in the grid along `axis` (0, 1, 2)."""

    result: Result[Any]
    axis: ir.IntegerAttr


class GetNumProgramsOp(Operation, dialect=NvTileAA, name="get_num_programs", traits=[Pure]):
    """The extent of the grid along `axis` (0, 1, 2)."""

    result: Result[Any]
    axis: ir.IntegerAttr
