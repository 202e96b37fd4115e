"""tileas-plan-accesses: who copies each tile, and how wide each thread reads and writes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from tile_core.mlir import ir
from tile_core.passes import Pass, PassContext, option
from tile_core.target import Target
from tile_tileas.access import (
    BULK,
    MAY_LEAVE_IN_SLICES,
    TMA,
    AccessPlan,
    adds_vectors,
    plan_pointers,
    plan_tiled,
    without_checks,
)
from tile_tileas.analysis.axis import AxisAnalysis
from tile_tileas.analysis.bounds import BoundsAnalysis
from tile_tileas.analysis.following import following
from tile_tileas.analysis.tokens import LOADS, STORES
from tile_tileas.copying.ways import WISHES, Ways, Wishes
from tile_tileas.narrowness import Narrowness, narrowness_of_pointers, narrowness_of_tiled
from tile_tileas.remedies import remedy
from tile_tileas.tma.refusals import SOURCES

_TILED = ("nv_tileas.tiled_load", "nv_tileas.tiled_store", "nv_tileas.async_tiled_load")
_POINTER = ("nv_tileas.load", "nv_tileas.store", "nv_tileas.async_load")

#: What has a way of its own; copies that are asynchronous already have one.
_PLANNED = (*LOADS, *STORES)


def accesses(op: ir.Operation) -> Iterator[ir.OpView]:
    """Every load and store of nv_tileas inside `op`, in program order."""
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                if inner.name in _TILED or inner.name in _POINTER:
                    yield inner
                else:
                    yield from accesses(inner.operation)


def _sums_of_vectors(op: ir.Operation, target: Target) -> Iterator[ir.OpView]:
    """Atomic sums of which an instruction may make several elements."""
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                if inner.operation.name != "nv_tileas.atomic_rmw":
                    yield from _sums_of_vectors(inner.operation, target)
                elif adds_vectors(inner, target):
                    yield inner


@dataclass(frozen=True)
class PlanAccesses(Pass):
    """Find the vector width, axis order and bounds form of every load and store, and who copies it:
    tensor maps (TMA), bulk copies, threads ahead of their loop (cp.async) or threads in passing
    (generic), with why, and what speaks against those before. The first that the rules allow and
    that gains by it is taken.
    """

    name = "tileas-plan-accesses"
    anchor = "func.func"
    preserves = ("axis", "bounds")
    statistics = {
        "vectorised": "accesses wider than one element",
        "unchecked": "axes of accesses that bounds prove to be inside their view",
        "tma": "accesses that tensor maps may make",
        "bulk": "loads that bulk copies may make",
    }

    max_vector_bits: int = option(128, "widest access of one thread", choices=(8, 16, 32, 64, 128))
    tma_descriptors: str = option(
        "off", "where tensor maps come from; 'off': threads copy", choices=(*SOURCES, "off")
    )
    tma_stores: str = option(
        "estimate",
        "tiles that tensor maps store: where it is estimated to pay, or wherever one may",
        choices=WISHES,
    )

    tma_loads: str = option(
        "estimate",
        "tiles that tensor maps load: where it is estimated to pay, or wherever one may",
        choices=WISHES,
    )
    bulk_loads: str = option(
        "estimate",
        "tiles that bulk copies of their runs load: where it is estimated to pay, or wherever "
        "they may",
        choices=WISHES,
    )
    strategy: str = option("unspecialize", "'none': no load runs ahead of its loop")

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        known = cx.analysis(AxisAnalysis, op)
        bits = min(self.max_vector_bits, cx.target.max_vector_bits)
        wishes = Wishes(
            self.tma_descriptors, self.tma_loads, self.tma_stores, self.bulk_loads, self.strategy
        )
        ways = Ways(op, wishes, cx)
        for access in accesses(op):
            if access.name in _TILED:
                plan = self._tiled(access, plan_tiled(access.view, known, bits), op, cx)
                narrow = narrowness_of_tiled(access.view, plan, known, bits)
            else:
                plan = plan_pointers(access, known, bits)
                if plan.order:
                    bounds = cx.analysis(BoundsAnalysis, op)
                    run = following(access, plan.order[0], known, bounds)
                    plan = replace(plan, run=run if run > plan.vector else 1)
                narrow = narrowness_of_pointers(access, plan, known, bits)
            if access.name in _PLANNED:
                plan, refused = ways.chosen(access, plan)
                if ways.leaves_in_slices(access, plan):
                    access.attributes[MAY_LEAVE_IN_SLICES] = ir.UnitAttr.get()
                _remark_way(access, plan, refused, cx)
            access.attributes["access"] = plan.attribute()
            if plan.vector > 1:
                cx.count("vectorised")
            stored = plan.copy == TMA and access.name not in LOADS
            if narrow.reasons and not stored:
                _remark_narrow(access, plan, narrow, cx)
        for sums in _sums_of_vectors(op, cx.target):
            sums.attributes["access"] = plan_pointers(sums, known, bits).attribute()

    @staticmethod
    def _tiled(
        access: ir.OpView, plan: AccessPlan, op: ir.Operation, cx: PassContext
    ) -> AccessPlan:
        if not plan.checked:
            return plan
        unchecked = without_checks(plan, access, cx.analysis(BoundsAnalysis, op))
        cx.count("unchecked", len(plan.checked) - len(unchecked.checked))
        return unchecked


def _remark_way(access: ir.OpView, plan: AccessPlan, refused: list[str], cx: PassContext) -> None:
    if plan.copy in (TMA, BULK):
        cx.count(plan.copy)
    if refused:
        cx.missed(
            access.operation,
            "no tensor map copies the tile",
            category="memory",
            name="TmaLoadFailed" if access.name in LOADS else "TmaStoreFailed",
            reasons=[f"TMA: {reason}" for reason in refused],
            hint=remedy(refused),
        )


def _remark_narrow(
    access: ir.OpView, plan: AccessPlan, narrow: Narrowness, cx: PassContext
) -> None:
    verb = "Store" if access.operation.name.endswith("store") else "Load"
    how = "not vectorised" if plan.vector == 1 else f"only {plan.vector} elements wide"
    cx.missed(
        access.operation,
        f"{verb} is {how}",
        category="memory",
        name=f"{verb}Width",
        reasons=narrow.reasons,
        hint=narrow.hint,
    )
