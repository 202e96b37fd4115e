"""Groups of operations that are placed together, from the constraints of a program."""

from __future__ import annotations

from dataclasses import dataclass

from tile_core.sched import LoopGraph
from tile_core.sched.dsu import joint_groups
from tile_sched.graph.components import depths


@dataclass(frozen=True)
class Groups:
    """`of[op]` is the op's group; `members[group]` its ops; `order` all groups, as they are tried.

    Groups are the roots of the directed union of gids under their leaders, an op without a gid is
    a group of its own, and they are tried by (smallest depth, smallest program index).
    """

    of: tuple[int, ...]
    members: tuple[tuple[int, ...], ...]
    order: tuple[int, ...]
    joint: tuple[bool, ...]  # groups that a program asked for: their members share a stage


def groups_of(loop: LoopGraph, *, lifted: bool = False) -> Groups:
    """The groups of `loop`; with `lifted`, every op alone (the softest constraint goes first)."""
    grouped = {} if lifted else joint_groups(loop)
    number: dict[tuple[str, int], int] = {}
    of: list[int] = []
    for at in range(len(loop.ops)):
        key = ("gid", grouped[at]) if at in grouped else ("op", at)
        of.append(number.setdefault(key, len(number)))
    members: list[list[int]] = [[] for _ in number]
    for at, group in enumerate(of):
        members[group].append(at)
    depth = depths(loop)
    order = sorted(
        range(len(members)), key=lambda g: (min(depth[op] for op in members[g]), members[g][0])
    )
    joint = tuple(kind == "gid" for kind, _ in number)
    return Groups(tuple(of), tuple(tuple(m) for m in members), tuple(order), joint)
