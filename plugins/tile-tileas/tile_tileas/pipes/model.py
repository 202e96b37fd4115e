"""What agents do with pipes, as trees of steps. Plain data.

An agent's program is a tuple of nodes, run in order:

* `Step`: acquire, commit, wait or release of a pipe's stage, where an iterator points;
* `Create` and `Advance`: iterators, which are names of values;
* `Loop` and `Branch`: a body run some number of times, one of two arms. Loops and branches of
  several agents with one `key` go the same way: the same number of rounds, the same arm;
* `Do`: anything else that somebody asks for by name.
"""

from __future__ import annotations

from dataclasses import dataclass

ACQUIRE, COMMIT, WAIT, RELEASE = "acquire", "commit", "wait", "release"
PRODUCER_STEPS = (ACQUIRE, COMMIT)
CONSUMER_STEPS = (WAIT, RELEASE)


@dataclass(frozen=True)
class Pipe:
    """A ring of `stages`, read by `consumers` (their `consumer_idx`)."""

    name: str
    stages: int
    consumers: tuple[int, ...] = (0,)


@dataclass(frozen=True)
class Step:
    """One use of a pipe. `iterator` names the value that says which stage; "" if that is unknown.

    `where` is what messages call the place; `source` is for callers that come from an operation.
    """

    kind: str
    pipe: str
    iterator: str = ""
    consumer: int = 0
    where: str = ""
    source: int = -1


@dataclass(frozen=True)
class Create:
    """`name` is the first stage of a pipe."""

    name: str


@dataclass(frozen=True)
class Advance:
    """`name` is the stage after `before`."""

    name: str
    before: str


@dataclass(frozen=True)
class Carried:
    """An iterator that a loop carries: starts as `initial`, each round sees `argument` and leaves
    `yielded`; afterwards it is `result`.
    """

    argument: str
    initial: str
    yielded: str
    result: str


@dataclass(frozen=True)
class Loop:
    """`body`, as many rounds as `key` stands for."""

    key: str
    body: Program
    carried: tuple[Carried, ...] = ()


@dataclass(frozen=True)
class Branch:
    """One of two arms. `results` are (result, what the first arm yields, the second)."""

    key: str
    arms: tuple[Program, Program]
    results: tuple[tuple[str, str, str], ...] = ()


@dataclass(frozen=True)
class Do:
    """An operation of the program before it was divided among agents."""

    name: str


Node = Step | Create | Advance | Loop | Branch | Do
Program = tuple[Node, ...]


@dataclass(frozen=True)
class Agent:
    """A name and what the agent does."""

    name: str
    program: Program


@dataclass(frozen=True)
class Kernel:
    """Pipes and the agents that use them."""

    pipes: tuple[Pipe, ...]
    agents: tuple[Agent, ...]


@dataclass(frozen=True)
class Problem:
    """What is wrong, in words that follow "the pipe" or "the agent", and the step where it shows.

    `step` is None if no one step is to blame.
    """

    text: str
    step: Step | None = None
