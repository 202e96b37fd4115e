"""Stage 2, refineVecSizeOfAtoms: accesses are planned as wide as their threads can make them.

A plan says what addresses allow. What a thread makes of it is bound by the run of neighbours that
its layout holds, and by the target; with that in the plan, schedules and remarks count the
instructions that there will be. Loads that are staged keep their plan: copies into shared memory
have a layout of their own.
"""

from __future__ import annotations

from dataclasses import replace

from tile_core.mlir import ir
from tile_core.target import Target
from tile_tileas.access import AccessPlan
from tile_tileas.dialect.base import layout_of
from tile_tileas.storage import storage_bits

_LOADS = ("nv_tileas.tiled_load", "nv_tileas.load")
#: Operand that holds what a store stores, by its place.
_STORES = {"nv_tileas.tiled_store": 1, "nv_tileas.store": 1}
_PRODUCT = "nv_tileas.dot"


def refine_vectors(func: ir.Operation, target: Target) -> int:
    """Set the vectors of accesses; how many changed."""
    return sum(_region(region, target) for region in func.regions)


def _region(region: ir.Region, target: Target) -> int:
    changed = 0
    for block in region.blocks:
        ops = list(block.operations)
        staged = any(op.operation.name == _PRODUCT for op in ops)
        for op in ops:
            name = op.operation.name
            if name in _STORES or (name in _LOADS and not staged):
                changed += _refined(op, target)
            changed += sum(_region(inner, target) for inner in op.regions)
    return changed


def _refined(op: ir.OpView, target: Target) -> int:
    plan = AccessPlan.of(op)
    name = op.operation.name
    tile = op.operands[_STORES[name]] if name in _STORES else op.results[0]
    layout = layout_of(tile.type)
    if plan is None or layout is None or not plan.order or not plan.by_threads:
        return 0
    widest = max(1, target.max_vector_bits // storage_bits(tile.type.element_type))
    run = layout.registers_contiguous_along(plan.order[0])
    vector = min(plan.vector, run, widest)
    if vector == plan.vector:
        return 0
    op.attributes["access"] = replace(plan, vector=vector).attribute()
    return 1
