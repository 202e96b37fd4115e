"""Builds programs operation by operation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from tile_cudatile import types as t
from tile_cudatile.attrs import Dense
from tile_cudatile.evaluator.formats import dtype_of, encode
from tile_cudatile.ops import BODY_OPS
from tile_cudatile.tree import Block, Op, Region, Value
from tile_cudatile.versions import Version
from unit.tile_cudatile.apply import operation

FLOATS = (t.F16, t.BF16, t.F32, t.F64)
INTS = (t.I1, t.I8, t.I16, t.I32, t.I64)
ROUNDINGS = ("nearest_even", "zero", "negative_inf", "positive_inf")
SCALAR = t.Tile((), t.I32)


class Maker:
    """Appends operations that the version has."""

    def __init__(self, version: Version) -> None:
        self.version = version
        self.ops: list[Op] = []

    def has(self, *names: str) -> bool:
        """Whether the version has all of these operations."""
        return all(BODY_OPS.by_name[n].since <= self.version for n in names)

    def emit(self, name: str, operands: list[Any], /, *results: t.Type, **attrs: Any) -> Value:
        """Appends an operation; gives its first result."""
        self.ops.append(operation(name, operands, list(results), **attrs))
        op = self.ops[-1]
        return op.results[0] if op.results else None  # type: ignore[return-value]

    def constant(self, type_: t.Tile, value: Any = 1) -> Value:
        """A constant of numbers."""
        element = type_.element
        assert isinstance(element, t.Scalar)
        if element == t.I1:
            data = b"\xff" if value else b"\x00"
        elif element == t.TF32:
            data = (int(np.float32(value).view(np.uint32)) >> 13).to_bytes(3, "little")
        else:
            held = np.asarray(value).astype(np.float32 if element.is_float else np.int64)
            data = np.ascontiguousarray(encode(held.astype(dtype_of(element)), element)).tobytes()
        return self.emit("constant", [], type_, value=Dense(type_, data))

    def region(self, args: list[t.Type], build: Callable[..., tuple[str, list[Value]]]) -> Region:
        """A region whose operations `build` emits; it gives the terminator and its operands."""
        outer, self.ops = self.ops, []
        values = tuple(Value(a) for a in args)
        name, operands = build(*values)
        self.emit(name, [tuple(operands)])
        block = Block(values, self.ops)
        self.ops = outer
        return Region([block])

    def with_regions(
        self,
        name: str,
        operands: list[Any],
        results: list[t.Type],
        regions: list[Region],
        **attrs: Any,
    ) -> Op:
        """An operation with regions."""
        op = operation(name, operands, results, **attrs)
        op.regions = tuple(regions)
        self.ops.append(op)
        return op
