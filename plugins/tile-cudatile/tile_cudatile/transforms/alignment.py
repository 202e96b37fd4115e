"""What two loop bodies have in common: the same operations in the same order, and between them some
that only one body has.

    s = mma q, k                    s = mma q, k
                                    m = select c, zero, infinity
                                    t = addf s, m
    p = exp2 s                      p = exp2 t              a difference: s here, t there

Operations of one body alone compute and do nothing else, so that they may run under a condition.
Common ones have equal attributes and types, and operands that are the same where nothing differs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from tile_cudatile.transforms.rewrite import only_computes, same_value
from tile_cudatile.tree import Block, Op, Region, Value
from tile_cudatile.types import Scalar, Tile

#: A value of the first body, and one of the second that stands in its place.
Difference: TypeAlias = tuple[Value, Value]


@dataclass(frozen=True)
class Common:
    """An operation that both bodies have. `differences`: by the number of the operand, flat."""

    second: Op
    differences: dict[int, Difference] = field(default_factory=dict)


@dataclass(frozen=True)
class Alignment:
    """Two bodies side by side.

    Attributes:
        common: what both have, in the order of both, as it stands in the second one.
        same: values of the first body, and what they are in the second one.
        first: what the first body has alone, in order.
        second: what the second one has alone, in order.
    """

    common: list[Common]
    same: dict[Value, Value]
    first: list[Op]
    second: list[Op]


def align(first: Block, second: Block) -> Alignment | str:
    """The bodies of two loops side by side; or why they do not go together."""
    if [arg.type for arg in first.args] != [arg.type for arg in second.args]:
        return "they carry values of other types"
    return _Aligner(first, second).run()


class _Aligner:
    def __init__(self, first: Block, second: Block) -> None:
        self._ops = (first.ops, second.ops)
        self._same = dict(zip(first.args, second.args, strict=True))
        self._alone: tuple[list[Op], list[Op]] = ([], [])
        self._results: set[Value] = set()  # of operations that one body has alone

    def run(self) -> Alignment | str:
        common: list[Common] = []
        place = 0
        for op in self._ops[0]:
            found = self._find(op, place)
            if found is None:
                if not _may_be_alone(op):
                    return f"only one of them has '{op.name}'"
                self._leave_alone(0, [op])
                continue
            self._leave_alone(1, self._ops[1][place:found])
            other = self._ops[1][found]
            differences = self._differences(op, other, set())
            assert differences is not None, "found by them"
            common.append(Common(other, differences))
            self._same.update(zip(op.results, other.results, strict=True))
            place = found + 1
        return Alignment(common, self._same, *self._alone)

    def _leave_alone(self, which: int, ops: list[Op]) -> None:
        self._alone[which].extend(ops)
        self._results.update(result for op in ops for result in op.results)

    def _find(self, op: Op, place: int) -> int | None:
        """Where `op` stands in the second body from `place` on: with the same operands, else with
        others.
        """
        nearest = None
        skipped: set[Value] = set()
        for at, other in enumerate(self._ops[1][place:], place):
            differences = self._differences(op, other, skipped)
            if differences == {}:
                return at
            if differences is not None and nearest is None:
                nearest = at
            if not _may_be_alone(other):
                break
            skipped.update(other.results)
        return nearest

    def _differences(self, op: Op, other: Op, skipped: set[Value]) -> dict[int, Difference] | None:
        """Operands in which two operations differ; None if they differ in more. Results of what is
        `skipped` are those of one body alone.
        """
        if not self._alike(op, other):
            return None
        found: dict[int, Difference] = {}
        for at, (left, right) in enumerate(zip(op.values(), other.values(), strict=True)):
            if self._is_same(left, right):
                continue
            alone = left in self._results or right in self._results or right in skipped
            if not alone or left.type != right.type or not _may_differ(left):
                return None
            found[at] = (left, right)
        return found

    def _alike(self, op: Op, other: Op) -> bool:
        """Whether two operations are the same, operands aside; within their regions those count."""
        if op.spec is not other.spec or op.attrs != other.attrs:
            return False
        if [_extent(g) for g in op.operands] != [_extent(g) for g in other.operands]:
            return False
        if [r.type for r in op.results] != [r.type for r in other.results]:
            return False
        pairs = zip(op.regions, other.regions, strict=True)
        return all(self._same_region(left, right) for left, right in pairs)

    def _same_region(self, left: Region, right: Region) -> bool:
        if len(left.blocks) != len(right.blocks):
            return False
        return all(map(self._same_block, left.blocks, right.blocks))

    def _same_block(self, left: Block, right: Block) -> bool:
        if [arg.type for arg in left.args] != [arg.type for arg in right.args]:
            return False
        if len(left.ops) != len(right.ops):
            return False
        self._same.update(zip(left.args, right.args, strict=True))
        for op, other in zip(left.ops, right.ops, strict=True):
            if not self._alike(op, other):
                return False
            if not all(map(self._is_same, op.values(), other.values())):
                return False
            self._same.update(zip(op.results, other.results, strict=True))
        return True

    def _is_same(self, left: Value, right: Value) -> bool:
        return same_value(self._same.get(left, left), right)


def _extent(group: object) -> int:
    return len(group) if isinstance(group, tuple) else 0 if group is None else -1


def _may_be_alone(op: Op) -> bool:
    """Whether `op` may run in some iterations only. Products may not: what they read would have to
    be there in some iterations only.
    """
    return only_computes(op) and not any(inner.name.startswith("mma") for inner in op.walk())


def _may_differ(value: Value) -> bool:
    """Whether a branch may give one value or another: numbers, which are nobody's addresses."""
    return isinstance(value.type, Tile) and isinstance(value.type.element, Scalar)
