"""lower-tma-load-store-to-async: stores that tensor maps make, through shared memory."""

from __future__ import annotations

from dataclasses import dataclass

from tile_core.mlir import ir
from tile_core.passes import Pass, PassContext, error_at
from tile_tileas.access import BY_TMA, AccessPlan
from tile_tileas.analysis.bounds import BoundsAnalysis
from tile_tileas.dialect import distributed
from tile_tileas.dialect.buffers import Buffer, async_token
from tile_tileas.dialect.fields import operands_of
from tile_tileas.materialize.exchange import Exchange
from tile_tileas.passes.plan_accesses import accesses
from tile_tileas.pipelining.writer import Writer
from tile_tileas.tma.copies import TileCopy
from tile_tileas.tma.staging import staged_store

_STORE = "nv_tileas.tiled_store"


@dataclass(frozen=True)
class LowerTmaLoadStoreToAsync(Pass):
    """Make the stores that are planned so by tensor maps: threads leave their parts in a buffer,
    one thread begins a copy per box.

    Who waits for them, and where, is `tileas-insert-barriers`' affair. Loads of loops become
    asynchronous with the stages of their loop.
    """

    name = "lower-tma-load-store-to-async"
    anchor = "func.func"
    statistics = {"stores": "tiles stored by tensor maps"}

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        for access in list(accesses(op)):
            plan = AccessPlan.of(access)
            if access.name == _STORE and plan is not None and plan.copy == BY_TMA:
                _store(access, plan, cx.analysis(BoundsAnalysis, op), cx.target.max_shared)
                cx.count("stores")


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
