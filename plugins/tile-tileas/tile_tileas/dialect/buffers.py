"""Values that are no tiles: buffers, barriers, tokens of asynchronous work.

A buffer is memory of an agent's block: `stages` tiles of one type, one behind the other, in shared
or tensor memory. Its tile's layout maps offsets (shared memory, counted in elements) or row and
column (tensor memory, in columns of 32 bits; elements of less have a place in one) to coordinates
of the tile.
"""

# pyright: reportGeneralTypeIssues=false

from dataclasses import dataclass
from math import prod
from typing import Any

from tile_cute.atoms.records import SHARED, TENSOR
from tile_cute.linear import LinearLayout
from tile_tileaa.dialect.types import bits_of

from tile_core.dialect import Type
from tile_core.mlir import ir
from tile_tileas.dialect.base import NvTileAS, layout_of

#: Index spaces of the layouts of buffers, by where the buffer is.
SPACES = {SHARED: ("offset",), TENSOR: ("column", "element", "row")}

_BITS_PER_BYTE = 8


class BufferType(Type, dialect=NvTileAS, name="buffer"):
    """`stages` (i32) tiles of the tensor type `tile` in `space`, "shared" or "tensor"."""

    tile: Any
    space: Any
    stages: Any


class BarrierType(Type, dialect=NvTileAS, name="barrier"):
    """`stages` (i32) mbarriers, each completing a phase after `arrivals` (i32) arrivals and the
    bytes that it was told to expect.
    """

    arrivals: Any
    stages: Any


class AsyncTokenType(Type, dialect=NvTileAS, name="async_token"):
    """Asynchronous work that somebody waits for. It has no run-time value."""


@dataclass(frozen=True)
class Buffer:
    """What a buffer type says.

    Attributes:
        tile: the tensor type of one stage.
        space: "shared" or "tensor".
        stages: how many tiles there are.
    """

    tile: ir.RankedTensorType
    space: str
    stages: int

    @staticmethod
    def of(type_: ir.Type) -> "Buffer | None":
        """The parts of a buffer type; None for anything else."""
        if not isinstance(type_, BufferType):
            return None
        tile, space, stages = type_.params
        inner = ir.TypeAttr(tile).value
        assert isinstance(inner, ir.RankedTensorType), "a buffer holds tiles"
        return Buffer(inner, ir.StringAttr(space).value, ir.IntegerAttr(stages).value)

    @property
    def type(self) -> ir.Type:
        """The type of such a buffer."""
        i32 = ir.IntegerType.get_signless(32)
        return BufferType.get(
            ir.TypeAttr.get(self.tile),
            ir.StringAttr.get(self.space),
            ir.IntegerAttr.get(i32, self.stages),
        )

    @property
    def layout(self) -> LinearLayout | None:
        """The map from places to coordinates; None before one is assigned."""
        return layout_of(self.tile)

    @property
    def shape(self) -> list[int]:
        """Extents of one stage's tile."""
        return list(self.tile.shape)

    @property
    def stage_bytes(self) -> int:
        """Bytes of one stage in shared memory, where an element takes a byte or more."""
        bits = bits_of(self.tile.element_type) or 0
        return prod(self.shape) * max(bits, _BITS_PER_BYTE) // _BITS_PER_BYTE

    @property
    def bytes(self) -> int:
        """Bytes of all stages in shared memory."""
        return self.stage_bytes * self.stages


@dataclass(frozen=True)
class Barrier:
    """What a barrier type says: arrivals per phase, and how many mbarriers."""

    arrivals: int
    stages: int

    @staticmethod
    def of(type_: ir.Type) -> "Barrier | None":
        """The parts of a barrier type; None for anything else."""
        if not isinstance(type_, BarrierType):
            return None
        arrivals, stages = type_.params
        return Barrier(ir.IntegerAttr(arrivals).value, ir.IntegerAttr(stages).value)

    @property
    def type(self) -> ir.Type:
        """The type of such barriers."""
        i32 = ir.IntegerType.get_signless(32)
        return BarrierType.get(
            ir.IntegerAttr.get(i32, self.arrivals), ir.IntegerAttr.get(i32, self.stages)
        )


def async_token() -> ir.Type:
    """`!nv_tileas.async_token`."""
    return AsyncTokenType.get()


def is_async_token(type_: ir.Type) -> bool:
    """Whether values of this type stand for asynchronous work."""
    return isinstance(type_, AsyncTokenType)
