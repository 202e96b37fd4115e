"""Numbers that a loop counts up beside its index become functions of the index.

    n = a / 32                                          for i in [a, b) step 32:
    for i in [a, b) step 32:  f(n); n += 1     =>           f(i / 32)

Programs that came from pointers that move along count tiles so. What carries a number from one
iteration to the next is not known before the one before has run: tiles that are found by it are not
loaded ahead as others are, and two loops of which the second begins to count anew are not one.
Numbers wrap around as they did.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tile_cudatile.transforms.multiples import is_multiple, is_power_of_two
from tile_cudatile.transforms.rewrite import (
    constant_number,
    defined,
    drop_dead,
    made_alike,
    make,
    number_of,
    substitute,
    uses,
)
from tile_cudatile.tree import Block, Module, Op, Region, Value
from tile_cudatile.types import Tile


def derive_counters(module: Module) -> int:
    """Rewrites loops in place; returns how many numbers are computed of an index now."""
    count = 0
    for entry in module.entries:
        found = _region(entry.body)
        if found:
            _drop_carried(entry.body)
            drop_dead(entry.body)
            module.layout = None
        count += found
    return count


def _region(region: Region) -> int:
    count = 0
    for block in region.blocks:
        ops: list[Op] = []
        for op in block.ops:
            count += sum(_region(inner) for inner in op.regions)
            if op.name == "for":
                derived = _Loop(op)
                count += derived.run()
                ops += derived.before
            ops.append(op)
        block.ops = ops
    return count


@dataclass
class _Counter:
    """What an iteration adds `step` to, from `initial` on, and nothing else changes."""

    value: Value
    initial: Value
    step: Value
    added: Op


@dataclass
class _Loop:
    """One loop. `before`: what its rewritten body needs in front of it."""

    op: Op
    before: list[Op] = field(default_factory=list)
    _within: list[Op] = field(default_factory=list)

    def run(self) -> int:
        """Computes what it counts of its index; returns how many numbers."""
        block = self.op.regions[0].block
        end = block.ops[-1]
        if end.name != "continue" or _leaves_early(block, end):
            return 0
        counts, count = uses(self.op.regions[0]), 0
        for at in range(len(end.values())):
            counter = self._counter(block, end, at)
            # What is only added to anew is no number that anybody looks at.
            if counter is None or counts[counter.value] < 2:
                continue
            made = self._derived(counter)
            if made is None:
                continue
            others = [op for op in block.ops if op is not counter.added]
            substitute(others, {counter.value: made})
            block.ops = [*self._within, *block.ops]
            self._within = []
            count += 1
        return count

    def _counter(self, block: Block, end: Op, at: int) -> _Counter | None:
        value, initial = block.args[at + 1], _initial(self.op)[at]
        added = end.values()[at].owner
        if not isinstance(added, Op) or added.name != "addi" or added not in block.ops:
            return None
        if value.type != block.args[0].type or value not in added.values():
            return None
        left, right = added.values()
        step = right if left is value else left
        if step is value or (number_of(step) is None and step in defined(self.op.regions[0])):
            return None
        return _Counter(value, initial, step, added)

    def _derived(self, counter: _Counter) -> Value | None:
        """The number of an iteration, by its index; None where nothing short gives it."""
        index, lower = self.op.regions[0].block.args[0], _bound(self.op, "lowerBound")
        step = _bound(self.op, "step")
        each, unit = number_of(step), number_of(counter.step)
        if made_alike(step, counter.step):
            return self._from(index, lower, counter.initial)
        if each is None or unit is None or each <= 0 or unit <= 0:
            return None
        if unit == 1 and _is_quotient(counter.initial, lower, each):
            signedness = "unsigned" if self.op.attrs.get("unsignedCmp") else "signed"
            return self._made(self._within, "divi", index, each, signedness)
        # Iterations so far: what is divided is no less than 0, and a multiple.
        gone = index if number_of(lower) == 0 else self._two(self._within, "subi", index, lower)
        if unit % each == 0:
            gone = self._made(self._within, "muli", gone, unit // each)
        else:
            gone = self._made(self._within, "divi", gone, each, "unsigned")
            if unit > 1:
                gone = self._made(self._within, "muli", gone, unit)
        if number_of(counter.initial) == 0:
            return gone
        return self._two(self._within, "addi", gone, counter.initial)

    def _from(self, index: Value, lower: Value, initial: Value) -> Value:
        """As many more than `initial` as the index is more than `lower`."""
        if made_alike(lower, initial):
            return index
        if number_of(lower) == 0:
            return self._two(self._within, "addi", index, initial)
        ahead = self._two(self.before, "subi", initial, lower)
        return self._two(self._within, "addi", index, ahead)

    def _made(
        self, ops: list[Op], name: str, value: Value, number: int, signedness: str = ""
    ) -> Value:
        """`value` times a number, or by one, with `signedness`."""
        assert isinstance(value.type, Tile)
        constant = constant_number(value.type, number, self.op.loc)
        ops.append(constant)
        given = {"signedness": signedness} if signedness else {}
        rounding = {"rounding": "negative_inf"} if signedness == "signed" else {}
        ops.append(
            make(name, (value, constant.result), [value.type], self.op.loc, (), **given, **rounding)
        )
        return ops[-1].result

    def _two(self, ops: list[Op], name: str, left: Value, right: Value) -> Value:
        ops.append(make(name, (left, right), [left.type], self.op.loc))
        return ops[-1].result


def _is_quotient(initial: Value, lower: Value, step: int) -> bool:
    """Whether a loop's first number is its first index by its step, which divides that."""
    first, number = number_of(lower), number_of(initial)
    if first is not None and number is not None:
        return number * step == first
    owner = initial.owner
    if not is_power_of_two(step) or not isinstance(owner, Op) or owner.name != "divi":
        return False
    value, divisor = owner.values()
    alike = made_alike(value, lower) and number_of(divisor) == step
    return alike and is_multiple(lower, step)


def _leaves_early(block: Block, end: Op) -> bool:
    """Whether something inside of a loop's body goes on to its next iteration."""
    pending = list(block.ops)
    while pending:
        op = pending.pop()
        if op is not end and op.name in ("continue", "return"):
            return True
        if op.name not in ("for", "loop"):
            pending += [inner for r in op.regions for b in r.blocks for inner in b.ops]
    return False


def _initial(loop: Op) -> tuple[Value, ...]:
    values = loop.group("initValues")
    assert isinstance(values, tuple)
    return values


def _bound(loop: Op, name: str) -> Value:
    value = loop.group(name)
    assert isinstance(value, Value)
    return value


def _drop_carried(region: Region) -> None:
    """Loops carry no number that nobody looks at."""
    counts = uses(region)
    for op in region.walk():
        if op.name == "for":
            _drop_unused(op, counts)


def _drop_unused(loop: Op, counts: dict[Value, int]) -> None:
    block = loop.regions[0].block
    end = block.ops[-1]
    if end.name != "continue" or _leaves_early(block, end):
        return
    given, kept = end.values(), []
    for at, value in enumerate(given):
        argument, owner = block.args[at + 1], value.owner
        only = isinstance(owner, Op) and owner.name == "addi" and argument in owner.values()
        alone = only and counts[argument] == counts[value] == 1 and not counts[loop.results[at]]
        if not alone:
            kept.append(at)
    if len(kept) == len(given):
        return
    initial = _initial(loop)
    loop.operands = (*loop.operands[:-1], tuple(initial[at] for at in kept))
    end.operands = (tuple(given[at] for at in kept),)
    block.args = (block.args[0], *(block.args[at + 1] for at in kept))
    loop.results = tuple(loop.results[at] for at in kept)
    for values in (block.args, loop.results):
        for index, value in enumerate(values):
            value.index = index
