"""Operations of nv_tileas on distributed tiles: shapes, layouts, folds."""

# pyright: reportGeneralTypeIssues=false

from dataclasses import replace
from typing import Any

from tile_tileaa.dialect.folds import folds
from tile_tileaa.dialect.shape import CAT, EXTRACT_SLICE, INSERT_SLICE, VIEW

from tile_core.dialect import Operand, OperationSpec, Pure, ReadsAndWrites, Result, declare
from tile_core.mlir import ir
from tile_tileas.dialect.base import NvTileAS
from tile_tileas.dialect.on_tiles import on_tiles, reads_buffers


def _same_tile(op: ir.OpView) -> str | None:
    source, result = op.source.type, op.result.type
    if source.shape == result.shape and source.element_type == result.element_type:
        return None
    return f"cannot convert {source} to {result}"


#: What is added to the description of operations that also take buffers.
_READS = " The source may be a buffer, which threads read."


def _of_buffers(spec: OperationSpec, *names: str) -> OperationSpec:
    """Of tiles whose registers threads pick, or of buffers in these fields."""
    return replace(
        spec,
        doc=f"{spec.doc}{_READS}",
        traits=reads_buffers(names),
        checks=tuple(on_tiles(check) for check in spec.checks),
    )


SPECS = (
    OperationSpec(
        "pragma",
        {"directives": ir.ArrayAttr},
        "Texts for ptxas, from here on.",
        (ReadsAndWrites,),
    ),
    OperationSpec(
        "convert_layout",
        {"source": Operand[Any], "result": Result[Any]},
        "The same tile in another layout.",
        (Pure,),
        (_same_tile,),
    ),
    replace(VIEW, doc=f"{VIEW.doc} No data moves."),
    CAT,
    _of_buffers(EXTRACT_SLICE, "source"),
    _of_buffers(INSERT_SLICE, "source"),
    *folds(NvTileAS.DIALECT_NAMESPACE, ("reduce_across_warps", "scan_across_warps")),
)

for _spec in SPECS:
    declare(NvTileAS, _spec, module=__name__)
