"""Operands and results by the names that operations declare for them.

The bindings' own accessors want `operandSegmentSizes` for every optional or variadic field, which
operations with a single such group do without.
"""

from collections.abc import Sequence
from typing import Any

from tile_core.declarations import Kind
from tile_core.mlir import ir


def operands_of(op: Any, name: str) -> list[ir.Value]:
    """The operands of field `name`, in order; none for an optional one that is absent."""
    return _values(op, name, "operand", op.operands, "operandSegmentSizes")


def operand_of(op: Any, name: str) -> ir.Value | None:
    """The operand of field `name`; None for an optional one that is absent."""
    found = operands_of(op, name)
    return found[0] if found else None


def results_of(op: Any, name: str) -> list[ir.Value]:
    """The results of field `name`, in order."""
    return _values(op, name, "result", op.results, "resultSegmentSizes")


def values_of(op: Any, name: str) -> list[ir.Value]:
    """The operands or results of field `name`, in order."""
    is_operand = any(f.name == name and f.kind == "operand" for f in type(op)._fields)
    return operands_of(op, name) if is_operand else results_of(op, name)


def _values(
    op: Any, name: str, kind: Kind, values: Sequence[ir.Value], segments: str
) -> list[ir.Value]:
    fields = [field for field in type(op)._fields if field.kind == kind]
    rest = len(values) - sum(field.variadicity == "single" for field in fields)
    if segments in op.attributes:
        sizes = list(ir.DenseI32ArrayAttr(op.attributes[segments]))
    else:
        sizes = [1 if field.variadicity == "single" else rest for field in fields]
    start = group = 0
    for field in fields:
        size = sum(sizes[group : group + field.slots])
        if field.name == name:
            return list(values[start : start + size])
        start, group = start + size, group + field.slots
    raise AssertionError(f"{op.operation.name} has no field {name}")
