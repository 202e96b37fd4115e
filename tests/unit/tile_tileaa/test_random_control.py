"""Random nests of branches and loops that leave early: compiled code agrees with the evaluator.

The state of a program is a number, on which branches depend, and a tile that goes along.
"""

from __future__ import annotations

import random

import numpy as np
import pytest
from support.programs import I32, Program
from tile_cudatile import types as t
from tile_cudatile.tree import Region, Value

WIDTH = 128
TILE = t.Tile((WIDTH,), t.I32)
STATE = [I32, TILE]
DEPTH = 3

State = tuple[Value, Value]

#: What may end a branch there, besides `yield`.
_WAYS = {
    "kernel": ["return"],
    "for": ["continue"],
    "loop": ["continue", "break"],
    "free loop": ["continue", "break", "return"],
}


class Maker:
    """One random program; `place` is what a branch may leave: "kernel", "for" or "loop".

    A "free loop" stands in no `for`, so that the kernel may return from inside of it.
    """

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.program = p = Program()
        self.exits: set[str] = set()
        self.output = p.view((WIDTH,), t.I32)
        start = p.argument(I32)
        tile = p.load((WIDTH,), t.I32)
        self.finish(self.statements((start, tile), "kernel", None, 0))

    def finish(self, state: State) -> None:
        """Write the state; each way through the kernel does so once."""
        p = self.program
        index = (p.constant(I32, 0),)
        total = self.add(state[1], self.spread(state[0]))
        operands = [total, self.output, index]
        p.emit("store_view_tko", operands, t.TOKEN, memory_ordering_semantics="weak")

    def spread(self, number: Value) -> Value:
        one = self.program.emit("reshape", [number], t.Tile((1,), t.I32))
        return self.program.emit("broadcast", [one], TILE)

    def add(self, a: Value, b: Value) -> Value:
        return self.program.emit("addi", [a, b], a.type)

    def change(self, state: State) -> State:
        p, (number, tile) = self.program, state
        factor = p.constant(I32, self.rng.choice([3, 5, -7]))
        number = self.add(p.emit("muli", [number, factor], I32), p.constant(I32, 1))
        return number, self.add(tile, self.spread(number))

    def statements(self, state: State, place: str, turn: Value | None, depth: int) -> State:
        for _ in range(self.rng.randint(1, 3)):
            kinds = ["change", *["branch", "branch", "for", "loop"] * (depth < DEPTH)]
            kind = self.rng.choice(kinds)
            if kind == "change":
                state = self.change(state)
            elif kind == "branch":
                state = self.branch(state, place, turn, depth)
            else:
                free = kind == "loop" and place in ("kernel", "free loop")
                body = "free loop" if free else kind
                state = (self.counted if kind == "for" else self.endless)(state, body, depth)
        return self.change(state)

    def branch(self, state: State, place: str, turn: Value | None, depth: int) -> State:
        """On one of the number's bits; either side may leave."""
        p = self.program
        mask = p.constant(I32, 1 << self.rng.randint(0, 4))
        bit = p.emit("andi", [state[0], mask], I32)
        flag = p.emit(
            "cmpi", [bit, p.constant(I32, 0)], t.Tile((), t.I1),
            comparison_predicate="equal", signedness="signed",
        )  # fmt: skip
        sides = tuple(self.side(state, place, turn, depth) for _ in range(2))
        p.emit("if", [flag], *STATE, regions=sides)
        number, tile = p.ops[-1].results
        return number, tile

    def side(self, state: State, place: str, turn: Value | None, depth: int) -> Region:
        ways = _WAYS[place]
        end = self.rng.choice(["yield", "yield", *ways])
        self.exits.add(f"{end} in {place}")

        def build() -> list[Value]:
            changed = self.statements(state, place, turn, depth + 1)
            if end == "return":
                self.finish(changed)
                return []
            return [turn, *changed] if end == "continue" and turn is not None else [*changed]

        return self.program.region([], build, end)

    def counted(self, state: State, place: str, depth: int) -> State:
        p = self.program
        bounds = [p.constant(I32, n) for n in (0, self.rng.randint(0, 4), 1)]

        def build(index: Value, number: Value, tile: Value) -> list[Value]:
            return [*self.statements((self.add(number, index), tile), place, None, depth + 1)]

        body = p.region([I32, *STATE], build, "continue")
        p.emit("for", [*bounds, state], *STATE, regions=(body,))
        number, tile = p.ops[-1].results
        return number, tile

    def endless(self, state: State, place: str, depth: int) -> State:
        """A loop that breaks in its fifth turn, if not before."""
        p = self.program

        def build(turn: Value, number: Value, tile: Value) -> list[Value]:
            late = p.emit(
                "cmpi", [turn, p.constant(I32, 4)], t.Tile((), t.I1),
                comparison_predicate="greater_than_or_equal", signedness="signed",
            )  # fmt: skip
            out = p.region([], lambda: [number, tile], "break")
            on = p.region([], list, "yield")
            p.emit("if", [late], regions=(out, on))
            following = self.add(turn, p.constant(I32, 1))
            return [following, *self.statements((number, tile), place, following, depth + 1)]

        body = p.region([I32, *STATE], build, "continue")
        p.emit("loop", [(p.constant(I32, 0), *state)], *STATE, regions=(body,))
        number, tile = p.ops[-1].results
        return number, tile


SEEDS = (*range(12), 68)  # the last one breaks out of a loop in a `for`


@pytest.mark.parametrize("seed", SEEDS)
def test_agrees_with_the_evaluator(seed: int) -> None:
    program = Maker(seed).program
    tile = np.arange(WIDTH, dtype=np.int32)
    for start in (seed, 1000 + 7 * seed):
        output = np.full(WIDTH, -1, np.int32)
        program.agrees(output, start, tile.copy(), opt_level=(0, 2)[seed % 2])


def test_every_exit_occurs() -> None:
    found = set().union(*(Maker(seed).exits for seed in SEEDS))
    assert found >= {
        "break in loop", "continue in for", "continue in loop", "return in kernel",
        "break in free loop", "continue in free loop", "return in free loop",
        "yield in for", "yield in kernel", "yield in loop",
    }  # fmt: skip
