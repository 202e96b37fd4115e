"""Operations in which warps tell each other something through buffers that they are given.

Each meets the other threads of its agent once or more between writing and reading, so it stands
where all of them come by. What it has read may be overwritten after the next `sync`.
"""

# pyright: reportGeneralTypeIssues=false

from dataclasses import replace
from typing import Any

from tile_tileaa.dialect.folds import folds, slots

from tile_core.dialect import Operand, OperationSpec, Region, Result, declare
from tile_core.mlir import ir
from tile_tileas.dialect.base import NvTileAS
from tile_tileas.dialect.buffers import Buffer
from tile_tileas.dialect.effects import effects
from tile_tileas.dialect.on_tiles import first_operands
from tile_tileas.dialect.staging import buffer_problem

#: Operations of this file, and one of `tma`: they write buffers, meet, and read what others wrote.
EXCHANGES = (
    "nv_tileas.claim_tma_descs",
    "nv_tileas.convert_in_parts",
    "nv_tileas.reduce_across_warps",
    "nv_tileas.scan_across_warps",
)


def _through(op: ir.OpView) -> str | None:
    """The same tile, and a buffer of its elements."""
    source, result = op.source.type, op.result.type
    if source.shape != result.shape or source.element_type != result.element_type:
        return f"cannot convert {source} to {result}"
    problem = buffer_problem(op.buffer.type)
    if problem is not None:
        return problem
    buffer = Buffer.of(op.buffer.type)
    assert buffer is not None
    if buffer.tile.element_type == source.element_type:
        return None
    return f"expects a buffer of {source.element_type}, but got {op.buffer.type}"


def _partials(op: ir.OpView) -> str | None:
    """A buffer for each tile, of its element type."""
    count = len(op.results)
    tiles, buffers = list(op.operands)[:count], list(op.operands)[count:]
    if len(buffers) != len(tiles):
        return f"expects {count} buffers, but got {len(buffers)}"
    for tile, value in zip(tiles, buffers, strict=True):
        problem = buffer_problem(value.type)
        if problem is not None:
            return problem
        buffer = Buffer.of(value.type)
        assert buffer is not None
        if buffer.tile.element_type != tile.type.element_type:
            return f"expects a buffer of {tile.type.element_type}, but got {value.type}"
    return None


def _across(spec: OperationSpec, doc: str) -> OperationSpec:
    """A fold in which warps hold parts of the axis."""
    kept = {name: kind for name, kind in spec.fields.items() if name not in ("inputs", "outputs")}
    groups = {
        **slots("inputs", Operand[Any]),
        **slots("partials", Operand[Any]),
        **slots("outputs", Result[Any]),
    }
    assert kept["combiner"] is Region
    return replace(
        spec,
        name=f"{spec.name}_across_warps",
        fields={**groups, **kept},
        doc=doc,
        traits=(effects(reads=("partials",), writes=("partials",)),),
        checks=(*(first_operands(check) for check in spec.checks), _partials),
    )


_FOLDS = {spec.name: spec for spec in folds(NvTileAS.DIALECT_NAMESPACE)}


def _counters(op: ir.OpView) -> str | None:
    """Counters of i32, as many as there are numbers that count."""
    problem = buffer_problem(op.counters.type)
    if problem is not None:
        return problem
    buffer = Buffer.of(op.counters.type)
    assert buffer is not None
    if len(buffer.shape) == 1 and str(buffer.tile.element_type) == "i32":
        return None
    return f"expects a buffer of i32 of one axis, but got {op.counters.type}"


SPECS = (
    OperationSpec(
        "count",
        {"source": Operand[Any], "counters": Operand[Any]},
        "Add how often each number from 0 on stands in a tile to the counter of that number.",
        (effects(reads=("counters",), writes=("counters",)),),
        (_counters,),
    ),
    OperationSpec(
        "convert_in_parts",
        {"source": Operand[Any], "buffer": Operand[Any], "result": Result[Any]},
        "The same tile in another layout, through a buffer that holds a part of it at a time.",
        (effects(reads=("buffer",), writes=("buffer",)),),
        (_through,),
    ),
    _across(
        _FOLDS["reduce"],
        "`reduce` of tiles of whose axis each warp holds a part: what the warps find meets in "
        "`partials`, a buffer for each tile, element by element, the warps' parts side by side.",
    ),
    _across(
        _FOLDS["scan"],
        "`scan` of tiles of whose axis each warp holds a segment: the segments' totals meet in "
        "`partials`, a buffer for each tile, row by row, the segments side by side.",
    ),
)

for _spec in SPECS:
    declare(NvTileAS, _spec, module=__name__)
