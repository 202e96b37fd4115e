"""Cluster barriers and cluster launch control."""

from __future__ import annotations

from tile_sim.isa.warp import aligned_sync
from tile_sim.machine.group import Group, merge
from tile_sim.program.decode import Decode, Sync


def barrier_cluster(cx: Decode) -> Sync:
    """`barrier.cluster.arrive` and `.wait`."""
    cx.flag("cluster")
    kind = cx.one_of("arrive", "wait")
    order = cx.option("release", "relaxed", "acquire")
    aligned = cx.flag("aligned")
    cx.done(0)
    if kind == "arrive":
        return _arrive(aligned, order == "relaxed")
    return Sync(_wait(aligned), _leave, "cluster")


def _arrive(aligned: bool, relaxed: bool) -> Sync:
    def execute(g: Group) -> None:
        g.wave.barriers.cluster_arrive(g, relaxed)

    if aligned:
        return aligned_sync(execute)
    return Sync(lambda new, parked: (merge([x for x in (new, parked) if x]), None), execute, "warp")


def _leave(g: Group) -> None:
    g.wave.barriers.cluster_leave(g)


def _wait(aligned: bool):
    def arrive(new: Group | None, parked: Group | None) -> tuple[Group | None, Group | None]:
        g = merge([x for x in (new, parked) if x is not None])
        done = g.wave.barriers.cluster_passed(g)
        if aligned:
            # A warp leaves as a whole.
            done = done & (done == g.wave.live[g.rows]).all(axis=1)[:, None]
        if not done.any():
            return None, g
        return g.part(done), g.part(g.active & ~done)

    return arrive
