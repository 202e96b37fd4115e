"""lower-tma-load-store-to-async: what the copy engine moves, through shared memory."""

from __future__ import annotations

from dataclasses import dataclass

from tile_core.mlir import ir
from tile_core.passes import Pass, PassContext, error_at, option
from tile_tileas.access import GENERIC, TMA, UNDECIDED, AccessPlan, fall_back
from tile_tileas.analysis.bounds import BoundsAnalysis
from tile_tileas.analysis.tokens import LOADS
from tile_tileas.copying.single import copy_by_engine
from tile_tileas.dialect import distributed
from tile_tileas.dialect.buffers import Buffer, async_token
from tile_tileas.dialect.fields import operands_of
from tile_tileas.materialize.exchange import Exchange
from tile_tileas.passes.plan_accesses import accesses
from tile_tileas.pipelining.writer import Writer
from tile_tileas.remedies import remedy
from tile_tileas.tma.copies import TileCopy
from tile_tileas.tma.staging import staged_store

_STORE = "nv_tileas.tiled_store"


@dataclass(frozen=True)
class LowerTmaLoadStoreToAsync(Pass):
    """Make the stores that are planned so by tensor maps: threads leave their parts in a buffer,
    one thread begins a copy per box. Who waits for them, and where, is `tileas-insert-barriers`'
    affair.

    Loads of loops become asynchronous with the stages of their loop. With `loads`, behind those
    passes, those outside of loops are made by tensor maps or in bulk where they are planned so, and
    plans of all that are left say that threads copy.
    """

    name = "lower-tma-load-store-to-async"
    anchor = "func.func"
    statistics = {
        "stores": "tiles stored by tensor maps",
        "loads": "tiles loaded by the copy engine outside of loops",
    }

    loads: bool = option(False, "loads that no loop runs ahead, and not stores")

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        for access in list(accesses(op)):
            plan = AccessPlan.of(access)
            if plan is None or plan.copy in (UNDECIDED, GENERIC):
                continue
            if access.name in LOADS and self.loads:
                self._load(op, access, plan, cx)
            elif access.name == _STORE and plan.copy == TMA and not self.loads:
                _store(access, plan, cx.analysis(BoundsAnalysis, op), cx.target.max_shared)
                cx.count("stores")

    @staticmethod
    def _load(func: ir.Operation, access: ir.OpView, plan: AccessPlan, cx: PassContext) -> None:
        reason: str | None = "nothing runs ahead that it is part of"
        if not plan.by_threads:
            reason = copy_by_engine(
                func, access, cx.analysis(BoundsAnalysis, func), cx.target.max_shared
            )
        if reason is None:
            cx.count("loads")
            return
        if not plan.by_threads:
            cx.missed(
                access.operation,
                f"is not copied by '{plan.copy}', as was planned: {reason}",
                category="memory",
                name="CopyFailed",
                hint=remedy([reason]),
            )
        fall_back(access, reason)


def _store(op: ir.OpView, plan: AccessPlan, bounds: BoundsAnalysis, most: int) -> None:
    layout = staged_store(op, plan, most)
    if isinstance(layout, str):
        raise error_at(op, f"cannot be made by a tensor map: {layout}")
    cx, at = Exchange(op), Writer(op.location)
    at.move(ir.InsertionPoint(op))
    tile = ir.RankedTensorType(op.value.type)
    type_ = Buffer(ir.RankedTensorType(distributed(tile, layout)), "shared", 1)
    copy = TileCopy.of(op, type_, bounds)
    if isinstance(copy, str):
        raise error_at(op, f"cannot be made by a tensor map: {copy}")
    buffer = cx.staged(op.value, layout, copy.boxes.alignment)
    stores = copy.store(at, op.view, list(op.coords), buffer, operands_of(op, "token"))
    group = {"group": ir.StringAttr.get("bulk")}
    begun = [store.results[0] for store in stores]
    at.create("nv_tileas.async_commit_group", begun, [async_token()], group)
    tokens = [store.results[1] for store in stores]
    joined = at.create("nv_tileaa.join_mem_token", tokens, [tokens[0].type]).result
    op.results[0].replace_all_uses_with(joined)
    op.operation.erase()
