"""Whether stages that are taken are given back, on every path, and as many as the other end takes.

How often something happens is counted without running anything: a sum over loops and arms, each
named by its key, so that ends in different agents compare equal where they go the same ways.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from tile_tileas.pipes.model import (
    ACQUIRE,
    COMMIT,
    RELEASE,
    WAIT,
    Agent,
    Branch,
    Kernel,
    Loop,
    Pipe,
    Problem,
    Program,
    Step,
)

#: Loops and arms around a step, sorted -> how often the step happens each time.
Count = Counter[tuple[str, ...]]

_OPENS = {ACQUIRE: (ACQUIRE, COMMIT), WAIT: (WAIT, RELEASE)}
_CLOSES = {COMMIT: ACQUIRE, RELEASE: WAIT}


def balance_problems(kernel: Kernel) -> Iterator[Problem]:
    """Stages left taken, given back twice, or counted differently at the two ends of a pipe."""
    for agent in kernel.agents:
        yield from _held_problems(agent)
    for pipe in kernel.pipes:
        yield from _end_problems(kernel, pipe)


# --- one end ---------------------------------------------------------------------------------


class _Holding:
    """Stages that an agent holds at a point of its program, by pipe, end and consumer."""

    def __init__(self, agent: str) -> None:
        self.agent = agent
        self.problems: list[Problem] = []

    def run(self, program: Program, held: Counter[tuple[str, str, int]]) -> None:
        """Advance `held` over a program."""
        for node in program:
            if isinstance(node, Step):
                self._step(node, held)
            elif isinstance(node, Loop):
                self._loop(node, held)
            elif isinstance(node, Branch):
                self._branch(node, held)

    def _step(self, step: Step, held: Counter[tuple[str, str, int]]) -> None:
        opens = step.kind in _OPENS
        key = (step.pipe, step.kind if opens else _CLOSES[step.kind], step.consumer)
        held[key] += 1 if opens else -1
        if held[key] < 0:
            before = _CLOSES[step.kind]
            self.problems.append(
                Problem(f"{self.agent} has a {step.kind} of {step.pipe} without {before}", step)
            )
            held[key] = 0

    def _loop(self, loop: Loop, held: Counter[tuple[str, str, int]]) -> None:
        before = Counter(held)
        self.run(loop.body, held)
        for key in sorted(set(held) | set(before)):
            if held[key] != before[key]:
                text = f"{self.agent} holds {held[key] - before[key]:+d} stages of {key[0]} more "
                self.problems.append(
                    Problem(f"{text}after each round of a loop", _first(loop.body))
                )
                held[key] = before[key]

    def _branch(self, branch: Branch, held: Counter[tuple[str, str, int]]) -> None:
        other = Counter(held)
        self.run(branch.arms[0], held)
        self.run(branch.arms[1], other)
        for key in sorted(set(held) | set(other)):
            if held[key] != other[key]:
                text = f"{self.agent} holds {held[key]} stages of {key[0]} after one arm of a "
                step = _first(branch.arms[0]) or _first(branch.arms[1])
                self.problems.append(
                    Problem(f"{text}branch and {other[key]} after the other", step)
                )


def _held_problems(agent: Agent) -> Iterator[Problem]:
    holding, held = _Holding(agent.name), Counter[tuple[str, str, int]]()
    holding.run(agent.program, held)
    yield from holding.problems
    for (pipe, kind, _), count in sorted(held.items()):
        if count:
            closes = _OPENS[kind][1]
            yield Problem(f"{agent.name} ends with {count} {kind} of {pipe} without {closes}")


def _first(program: Program) -> Step | None:
    for node in program:
        if isinstance(node, Step):
            return node
        inner = node.body if isinstance(node, Loop) else ()
        for part in (inner, *node.arms) if isinstance(node, Branch) else (inner,):
            found = _first(part)
            if found is not None:
                return found
    return None


# --- both ends -------------------------------------------------------------------------------


def count_of(program: Program, pipe: str, kind: str, consumer: int | None = None) -> Count:
    """How often a program takes such a step."""
    total: Count = Counter()
    for node in program:
        if isinstance(node, Step):
            mine = consumer is None or node.consumer == consumer
            if node.pipe == pipe and node.kind == kind and mine:
                total[()] += 1
        elif isinstance(node, Loop):
            for keys, number in count_of(node.body, pipe, kind, consumer).items():
                total[tuple(sorted((*keys, f"rounds of {node.key}")))] += number
        elif isinstance(node, Branch):
            total.update(_either(node, pipe, kind, consumer))
    return total


def _either(branch: Branch, pipe: str, kind: str, consumer: int | None) -> Count:
    """What both arms have in common, and the rest by arm."""
    first, second = (count_of(arm, pipe, kind, consumer) for arm in branch.arms)
    common = first & second
    total = Counter(common)
    for at, rest in enumerate((first - common, second - common)):
        for keys, number in rest.items():
            total[tuple(sorted((*keys, f"arm {at} of {branch.key}")))] += number
    return total


def _end_problems(kernel: Kernel, pipe: Pipe) -> Iterator[Problem]:
    produced: Count = Counter()
    for agent in kernel.agents:
        produced.update(count_of(agent.program, pipe.name, COMMIT))
    for consumer in pipe.consumers:
        taken: Count = Counter()
        for agent in kernel.agents:
            taken.update(count_of(agent.program, pipe.name, WAIT, consumer))
        if taken != produced:
            yield Problem(
                f"consumer {consumer} of {pipe.name} waits for {_text(taken)}, but its producer "
                f"commits {_text(produced)}"
            )


def _text(count: Count) -> str:
    terms = [" x ".join([str(number), *keys]) for keys, number in sorted(count.items()) if number]
    return " + ".join(terms) or "nothing"
