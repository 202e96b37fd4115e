"""Clusters: the number of a block, meetings of all blocks, arrivals at others' barriers."""

from __future__ import annotations

from tile_core.mlir import ir
from tile_nvptx.passes.tileas.device import asynchronous as device
from tile_nvptx.passes.tileas.rules.synchronization import barrier_at, first_thread, run
from tile_nvptx.passes.tileas.ruleset import rules
from tile_nvptx.passes.tileas.thread.build import Builder
from tile_nvptx.passes.tileas.thread.shared import when
from tile_nvptx.passes.tileas.thread.state import Kernel


@rules.on("nv_tileas.cta_rank")
def cta_rank(op: ir.OpView, cx: Kernel) -> ir.Value:
    """cta_rank => cluster_ctarank"""
    i32 = ir.IntegerType.get_signless(32)
    return cx.create("nvvm.read.ptx.sreg.cluster.ctarank", [], [i32]).result


@rules.on("nv_tileas.cluster_sync")
def cluster_sync(op: ir.OpView, cx: Kernel) -> None:
    """cluster_sync => barrier.cluster.arrive, barrier.cluster.wait"""
    meet_in_cluster(cx)


def meet_in_cluster(cx: Kernel) -> None:
    """All threads of all blocks of the cluster meet."""
    # Operations, as LLVM may copy inline assembly to where a warp's threads have parted.
    aligned = {"aligned": ir.UnitAttr.get()}
    cx.create("nvvm.cluster.arrive", attributes=aligned)
    cx.create("nvvm.cluster.wait", attributes=aligned)


@rules.on("nv_tileas.barrier_arrive_in_cluster")
def arrive_in_cluster(op: ir.OpView, cx: Kernel) -> None:
    """barrier_arrive_in_cluster => mapa and mbarrier.arrive for each block, by one thread"""
    place, b = barrier_at(cx, op.operands[0], op.operands[1]), Builder(cx)
    with when(cx, first_thread(cx)):
        for rank in range(op.ctas.value):
            run(cx, device.barrier_arrive_at(), place, b.constant(rank))
