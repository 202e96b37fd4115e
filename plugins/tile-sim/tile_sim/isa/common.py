"""Shapes of instructions that many families share."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tile_sim.machine.group import Group
from tile_sim.program.decode import Decode, Exec, Getter
from tile_sim.program.types import TYPES, Type

Array = np.ndarray
U32 = TYPES["u32"]
B32 = TYPES["b32"]
B64 = TYPES["b64"]
PRED = TYPES["pred"]


def unary(cx: Decode, result: Type, source: Type, fn: Callable[[Array], Array]) -> Exec:
    """`d = fn(a)`."""
    slot, a = cx.slot(0, result), cx.src(1, source)
    return lambda g: g.put(slot, fn(a(g)))


def binary(cx: Decode, type_: Type, fn: Callable[[Array, Array], Array]) -> Exec:
    """`d = fn(a, b)`, all of one type."""
    slot, a, b = cx.slot(0, type_), cx.src(1, type_), cx.src(2, type_)
    return lambda g: g.put(slot, fn(a(g), b(g)))


def ternary(cx: Decode, type_: Type, fn: Callable[[Array, Array, Array], Array]) -> Exec:
    """`d = fn(a, b, c)`, all of one type."""
    slot = cx.slot(0, type_)
    a, b, c = (cx.src(i, type_) for i in (1, 2, 3))
    return lambda g: g.put(slot, fn(a(g), b(g), c(g)))


def halves(g: Group, value: Array, dtype: str) -> Array:
    """Registers `[rows, 32]` of packed elements as `[rows, 32 * n]` elements."""
    full = value
    if value.shape != (len(g.rows), 32) or not value.flags.c_contiguous:
        full = np.ascontiguousarray(np.broadcast_to(value, (len(g.rows), 32)))
    return full.view(dtype)


def packed(cx: Decode, type_: Type, element: str, count: int, fn: Callable[..., Array]) -> Exec:
    """An elementwise instruction on registers that hold several elements."""
    slot = cx.slot(0, type_)
    getters: list[Getter] = [cx.src(i + 1, type_) for i in range(count)]
    dtype = type_.dtype

    def execute(g: Group) -> None:
        values = [halves(g, get(g), element) for get in getters]
        g.put(slot, np.ascontiguousarray(fn(*values)).view(dtype))

    return execute
