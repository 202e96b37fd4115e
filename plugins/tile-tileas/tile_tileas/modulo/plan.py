"""Which operation of a loop runs in which stage, and in what order. Plain numbers, no MLIR.

In step k of the pipelined loop an operation of stage s works for iteration k + S - 1 - s, S being
the number of stages; within a step, order is that of one agent (`body_order`). Two liberties are
taken with a schedule:

* What costs next to nothing (addresses, views, broadcasts) is made again in every stage that uses
  it, so that no register carries it from step to step.
* A load whose tile goes to products alone is moved to the stage of its product, since
  tileas-unspecialized-pipeline lets it run ahead through shared memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tile_core.sched import Edge


@dataclass(frozen=True)
class Instance:
    """Operation `op` in stage `stage`."""

    op: int
    stage: int


@dataclass(frozen=True)
class Dependences:
    """What binds the operations of a loop body; the terminator is not among the `count`.

    `uses` are pairs (operation, user) within an iteration, in any order. The values of `kept` are
    needed by the next iteration or after the loop. `cheap` ones may be made again, `late` ones
    moved to the stage of their users. `edges` is all that a schedule has to respect.
    """

    count: int
    uses: tuple[tuple[int, int], ...]
    edges: tuple[Edge, ...]
    kept: frozenset[int] = frozenset()
    cheap: frozenset[int] = frozenset()
    late: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Plan:
    """Instances in the order in which a step runs them, and the number of stages."""

    order: tuple[Instance, ...]
    stages: int
    _stages_of: dict[int, tuple[int, ...]] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        for instance in self.order:
            known = self._stages_of.get(instance.op, ())
            self._stages_of[instance.op] = tuple(sorted((*known, instance.stage)))

    def provider(self, op: int, stage: int | None) -> int:
        """The stage whose instance of `op` a user in `stage` takes; None: a later iteration."""
        stages = self._stages_of[op]
        return stage if stage is not None and stage in stages else stages[0]


def plan(deps: Dependences, order: Sequence[int], stages: Sequence[int]) -> Plan:
    """The plan for operations that run in `order` within a step, each in its stage of `stages`.

    Raises:
        ValueError: a dependence would be broken; names the edge.
    """
    users: list[list[int]] = [[] for _ in range(deps.count)]
    for source, user in deps.uses:
        users[source].append(user)
    where: list[tuple[int, ...]] = [()] * deps.count
    steps = [Instance(op, stages[op]) for op in order]
    for op in reversed(range(deps.count)):
        wanted = {stage for user in users[op] for stage in where[user]}
        where[op] = _stages(deps, op, stages[op], wanted)
        _put(steps, op, stages[op], where[op], users[op], first=op in deps.late)
    number = _numbered(deps, sorted({step.stage for step in steps}))
    last = max(number.values(), default=0)
    found = Plan(tuple(Instance(s.op, number[s.stage]) for s in steps), last + 1)
    _check(deps, found)
    return found


def _numbered(deps: Dependences, used: Sequence[int]) -> dict[int, int]:
    """New numbers for the stages that are `used`. One in which nothing runs goes, since it only
    keeps registers for longer; but where pipes carry what crosses stages, that is time to arrive.
    """
    if any(edge.kind == "ring" for edge in deps.edges):
        return {stage: stage - used[0] for stage in used}
    return {stage: at for at, stage in enumerate(used)}


def _stages(deps: Dependences, op: int, own: int, wanted: set[int]) -> tuple[int, ...]:
    """The stages that `op` runs in, given those of its users."""
    if not wanted:
        return (own,)
    if op in deps.late and len(wanted) == 1 and op not in deps.kept:
        return tuple(wanted)
    if op in deps.cheap:
        return tuple(sorted(wanted | ({own} if op in deps.kept else set())))
    return (own,)


def _put(
    steps: list[Instance],
    op: int,
    own: int,
    stages: Sequence[int],
    users: Sequence[int],
    *,
    first: bool,
) -> None:
    """Put instances of `op` into `steps`: right before their users, or `first` of all."""
    for stage in stages:
        if stage == own:
            continue
        mine = {Instance(user, stage) for user in users}
        at = 0 if first else next(at for at, step in enumerate(steps) if step in mine)
        steps.insert(at, Instance(op, stage))
    if own not in stages:
        steps.remove(Instance(op, own))


def _check(deps: Dependences, found: Plan) -> None:
    position = {step: at for at, step in enumerate(found.order)}
    for edge in deps.edges:
        if edge.src >= deps.count or edge.dst >= deps.count:
            continue
        for user in found.order:
            if user.op != edge.dst:
                continue
            stage = None if edge.distance else user.stage
            source = Instance(edge.src, found.provider(edge.src, stage))
            ahead = user.stage + edge.distance - source.stage
            if ahead < 0 or (ahead == 0 and position[source] >= position[user]):
                raise ValueError(
                    f"operation {edge.dst} would run before operation {edge.src}: {edge.kind} "
                    f"edge, distance {edge.distance}, stages {user.stage} and {source.stage}"
                )
