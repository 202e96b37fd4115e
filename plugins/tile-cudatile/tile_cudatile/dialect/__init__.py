"""The MLIR form of a program: dialect `cuda_tile`. See the package's README for the contract."""

from tile_cudatile.dialect import ops
from tile_cudatile.dialect.ops import operand_groups
from tile_cudatile.dialect.types import (
    CudaTile,
    GatherScatterViewType,
    KindPtrType,
    PartitionViewType,
    PtrType,
    StridedViewType,
    TensorViewType,
    TileType,
    TokenType,
    build_type,
    describe,
    pointee,
    tile_element,
    tile_shape,
)

__all__ = [
    "CudaTile",
    "GatherScatterViewType",
    "KindPtrType",
    "PartitionViewType",
    "PtrType",
    "StridedViewType",
    "TensorViewType",
    "TileType",
    "TokenType",
    "build_type",
    "describe",
    "load",
    "operand_groups",
    "ops",
    "pointee",
    "tile_element",
    "tile_shape",
]


def load() -> None:
    """Declares the dialect in the current context; a second call does nothing."""
    CudaTile.load()
