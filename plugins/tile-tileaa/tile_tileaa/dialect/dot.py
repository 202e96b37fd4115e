"""Matrix products of nv_tileaa, and the contract that nv_tileas shares.

Tile IR specification, "nv_tileaa operation roster" and "nv_tileaa verifiers"; which element types
go together follows PTX ISA, "Matrix multiply-accumulate", since the hardware also has f64 and f16
accumulators.
"""

# pyright: reportGeneralTypeIssues=false

from collections.abc import Sequence
from typing import Any

from tile_core.dialect import Check, Operand, OperationSpec, Pure, Result, declare
from tile_core.mlir import ir
from tile_tileaa.dialect.base import NvTileAA
from tile_tileaa.dialect.math import SIGNEDNESS
from tile_tileaa.dialect.types import element_of, shape_of

#: Element type of A and B -> those that C may have.
ACCUMULATORS: dict[str, tuple[str, ...]] = {
    "f4E2M1FN": ("f32",),
    "f8E4M3FN": ("f32", "f16"),
    "f8E5M2": ("f32", "f16"),
    "f16": ("f32", "f16"),
    "bf16": ("f32",),
    "tf32": ("f32",),
    "f32": ("f32",),
    "f64": ("f64",),
}

#: On a product that so many blocks of a cluster make together (i32).
BLOCKS = "blocks"

_Types = tuple[ir.Type, ir.Type, ir.Type, ir.Type]


def _integer_problem(op: ir.OpView, types: _Types) -> str | None:
    widths = [type_.width for type_ in types[:2]]
    if widths[0] != widths[1]:
        return f"expects #A and #B have same bit width but got {widths[0]} vs {widths[1]}"
    for name, operand in (("signedness_a", "A"), ("signedness_b", "B")):
        if name not in op.attributes:
            return f"expect signedness attribute for operand {operand}"
        value = op.attributes[name]
        if not isinstance(value, ir.StringAttr) or value.value not in SIGNEDNESS:
            return f"expects {name} to be one of {', '.join(SIGNEDNESS)}, but got {value}"
    if widths[0] != 8 or types[2].width != 32:
        return f"expects i8 operands and an i32 accumulator, but got {types[0]} and {types[2]}"
    return None


def _float_problem(types: _Types) -> str | None:
    a, b, c, _result = types
    allowed = ACCUMULATORS.get(str(a))
    if allowed is None or ACCUMULATORS.get(str(b)) != allowed:
        return f"cannot multiply elements of {a} by elements of {b}"
    if str(c) not in allowed:
        either = "either " if len(allowed) > 1 else ""
        return f"expects #C element type to be {either}{' or '.join(allowed)}, but got {c}"
    return None


def type_problem(op: ir.OpView) -> str | None:
    """What is wrong with the element types of a product."""
    types = (
        element_of(op.a.type),
        element_of(op.b.type),
        element_of(op.c.type),
        element_of(op.result.type),
    )
    integers = [isinstance(type_, ir.IntegerType) for type_ in types]
    if len(set(integers)) > 1:
        return (
            "expected the element types of A, B, C, and D to be either all integers or all floats."
        )
    return _integer_problem(op, types) if integers[0] else _float_problem(types)


def blocks_of(op: ir.OpView | ir.Operation) -> int:
    """How many blocks of a cluster make a product together; 1 if nothing says."""
    return ir.IntegerAttr(op.attributes[BLOCKS]).value if BLOCKS in op.attributes else 1


def _blocks(op: ir.OpView) -> str | None:
    if BLOCKS not in op.attributes:
        return None
    given = op.attributes[BLOCKS]
    if isinstance(given, ir.IntegerAttr) and given.value == 2 and op.sfa is None:
        return None
    return f"expects {BLOCKS} to be 2 and no block scales, but got {given}"


def _shape_problem(op: ir.OpView) -> str | None:
    return shape_problem(op, shape_of(op.b.type))


def shape_problem(op: ir.OpView, b: Sequence[int]) -> str | None:
    """What is wrong with the shapes of a product, whose B has the shape `b`."""
    a, c, d = (shape_of(value.type) for value in (op.a, op.c, op.result))
    if len(d) not in (2, 3):
        return f"expects rank-2 or rank-3 tensor for result, but got ({len(d)})"
    if len(a) != len(d) or len(b) != len(d) or a[-1] != b[-2] or a[:-2] != b[:-2]:
        return "expects the shape of operand #A and #B to be compatible"
    if c != [*a[:-2], a[-2], b[-1] * blocks_of(op)] or op.c.type != op.result.type:
        return "expects the shape of operand #C is compatible with operands #A and #B"
    return None


def _scales(op: ir.OpView) -> str | None:
    if (op.sfa is None) != (op.sfb is None):
        return "expects both SFA and SFB to be present"
    return None


#: The contract of `dot` in both dialects, in the order of the specification.
DOT_CHECKS: tuple[Check, ...] = (type_problem, _blocks, _shape_problem, _scales)

DOT = OperationSpec(
    "dot",
    {
        "a": Operand[Any],
        "b": Operand[Any],
        "c": Operand[Any],
        "sfa": Operand[Any] | None,
        "sfb": Operand[Any] | None,
        "result": Result[Any],
    },
    "c + a @ b for [B x] M x K by [B x] K x N; sfa and sfb are block scales. Integers wrap and "
    "carry signedness_a and signedness_b. Floats are accumulated in the type of c or a wider one. "
    "Optional: propagate_nan, fast_acc; with `blocks` of 2 a pair of blocks of a cluster makes one "
    "product: each has its own rows of a and c, and half of the columns of b.",
    (Pure,),
    DOT_CHECKS,
)

declare(NvTileAA, DOT, module=__name__)
