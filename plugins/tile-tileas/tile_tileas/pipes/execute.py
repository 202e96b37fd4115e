"""Whether agents can finish: they are run, all at once, on credits.

Every loop runs `rounds` times and each branch goes both ways. What one agent does never takes from
another what that one could have used (each end of a pipe belongs to one agent), so running whoever
can run finds a deadlock if there is one in any order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import product

from tile_tileas.pipes.model import (
    ACQUIRE,
    COMMIT,
    RELEASE,
    WAIT,
    Advance,
    Branch,
    Create,
    Kernel,
    Loop,
    Pipe,
    Problem,
    Program,
    Step,
)

#: Conditions of which all combinations are tried; with more, each is turned by itself.
_ALL_WAYS = 6


def deadlock_problems(kernel: Kernel, rounds: int | None = None) -> Iterator[Problem]:
    """What keeps the agents from finishing, for the first way through the branches that does.

    `rounds` of every loop: unless given, one more than the largest pipe has stages, at least two.
    """
    if rounds is None:
        rounds = max([2, *(pipe.stages + 1 for pipe in kernel.pipes)])
    for arms in _ways(kernel):
        found = list(_Run(kernel, rounds, arms).problems())
        yield from found
        if found:
            return


def _ways(kernel: Kernel) -> Iterator[Mapping[str, int]]:
    """Which arm each condition takes."""
    keys = sorted({key for agent in kernel.agents for key in _conditions(agent.program)})
    if len(keys) <= _ALL_WAYS:
        for arms in product((0, 1), repeat=len(keys)):
            yield dict(zip(keys, arms, strict=True))
        return
    for default in (0, 1):
        yield dict.fromkeys(keys, default)
        for key in keys:
            yield dict.fromkeys(keys, default) | {key: 1 - default}


def _conditions(program: Program) -> Iterator[str]:
    for node in program:
        if isinstance(node, Loop):
            yield from _conditions(node.body)
        elif isinstance(node, Branch):
            yield node.key
            for arm in node.arms:
                yield from _conditions(arm)


class _Credits:
    """The stages of one pipe: what its ends have done so far."""

    def __init__(self, pipe: Pipe) -> None:
        self.pipe = pipe
        self.done: Counter[tuple[str, int]] = Counter()

    def may(self, step: Step) -> bool:
        """Whether the step need not wait."""
        if step.kind == WAIT:
            return self.done[WAIT, step.consumer] < self.done[COMMIT, 0]
        if step.kind == ACQUIRE:
            freed = min(self.done[RELEASE, c] for c in self.pipe.consumers)
            return self.done[ACQUIRE, 0] < freed + self.pipe.stages
        return True

    def take(self, step: Step) -> int:
        """Note the step; its number, from 0."""
        key = (step.kind, step.consumer if step.kind in (WAIT, RELEASE) else 0)
        self.done[key] += 1
        return self.done[key] - 1


class _Run:
    def __init__(self, kernel: Kernel, rounds: int, arms: Mapping[str, int]) -> None:
        self.kernel, self.rounds, self.arms = kernel, rounds, arms
        self.credits = {pipe.name: _Credits(pipe) for pipe in kernel.pipes}
        self.wrong: list[Problem] = []

    def problems(self) -> Iterator[Problem]:
        """Iterators that point elsewhere, and steps that are never taken."""
        runs = [self._agent(agent.name, agent.program, {}) for agent in self.kernel.agents]
        waiting = [next(run, None) for run in runs]
        moved = True
        while moved and not self.wrong:
            moved = False
            for at, step in enumerate(waiting):
                if step is not None and self.credits[step.pipe].may(step):
                    waiting[at], moved = next(runs[at], None), True
        yield from self.wrong
        if self.wrong:
            return
        for agent, step in zip(self.kernel.agents, waiting, strict=True):
            if step is not None:
                text = f"{agent.name} waits for ever to {step.kind} {step.pipe}"
                yield Problem(text + (f" at {step.where}" if step.where else ""), step)

    def _agent(self, name: str, program: Program, places: dict[str, int]) -> Iterator[Step]:
        """The steps of an agent; each is taken when the iterator is asked for the next."""
        for node in program:
            if isinstance(node, Step):
                yield node
                self._take(name, node, places)
            elif isinstance(node, Create):
                places[node.name] = 0
            elif isinstance(node, Advance):
                places[node.name] = places.get(node.before, 0) + 1
            elif isinstance(node, Loop):
                yield from self._loop(name, node, places)
            elif isinstance(node, Branch):
                arm = self.arms[node.key]
                yield from self._agent(name, node.arms[arm], places)
                for result, *yielded in node.results:
                    places[result] = places.get(yielded[arm], 0)

    def _loop(self, name: str, loop: Loop, places: dict[str, int]) -> Iterator[Step]:
        now = {c.argument: places.get(c.initial, 0) for c in loop.carried}
        for _ in range(self.rounds):
            places.update(now)
            yield from self._agent(name, loop.body, places)
            now = {c.argument: places.get(c.yielded, 0) for c in loop.carried}
        for c in loop.carried:
            places[c.result] = now[c.argument]

    def _take(self, name: str, step: Step, places: Mapping[str, int]) -> None:
        number = self.credits[step.pipe].take(step)
        if not step.iterator:
            return
        place = places.get(step.iterator, 0)
        if place != number:
            stages = self.credits[step.pipe].pipe.stages
            text = f"{name} means stage {place % stages} in round {place // stages} of {step.pipe} "
            text += f"to {step.kind}, but it is the turn of stage {number % stages} in round "
            self.wrong.append(Problem(f"{text}{number // stages}", step))
