"""Runs single operations on bit patterns; how elements lie in memory is written down here again."""

from __future__ import annotations

from typing import Any

import numpy as np
from tile_cudatile import evaluate, verify
from tile_cudatile import types as t
from tile_cudatile.tree import Op, Value
from unit.tile_cudatile.apply import operation, program

_CELLS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def size_of(element: t.Scalar) -> int:
    return 4 if element == t.TF32 else max(element.width // 8, 1)


def cells(element: t.Scalar, patterns: list[int], count: int) -> np.ndarray:
    """Memory that holds patterns; 4-bit elements in pairs, tf32 as the f32 of the same value."""
    padded = [*patterns, *[patterns[-1]] * (count - len(patterns))]
    if element.width == 4:
        return np.array(
            [a | b << 4 for a, b in zip(padded[::2], padded[1::2], strict=True)], np.uint8
        )
    shift = 13 if element == t.TF32 else 0
    return np.array([p << shift for p in padded], _CELLS[size_of(element)])


def empty(element: t.Scalar, count: int) -> np.ndarray:
    """Memory for so many elements."""
    return cells(element, [0], count)


def patterns(element: t.Scalar, memory: np.ndarray, count: int) -> list[int]:
    """The inverse of `cells`."""
    numbers = [int(c) for c in memory]
    if element.width == 4:
        numbers = [n for c in numbers for n in (c & 15, c >> 4)]
    if element == t.TF32:
        # A NaN may have bits below those of tf32, a number not.
        nan = 0x7F800000
        assert all(n % (1 << 13) == 0 or n & nan == nan for n in numbers)
        numbers = [n >> 13 for n in numbers]
    return numbers[:count]


class Writer:
    """Appends operations."""

    def __init__(self, ops: list[Op]) -> None:
        self.ops = ops

    def emit(self, name: str, operands: list[Any], *results: t.Type, **attrs: Any) -> Value:
        self.ops.append(operation(name, operands, list(results), **attrs))
        return self.ops[-1].results[0] if results else Value(t.TOKEN)

    def addresses(self, base: Value, element: t.Scalar, count: int) -> Value:
        lanes = t.Tile((count,), t.Pointer(element))
        one = self.emit("reshape", [base], t.Tile((1,), t.Pointer(element)))
        steps = self.emit("iota", [], t.Tile((count,), t.I32))
        return self.emit("offset", [self.emit("broadcast", [one], lanes), steps], lanes)

    def load(self, base: Value, element: t.Scalar, count: int) -> Value:
        if element.width == 4:
            packed = self.load(base, t.I8, count // 2)
            return self.emit("unpack", [packed], t.Tile((count,), element))
        where = self.addresses(base, element, count)
        tile = t.Tile((count,), element)
        return self.emit("load_ptr_tko", [where], tile, t.TOKEN, memory_ordering_semantics="weak")

    def store(self, base: Value, value: Value, element: t.Scalar, count: int) -> None:
        if element.width == 4:
            packed = self.emit("pack", [value], t.Tile((count // 2,), t.I8))
            return self.store(base, packed, t.I8, count // 2)
        where = self.addresses(base, element, count)
        self.emit("store_ptr_tko", [where, value], t.TOKEN, memory_ordering_semantics="weak")
        return None


def argument(element: t.Scalar) -> t.Tile:
    return t.Tile((), t.Pointer(t.I8 if element.width == 4 else element))


def run(
    name: str, inputs: list[tuple[t.Scalar, list[int]]], result: t.Scalar, **attrs: Any
) -> list[int]:
    """An elementwise operation on patterns of any number; gives patterns."""
    given = len(inputs[0][1])
    count = max(2, 1 << (given - 1).bit_length())
    arrays = [cells(element, patterns, count) for element, patterns in inputs]
    out = empty(result, count)

    def build(ops: list[Op], *args: Value) -> None:
        writer = Writer(ops)
        loaded = [writer.load(a, e, count) for (e, _), a in zip(inputs, args, strict=False)]
        value = writer.emit(name, loaded, t.Tile((count,), result), **attrs)
        writer.store(args[-1], value, result, count)

    module = program(build, [*(argument(e) for e, _ in inputs), argument(result)])
    verify(module)
    evaluate(module, "k", (1,), [*arrays, out])
    return patterns(result, out, given)
