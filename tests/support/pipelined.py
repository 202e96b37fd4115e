"""Kernels with a loop of products whose operands come in different ways, for tests of pipelining.

The kernel computes out = sum over steps i of A_i B_i, tiles of 64 x 32 and 32 x 64 unless others
are asked for, all but its variants of the loads being the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from tile_cudatile import types as t
from tile_cudatile.attrs import DivBy, Float, Hints, Integer
from tile_cudatile.evaluator.formats import dtype_of
from tile_cudatile.tree import Value

from support.programs import I32, Program

M, K, N = 64, 32, 64
WEAK = {"memory_ordering_semantics": "weak"}
BOOL = t.Tile((), t.I1)
Carried = list[Value]


@dataclass
class Steps:
    """One kernel: how A and B come. `most` is how many steps there is data for; with `turns` the
    loop runs as often in another one, which adds what it gives; `moving`: the last one has all
    steps, and each before it is without the first three of the next. With `blocks` as many tile
    blocks do so, each for a result of its own. `tile` has M, K and N, `element` what loads through
    views give.
    """

    left: str = "view"
    right: str = "view"
    most: int = 6
    step: int = 1
    latency: int | None = None
    turns: int = 0
    moving: bool = False
    blocks: int = 0
    tile: tuple[int, int, int] = (M, K, N)
    element: t.Scalar = t.F16

    @property
    def hints(self) -> dict[str, Any]:
        """What loads of views are told of the traffic to memory."""
        if self.latency is None:
            return {}
        given = {"latency": Integer(t.I32, self.latency)}
        return {"optimization_hints": Hints({"sm_80": given})}

    def program(self) -> Program:
        """The kernel; arguments are the arrays of A and B, bounds of the loop, the result."""
        p, (m, k, n) = Program(), self.tile
        self.p = p
        self._turn: Value | None = None
        sources = [_SOURCES[self.left](p, self, (m, k)), _SOURCES[self.right](p, self, (k, n))]
        bounds = [p.argument(I32), p.argument(I32), p.constant(I32, self.step)]
        start = p.constant(t.Tile((m, n), t.F32), 0)
        initial = [value for source in sources for value in source.initial]

        def body(i: Value, total: Value, *carried: Value) -> list[Value]:
            i = i if self._turn is None else p.emit("addi", [i, self._turn], I32)
            split = len(sources[0].initial)
            a, first = sources[0].load(i, list(carried[:split]))
            b, second = sources[1].load(i, list(carried[split:]))
            total = p.emit("mmaf", [a, b, total], total.type)
            return [total, *first, *second]

        types = [I32, start.type, *(value.type for value in initial)]

        def loop() -> Value:
            first, last, step = bounds
            if self._turn is not None:
                last = p.emit("subi", [last, self._turn], I32)
            region = p.region(types, body, "continue")
            given = [first, last, step, (start, *initial)]
            return p.emit("for", given, *types[1:], regions=(region,))

        if self.blocks:
            self._stored(loop, (m, n))
        elif self.turns:
            p.store(self._turned(start, loop), (m, n), t.F32)
        else:
            found = loop()
            if self.left in SUMMED:
                p.store(p.ops[-1].results[1], (m,), t.F32)
            p.store(found, (m, n), t.F32)
        return p

    def _stored(self, loop: Callable[[], Value], shape: tuple[int, int]) -> None:
        """What `loop` gives in each tile block, one below the other."""
        p, (m, n) = self.p, shape
        block = p.emit("get_tile_block_id", [], I32, I32, I32)
        left = p.emit("subi", [p.constant(I32, self.blocks - 1), block], I32)
        self._turn = p.emit("muli", [left, p.constant(I32, 3)], I32)
        tensor = t.TensorView(t.F32, (self.blocks * m, n), (n, 1))
        view = p.emit("make_tensor_view", [_pointer(p, t.F32), (), ()], tensor)
        kind = t.PartitionView(shape, tensor, (0, 1), "zero")
        view = p.emit("make_partition_view", [view], kind)
        place = (block, p.constant(I32, 0))
        p.emit("store_view_tko", [loop(), view, place], t.TOKEN, **WEAK)

    def _turned(self, start: Value, loop: Callable[[], Value]) -> Value:
        """The sum of what `loop` gives in each turn."""
        p = self.p

        def turn(which: Value, total: Value) -> list[Value]:
            if self.moving:
                left = p.emit("subi", [p.constant(I32, self.turns - 1), which], I32)
                self._turn = p.emit("muli", [left, p.constant(I32, 3)], I32)
            return [p.emit("addf", [total, loop()], start.type, rounding_mode="nearest_even")]

        bounds = [p.constant(I32, value) for value in (0, self.turns, 1)]
        region = p.region([I32, start.type], turn, "continue")
        return p.emit("for", [*bounds, (start,)], start.type, regions=(region,))

    def arguments(self, first: int, last: int) -> list[Any]:
        """Numbers whose sums are exact in any order."""
        m, k, n = self.tile
        a, b = (
            _integers(self, shape, kind, seed)
            for seed, (shape, kind) in enumerate((((m, k), self.left), ((k, n), self.right)))
        )
        out = np.zeros((max(self.blocks, 1) * m, n), np.float32)
        sums = [np.zeros(m, np.float32)] * (self.left in SUMMED)
        return [a, b, np.int32(first), np.int32(last), *sums, out]


def _integers(own: Steps, shape: tuple[int, int], kind: str, seed: int) -> np.ndarray:
    draw = np.random.default_rng(seed)
    if kind in ROUNDED:  # numbers that the nearest tf32 is above, by a quarter of what it counts in
        found, element = draw.integers(2, 4, (own.most, *shape)) + 0.75 / 512, t.F32
    else:
        found = draw.integers(-3, 4, (own.most, *shape))
        element = t.F8E4M3FN if kind == "converted" else own.element
    if kind in ("transposed", "rounded_transposed", "summed_transposed"):
        found = found.transpose(0, 2, 1)
    return np.ascontiguousarray(found).astype(dtype_of(element))


@dataclass
class _Source:
    initial: Carried
    load: Callable[[Value, Carried], tuple[Value, Carried]]


def _pointer(p: Program, element: t.Scalar) -> Value:
    base = p.argument(t.Tile((), t.Pointer(element)))
    return p.emit("assume", [base], base.type, predicate=DivBy(16))


def tiles(
    p: Program, own: Steps, shape: tuple[int, ...], element: t.Scalar
) -> Callable[[Value], Value]:
    """Step i of an array of `most` tiles, one behind the other, as a tile with a leading 1."""
    strides = (shape[0] * shape[1], shape[1], 1)
    tensor = t.TensorView(element, (own.most, *shape), strides)
    view = p.emit("make_tensor_view", [_pointer(p, element), (), ()], tensor)
    kind = t.PartitionView((1, *shape), tensor, (0, 1, 2), "zero")
    view = p.emit("make_partition_view", [view], kind)

    def load(i: Value) -> Value:
        zero = p.constant(I32, 0)
        tile = t.Tile((1, *shape), element)
        given = {**WEAK, **own.hints}
        loaded = p.emit("load_view_tko", [view, (i, zero, zero)], tile, t.TOKEN, **given)
        return p.emit("reshape", [loaded], t.Tile(shape, element))

    return load


def _view(
    p: Program, own: Steps, shape: tuple[int, int], element: t.Scalar | None = None
) -> _Source:
    load = tiles(p, own, shape, element or own.element)
    return _Source([], lambda i, carried: (load(i), carried))


def _transposed(
    p: Program, own: Steps, shape: tuple[int, int], element: t.Scalar | None = None
) -> _Source:
    kind = element or own.element
    load = tiles(p, own, shape[::-1], kind)

    def turned(i: Value, carried: Carried) -> tuple[Value, Carried]:
        return p.emit("permute", [load(i)], t.Tile(shape, kind), permutation=(1, 0)), carried

    return _Source([], turned)


def _converted(p: Program, own: Steps, shape: tuple[int, int]) -> _Source:
    load = tiles(p, own, shape, t.F8E4M3FN)
    return _Source(
        [], lambda i, carried: (p.emit("ftof", [load(i)], t.Tile(shape, t.F16)), carried)
    )


def _rounded(
    source: Callable[..., _Source],
) -> Callable[[Program, Steps, tuple[int, int]], _Source]:
    """The nearest tf32 of a tile of f32."""

    def made(p: Program, own: Steps, shape: tuple[int, int]) -> _Source:
        inner = source(p, own, shape, t.F32)

        def load(i: Value, carried: Carried) -> tuple[Value, Carried]:
            tile, carried = inner.load(i, carried)
            given = {"rounding_mode": "nearest_even"}
            return p.emit("ftof", [tile], t.Tile(shape, t.TF32), **given), carried

        return _Source(inner.initial, load)

    return made


def _twice(p: Program, own: Steps, shape: tuple[int, int]) -> _Source:
    """The product of the tile with itself: used in registers before it is multiplied."""
    load = tiles(p, own, shape, t.F16)

    def squared(i: Value, carried: Carried) -> tuple[Value, Carried]:
        tile = load(i)
        return p.emit("mulf", [tile, tile], tile.type, rounding_mode="nearest_even"), carried

    return _Source([], squared)


def _lanes(p: Program, shape: tuple[int, int]) -> Value:
    """Row-major numbers of the elements, as programs write them: row * width + column."""
    tile = t.Tile(shape, t.I32)

    def along(axis: int) -> Value:
        iota = p.emit("iota", [], t.Tile((shape[axis],), t.I32))
        one = tuple(size if dim == axis else 1 for dim, size in enumerate(shape))
        return p.emit("broadcast", [p.emit("reshape", [iota], t.Tile(one, t.I32))], tile)

    rows = p.emit("muli", [along(0), p.constant(tile, shape[1])], tile)
    return p.emit("addi", [rows, along(1)], tile)


def _spread(p: Program, value: Value, shape: tuple[int, ...]) -> Value:
    assert isinstance(value.type, t.Tile)
    ones = t.Tile((1,) * len(shape), value.type.element)
    return p.emit(
        "broadcast", [p.emit("reshape", [value], ones)], t.Tile(shape, value.type.element)
    )


def _inside(p: Program, lanes: Value, shape: tuple[int, int]) -> Value:
    """All but the last row."""
    limit = p.constant(t.Tile(shape, t.I32), (shape[0] - 1) * shape[1])
    return p.emit(
        "cmpi", [lanes, limit], t.Tile(shape, t.I1),
        comparison_predicate="less_than", signedness="signed",
    )  # fmt: skip


def _through(other: float | None) -> Callable[[Program, Steps, tuple[int, int]], _Source]:
    def source(p: Program, own: Steps, shape: tuple[int, int]) -> _Source:
        """Pointers made of the step; the last row is masked off."""
        base, lanes = _pointer(p, t.F16), _lanes(p, shape)
        size = shape[0] * shape[1]

        def load(i: Value, carried: Carried) -> tuple[Value, Carried]:
            start = p.emit("muli", [i, p.constant(I32, size)], I32)
            places = p.emit("addi", [_spread(p, start, shape), lanes], lanes.type)
            given: list[Any] = [p.addresses(base, t.F16, places), None, None]
            if other is not None:
                fill = p.constant(t.Tile(shape, t.F16), other)
                given[1:] = [_inside(p, lanes, shape), fill]
            return p.emit("load_ptr_tko", given, t.Tile(shape, t.F16), t.TOKEN, **WEAK), carried

        return _Source([], load)

    return source


def _carried(p: Program, own: Steps, shape: tuple[int, int]) -> _Source:
    """Pointers that the loop moves on, whatever its counter is; they begin at the first tile."""
    base, lanes = _pointer(p, t.F16), _lanes(p, shape)
    size = p.constant(t.Tile(shape, t.I32), shape[0] * shape[1])
    first = p.addresses(base, t.F16, lanes)

    def load(i: Value, carried: Carried) -> tuple[Value, Carried]:
        (where,) = carried
        tile = p.emit("load_ptr_tko", [where, None, None], t.Tile(shape, t.F16), t.TOKEN, **WEAK)
        return tile, [p.emit("offset", [where, size], where.type)]

    return _Source([first], load)


def _summed(source: Callable[..., _Source]) -> Callable[[Program, Steps, tuple[int, int]], _Source]:
    """Sums of rows beside the product, which come out before it."""

    def made(p: Program, own: Steps, shape: tuple[int, int]) -> _Source:
        inner, rows = source(p, own, shape), t.Tile(shape[:1], t.F32)
        scalar = t.Tile((), t.F32)
        rounds = {"rounding_mode": "nearest_even"}

        def load(i: Value, carried: Carried) -> tuple[Value, Carried]:
            tile, _ = inner.load(i, [])
            region = p.region(
                [scalar, scalar], lambda a, b: [p.emit("addf", [a, b], scalar, **rounds)]
            )
            wide = p.emit("ftof", [tile], t.Tile(shape, t.F32), **rounds)
            zero = Float(t.F32, 0)
            found = p.emit("reduce", [(wide,)], rows, dim=1, identities=(zero,), regions=[region])
            return tile, [p.emit("addf", [carried[0], found], rows, **rounds)]

        return _Source([p.constant(rows, 0)], load)

    return made


_SOURCES: dict[str, Callable[[Program, Steps, tuple[int, int]], _Source]] = {
    "view": _view,
    "transposed": _transposed,
    "converted": _converted,
    "twice": _twice,
    "pointers": _through(None),
    "masked": _through(0),
    "other": _through(1),
    "carried": _carried,
    "rounded": _rounded(_view),
    "rounded_transposed": _rounded(_transposed),
    "summed": _summed(_view),
    "summed_transposed": _summed(_transposed),
}
#: Kinds of tf32, which are multiplied by one another only.
ROUNDED = ("rounded", "rounded_transposed")
#: Kinds of A of which sums of rows come out, too.
SUMMED = ("summed", "summed_transposed")
KINDS = tuple(kind for kind in _SOURCES if kind not in (*ROUNDED, *SUMMED))
