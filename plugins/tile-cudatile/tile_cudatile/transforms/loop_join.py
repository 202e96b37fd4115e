"""Joins loops that run over one range in a row, where their bodies do the same but for what some
operations see. The inverse of `loop_split`, which front ends have done, too.

    for i in [a, min(m, b)):  x = f(i); g(x)            for i in [a, b):
    for i in [max(m, a), b):  x = f(i); g(h(x))    =>       x = f(i)
                                                            g(i >= m ? h(x) : x)

Attention with a mask for its last tiles comes so. A loop of products fills stages before its first
iteration, and waits for all that is under way behind its last one: of one loop that is done once.
Iterations, their order and what they compute stay.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tile_cudatile.transforms.alignment import Alignment, Difference, align
from tile_cudatile.transforms.multiples import is_multiple, is_power_of_two
from tile_cudatile.transforms.rewrite import (
    copied_op,
    drop_dead,
    made_alike,
    make,
    needed,
    number_of,
    only_computes,
    replaced,
    uses,
)
from tile_cudatile.tree import Block, Module, Op, Region, Value
from tile_cudatile.types import I1, Tile

#: Values that may differ between the bodies. Of more, branches would have to give too much.
MOST_DIFFERENCES = 2


@dataclass(frozen=True)
class Joined:
    """A `loop` that another one ran before, which it was joined with; or `why_not`."""

    loop: Op
    why_not: str | None = None


def has_products(loop: Op) -> bool:
    """Whether each iteration makes products: then one loop pays."""
    return any(op.name.startswith("mma") for op in loop.regions[0].block.ops)


def join_loops(
    module: Module, most: int = MOST_DIFFERENCES, pays: Callable[[Op], bool] = has_products
) -> list[Joined]:
    """Joins loops in place that `pays` holds for; returns all that were looked at. Their bodies may
    differ in `most` values.
    """
    found: list[Joined] = []
    for entry in module.entries:
        kernel = _Kernel(entry.body, most, pays)
        kernel.run(entry.body)
        if any(one.why_not is None for one in kernel.found):
            drop_dead(entry.body)
            module.layout = None
        found += kernel.found
    return found


class _Kernel:
    """One kernel, whose loops are joined innermost first."""

    def __init__(self, body: Region, most: int, pays: Callable[[Op], bool]) -> None:
        self._body, self._most, self._pays = body, most, pays
        self.found: list[Joined] = []

    def run(self, region: Region) -> None:
        """Joins loops inside of a region."""
        for block in region.blocks:
            ops: list[Op] = []
            for op in block.ops:
                for inner in op.regions:
                    self.run(inner)
                first = _before(op, ops)
                if first is not None and self._pays(op):
                    made = self._join(first, op, ops)
                    self.found.append(Joined(op, made if isinstance(made, str) else None))
                    if not isinstance(made, str):
                        ops.remove(first)
                        ops += made
                ops.append(op)
            block.ops = ops

    def _join(self, first: Op, second: Op, ops: list[Op]) -> list[Op] | str:
        """Makes `second` run what `first` runs, too; returns what it needs in front of it, or why
        that cannot be. `ops` are those before `second`.
        """
        if not all(only_computes(op) for op in ops[ops.index(first) + 1 :]):
            return "something between them has an effect"
        counts = uses(self._body)
        if any(counts[result] != 1 for result in first.results):
            return "something else uses what the first one gives"
        if first.attrs != second.attrs:
            return "they count in other ways"
        ranges = _Ranges(first, second)
        turn = ranges.turn()
        if turn is None:
            return "the second one is not known to begin where the first one ends, in its steps"
        aligned = align(first.regions[0].block, second.regions[0].block)
        if isinstance(aligned, str):
            return aligned
        different = {pair for common in aligned.common for pair in common.differences.values()}
        if len(different) > self._most:
            return f"their bodies differ in {len(different)} values"
        _Body(second, aligned, turn).run()
        second.operands = (*ranges.bounds(), first.group("step"), first.group("initValues"))
        return ranges.ops


def _before(loop: Op, ops: list[Op]) -> Op | None:
    """The loop whose results `loop` begins with, if it is one of `ops`."""
    if loop.name != "for" or not _initial(loop):
        return None
    first = _initial(loop)[0].owner
    if not isinstance(first, Op) or first.name != "for" or first not in ops:
        return None
    return first if _initial(loop) == first.results else None


def _initial(loop: Op) -> tuple[Value, ...]:
    values = loop.group("initValues")
    assert isinstance(values, tuple)
    return values


class _Ranges:
    """The range of two loops that follow one another. Lower bounds are included, upper ones not."""

    def __init__(self, first: Op, second: Op) -> None:
        self._bounds = tuple(_bounds(loop) for loop in (first, second))
        self._signedness = _signedness(first)
        self._loc = second.loc
        self.ops: list[Op] = []

    def turn(self) -> Value | None:
        """Where the second loop begins, as far as both have iterations; None if that is not known
        to be where the first one ends.
        """
        (lower, end, step), (start, upper, other_step) = self._bounds
        if not made_alike(step, other_step) or not _meets(number_of(step), lower, start):
            return None
        if made_alike(end, start):
            return end
        for turn in self._extremes(start, "maxi", lower):
            if made_alike(turn, end):
                # end <= upper, or the first loop would run beyond it.
                return end if self._extremes(end, "mini", upper) else None
            if any(made_alike(turn, other) for other in self._extremes(end, "mini", upper)):
                return turn
        return None

    def bounds(self) -> tuple[Value, Value]:
        """Those of one loop in place of both."""
        (lower, end, _), (start, upper, _) = self._bounds
        if not made_alike(end, start):
            return lower, upper
        # Whatever of the bounds lies outside of the others: then one of the loops has no iteration.
        return self._extreme("mini", lower, end), self._extreme("maxi", end, upper)

    def _extremes(self, value: Value, name: str, one: Value) -> list[Value]:
        """What `value` is the minimum or maximum of, beside `one`."""
        owner = value.owner
        if not isinstance(owner, Op) or owner.name != name:
            return []
        left, right = owner.values()
        if owner.attrs["signedness"] != self._signedness:
            return []
        return [a for a, b in ((left, right), (right, left)) if made_alike(b, one)]

    def _extreme(self, name: str, left: Value, right: Value) -> Value:
        self.ops.append(
            make(name, (left, right), [left.type], self._loc, signedness=self._signedness)
        )
        return self.ops[-1].result


def _meets(step: int | None, lower: Value, start: Value) -> bool:
    """Whether loops of that step which begin at `lower` and at `start` count the same numbers, from
    wherever both do.
    """
    if step is None or not is_power_of_two(step):
        return False
    return is_multiple(lower, step) and is_multiple(start, step)


def _bounds(loop: Op) -> tuple[Value, Value, Value]:
    lower, upper, step = (loop.group(name) for name in ("lowerBound", "upperBound", "step"))
    assert isinstance(lower, Value)
    assert isinstance(upper, Value)
    assert isinstance(step, Value)
    return lower, upper, step


def _signedness(loop: Op) -> str:
    return "unsigned" if loop.attrs.get("unsignedCmp") else "signed"


class _Body:
    """Rewrites the body of the second loop: before `turn` it does what the first one did."""

    def __init__(self, loop: Op, aligned: Alignment, turn: Value) -> None:
        self._loop, self._aligned, self._turn = loop, aligned, turn
        self._condition: Value | None = None
        self._chosen: dict[Difference, Value] = {}

    def run(self) -> None:
        block = self._loop.regions[0].block
        differences = {common.second: common.differences for common in self._aligned.common}
        alone = {op for op in self._aligned.second if op.name != "constant"}
        ops: list[Op] = []
        for op in block.ops:
            if op in alone:
                continue
            found = differences.get(op)
            if found:
                new = [pair for pair in dict.fromkeys(found.values()) if pair not in self._chosen]
                ops += self._branch(new) if new else []
                op.operands = _with_operands(
                    op, {at: self._chosen[pair] for at, pair in found.items()}
                )
            ops.append(op)
        block.ops = ops

    def _branch(self, differences: list[Difference]) -> list[Op]:
        """A branch that gives what the second body has for these from the turn on."""
        ops: list[Op] = []
        if self._condition is None:
            index = self._loop.regions[0].block.args[0]
            compare = make(
                "cmpi", (index, self._turn), [Tile((), I1)], self._loop.loc,
                comparison_predicate="greater_than_or_equal", signedness=_signedness(self._loop),
            )  # fmt: skip
            ops.append(compare)
            self._condition = compare.result
        aligned = self._aligned
        then = self._arm(aligned.second, [right for _, right in differences], {})
        other = self._arm(aligned.first, [left for left, _ in differences], dict(aligned.same))
        types = [right.type for _, right in differences]
        branch = make("if", (self._condition,), types, self._loop.loc, (then, other))
        self._chosen.update(zip(differences, branch.results, strict=True))
        return [*ops, branch]

    def _arm(self, alone: list[Op], wanted: list[Value], values: dict[Value, Value]) -> Region:
        """A copy of what computes `wanted` out of what one body has alone."""
        ops = [copied_op(op, values) for op in needed(alone, wanted)]
        (given,) = replaced((tuple(wanted),), values)
        return Region([Block((), [*ops, make("yield", (given,), (), self._loop.loc)])])


def _with_operands(op: Op, values: dict[int, Value]) -> tuple[Any, ...]:
    """The operand groups of `op` with other values at some places, counted over all groups."""
    flat = iter([values.get(at, value) for at, value in enumerate(op.values())])
    return tuple(
        tuple(next(flat) for _ in group) if isinstance(group, tuple) else group and next(flat)
        for group in op.operands
    )
