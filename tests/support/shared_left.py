"""Kernels with a loop of two products that multiply one tile.

    for i in [first, last):
        out += A(i) X(i)
        other += A(i) Y(i)                "added"
        other = max(other, A(i) Y(i))     "folded"
    out += A(i) X(i) + A(i) Y(i)          "linked"

A(i) are M x K, X(i) and Y(i) K x N; sums are exact in any order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from tile_cudatile import types as t
from tile_cudatile.tree import Value

from support.pipelined import Steps, tiles
from support.programs import I32, Program

M, N, K = 128, 64, 64
MOST = 9


@dataclass(frozen=True)
class SharedLeft:
    """One kernel, by its `kind`."""

    kind: str = "added"

    def program(self) -> Program:
        """Arguments are the arrays of A, X and Y, bounds of the loop, two results."""
        p = Program()
        left = tiles(p, Steps(most=MOST), (M, K), t.F16)
        right = [tiles(p, Steps(most=MOST), (K, N), t.F16) for _ in range(2)]
        bounds = [p.argument(I32), p.argument(I32), p.constant(I32, 1)]
        sums, none = t.Tile((M, N), t.F32), p.constant(t.Tile((M, N), t.F32), 0)

        def body(i: Value, *carried: Value) -> list[Value]:
            a, x, y = left(i), right[0](i), right[1](i)
            first = p.emit("mmaf", [a, x, carried[0]], sums)
            if self.kind == "linked":
                return [p.emit("mmaf", [a, y, first], sums), carried[1]]
            if self.kind == "added":
                return [first, p.emit("mmaf", [a, y, carried[1]], sums)]
            return [first, p.emit("maxf", [carried[1], p.emit("mmaf", [a, y, none], sums)], sums)]

        region = p.region([I32, sums, sums], body, "continue")
        p.emit("for", [*bounds, (none, none)], sums, sums, regions=(region,))
        for result in p.ops[-1].results:
            p.store(result, (M, N), t.F32)
        return p

    def arguments(self, first: int, last: int) -> list[Any]:
        """Arrays of small integers, and ones to write over."""
        draw = np.random.default_rng(0)
        a = draw.integers(-1, 2, (MOST, M, K)).astype(np.float16)
        x, y = (draw.integers(-1, 2, (MOST, K, N)).astype(np.float16) for _ in range(2))
        results = [np.ones((M, N), np.float32) for _ in range(2)]
        return [a, x, y, np.int32(first), np.int32(last), *results]

    def expected(self, first: int, last: int) -> list[np.ndarray]:
        """What the results should be."""
        a, x, y = (array.astype(np.float32) for array in self.arguments(first, last)[:3])
        none, steps = np.zeros((M, N), np.float32), range(first, last)
        second = [a[i] @ y[i] for i in steps]
        if self.kind == "linked":
            return [sum((a[i] @ x[i] + a[i] @ y[i] for i in steps), none), none]
        other = sum(second, none) if self.kind == "added" else np.maximum.reduce([none, *second])
        return [sum((a[i] @ x[i] for i in steps), none), other]
