"""tileas-plan-accesses: who copies each tile, and how wide each thread reads and writes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from tile_core.mlir import ir
from tile_core.passes import Pass, PassContext, option
from tile_tileas.access import BY_TMA, AccessPlan, plan_pointers, plan_tiled, without_checks
from tile_tileas.analysis.axis import AxisAnalysis
from tile_tileas.analysis.bounds import BoundsAnalysis
from tile_tileas.analysis.tokens import LOADS, TokenOrder
from tile_tileas.narrowness import Narrowness, narrowness_of_pointers, narrowness_of_tiled
from tile_tileas.tma import benefit
from tile_tileas.tma.refusals import SINCE, SOURCES, Knowledge, refusals
from tile_tileas.tma.staging import staged_store

_TILED = ("nv_tileas.tiled_load", "nv_tileas.tiled_store", "nv_tileas.async_tiled_load")
_POINTER = ("nv_tileas.load", "nv_tileas.store", "nv_tileas.async_load")


def accesses(op: ir.Operation) -> Iterator[ir.OpView]:
    """Every load and store of nv_tileas inside `op`, in program order."""
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                if inner.name in _TILED or inner.name in _POINTER:
                    yield inner
                else:
                    yield from accesses(inner.operation)


@dataclass(frozen=True)
class PlanAccesses(Pass):
    """Find the vector width, axis order and bounds form of every load and store, and which tiles
    tensor maps copy (TMA): those that the rules allow and that gain by it.
    """

    name = "tileas-plan-accesses"
    anchor = "func.func"
    preserves = ("axis", "bounds")
    statistics = {
        "vectorised": "accesses wider than one element",
        "unchecked": "axes of accesses that bounds prove to be inside their view",
        "tma": "accesses that tensor maps may make",
    }

    max_vector_bits: int = option(128, "widest access of one thread", choices=(8, 16, 32, 64, 128))
    tma_descriptors: str = option(
        "off", "where tensor maps come from; 'off': threads copy", choices=(*SOURCES, "off")
    )
    tma_stores: str = option(
        "estimate",
        "tiles that tensor maps store: where it is estimated to pay, or wherever one may",
        choices=("estimate", "always", "never"),
    )

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        known = cx.analysis(AxisAnalysis, op)
        bits = min(self.max_vector_bits, cx.target.max_vector_bits)
        known_to_tma = None
        if self.tma_descriptors != "off" and cx.target.sm >= SINCE:
            known_to_tma = Knowledge(
                op, known, cx.analysis(BoundsAnalysis, op), TokenOrder(), self.tma_descriptors
            )
        for access in accesses(op):
            if access.name in _TILED:
                plan = self._tiled(access, plan_tiled(access.view, known, bits), op, cx)
                narrow = narrowness_of_tiled(access.view, plan, known, bits)
            else:
                plan = plan_pointers(access, known, bits)
                narrow = narrowness_of_pointers(access, plan, known, bits)
            if known_to_tma is not None and access.name in _TILED[:2]:
                plan = self._by_tma(access, plan, known_to_tma, cx)
            access.attributes["access"] = plan.attribute()
            if plan.vector > 1:
                cx.count("vectorised")
            stored = plan.copy == BY_TMA and access.name not in LOADS
            if narrow.reasons and not stored:
                _remark_narrow(access, plan, narrow, cx)

    def _by_tma(
        self, access: ir.OpView, plan: AccessPlan, known: Knowledge, cx: PassContext
    ) -> AccessPlan:
        """`plan`, by a tensor map if one may and that pays; else a remark that says why not."""
        reads = access.name in LOADS
        loss = benefit.load_loss(access) if reads else self._store_loss(access)
        reasons = refusals(access, known) if loss is None else [loss]
        if not reads and not reasons:
            staged = staged_store(access, plan, cx.target.max_shared)
            reasons = [staged] if isinstance(staged, str) else []
        if not reasons:
            cx.count("tma")
            return replace(plan, copy=BY_TMA)
        cx.missed(
            access.operation,
            "no tensor map copies the tile",
            category="memory",
            name="TmaLoadFailed" if reads else "TmaStoreFailed",
            reasons=[f"TMA: {reason}" for reason in reasons],
        )
        return plan

    def _store_loss(self, access: ir.OpView) -> str | None:
        """Why a store is left to threads whether or not a tensor map may make it."""
        if self.tma_stores == "never":
            return "the option tma-stores is 'never'"
        return benefit.store_loss(access) if self.tma_stores == "estimate" else None

    @staticmethod
    def _tiled(
        access: ir.OpView, plan: AccessPlan, op: ir.Operation, cx: PassContext
    ) -> AccessPlan:
        if not plan.checked:
            return plan
        unchecked = without_checks(plan, access, cx.analysis(BoundsAnalysis, op))
        cx.count("unchecked", len(plan.checked) - len(unchecked.checked))
        return unchecked


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
