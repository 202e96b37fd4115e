"""Disjoint sets with a direction: the root of the child is hung beneath the root of the parent."""

from __future__ import annotations

from tile_core.sched.graph import LoopGraph

#: gids that take no part in scheduling (the specification's two sentinels).
SKIPPED = (-1, -2, 0xFFFFFFFF, 0xFFFFFFFE)


class DisjointSets:
    """Groups of integers. `find` compresses paths; `union` has no rank: roots are leaders."""

    def __init__(self) -> None:
        self._parent: dict[int, int] = {}

    def find(self, item: int) -> int:
        """The root of the set that `item` is in; `item` itself if it is in none."""
        root = item
        while self._parent.get(root, root) != root:
            root = self._parent[root]
        while item != root:
            self._parent[item], item = root, self._parent[item]
        return root

    def union(self, child: int, parent: int) -> None:
        """Put the set of `child` beneath that of `parent`; nothing if they are one already."""
        below, above = self.find(child), self.find(parent)
        if below != above:
            self._parent[below] = above


def joint_groups(loop: LoopGraph) -> dict[int, int]:
    """Operation -> the gid that leads its group, of those that a program put into groups.

    Groups joined by their leaders share a stage.
    """
    sets = DisjointSets()
    for op in loop.ops:
        gid, leader = op.constraints.gid, op.constraints.leader_gid
        if gid is not None and leader is not None and gid != leader:
            sets.union(gid, leader)
    return {
        at: sets.find(op.constraints.gid)
        for at, op in enumerate(loop.ops)
        if op.constraints.gid is not None and op.constraints.gid not in SKIPPED
    }
