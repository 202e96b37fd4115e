"""What rows of a sum are scaled by, handed to other threads through shared memory.

scaled = sum * broadcast(factor)        factor: one number for each row
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tile_core.mlir import ir
from tile_tileas.dialect import distributed
from tile_tileas.dialect.buffers import Buffer
from tile_tileas.pipelining.multistage import PIPELINED
from tile_tileas.pipelining.sliced import Dependents, part_type
from tile_tileas.pipelining.teams import is_of_teams
from tile_tileas.pipelining.writer import Writer
from tile_tileas.storage import BUFFER_ALIGNMENT, row_major

_BROADCAST = "nv_tileaa.broadcast"


@dataclass(frozen=True)
class Factors:
    """Tiles by which a sum is scaled, each element of a row by the same.

    Attributes:
        tiles: those of the sum's shape, each a broadcast of one number for each row.
    """

    tiles: tuple[ir.Value, ...]

    def held(self, at: Writer) -> list[ir.Value]:
        """Shared memory for the factors of a step, in the order of what waits for them."""
        return [self._allocate(at, tile) for tile in self.tiles]

    @staticmethod
    def _allocate(at: Writer, tile: ir.Value) -> ir.Value:
        row = _row_of(tile)
        plain = ir.RankedTensorType.get(row.type.shape, row.type.element_type)
        layout = row_major(list(row.type.shape))
        type_ = Buffer(ir.RankedTensorType(distributed(plain, layout)), "shared", 1).type
        attributes = {
            "alignment": ir.IntegerAttr.get(at.i32, BUFFER_ALIGNMENT),
            PIPELINED: ir.UnitAttr.get(),
        }
        return at.create("nv_tileas.alloc_tensor", [], [type_], attributes).result

    def store(self, at: Writer, held: list[ir.Value]) -> None:
        """Each thread stores the factors of its rows."""
        for tile, buffer in zip(self.tiles, held, strict=True):
            at.store(_row_of(tile), buffer)

    def read(self, at: Writer, held: list[ir.Value]) -> dict[ir.Value, ir.Value]:
        """By the tile, factors of the rows that a thread reads."""
        return {
            tile: at.read(buffer, _row_of(tile).type)
            for tile, buffer in zip(self.tiles, held, strict=True)
        }


def factors_of(scaling: Dependents) -> Factors | None:
    """The factors of a sum; None where it is scaled by anything else, or not at all."""
    made = {value for op in scaling.ops for value in op.results} | {scaling.tile}
    given = [value for op in scaling.ops for value in op.operands if value not in made]
    tiles = [value for value in given if isinstance(value.type, ir.RankedTensorType)]
    found = dict.fromkeys(tiles)
    if not found or not all(map(_is_of_rows, found)):
        return None
    return Factors(tuple(found))


def _is_of_rows(tile: ir.Value) -> bool:
    """Whether it has a number for each row, which the team of that row alone has: one that all
    teams share is stored for the next step while another one still reads it.
    """
    owner = tile.owner
    if isinstance(owner, ir.Block) or owner.name != _BROADCAST:
        return False
    *rows, columns = tile.type.shape
    row = owner.operands[0]
    return columns > 1 and list(row.type.shape) == [*rows, 1] and is_of_teams(row)


def _row_of(tile: ir.Value) -> ir.Value:
    """The factors of which a tile is a broadcast."""
    owner = tile.owner
    assert not isinstance(owner, ir.Block), "asked before"
    return owner.operands[0]


def spread(at: Writer, given: Mapping[ir.Value, ir.Value], width: int) -> dict[ir.Value, ir.Value]:
    """By the tile, `width` columns of what its factors are broadcast to."""
    found: dict[ir.Value, ir.Value] = {}
    for tile, row in given.items():
        type_ = part_type(tile.type, width)
        assert type_ is not None, "asked before"
        found[tile] = at.create(_BROADCAST, [row], [type_]).result
    return found
