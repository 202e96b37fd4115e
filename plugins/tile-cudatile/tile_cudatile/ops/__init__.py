"""Every operation of CUDA Tile IR 13.1 to 13.5, declared once."""

from __future__ import annotations

from tile_cudatile.ops.arith import FLOAT_OPS, INT_OPS, MMA_OPS
from tile_cudatile.ops.control import CONTAINER_OPS, REGION_OPS, TERMINATOR_OPS
from tile_cudatile.ops.memory import ACCESS_OPS, TOKEN_OPS, VIEW_OPS
from tile_cudatile.ops.shape import CONVERSION_OPS, SHAPE_OPS
from tile_cudatile.ops.spec import OpTable

#: Operations that occur in bodies.
BODY_OPS = OpTable(
    FLOAT_OPS,
    INT_OPS,
    MMA_OPS,
    CONVERSION_OPS,
    SHAPE_OPS,
    VIEW_OPS,
    ACCESS_OPS,
    TOKEN_OPS,
    REGION_OPS,
    TERMINATOR_OPS,
)

#: Those and the containers `module`, `entry` and `global`.
ALL_OPS = OpTable(BODY_OPS, CONTAINER_OPS)

__all__ = ["ALL_OPS", "BODY_OPS", "CONTAINER_OPS"]
