"""Disjoint sets with a direction: the root of the child is hung beneath the root of the parent."""

from __future__ import annotations


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
