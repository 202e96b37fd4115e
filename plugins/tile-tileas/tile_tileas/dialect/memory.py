"""Memory accesses of nv_tileas: those of nv_tileaa, on tiles with layouts.

`access` is the plan that `tileas-plan-accesses` found. Accesses of views have texts of their own
(Tile IR specification, "TileAS TMA and memops family"), and see the `block_tile` of their view.
"""

# pyright: reportGeneralTypeIssues=false

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tile_tileaa.dialect.accesses import (
    ACCESSES,
    TILED_ATOMIC_RMW,
    TILED_LOAD,
    TILED_STORE,
    VIEW_CHECKS,
    through_view,
    tiled_rmw,
)
from tile_tileaa.dialect.ordering import (
    ATOMIC_ORDERINGS,
    LOAD_ORDERINGS,
    STORE_ORDERINGS,
    ordering,
)

from tile_core.dialect import Check, Operand, OperationSpec, Pure, Reads, Result, declare
from tile_core.mlir import ir
from tile_tileas.dialect.base import NvTileAS, layout_of
from tile_tileas.dialect.fields import operands_of

_SCOPES = (
    "mem_scope not supported when mem_semantic is weak",
    "mem_scope required when mem_semantic is not weak",
)
_ATOMIC_SCOPES = (
    "memScope not supported when memSemantic is weak",
    "memScope required when memSemantic is not weak",
)


def _direct_view(name: str) -> Check:
    def check(op: ir.OpView) -> str | None:
        owner = op.operands[0].owner
        if not isinstance(owner, ir.Block) and owner.name == "nv_tileaa.block_tile":
            return None
        return f"{name}'s tiled_view type must be produced by block_tile directly"

    return check


def _tiled(spec: OperationSpec, *checks: Check) -> OperationSpec:
    """A tiled access with the checks of this dialect, in the order of the specification."""
    return replace(spec, checks=(_direct_view(spec.name), *VIEW_CHECKS, *checks))


def _same_type(op: ir.OpView) -> str | None:
    before, after = op.value.type, op.result.type
    return None if before == after else f"cannot pad {before} to {after}"


def _taken(op: ir.OpView) -> str | None:
    """Where elements come from is told of each register, by numbers that there are."""
    result, given = op.results[0].type, operands_of(op, "given")
    layout = layout_of(result)
    if layout is None:
        return f"expects a tile with a layout, but got {result}"
    if any(value.type != result for value in given):
        return f"takes elements of tiles of type {result}, but is given another one"
    count = layout.elements_per_thread
    sources, registers = (
        list(ir.DenseI32ArrayAttr(op.attributes[name])) for name in ("sources", "registers")
    )
    if len(sources) != count or len(registers) != count:
        return f"expects a source and a register for each of {count} elements of a thread"
    if not all(-1 <= source < len(given) for source in sources):
        return f"has sources that are neither -1 nor one of {len(given)} tiles"
    if not all(0 <= register < count for register in registers):
        return f"has registers that are none of {count}"
    return None


SPECS = (
    *ACCESSES,
    _tiled(TILED_LOAD, ordering(LOAD_ORDERINGS, _SCOPES)),
    _tiled(TILED_STORE, ordering(STORE_ORDERINGS, _SCOPES)),
    _tiled(TILED_ATOMIC_RMW, tiled_rmw, ordering(("weak", *ATOMIC_ORDERINGS), _ATOMIC_SCOPES)),
    OperationSpec(
        "load_rest",
        {
            "base": Operand[Any],
            "mask": Operand[Any] | None,
            "other": Operand[Any] | None,
            "given": Sequence[Operand[Any]],
            "result": Result[Any],
            "sources": Any,  # array<i32>
            "registers": Any,  # array<i32>
        },
        "A weak load of which threads have elements already: of each register `sources` says which "
        "of the given tiles it is in, and `registers` where; -1 is loaded.",
        (Reads,),
        (_taken,),
    ),
    OperationSpec(
        "pad_outside",
        {
            "view": Operand[Any],
            "value": Operand[Any],
            "coords": Sequence[Operand[Any]],
            "result": Result[Any],
        },
        "A tile of a tiled view at grid coordinates: the value where elements are inside the "
        "memref, the view's padding value elsewhere; `access` says along which axes that may be.",
        (Pure,),
        (_direct_view("pad_outside"), through_view, _same_type),
    ),
)

for _spec in SPECS:
    declare(NvTileAS, _spec, module=__name__)
