"""tileas-materialize-convert-layout: what passes through shared memory does so in the open."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tile_core.mlir import ir
from tile_core.passes import Pass, PassContext
from tile_tileas.materialize import dots, folds, leaders, moves

_FOLDS = ("nv_tileas.reduce", "nv_tileas.scan")

#: Operation -> what takes the part of it that passes through shared memory out of it.
FORMS: dict[str, Callable[[ir.OpView], None]] = {
    "nv_tileaa.alloca": leaders.alloca,
    "nv_tileaa.histogram": folds.histogram,
    "nv_tileaa.print": moves.print_,
    "nv_tileas.atomic_cas": leaders.atomic,
    "nv_tileas.atomic_rmw": leaders.atomic,
    "nv_tileas.convert_layout": moves.convert_layout,
    "nv_tileas.extract_slice": moves.extract_slice,
    "nv_tileas.insert_slice": moves.insert_slice,
    "nv_tileas.load": leaders.ordered_load,
    "nv_tileas.multimem": leaders.atomic,
    "nv_tileas.reduce": folds.reduce,
    "nv_tileas.reduce_mixed": folds.reduce,
    "nv_tileas.scan": folds.scan,
    "nv_tileas.scan_mixed": folds.scan,
    "nv_tileas.tiled_load": leaders.ordered_load,
}


@dataclass(frozen=True)
class MaterializeConvertLayout(Pass):
    """Give what passes through shared memory its buffers, and copies to and from them.

    Conversions of layouts, operands of products, parts of reductions and scans that warps hold,
    counts, slices, printed tiles, and what one thread finds out for others.
    """

    name = "tileas-materialize-convert-layout"
    anchor = "func.func"
    statistics = {"buffers": "buffers in shared memory"}

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        for inner in list(_operations(op.regions[0])):
            name = inner.operation.name
            if name == "nv_tileas.dot":
                dots.dot(inner, cx.target)
            elif name in FORMS:
                FORMS[name](inner)
        made = (inner.operation.name for inner in _operations(op.regions[0]))
        cx.count("buffers", sum(name == "nv_tileas.alloc_tensor" for name in made))


def _operations(region: ir.Region) -> Iterator[ir.OpView]:
    for block in region.blocks:
        for op in block.operations:
            yield op
            if not op.operation.name.startswith(_FOLDS):
                for inner in op.regions:
                    yield from _operations(inner)
