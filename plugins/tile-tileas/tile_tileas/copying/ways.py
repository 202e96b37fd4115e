"""Which way each tile is copied: asked in order, the first that may and pays is taken.

What speaks against a way that was asked before stands in the plan, and so does what speaks for the
one that was taken. Layouts, buffers and loops that are not known yet may forbid it later; whoever
finds that out writes it down (`access.fall_back`).
"""

from __future__ import annotations

from dataclasses import dataclass

from tile_core.mlir import ir
from tile_core.passes import PassContext
from tile_tileas.access import BULK, CP_ASYNC, GENERIC, TMA, AccessPlan
from tile_tileas.analysis.axis import AxisAnalysis
from tile_tileas.analysis.bounds import BoundsAnalysis
from tile_tileas.analysis.tokens import LOADS, TokenOrder
from tile_tileas.copying import ahead, rows
from tile_tileas.copying.padding import Separated
from tile_tileas.tma import benefit
from tile_tileas.tma.refusals import SINCE, Knowledge, refusals
from tile_tileas.tma.staging import staged_store

_TILED = ("nv_tileas.tiled_load", "nv_tileas.tiled_store")
ESTIMATE, ALWAYS, NEVER = WISHES = ("estimate", "always", "never")
_FOR = {
    (TMA, True): "one thread begins copies of whole boxes, which need no registers",
    (TMA, False): "fragments of products are no runs of memory, and a map clips what is outside",
    (BULK, True): "one thread begins copies of whole runs, which need no registers and no map",
    (CP_ASYNC, True): "loads of later iterations are under way, and need no registers",
}


@dataclass(frozen=True)
class Wishes:
    """What options ask for; see `tileas-plan-accesses`."""

    descriptors: str = "off"
    tma_loads: str = ESTIMATE
    tma_stores: str = ESTIMATE
    bulk_loads: str = ESTIMATE
    strategy: str = "unspecialize"


class Ways:
    """The ways of the accesses of one kernel."""

    def __init__(self, func: ir.Operation, wishes: Wishes, cx: PassContext) -> None:
        self._wishes, self._target = wishes, cx.target
        self._order = TokenOrder()
        self._known: Knowledge | None = None
        if wishes.descriptors != "off" and cx.target.sm >= SINCE:
            axis, bounds = cx.analysis(AxisAnalysis, func), cx.analysis(BoundsAnalysis, func)
            source, agents = wishes.descriptors, wishes.strategy == ahead.SPECIALIZE
            self._known = Knowledge(func, axis, bounds, self._order, source, agents)

    def chosen(self, access: ir.OpView, plan: AccessPlan) -> tuple[AccessPlan, list[str]]:
        """The plan with its way, and all that speaks against tensor maps, if they were asked.

        Loads that others than threads in passing make do not pad themselves (`Separated`).
        """
        separated = Separated.of(access, plan)
        found = self._chosen(access, plan)
        if separated is not None and found[0].copy == GENERIC:
            separated.undo()
        return found

    def _chosen(self, access: ir.OpView, plan: AccessPlan) -> tuple[AccessPlan, list[str]]:
        if not plan.order:
            return plan.by(GENERIC, "it is a single element"), []
        reads = access.name in LOADS
        against: dict[str, str] = {}
        reasons = self._tma(access, plan) if access.name in _TILED else [_POINTERS]
        way, problem = TMA, "; ".join(reasons)
        if problem:
            against[TMA] = problem
            way, problem = BULK, self._bulk(access, plan) if reads else _STORES
        if problem:
            against[BULK] = problem
            way = CP_ASYNC
            problem = ahead.refusal(access, plan, self._wishes.strategy) if reads else _INTO
        if problem:
            against[CP_ASYNC] = problem
            return plan.by(GENERIC, "nothing else may, or pays", against), self._told(reasons)
        return plan.by(way, _FOR[way, reads], against), self._told(reasons)

    def _told(self, reasons: list[str]) -> list[str]:
        return reasons if self._known is not None and reasons != [_POINTERS] else []

    def _tma(self, access: ir.OpView, plan: AccessPlan) -> list[str]:
        if self._known is None:
            return [self._no_maps()]
        reads = access.name in LOADS
        wish = self._wishes.tma_loads if reads else self._wishes.tma_stores
        if wish == NEVER:
            return [f"the option tma-{'loads' if reads else 'stores'} is 'never'"]
        if wish == ESTIMATE:
            loss = benefit.load_loss(access) if reads else benefit.store_loss(access)
            if loss is not None:
                return [loss]
        reasons = refusals(access, self._known)
        if reads and not reasons and wish == ESTIMATE:
            loss = benefit.single_loss(access)
            reasons = [] if loss is None else [loss]
        if not reads and not reasons:
            staged = staged_store(access, plan, self._target.max_shared)
            reasons = [staged] if isinstance(staged, str) else []
        return reasons

    def leaves_in_slices(self, access: ir.OpView, plan: AccessPlan) -> bool:
        """Whether tensor maps may store slices of a tile that threads are to store, as sums of
        products leave tensor memory.
        """
        if self._known is None or access.name != _STORE or plan.copy != GENERIC or not plan.order:
            return False
        wanted = self._wishes.tma_stores != NEVER and benefit.is_sum_of_products(access.value)
        return wanted and not refusals(access, self._known)

    def _no_maps(self) -> str:
        if self._target.sm < SINCE:
            return f"{self._target.name} has no tensor maps"
        return "the option tma-descriptors is 'off'"

    def _bulk(self, access: ir.OpView, plan: AccessPlan) -> str | None:
        if self._target.sm < rows.SINCE:
            return f"{self._target.name} has no bulk copies"
        if access.name not in _TILED:
            return _POINTERS
        if self._wishes.bulk_loads == NEVER:
            return "the option bulk-loads is 'never'"
        if self._wishes.bulk_loads == ESTIMATE:
            loss = benefit.bulk_loss(access)
            if loss is not None:
                return loss
        return rows.refusal(access, plan, self._order)


_STORE = "nv_tileas.tiled_store"
_POINTERS = "it goes through pointers, and not through a view"
_STORES = "bulk copies of runs are made for loads alone"
_INTO = "it copies into shared memory alone"
