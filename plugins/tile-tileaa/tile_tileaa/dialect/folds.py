"""Operations of nv_tileaa that fold tiles: `reduce`, `scan`, and what ends their regions.

IRDL asks all values of a variadic group to be of one type. An operation whose operands differ in
type therefore has a twin, `<name>_mixed`, with several groups: its values are spread over them in
runs of one type.
"""

# pyright: reportGeneralTypeIssues=false

from collections.abc import Sequence
from typing import Any

from tile_core.dialect import Operand, Operation, Pure, Region, Result, Terminator
from tile_core.mlir import ir
from tile_tileaa.dialect.base import NvTileAA

#: Runs of equal types that the operands of one operation may form.
SLOTS = 16


def segments(types: Sequence[ir.Type]) -> list[int] | None:
    """Sizes of the runs of equal types, padded to SLOTS; None if they are more."""
    sizes: list[int] = []
    for at, type_ in enumerate(types):
        if at and type_ == types[at - 1]:
            sizes[-1] += 1
        else:
            sizes.append(1)
    return sizes + [0] * (SLOTS - len(sizes)) if len(sizes) <= SLOTS else None


def is_mixed(types: Sequence[ir.Type]) -> bool:
    """Whether values of these types need the `_mixed` form of an operation."""
    return any(type_ != types[0] for type_ in types)


class ScanOp(Operation, dialect=NvTileAA, name="scan"):
    """Prefixes along `axis`, each element included; `reverse` starts at the end.

    The region combines (element, accumulator) pairs, one pair per operand.
    """

    inputs: Sequence[Operand[Any]]
    outputs: Sequence[Result[Any]]
    axis: ir.IntegerAttr
    reverse: Any  # bool
    identities: ir.ArrayAttr
    combiner: Region


class ScanMixedOp(Operation, dialect=NvTileAA, name="scan_mixed"):
    """`scan` of operands that differ in type."""

    inputs_0: Sequence[Operand[Any]]
    inputs_1: Sequence[Operand[Any]]
    inputs_2: Sequence[Operand[Any]]
    inputs_3: Sequence[Operand[Any]]
    inputs_4: Sequence[Operand[Any]]
    inputs_5: Sequence[Operand[Any]]
    inputs_6: Sequence[Operand[Any]]
    inputs_7: Sequence[Operand[Any]]
    inputs_8: Sequence[Operand[Any]]
    inputs_9: Sequence[Operand[Any]]
    inputs_10: Sequence[Operand[Any]]
    inputs_11: Sequence[Operand[Any]]
    inputs_12: Sequence[Operand[Any]]
    inputs_13: Sequence[Operand[Any]]
    inputs_14: Sequence[Operand[Any]]
    inputs_15: Sequence[Operand[Any]]
    outputs_0: Sequence[Result[Any]]
    outputs_1: Sequence[Result[Any]]
    outputs_2: Sequence[Result[Any]]
    outputs_3: Sequence[Result[Any]]
    outputs_4: Sequence[Result[Any]]
    outputs_5: Sequence[Result[Any]]
    outputs_6: Sequence[Result[Any]]
    outputs_7: Sequence[Result[Any]]
    outputs_8: Sequence[Result[Any]]
    outputs_9: Sequence[Result[Any]]
    outputs_10: Sequence[Result[Any]]
    outputs_11: Sequence[Result[Any]]
    outputs_12: Sequence[Result[Any]]
    outputs_13: Sequence[Result[Any]]
    outputs_14: Sequence[Result[Any]]
    outputs_15: Sequence[Result[Any]]
    axis: ir.IntegerAttr
    reverse: Any  # bool
    identities: ir.ArrayAttr
    combiner: Region


class ReduceMixedOp(Operation, dialect=NvTileAA, name="reduce_mixed"):
    """`reduce` of operands that differ in type."""

    inputs_0: Sequence[Operand[Any]]
    inputs_1: Sequence[Operand[Any]]
    inputs_2: Sequence[Operand[Any]]
    inputs_3: Sequence[Operand[Any]]
    inputs_4: Sequence[Operand[Any]]
    inputs_5: Sequence[Operand[Any]]
    inputs_6: Sequence[Operand[Any]]
    inputs_7: Sequence[Operand[Any]]
    inputs_8: Sequence[Operand[Any]]
    inputs_9: Sequence[Operand[Any]]
    inputs_10: Sequence[Operand[Any]]
    inputs_11: Sequence[Operand[Any]]
    inputs_12: Sequence[Operand[Any]]
    inputs_13: Sequence[Operand[Any]]
    inputs_14: Sequence[Operand[Any]]
    inputs_15: Sequence[Operand[Any]]
    outputs_0: Sequence[Result[Any]]
    outputs_1: Sequence[Result[Any]]
    outputs_2: Sequence[Result[Any]]
    outputs_3: Sequence[Result[Any]]
    outputs_4: Sequence[Result[Any]]
    outputs_5: Sequence[Result[Any]]
    outputs_6: Sequence[Result[Any]]
    outputs_7: Sequence[Result[Any]]
    outputs_8: Sequence[Result[Any]]
    outputs_9: Sequence[Result[Any]]
    outputs_10: Sequence[Result[Any]]
    outputs_11: Sequence[Result[Any]]
    outputs_12: Sequence[Result[Any]]
    outputs_13: Sequence[Result[Any]]
    outputs_14: Sequence[Result[Any]]
    outputs_15: Sequence[Result[Any]]
    axis: ir.IntegerAttr
    identities: ir.ArrayAttr
    combiner: Region


class YieldMixedOp(Operation, dialect=NvTileAA, name="yield_mixed", traits=[Pure, Terminator]):
    """`yield` of values that differ in type."""

    values_0: Sequence[Operand[Any]]
    values_1: Sequence[Operand[Any]]
    values_2: Sequence[Operand[Any]]
    values_3: Sequence[Operand[Any]]
    values_4: Sequence[Operand[Any]]
    values_5: Sequence[Operand[Any]]
    values_6: Sequence[Operand[Any]]
    values_7: Sequence[Operand[Any]]
    values_8: Sequence[Operand[Any]]
    values_9: Sequence[Operand[Any]]
    values_10: Sequence[Operand[Any]]
    values_11: Sequence[Operand[Any]]
    values_12: Sequence[Operand[Any]]
    values_13: Sequence[Operand[Any]]
    values_14: Sequence[Operand[Any]]
    values_15: Sequence[Operand[Any]]
