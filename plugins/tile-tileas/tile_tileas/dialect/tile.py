"""Operations of nv_tileas on distributed tiles: shapes, layouts, folds."""

# pyright: reportGeneralTypeIssues=false

from dataclasses import replace
from typing import Any

from tile_tileaa.dialect.folds import folds
from tile_tileaa.dialect.shape import SHARED_SHAPES, VIEW

from tile_core.dialect import Operand, OperationSpec, Pure, Result, declare
from tile_core.mlir import ir
from tile_tileas.dialect.base import NvTileAS


def _same_tile(op: ir.OpView) -> str | None:
    source, result = op.source.type, op.result.type
    if source.shape == result.shape and source.element_type == result.element_type:
        return None
    return f"cannot convert {source} to {result}"


SPECS = (
    OperationSpec(
        "convert_layout",
        {"source": Operand[Any], "result": Result[Any]},
        "The same tile in another layout.",
        (Pure,),
        (_same_tile,),
    ),
    replace(VIEW, doc=f"{VIEW.doc} No data moves."),
    # Threads pick registers where the layouts allow; otherwise a tile goes through shared memory.
    *SHARED_SHAPES,
    *folds(NvTileAS.DIALECT_NAMESPACE),
)

for _spec in SPECS:
    declare(NvTileAS, _spec, module=__name__)
