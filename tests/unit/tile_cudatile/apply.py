"""Runs single operations in the evaluator."""

from __future__ import annotations

from typing import Any

import numpy as np
from tile_cudatile import evaluate
from tile_cudatile import types as t
from tile_cudatile.evaluator.formats import decode, dtype_of, encode
from tile_cudatile.ops import BODY_OPS
from tile_cudatile.tree import Block, Entry, Module, Op, Region, Value


def operation(name: str, operands: list[Any], results: list[t.Type], /, **attrs: Any) -> Op:
    """An operation with defaults for the attributes that are not given."""
    spec = BODY_OPS.by_name[name]
    values = {a.name: a.default for a in spec.attrs if a.default is not None}
    groups = [*operands, *[None] * (len(spec.operands) - len(operands))]
    if "inbounds" in values and "inbounds" not in attrs:
        values["inbounds"] = (False,) * len(groups[spec.operand_index["index"]])
    return Op(spec, tuple(groups), tuple(map(Value, results)), {**values, **attrs})


def program(build, arguments: list[t.Type]) -> Module:
    """A module with kernel `k`, whose operations `build(ops, *arguments)` appends."""
    args = tuple(map(Value, arguments))
    block = Block(args, [])
    build(block.ops, *args)
    block.ops.append(operation("return", [()], []))
    entry = Entry("k", t.Function(tuple(arguments), ()), Region([block]))
    return Module(entries=[entry])


def pointer(element: t.Scalar) -> t.Tile:
    """A kernel argument that points to numbers."""
    return t.Tile((), t.Pointer(element))


def _addresses(ops: list[Op], base: Value, element: t.Scalar, count: int) -> Value:
    def emit(name: str, operands: list[Any], result: t.Type) -> Value:
        ops.append(operation(name, operands, [result]))
        return ops[-1].result

    lanes = t.Tile((count,), t.Pointer(element))
    one = emit("reshape", [base], t.Tile((1,), t.Pointer(element)))
    iota = emit("iota", [], t.Tile((count,), t.I32))
    return emit("offset", [emit("broadcast", [one], lanes), iota], lanes)


def elementwise(
    name: str, inputs: list[tuple[t.Scalar, np.ndarray]], result: t.Scalar, **attrs: Any
) -> np.ndarray:
    """The operation applied to 1-D arrays of held values, whatever their length."""
    count = len(inputs[0][1])
    size = 1 << max(count - 1, 1).bit_length()
    cells = []
    for element, values in inputs:
        padded = np.ones(size, dtype_of(element))
        padded[:count] = values
        cells.append(np.ascontiguousarray(encode(padded, element)))
    out = np.zeros((size, encode(np.zeros(1, dtype_of(result)), result).shape[-1]), np.uint8)

    def build(ops: list[Op], *args: Value) -> None:
        loaded = []
        for (element, _), arg in zip(inputs, args, strict=False):
            tile = t.Tile((size,), element)
            ops.append(
                operation(
                    "load_ptr_tko",
                    [_addresses(ops, arg, element, size)],
                    [tile, t.TOKEN],
                    memory_ordering_semantics="weak",
                )
            )
            loaded.append(ops[-1].results[0])
        ops.append(operation(name, loaded, [t.Tile((size,), result)], **attrs))
        computed = ops[-1].result
        ops.append(
            operation(
                "store_ptr_tko",
                [_addresses(ops, args[-1], result, size), computed],
                [t.TOKEN],
                memory_ordering_semantics="weak",
            )
        )

    kernel = program(build, [*(pointer(e) for e, _ in inputs), pointer(result)])
    evaluate(kernel, "k", (1,), [*cells, out])
    return decode(out, result)[:count]
