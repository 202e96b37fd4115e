"""Splits loops at the iteration where a condition on the induction variable turns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tile_cudatile.transforms.rewrite import (
    constant_number,
    constant_truth,
    copied,
    defined,
    is_one,
    make,
    replaced,
)
from tile_cudatile.tree import LOOP_SPLIT, Module, Op, Region, Value
from tile_cudatile.types import I1, Tile

_MIRRORED = {
    "less_than": "greater_than",
    "less_than_or_equal": "greater_than_or_equal",
    "greater_than": "less_than",
    "greater_than_or_equal": "less_than_or_equal",
}
#: Operations for whose sake a loop is split, however few there are.
_HEAVY = ("load", "store", "mmaf", "mmai", "reduce", "if", "for")


@dataclass(frozen=True)
class _Split:
    """Where a loop is cut in two."""

    compare: Op
    predicate: str  # of the induction variable and `bound`
    bound: Value


def split_loops(module: Module, threshold: int = 1) -> int:
    """Splits loops in place; returns how many. `threshold`: operations in a branch; 0 is never.

    What an `if`, its loop or the kernel says for itself (`LOOP_SPLIT`) goes before `threshold`,
    the nearest first. The condition is a constant in both halves; `canonicalize` then removes the
    branches.
    """
    count = 0
    for entry in module.entries:
        general = threshold if entry.loop_split is None else entry.loop_split
        count += _region(entry.body, general)
    if count:
        module.layout = None
    return count


def _region(region: Region, threshold: int) -> int:
    count = 0
    for block in region.blocks:
        ops: list[Op] = []
        values: dict[Value, Value] = {}
        for op in block.ops:
            for inner in op.walk() if values else ():
                inner.operands = replaced(inner.operands, values)
            count += sum(_region(inner, threshold) for inner in op.regions)
            found = _find(op, threshold) if op.name == "for" else None
            if found is None:
                ops.append(op)
                continue
            made = _halves(op, found)
            values.update(zip(op.results, made[-1].results, strict=True))
            ops += made
            count += 1
        block.ops = ops
    return count


def _find(loop: Op, threshold: int) -> _Split | None:
    """The comparison for which to split, of the first branch for which it pays."""
    body = loop.regions[0]
    inside = defined(body)
    branches = [op for op in _inner_first(body) if op.name == "if"]
    for op in branches:
        at_least = _hint(op, _hint(loop, threshold))
        split = _split(loop, op, inside) if at_least else None
        if split is None:
            continue
        same = [b for b in branches if b.operands[0] is split.compare.result]
        if any(_pays(branch, at_least) for branch in same):
            return split
    return None


def _inner_first(region: Region) -> Iterator[Op]:
    for block in region.blocks:
        for op in block.ops:
            for inner in op.regions:
                yield from _inner_first(inner)
            yield op


def _hint(op: Op, otherwise: int) -> int:
    found = op.attrs.get(LOOP_SPLIT)
    return found if isinstance(found, int) else otherwise


def _split(loop: Op, branch: Op, inside: set[Value]) -> _Split | None:
    """Where the condition of a branch turns, if it depends on the induction variable alone."""
    induction = loop.regions[0].block.args[0]
    signedness = "unsigned" if loop.attrs.get("unsignedCmp") else "signed"
    condition = branch.operands[0]
    assert isinstance(condition, Value)
    compare = condition.owner
    if not isinstance(compare, Op) or compare.name != "cmpi" or condition not in inside:
        return None
    left, right = compare.operands
    predicate = str(compare.attrs["comparison_predicate"])
    if predicate not in _MIRRORED or compare.attrs["signedness"] != signedness:
        return None
    if right is induction:
        left, right, predicate = right, left, _MIRRORED[predicate]
    if left is not induction or right in inside:
        return None
    assert isinstance(right, Value)
    return _Split(compare, predicate, right)


def _pays(branch: Op, threshold: int) -> bool:
    if threshold == 1:
        return True
    for region in branch.regions:
        ops = region.block.ops[:-1] if region.blocks else []
        if len(ops) >= threshold or any(op.name.startswith(_HEAVY) for op in ops):
            return True
    return False


def _halves(loop: Op, split: _Split) -> list[Op]:
    lower, upper, step, init = loop.operands
    assert isinstance(lower, Value)
    assert isinstance(upper, Value)
    assert isinstance(step, Value)
    bounds = _Bounds(loop, lower, upper, step)
    end, start = bounds.around(split)
    first_holds = split.predicate.startswith("less")
    first = _half(loop, split, (lower, end, step, init), first_holds)
    second = _half(loop, split, (start, upper, step, first.results), not first_holds)
    return [*bounds.ops, first, second]


def _half(loop: Op, split: _Split, operands: Any, holds: bool) -> Op:
    values: dict[Value, Value] = {}

    def known(op: Op) -> Op | None:
        return constant_truth(Tile((), I1), holds, op.loc) if op is split.compare else None

    region = copied(loop.regions[0], values, known)
    results = tuple(Value(r.type) for r in loop.results)
    return Op(loop.spec, operands, results, dict(loop.attrs), (region,), loop.loc)


class _Bounds:
    """Computes where the first half ends and the second starts, without overflow."""

    def __init__(self, loop: Op, lower: Value, upper: Value, step: Value) -> None:
        self.ops: list[Op] = []
        self._lower, self._upper, self._step, self._loc = lower, upper, step, loop.loc
        self._signedness = "unsigned" if loop.attrs.get("unsignedCmp") else "signed"

    def around(self, split: _Split) -> tuple[Value, Value]:
        """End of the first half and start of the second."""
        bound, upper = split.bound, self._upper
        if split.predicate in ("less_than_or_equal", "greater_than"):
            # The next number; where there is none, the loop ends before.
            after = self._emit("addi", bound, self._number(1))
            bound = self._choose(self._less(bound, upper), after, upper)
        end = self._emit("mini", bound, upper, signedness=self._signedness)
        start = self._emit("maxi", end, self._lower, signedness=self._signedness)
        return end, start if is_one(self._step) else self._aligned(start)

    def _aligned(self, start: Value) -> Value:
        """The first iteration not before `start`; the upper bound if there is none."""
        lower, upper, step = self._lower, self._upper, self._step
        distance = self._emit("subi", start, lower)
        over = self._emit("remi", distance, step, signedness="unsigned")
        missing = self._emit("subi", step, over)
        room = self._emit("subi", upper, start)
        fits = self._less(missing, room, "unsigned")
        later = self._choose(fits, self._emit("addi", start, missing), upper)
        met = self._compare("equal", over, self._number(0), "unsigned")
        return self._choose(met, start, later)

    def _emit(self, name: str, *operands: Value, **attrs: Any) -> Value:
        self.ops.append(make(name, operands, [operands[0].type], self._loc, **attrs))
        return self.ops[-1].result

    def _less(self, left: Value, right: Value, signedness: str | None = None) -> Value:
        return self._compare("less_than", left, right, signedness or self._signedness)

    def _compare(self, predicate: str, left: Value, right: Value, signedness: str) -> Value:
        attrs: dict[str, Any] = {"comparison_predicate": predicate, "signedness": signedness}
        self.ops.append(make("cmpi", (left, right), [Tile((), I1)], self._loc, **attrs))
        return self.ops[-1].result

    def _choose(self, condition: Value, then: Value, other: Value) -> Value:
        self.ops.append(make("select", (condition, then, other), [then.type], self._loc))
        return self.ops[-1].result

    def _number(self, value: int) -> Value:
        type_ = self._lower.type
        assert isinstance(type_, Tile)
        self.ops.append(constant_number(type_, value, self._loc))
        return self.ops[-1].result
