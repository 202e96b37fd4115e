"""Kernels with a loop in which threads work on what products give, for tests of tcgen05 in a step.

    for i in [first, last):
        S = A X(i), or A X(i) and B more
        out += f16(max(S, 0)) X(i)^T; other += f16(B X(i)) X(i)^T     "both"
        out = max(out, S)                                            "folded"
        out = max(out, S); other += B X(i)                           "beside"
        out = max(out, S + B)                                        "begun"

that runs once, or several times: sums of its `runs` are added, and the largest is taken.
A and B are M x K, X(i) K x N, and K is N; sums are exact in any order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from tile_cudatile import types as t
from tile_cudatile.tree import Value

from support.pipelined import Steps, tiles
from support.programs import I32, Program

M, K, N = 128, 64, 64
MOST = 9


@dataclass(frozen=True)
class Several:
    """One kernel, by its `kind`."""

    kind: str = "both"
    runs: int = 1

    @property
    def results(self) -> int:
        """How many tiles it gives."""
        return 2 if self.kind in ("both", "beside") else 1

    def program(self) -> Program:
        """Arguments are the arrays of A, B and X, bounds of the loop, one result or two."""
        p = Program()
        zero = p.constant(I32, 0)
        a, b = (tiles(p, Steps(most=1), (M, K), t.F16)(zero) for _ in range(2))
        load = tiles(p, Steps(most=MOST), (K, N), t.F16)
        bounds = [p.argument(I32), p.argument(I32), p.constant(I32, 1)]
        sums, none = t.Tile((M, N), t.F32), p.constant(t.Tile((M, N), t.F32), 0)
        held = t.Tile((M, N), t.F16)

        def product(left: Value, right: Value, total: Value) -> Value:
            return p.emit("mmaf", [left, right, total], total.type)

        def rounded(tile: Value) -> Value:
            return p.emit("ftof", [tile], held, rounding_mode="nearest_even")

        begin = p.emit("ftof", [b], sums, rounding_mode="nearest_even")

        def body(i: Value, *carried: Value) -> list[Value]:
            x = load(i)
            scores = product(a, x, begin if self.kind == "begun" else none)
            if self.kind == "both":
                turned = p.emit("permute", [x], t.Tile((N, K), t.F16), permutation=(1, 0))
                weights = rounded(p.emit("maxf", [scores, none], sums))
                first = product(weights, turned, carried[0])
                return [first, product(rounded(product(b, x, none)), turned, carried[1])]
            folded = p.emit("maxf", [carried[0], scores], sums)
            return [folded] if self.results == 1 else [folded, product(b, x, carried[1])]

        initial = (none,) * self.results
        types = [none.type for _ in initial]

        def loop() -> list[Value]:
            region = p.region([I32, *types], body, "continue")
            p.emit("for", [*bounds, initial], *types, regions=(region,))
            return list(p.ops[-1].results)

        def run(_: Value, *carried: Value) -> list[Value]:
            found = loop()
            return [
                p.emit("maxf", [old, new], sums)
                if self.kind != "both" and not number
                else p.emit("addf", [old, new], sums, rounding_mode="nearest_even")
                for number, (old, new) in enumerate(zip(carried, found, strict=True))
            ]

        if self.runs == 1:
            loop()
        else:
            again = [p.constant(I32, value) for value in (0, self.runs, 1)]
            region = p.region([I32, *types], run, "continue")
            p.emit("for", [*again, initial], *types, regions=(region,))
        for result in p.ops[-1].results:
            p.store(result, (M, N), t.F32)
        return p

    def arguments(self, first: int, last: int) -> list[Any]:
        """Arrays of small integers, and zeros."""
        draw = np.random.default_rng(0)
        a, b = (draw.integers(-1, 2, (M, K)).astype(np.float16) for _ in range(2))
        x = draw.integers(-1, 2, (MOST, K, N)).astype(np.float16)
        results = [np.ones((M, N), np.float32) for _ in range(self.results)]
        return [a, b, x, np.int32(first), np.int32(last), *results]

    def expected(self, first: int, last: int) -> list[np.ndarray]:
        """What the results should be."""
        a, b, x = (array.astype(np.float32) for array in self.arguments(first, last)[:3])
        steps = [x[i] for i in range(first, last)]
        none = np.zeros((M, N), np.float32)
        if self.kind == "both":
            return [
                self.runs * sum((np.maximum(a @ s, 0) @ s.T for s in steps), none),
                self.runs * sum(((b @ s) @ s.T for s in steps), none),
            ]
        more = b if self.kind == "begun" else none
        folded = np.maximum.reduce([none, *(a @ s + more for s in steps)])
        return [folded] if self.results == 1 else [
            folded, self.runs * sum((b @ s for s in steps), none),
        ]  # fmt: skip
