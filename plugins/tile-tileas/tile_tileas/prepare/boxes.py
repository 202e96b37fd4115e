"""Stage 6, refreshBoxDim: accesses whose coordinates changed are planned again.

Where a loop was written out, coordinates are numbers: bounds checks may go, and with them what a
tensor map may copy changes. The boxes of a map follow from the plan and the tile, so that a plan
that is right makes them right; a tile that no map may copy any more is copied by threads.
"""

from __future__ import annotations

from tile_core.mlir import ir
from tile_core.passes import PassContext
from tile_tileas.access import TMA, AccessPlan, without_checks
from tile_tileas.analysis.axis import AxisAnalysis
from tile_tileas.analysis.bounds import BoundsAnalysis
from tile_tileas.analysis.tokens import LOADS, TokenOrder
from tile_tileas.passes.plan_accesses import accesses
from tile_tileas.tma.refusals import Knowledge, refusals

_TILED = ("nv_tileas.tiled_load", "nv_tileas.tiled_store")


def refresh_boxes(func: ir.Operation, cx: PassContext) -> int:
    """Plan the tiled accesses of `func` again after its views changed; how many plans changed."""
    planned = [(each, AccessPlan.of(each)) for each in accesses(func) if each.name in _TILED]
    open_ones = [(each, plan) for each, plan in planned if plan and (plan.checked or _is_map(plan))]
    if not open_ones:
        return 0
    known, bounds = AxisAnalysis(func, cx), BoundsAnalysis(func, cx)
    to_tma = Knowledge(func, known, bounds, TokenOrder())
    changed = 0
    for access, old in open_ones:
        new = without_checks(old, access, bounds) if old.checked else old
        found = refusals(access, to_tma) if _is_map(new) else []
        if found:
            new = new.without("; ".join(found), ahead=access.operation.name in LOADS)
        if new != old:
            access.attributes["access"] = new.attribute()
            changed += 1
    return changed


def _is_map(plan: AccessPlan) -> bool:
    return plan.copy == TMA
