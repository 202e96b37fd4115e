"""Barriers whose turns threads count in step, so that one count serves several.

Two barriers are in step where each turn of one follows a turn of the other in the same block, and
nothing between takes a turn of either: their phases are the same there. Loops whose body leaves
the counts as far apart as it finds them keep that for all their iterations. So are the phases that
a loop carries, 0 and 1 in turn, with a barrier of which each iteration takes one turn.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, field

from tile_core.mlir import ir
from tile_tileas.dialect.agents import SWITCH, agents_of
from tile_tileas.sched.nodes import constant_of

TURN = "nv_tileas.barrier_turn"
_FOR = "scf.for"
_LOOPS = (_FOR, "scf.while")


@dataclass(frozen=True)
class Turn:
    """A turn of barrier number `barrier` is taken by `op`."""

    barrier: int
    op: ir.OpView


@dataclass(frozen=True)
class Inside:
    """An operation with regions in which turns are taken: "loop", "branch", "agents" or "other"."""

    op: ir.OpView
    kind: str
    regions: tuple[tuple[Item, ...], ...]
    barriers: frozenset[int]


Item = Turn | Inside


def turns_of(func: ir.Operation) -> tuple[Item, ...]:
    """The turns that a function takes, in program order; barriers are numbered as they come."""
    return _items(func.regions[0], {})


def same_turns(turns: Sequence[Item]) -> dict[ir.OpView, ir.OpView]:
    """Turns that another one stands for -> that one, which comes before it in its block."""
    left = dict.fromkeys(barrier for item in turns for barrier in _barriers(item))
    found: dict[ir.OpView, ir.OpView] = {}
    while left:
        first = next(iter(left))
        left.pop(first)
        for other in list(left):
            pair = _Pair(first, other)
            if pair.behind(turns, 0) is not None:
                found |= pair.same
                left.pop(other)
    return found


def carried_phases(turns: Sequence[Item]) -> Iterator[tuple[ir.Value, Turn]]:
    """Arguments of loops that are 0 and 1 in turn, and the turn that gives the same: the first of
    its barrier, and the only one of an iteration.
    """
    begun: set[int] = set()
    for item in turns:
        if isinstance(item, Inside) and item.op.operation.name == _FOR:
            turn = _once_each(item.regions[0], begun)
            if turn is not None:
                yield from ((argument, turn) for argument in _alternating(item.op))
        begun.update(_barriers(item))


def _once_each(body: Sequence[Item], begun: Container[int]) -> Turn | None:
    """The first turn of a body, if it is the only one of its barrier, which has not `begun`."""
    first = body[0]
    if not isinstance(first, Turn) or first.barrier in begun:
        return None
    again = any(first.barrier in _barriers(item) for item in body[1:])
    return None if again else first


def _alternating(loop: ir.OpView) -> Iterator[ir.Value]:
    """Arguments that are 0 at first, and in each iteration what they were not in the one before."""
    block = loop.regions[0].blocks[0]
    handed_on = block.operations[len(block.operations) - 1].operands
    carried = zip(block.arguments[1:], list(loop.operands)[3:], handed_on, strict=True)
    for argument, first, following in carried:
        if constant_of(first) == 0 and _is_flipped(following, argument):
            yield argument


def _is_flipped(value: ir.Value, argument: ir.Value) -> bool:
    made = value.owner
    if isinstance(made, ir.Block) or made.name != "arith.xori":
        return False
    return made.operands[0] == argument and constant_of(made.operands[1]) == 1


def _items(region: ir.Region, numbers: dict[ir.Value, int]) -> tuple[Item, ...]:
    return tuple(
        item for block in region.blocks for op in block.operations for item in _item(op, numbers)
    )


def _item(op: ir.OpView, numbers: dict[ir.Value, int]) -> Iterator[Item]:
    name = op.operation.name
    if name == TURN:
        yield Turn(numbers.setdefault(op.operands[0], len(numbers)), op)
    if not len(op.regions):
        return
    holders = agents_of(op) if name == SWITCH else [op]
    regions = tuple(_items(region, numbers) for each in holders for region in each.regions)
    barriers = frozenset(one for items in regions for item in items for one in _barriers(item))
    if barriers:
        yield Inside(op, _kind(name), regions, barriers)


def _kind(name: str) -> str:
    if name in _LOOPS:
        return "loop"
    return {"scf.if": "branch", SWITCH: "agents"}.get(name, "other")


def _barriers(item: Item) -> Sequence[int] | frozenset[int]:
    return (item.barrier,) if isinstance(item, Turn) else item.barriers


#: Behind agents: more than any turn of the other barrier may follow.
_AFTER_AGENTS = 1 << 30


@dataclass
class _Pair:
    """Follows how many turns more were taken of barrier `first` than of `other`, each turn of which
    has to be behind one of the first, that goes to `same`.
    """

    first: int
    other: int
    same: dict[ir.OpView, ir.OpView] = field(default_factory=dict)

    def behind(self, items: Sequence[Item], more: int | None) -> int | None:
        """How many more there are behind `items`, of one region, where there were `more` before;
        None where the two are not in step.
        """
        latest: ir.OpView | None = None
        for item in items:
            if more is None:
                return None
            if isinstance(item, Turn) and item.barrier == self.first:
                latest, more = item.op, more + 1
            elif isinstance(item, Turn) and item.barrier == self.other:
                if latest is None or more != 1:
                    return None
                self.same[item.op], more = latest, 0
            elif isinstance(item, Inside) and not item.barriers.isdisjoint(
                (self.first, self.other)
            ):
                latest, more = None, self._inside(item, more)
        return more

    def _inside(self, item: Inside, more: int) -> int | None:
        if item.kind == "agents":
            # Agents count from zero, each for itself; who goes on behind them is not followed.
            in_step = more == 0 and all(
                self.behind(region, 0) is not None for region in item.regions
            )
            return _AFTER_AGENTS if in_step else None
        if item.kind == "branch":
            ends = {self.behind(region, more) for region in item.regions}
            return ends.pop() if len(ends) == 1 else None
        if item.kind == "loop":
            return self._loop(item.regions, more)
        return None

    def _loop(self, regions: Sequence[Sequence[Item]], more: int) -> int | None:
        """A loop leaves behind its first region, and comes back to it behind its last one."""
        ends = self.behind(regions[0], more)
        back = ends
        for region in regions[1:]:
            back = back if back is None else self.behind(region, back)
        return ends if back == more else None
