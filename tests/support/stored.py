"""Kernels that store products tile by tile, for tests of stores by tensor maps.

Step i computes A_i B_i, tiles of 64 x 32 and 32 x 64, and stores it to tile i of C. What comes
before and behind the store, and by which tokens, is the kernel's kind.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from tile_cudatile import types as t
from tile_cudatile.attrs import DivBy
from tile_cudatile.evaluator.formats import dtype_of
from tile_cudatile.tree import Value

from support.programs import I32, Program

M, K, N = 64, 32, 64
MOST = 4
WEAK = {"memory_ordering_semantics": "weak"}
KINDS = ("apart", "chained", "added", "read back")


@dataclass
class Stores:
    """One kernel. Kinds: steps that nothing orders ("apart"); steps that tokens order, all of which
    store to the first tile ("chained"), and load it before and add it ("added"), or load it behind
    and store its double in its place ("read back"). C has `columns` and `rows`, of which the last
    tile may be cut.
    """

    kind: str = "apart"
    element: t.Scalar = t.F16
    columns: int = N
    rows: int = MOST * M

    def program(self) -> Program:
        """The kernel; arguments: A, B, C, how many steps."""
        p = self.p = Program()
        a, b = self._operand((M, K)), self._operand((K, N))
        c = self._result()
        steps = p.argument(I32)
        zero, one = p.constant(I32, 0), p.constant(I32, 1)
        token = p.emit("make_token", [], t.TOKEN)

        def body(i: Value, before: Value) -> list[Value]:
            product = self._product(a, b, i)
            where = i if self.kind == "apart" else zero
            return [self._stored(product, c, (where, zero), before)]

        region = p.region([I32, t.TOKEN], body, "continue")
        p.emit("for", [zero, steps, one, (token,)], t.TOKEN, regions=(region,))
        return p

    def _stored(self, tile: Value, c: Value, place: tuple[Value, Value], before: Value) -> Value:
        p, type_ = self.p, tile.type
        if self.kind == "added":
            old, before = self._load(c, place, type_, before)
            tile = p.emit("addf", [tile, old], type_, rounding_mode="nearest_even")
        given: list[Any] = [tile, c, place, None if self.kind == "apart" else before]
        after = p.emit("store_view_tko", given, t.TOKEN, **WEAK)
        if self.kind == "read back":
            again, after = self._load(c, place, type_, after)
            twice = p.emit("addf", [again, again], type_, rounding_mode="nearest_even")
            after = p.emit("store_view_tko", [twice, c, place, after], t.TOKEN, **WEAK)
        return after

    def _load(
        self, view: Value, place: tuple[Value, Value], type_: t.Type, before: Value
    ) -> tuple[Value, Value]:
        p = self.p
        tile = p.emit("load_view_tko", [view, place, before], type_, t.TOKEN, **WEAK)
        return tile, p.ops[-1].results[1]

    def _product(self, a: Value, b: Value, i: Value) -> Value:
        p, zero = self.p, self.p.constant(I32, 0)
        tiles: list[Value] = []
        for view, shape in ((a, (M, K)), (b, (K, N))):
            kind = t.Tile((1, *shape), t.F16)
            loaded = p.emit("load_view_tko", [view, (i, zero, zero)], kind, t.TOKEN, **WEAK)
            tiles.append(p.emit("reshape", [loaded], t.Tile(shape, t.F16)))
        total = p.constant(t.Tile((M, N), t.F32), 0)
        made = p.emit("mmaf", [*tiles, total], total.type)
        if self.element == t.F32:
            return made
        return p.emit("ftof", [made], t.Tile((M, N), self.element))

    def _pointer(self, element: t.Scalar) -> Value:
        base = self.p.argument(t.Tile((), t.Pointer(element)))
        return self.p.emit("assume", [base], base.type, predicate=DivBy(16))

    def _operand(self, shape: tuple[int, int]) -> Value:
        p = self.p
        tensor = t.TensorView(t.F16, (MOST, *shape), (shape[0] * shape[1], shape[1], 1))
        view = p.emit("make_tensor_view", [self._pointer(t.F16), (), ()], tensor)
        kind = t.PartitionView((1, *shape), tensor, (0, 1, 2), "zero")
        return p.emit("make_partition_view", [view], kind)

    def _result(self) -> Value:
        p = self.p
        tensor = t.TensorView(self.element, (self.rows, self.columns), (N, 1))
        view = p.emit("make_tensor_view", [self._pointer(self.element), (), ()], tensor)
        return p.emit(
            "make_partition_view", [view], t.PartitionView((M, N), tensor, (0, 1), "zero")
        )

    def arguments(self, steps: int = MOST) -> list[Any]:
        """Numbers whose sums are exact in any order; results hold something from the start."""
        random = np.random.default_rng(0)
        a, b = (
            random.integers(-3, 4, (MOST, *shape)).astype(np.float16) for shape in ((M, K), (K, N))
        )
        c = random.integers(-8, 9, (MOST * M, N)).astype(dtype_of(self.element))
        return [a, b, c, np.int32(steps)]
