"""Clusters: the number of a block, meetings of all blocks, arrivals at others' barriers."""

from __future__ import annotations

from tile_tileas.dialect.cluster import RELAXED

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


@rules.on("nv_tileas.cluster_arrive")
def cluster_arrive(op: ir.OpView, cx: Kernel) -> None:
    """cluster_arrive => barrier.cluster.arrive, which is .relaxed where nothing is handed over"""
    _arrive(cx, relaxed=RELAXED in op.attributes)


@rules.on("nv_tileas.cluster_wait")
def cluster_wait(op: ir.OpView, cx: Kernel) -> None:
    """cluster_wait => barrier.cluster.wait"""
    _await(cx)


def meet_in_cluster(cx: Kernel) -> None:
    """All threads of all blocks of the cluster meet."""
    _arrive(cx)
    _await(cx)


# Operations, as LLVM may copy inline assembly to where a warp's threads have parted.


def _arrive(cx: Kernel, *, relaxed: bool = False) -> None:
    name = "nvvm.cluster.arrive.relaxed" if relaxed else "nvvm.cluster.arrive"
    cx.create(name, attributes={"aligned": ir.UnitAttr.get()})


def _await(cx: Kernel) -> None:
    cx.create("nvvm.cluster.wait", attributes={"aligned": ir.UnitAttr.get()})


@rules.on("nv_tileas.barrier_arrive_in_cluster")
def arrive_in_cluster(op: ir.OpView, cx: Kernel) -> None:
    """barrier_arrive_in_cluster => mapa and mbarrier.arrive for each block, by one thread"""
    place, b = barrier_at(cx, op.operands[0], op.operands[1]), Builder(cx)
    with when(cx, first_thread(cx)):
        for rank in range(op.ctas.value):
            run(cx, device.barrier_arrive_at(), place, b.constant(rank))
