"""What the tests of rules share."""

from __future__ import annotations

from typing import Any

from tile_cudatile import VerifyError, verify
from tile_cudatile import types as t
from tile_cudatile.attrs import Dense
from tile_cudatile.tree import Block, Entry, Global, Module, Op, Region, Value
from tile_cudatile.versions import V13_5
from unit.tile_cudatile.apply import operation

F4x4, I4x4 = t.Tile((4, 4), t.F32), t.Tile((4, 4), t.I32)
B4x4, H4x4 = t.Tile((4, 4), t.I1), t.Tile((4, 4), t.F16)
SCALAR, TRUTH, POINTER = t.Tile((), t.I32), t.Tile((), t.I1), t.Tile((), t.Pointer(t.F32))
POINTERS = t.Tile((4, 4), t.Pointer(t.F32))
TENSOR = t.TensorView(t.F32, (16, 16), (16, 1))
VIEW = t.PartitionView((4, 4), TENSOR, (0, 1))
ITENSOR = t.TensorView(t.I32, (16, 16), (16, 1))
DYNAMIC = t.TensorView(t.F32, (None, 16), (None, 1))
STRIDED = t.StridedView((4, 4), (1, 2), TENSOR, (0, 1))
GATHER = t.GatherScatterView((4, 4), TENSOR, 0)
RN = {"rounding_mode": "nearest_even"}
LOAD = {"memory_ordering_semantics": "weak"}
RMW = {"memory_ordering_semantics": "relaxed", "memory_scope": "device"}


def verify_ops(ops: list[Op], arguments: list[Value] | None = None) -> str:
    """What is wrong with a kernel of these operations; "" if nothing is.

    Operands that no operation defines become arguments of a block around.
    """
    args = tuple(arguments or ())
    block = Block(args, [*ops, operation("return", [()], [])])
    entry = Entry("k", t.Function((), ()), Region([block]))
    module = Module(V13_5, [Global("g", Dense(t.Tile((2,), t.F32), bytes(4)))], [entry])
    try:
        verify(module)
    except VerifyError as error:
        return error.lines[0]
    return ""


def complaint(name: str, operands: list[Any], results: list[t.Type], /, **attrs: Any) -> str:
    """The complaint about one operation on operands of the given types."""
    groups = [
        tuple(Value(o) for o in operand)
        if isinstance(operand, tuple)
        else None
        if operand is None
        else Value(operand)
        for operand in operands
    ]
    text = verify_ops([operation(name, groups, results, **attrs)])
    return text.removeprefix(f"'cuda_tile.{name}' op ")
