"""Kernels that copy tiles from memory to memory as they are, for tests of who copies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from tile_cudatile import types as t
from tile_cudatile.attrs import DivBy
from tile_cudatile.evaluator.formats import dtype_of
from tile_cudatile.tree import Value

from support.programs import I32, Program

WEAK = {"memory_ordering_semantics": "weak"}
MOST = 5
#: What comes between the copies: nothing, loops, tokens.
KINDS = ("one", "loop", "row", "cube", "again", "down", "two")


@dataclass(frozen=True)
class Copies:
    """One kernel: tiles of X are copied to Y. Kinds: the first tile alone ("one"), or tiles 0 to
    `steps` in a loop ("loop"), of one axis ("row"), or whose axes of one go away between ("cube");
    tile i to Y, and behind that from Y to Z ("again"); tile i + 1 of X to its tile i, in order
    ("down"); one tile to two places ("two"). `rows` may cut the last tile.
    """

    kind: str = "one"
    element: t.Scalar = t.F16
    tile: tuple[int, int] = (32, 64)
    rows: int = 0

    @property
    def height(self) -> int:
        """Rows of the arrays."""
        return self.rows or MOST * self.tile[0]

    def program(self) -> Program:
        """The kernel; arguments: X, Y, Z, how many steps."""
        p = Program()
        views = [self._view(p, at == 0) for at in range(3)]
        steps = p.argument(I32)
        zero, one = p.constant(I32, 0), p.constant(I32, 1)
        before = p.emit("make_token", [], t.TOKEN)
        if self.kind == "one":
            self._step(p, views, zero, before)
            return p

        def body(i: Value, before: Value) -> list[Value]:
            return [self._step(p, views, i, before)]

        region = p.region([I32, t.TOKEN], body, "continue")
        p.emit("for", [zero, steps, one, (before,)], t.TOKEN, regions=(region,))
        return p

    def _step(self, p: Program, views: list[Value], i: Value, before: Value) -> Value:
        x, y, z = views
        if self.kind == "down":
            after = p.emit("addi", [i, p.constant(I32, 1)], I32, overflow="none")
            return self._copy(p, (x, after), [(x, i)], before)
        places = [(y, i), (z, i)] if self.kind == "two" else [(y, i)]
        token = self._copy(p, (x, i), places, before if self.kind == "again" else None)
        if self.kind == "again":
            token = self._copy(p, (y, i), [(z, i)], token)
        return token

    def _copy(
        self, p: Program, source: tuple[Value, Value], places: list[tuple[Value, Value]],
        before: Value | None,
    ) -> Value:  # fmt: skip
        view, i = source
        shape = view.type.tile_shape  # type: ignore[union-attr]
        kind = t.Tile(shape, self.element)
        tile = p.emit("load_view_tko", [view, self._place(p, i), before], kind, t.TOKEN, **WEAK)
        token = None if before is None else p.ops[-1].results[1]
        for target, at in places:
            if target.type.tile_shape != shape:  # type: ignore[union-attr]
                tile = p.emit("reshape", [tile], t.Tile(self.tile, self.element))
            given = [tile, target, self._place(p, at, target is not view), token]
            after = p.emit("store_view_tko", given, t.TOKEN, **WEAK)
        return after

    def _place(self, p: Program, i: Value, stores: bool = False) -> tuple[Value, ...]:
        zero = p.constant(I32, 0)
        if self.kind == "row":
            return (i,)
        return (i, zero, zero) if self.kind == "cube" and not stores else (i, zero)

    def _view(self, p: Program, source: bool) -> Value:
        base = p.argument(t.Tile((), t.Pointer(self.element)))
        base = p.emit("assume", [base], base.type, predicate=DivBy(16))
        (m, n), height = self.tile, self.height
        if self.kind == "row":
            shape, steps, tile = (height * n,), (1,), (m * n,)
        elif self.kind == "cube" and source:
            shape, steps, tile = (MOST, m, n), (m * n, n, 1), (1, m, n)
        else:
            shape, steps, tile = (height, n), (n, 1), (m, n)
        tensor = t.TensorView(self.element, shape, steps)
        view = p.emit("make_tensor_view", [base, (), ()], tensor)
        axes = tuple(range(len(shape)))
        return p.emit("make_partition_view", [view], t.PartitionView(tile, tensor, axes, "zero"))

    def arguments(self, steps: int = MOST) -> list[Any]:
        """Numbers, other ones in each array."""
        random = np.random.default_rng(0)
        size = (self.height, self.tile[1])
        arrays = [random.integers(-100, 100, size).astype(dtype_of(self.element)) for _ in range(3)]
        return [*arrays, np.int32(steps)]

    def wanted(self, steps: int = MOST) -> list[np.ndarray]:
        """X, Y and Z after the kernel."""
        x, y, z, _ = self.arguments(steps)
        high = self.tile[0]
        for at in range(1 if self.kind == "one" else steps):
            rows = slice(at * high, (at + 1) * high)
            if self.kind == "down":
                x[rows] = x[(at + 1) * high : (at + 2) * high]
                continue
            y[rows] = x[rows]
            if self.kind in ("again", "two"):
                z[rows] = x[rows]
        return [x, y, z]
