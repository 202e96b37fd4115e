"""Pipes under all interleavings of their participants: small ones, exhaustively.

explore(Shape(2, (0,), (1, 2)), items=5)   # None, or what goes wrong and how it comes to that
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tile_cute.cutlass.numbers import Integers
from tile_cute.cutlass.pipes import FULL, HANDSHAKE, STRIDED, Shape, Step, advance

_NUMBERS = Integers()
_PRODUCES = ("producer_acquire", "fill", "producer_commit")
_CONSUMES = ("consumer_wait", "read", "consumer_release")


@dataclass(frozen=True)
class _Agent:
    """Where a participant stands: step of its program, cursor, what it read."""

    step: int = 0
    index: int = 0
    phase: int = 0
    count: int = 0


@dataclass(frozen=True)
class _World:
    """Everything that a participant's next step depends on.

    Attributes:
        barriers: (arrivals still missing, phase) of full and empty, by stage.
        slots: for each stage, the item that each producer last put there.
    """

    agents: tuple[_Agent, ...]
    barriers: tuple[tuple[int, int], ...]
    slots: tuple[tuple[int, ...], ...]


def explore(shape: Shape, items: int, handshake: Mapping[str, Step] = HANDSHAKE) -> str | None:
    """What goes wrong in some order of steps; None if nothing can.

    Every participant goes through `items` items. A consumer has to find the item of its own count
    from each producer that fills the stage, and nobody may wait for ever.
    """
    return _Search(shape, items, handshake).run()


class _Search:
    def __init__(self, shape: Shape, items: int, handshake: Mapping[str, Step]) -> None:
        shape.check()
        self.shape, self.items, self.handshake = shape, items, handshake
        self.producers = len(shape.producers)
        self.arrivals = shape.arrivals()

    def run(self) -> str | None:
        stages = self.shape.stages
        barriers = tuple((count, 0) for count in self.arrivals for _ in range(stages))
        agents = (_Agent(),) * (self.producers + len(self.shape.consumers))
        start = _World(agents, barriers, ((-1,) * self.producers,) * stages)
        seen, todo = {start}, [start]
        while todo:
            world = todo.pop()
            moved = False
            for number, agent in enumerate(world.agents):
                if agent.count == self.items:
                    continue
                after = self._step(world, number)
                if isinstance(after, str):
                    return after
                if after is not None:
                    moved = True
                    if after not in seen:
                        seen.add(after)
                        todo.append(after)
            if not moved and any(agent.count < self.items for agent in world.agents):
                return f"deadlock: {world.agents}"
        return None

    def _step(self, world: _World, number: int) -> _World | str | None:
        """The world after one step of a participant; None if it has to wait."""
        agent = world.agents[number]
        program = _PRODUCES if number < self.producers else _CONSUMES
        name = program[agent.step]
        if number < self.producers and not self._fills(agent.index, number):
            return self._moved(world, number, skip=True)
        if name == "fill":
            slots = [list(slot) for slot in world.slots]
            slots[agent.index][number] = agent.count
            world = _World(world.agents, world.barriers, tuple(map(tuple, slots)))
        elif name == "read":
            wrong = self._read(world, agent)
            if wrong:
                return wrong
        else:
            step = self.handshake[name]
            place = agent.index + (0 if step.barrier == FULL else self.shape.stages)
            missing, phase = world.barriers[place]
            if step.waits:
                if phase == (agent.phase ^ 1 if step.flipped else agent.phase):
                    return None
            else:
                world = self._arrive(world, place, missing, phase)
        return self._moved(world, number)

    def _fills(self, index: int, number: int) -> bool:
        if self.shape.executor not in STRIDED:
            return True
        return self.shape.filler(_NUMBERS, index) == number

    def _read(self, world: _World, agent: _Agent) -> str | None:
        for number, item in enumerate(world.slots[agent.index]):
            if self._fills(agent.index, number) and item != agent.count:
                return f"item {agent.count} is read, and stage {agent.index} holds item {item}"
        return None

    def _arrive(self, world: _World, place: int, missing: int, phase: int) -> _World:
        barriers = list(world.barriers)
        whole = self.arrivals[0 if place < self.shape.stages else 1]
        barriers[place] = (missing - 1, phase) if missing > 1 else (whole, phase ^ 1)
        return _World(world.agents, tuple(barriers), world.slots)

    def _moved(self, world: _World, number: int, *, skip: bool = False) -> _World:
        agent = world.agents[number]
        step = agent.step + 1
        if skip or step == len(_PRODUCES):
            cursor = {"index": agent.index, "phase": agent.phase, "count": agent.count}
            agent = _Agent(0, **advance(_NUMBERS, self.shape.stages, cursor))
        else:
            agent = _Agent(step, agent.index, agent.phase, agent.count)
        agents = (*world.agents[:number], agent, *world.agents[number + 1 :])
        return _World(agents, world.barriers, world.slots)
