"""Whether agents together do what the program did, in an order that its dependences allow."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from tile_tileas.pipes.model import (
    COMMIT,
    WAIT,
    Agent,
    Branch,
    Do,
    Kernel,
    Loop,
    Problem,
    Program,
    Step,
)

#: An operation's name and those of the operations whose results, or effects, it needs.
Dependences = Sequence[tuple[str, Sequence[str]]]


def coverage_problems(
    kernel: Kernel, original: Dependences, shared: Collection[str] = ()
) -> Iterator[Problem]:
    """Operations that nobody does, that several do, or that do not wait for what they need.

    `shared` may be done by several agents (scalars without effects). Between agents, an operation
    waits for another by a pipe: the one commits after it, the other waits before.
    """
    places = {agent.name: _order(agent.program) for agent in kernel.agents}
    homes: dict[str, list[Agent]] = {name: [] for name, _ in original}
    for agent in kernel.agents:
        for name in dict.fromkeys(n.name for n in places[agent.name] if isinstance(n, Do)):
            if name not in homes:
                yield Problem(f"{agent.name} does {name}, which the program does not")
            else:
                homes[name].append(agent)
    for name, needs in original:
        if not homes[name]:
            yield Problem(f"no agent does {name}")
        elif len(homes[name]) > 1 and name not in shared:
            doing = ", ".join(agent.name for agent in homes[name])
            yield Problem(f"{name} is done by several agents: {doing}")
        for agent in homes[name]:
            for need in needs:
                if not _waits(places, homes, agent.name, name, need):
                    yield Problem(f"{agent.name} does {name} without waiting for {need}")


def _order(program: Program) -> list[Do | Step]:
    """Operations and steps in program order; arms of branches one after the other."""
    found: list[Do | Step] = []
    for node in program:
        if isinstance(node, Do | Step):
            found.append(node)
        elif isinstance(node, Loop):
            found += _order(node.body)
        elif isinstance(node, Branch):
            found += [inner for arm in node.arms for inner in _order(arm)]
    return found


def _waits(
    places: dict[str, list[Do | Step]],
    homes: dict[str, list[Agent]],
    agent: str,
    name: str,
    need: str,
) -> bool:
    mine = places[agent]
    before = mine[: mine.index(Do(name))]
    if Do(need) in before:
        return True
    waited = {n.pipe for n in before if isinstance(n, Step) and n.kind == WAIT}
    for other in homes.get(need, ()):
        theirs = places[other.name]
        after = theirs[theirs.index(Do(need)) :]
        committed = {n.pipe for n in after if isinstance(n, Step) and n.kind == COMMIT}
        if other.name != agent and waited & committed:
            return True
    return False
