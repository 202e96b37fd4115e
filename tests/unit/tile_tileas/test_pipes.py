"""The checks of pipes on plain programs: correct ones, and each with a fault planted in it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tile_tileas.pipes.balance import balance_problems
from tile_tileas.pipes.check import problems_of
from tile_tileas.pipes.coverage import coverage_problems
from tile_tileas.pipes.execute import deadlock_problems
from tile_tileas.pipes.model import (
    Advance,
    Agent,
    Branch,
    Carried,
    Create,
    Do,
    Kernel,
    Loop,
    Node,
    Pipe,
    Program,
    Step,
)


def texts(kernel: Kernel) -> list[str]:
    return [problem.text for problem in problems_of(kernel)]


def end(
    kinds: tuple[str, str], pipe: str = "p", between: Program = (), consumer: int = 0
) -> Program:
    """Both steps of one end on iterator `i`, then the next stage."""
    first, second = (Step(kind, pipe, "i", consumer) for kind in kinds)
    return (first, *between, second, Advance("n", "i"))


def loop(body: Program, key: str = "k") -> Program:
    return (Create("s"), Loop(key, body, (Carried("i", "s", "n", "r"),)))


PRODUCE, CONSUME = ("acquire", "commit"), ("wait", "release")


def kernel(producer: Program, consumer: Program, stages: int = 2) -> Kernel:
    return Kernel((Pipe("p", stages),), (Agent("load", producer), Agent("math", consumer)))


@pytest.mark.parametrize("stages", [1, 2, 3, 7])
def test_a_ring_of_any_depth(stages: int) -> None:
    assert not texts(kernel(loop(end(PRODUCE)), loop(end(CONSUME)), stages))


def test_releases_may_lag() -> None:
    """The stage of the round before is freed after the next one is waited for."""
    body: Program = (
        Advance("n", "i"), Step("wait", "p", "n"), Step("release", "p", "i"),
    )  # fmt: skip
    lagging: Program = (
        Create("s"),
        Step("wait", "p", "s"),
        Loop("k", body, (Carried("i", "s", "n", "r"),)),
        Step("release", "p", "r"),
    )
    ahead: Program = (
        Create("s"),
        Step("acquire", "p", "s"),
        Step("commit", "p", "s"),
        Advance("t", "s"),
        Loop("k", end(PRODUCE), (Carried("i", "t", "n", "r"),)),
    )
    assert not texts(kernel(ahead, lagging, 2))
    found = texts(kernel(ahead, lagging, 1))
    assert found == ["load waits for ever to acquire p", "math waits for ever to wait p"]


def test_both_arms_of_a_branch() -> None:
    """A conditional transfer needs the same condition at both ends."""

    def program(kinds: tuple[str, str], key: str) -> Program:
        arm = tuple(replace(n, name="m") if isinstance(n, Advance) else n for n in end(kinds))
        return loop((Branch(key, (arm, ()), (("n", "m", "i"),)),))

    assert not texts(kernel(program(PRODUCE, "c"), program(CONSUME, "c")))
    (found,) = texts(kernel(program(PRODUCE, "c"), program(CONSUME, "d")))
    assert found == (
        "consumer 0 of p waits for 1 x arm 0 of d x rounds of k, but its producer commits "
        "1 x arm 0 of c x rounds of k"
    )


def test_two_consumers_free_a_stage_together() -> None:
    pipes = (Pipe("p", 2, (0, 1)),)
    readers = [Agent(f"math{c}", loop(end(CONSUME, consumer=c))) for c in (0, 1)]
    producer = Agent("load", loop(end(PRODUCE)))
    assert not texts(Kernel(pipes, (producer, *readers)))
    assert texts(Kernel(pipes, (producer, readers[0]))) == [
        "consumer 1 of p waits for nothing, but its producer commits 1 x rounds of k"
    ]


def test_one_agent_at_both_ends() -> None:
    body = (*end(PRODUCE)[:-1], *end(CONSUME))
    one = Kernel((Pipe("p", 1),), (Agent("all", loop(body)),))
    assert not texts(one)
    turned = (*end(CONSUME)[:-1], *end(PRODUCE))
    (found,) = texts(Kernel((Pipe("p", 1),), (Agent("all", loop(turned)),)))
    assert found == "all waits for ever to wait p"


def test_two_pipes_taken_in_opposite_order() -> None:
    def body(kinds: tuple[str, str], names: str) -> Program:
        steps = [Step(kind, name, "i") for kind in kinds for name in names]
        return (*steps, Advance("n", "i"))

    pipes = (Pipe("p", 1), Pipe("q", 1))
    fine = Kernel(
        pipes, (Agent("a", loop(body(PRODUCE, "pq"))), Agent("b", loop(body(CONSUME, "qp"))))
    )
    assert not texts(fine)
    both = (
        Agent("a", loop((*body(CONSUME, "q")[:-1], *body(PRODUCE, "p")))),
        Agent("b", loop((*body(CONSUME, "p")[:-1], *body(PRODUCE, "q")))),
    )
    assert texts(Kernel(pipes, both)) == [
        "a waits for ever to wait q", "b waits for ever to wait p",
    ]  # fmt: skip


def drop(program: Program, at: int) -> Program:
    """Without the step number `at`, counted over the loop's body."""
    create, inner = program
    assert isinstance(inner, Loop)
    return (create, replace(inner, body=(*inner.body[:at], *inner.body[at + 1 :])))


FAULTS: list[tuple[str, Program, Program, str]] = [
    (
        "no acquire",
        drop(loop(end(PRODUCE)), 0),
        loop(end(CONSUME)),
        "load has a commit of p without acquire",
    ),
    (
        "no commit",
        drop(loop(end(PRODUCE)), 1),
        loop(end(CONSUME)),
        "load holds +1 stages of p more after each round of a loop",
    ),
    (
        "no wait",
        loop(end(PRODUCE)),
        drop(loop(end(CONSUME)), 0),
        "math has a release of p without wait",
    ),
    (
        "no release",
        loop(end(PRODUCE)),
        drop(loop(end(CONSUME)), 1),
        "math holds +1 stages of p more after each round of a loop",
    ),
    (
        "the producer's iterator stands still",
        (Create("i"), Loop("k", end(PRODUCE))),
        loop(end(CONSUME)),
        "load means stage 0 in round 0 of p to acquire, but it is the turn of stage 1 in round 0",
    ),
    (
        "the consumer starts at the second stage",
        loop(end(PRODUCE)),
        (Create("z"), Advance("s", "z"), *loop(end(CONSUME))[1:]),
        "math means stage 1 in round 0 of p to wait, but it is the turn of stage 0 in round 0",
    ),
    (
        "another loop",
        loop(end(PRODUCE)),
        loop(end(CONSUME), "j"),
        "consumer 0 of p waits for 1 x rounds of j, but its producer commits 1 x rounds of k",
    ),
    (
        "commit under a branch",
        loop(
            (
                Step("acquire", "p", "i"),
                Branch("c", ((Step("commit", "p", "i"),), ())),
                Advance("n", "i"),
            )
        ),
        loop(end(CONSUME)),
        "load holds 0 stages of p after one arm of a branch and 1 after the other",
    ),
    (
        "a stage kept to the end",
        (*loop(end(PRODUCE)), Step("acquire", "p", "r")),
        loop(end(CONSUME)),
        "load ends with 1 acquire of p without commit",
    ),
]


@pytest.mark.parametrize(
    ("producer", "consumer", "text"), [f[1:] for f in FAULTS], ids=[f[0] for f in FAULTS]
)
def test_planted_faults_are_found(producer: Program, consumer: Program, text: str) -> None:
    assert text in texts(kernel(producer, consumer))


def test_every_single_step_matters() -> None:
    """Any step removed, doubled, or two neighbours exchanged in a three-stage relay is found.

    Exchanging what different pipes do may be harmless; those that are not found must run as well.
    """
    pipes = (Pipe("p", 2), Pipe("q", 3))

    def relay(at: int) -> list[Program]:
        middle = loop(
            (
                Step("wait", "p", "i"), Step("acquire", "q", "i"), Step("commit", "q", "i"),
                Step("release", "p", "i"), Advance("n", "i"),
            )
        )  # fmt: skip
        return [loop(end(PRODUCE)), middle, loop(end(CONSUME, "q"))][at : at + 1]

    good = [relay(at)[0] for at in range(3)]

    def build(programs: list[Program]) -> Kernel:
        return Kernel(pipes, tuple(Agent(f"a{at}", p) for at, p in enumerate(programs)))

    assert not texts(build(good))
    for at, program in enumerate(good):
        inner = program[1]
        assert isinstance(inner, Loop)
        for step in range(len(inner.body)):
            for changed in ((), (inner.body[step], inner.body[step])):
                if changed and isinstance(inner.body[step], Advance):
                    continue  # the same value named twice
                body: tuple[Node, ...] = (*inner.body[:step], *changed, *inner.body[step + 1 :])
                programs = [*good[:at], (program[0], replace(inner, body=body)), *good[at + 1 :]]
                assert texts(build(programs)), (
                    f"agent {at}: {inner.body[step]} {len(changed)} times"
                )


def test_rounds_are_enough_to_come_round() -> None:
    """A pipe whose stages are never freed only stops when they are used up."""
    unfreed = kernel(loop(end(PRODUCE)), loop((Step("wait", "p", "i"), Advance("n", "i"))), 4)
    assert list(deadlock_problems(unfreed, rounds=4)) == []
    assert list(deadlock_problems(unfreed))
    assert list(balance_problems(unfreed))


def test_many_conditions_are_turned_one_by_one() -> None:
    keys = [f"c{at}" for at in range(9)]
    arms = tuple(Branch(key, ((), ())) for key in keys)
    stuck = Branch("c8", ((), (Step("wait", "p"), Step("release", "p"))))
    assert not list(deadlock_problems(kernel(arms, arms)))
    assert list(deadlock_problems(kernel(arms, (*arms, stuck))))


ORIGINAL = [("load", []), ("dot", ["load"]), ("store", ["dot"])]


def divided(producer: Program, consumer: Program) -> list[str]:
    return [p.text for p in coverage_problems(kernel(producer, consumer), ORIGINAL, ("index",))]


def test_coverage_in_dependence_order() -> None:
    load = loop(end(PRODUCE, between=(Do("load"),)))
    rest = loop((*end(CONSUME, between=(Do("dot"),)), Do("store")))
    assert divided(load, rest) == []
    assert divided(load, loop(end(CONSUME, between=(Do("dot"),)))) == ["no agent does store"]
    assert divided(load, loop((Do("dot"), *end(CONSUME), Do("store")))) == [
        "math does dot without waiting for load"
    ]
    assert divided(load, loop((*end(CONSUME), Do("store"), Do("dot")))) == [
        "math does store without waiting for dot"
    ]
    assert divided(loop((*end(PRODUCE), Do("load"))), rest) == [
        "math does dot without waiting for load"
    ]
    both = loop((*end(CONSUME), Do("load"), Do("dot"), Do("store")))
    assert divided(load, both) == ["load is done by several agents: load, math"]
    extra = loop((*end(CONSUME, between=(Do("dot"),)), Do("store"), Do("other")))
    assert divided(load, extra) == ["math does other, which the program does not"]


def test_scalars_may_be_done_by_everybody() -> None:
    original = [("index", []), ("load", ["index"])]
    both = kernel(
        (Do("index"), *loop(end(PRODUCE, between=(Do("load"),)))),
        (Do("index"), *loop(end(CONSUME))),
    )
    assert not list(coverage_problems(both, original, ("index",)))
    assert [p.text for p in coverage_problems(both, original)] == [
        "index is done by several agents: load, math"
    ]
