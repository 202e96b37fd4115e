"""Operations of the specification that no program of cuda_tile needs: for other front ends.

IRDL asks all operands of one group to be of one type, so some have a twin `<name>_mixed` (see
`folds`).
"""

# pyright: reportGeneralTypeIssues=false

import re
from collections.abc import Sequence
from typing import Any

from tile_core.dialect import (
    READ,
    WRITE,
    Effects,
    Operand,
    OperationSpec,
    Pure,
    Region,
    Result,
    declare,
)
from tile_core.mlir import ir
from tile_tileaa.dialect.base import NvTileAA
from tile_tileaa.dialect.folds import slots
from tile_tileaa.dialect.types import (
    PtrType,
    element_of,
    is_integer,
    memref_parts,
    shape_of,
    view_parts,
)

#: Attribute of assembly, an integer: on how many elements one run of it works; 1 without.
PACKED = "packed_element"
#: Attributes of a pragma, arrays of texts: what ptxas is told where its region begins and ends.
ENTER, LEAVE = "ocgEnterDirectives", "ocgLeaveDirectives"
MAX_FILTER = 3
_YIELDS = ("nv_tileaa.yield", "nv_tileaa.yield_mixed")
_UNQUOTABLE = re.compile(r'["\n\r]')
#: Elements that one run of assembly may work on.
_PACKED = (1, 2, 4, 8, 16)


class CallEffects(Effects):
    """What is called may do anything, unless it is said to be pure."""

    @staticmethod
    def get_effects(op: Any, effects: ir.MemoryEffectInstancesList) -> None:
        if "pure" not in op.attributes:
            effects.append(READ)
            effects.append(WRITE)


def _one_shape(op: ir.OpView) -> str | None:
    values = [*op.operands, *op.results]
    if not len(op.results):
        return "expects a result"
    shape = shape_of(values[0].type)
    for value in values:
        if shape_of(value.type) != shape:
            return f"expects tiles of one shape, but got {shape} and {shape_of(value.type)}"
    return None


def _in_registers(op: ir.OpView) -> str | None:
    for value in (*op.operands, *op.results):
        if not isinstance(element_of(value.type), ir.IntegerType | ir.FloatType | PtrType):
            return f"expects numbers, pointers, or tiles of them, but got {value.type}"
    return None


def _packed(op: ir.OpView) -> str | None:
    attributes = op.attributes
    packed = ir.IntegerAttr(attributes[PACKED]).value if PACKED in attributes else 1
    if packed in _PACKED:
        return None
    return f"expects {PACKED} to be one of {', '.join(map(str, _PACKED))}, but got {packed}"


def _histogram(op: ir.OpView) -> str | None:
    source, result = element_of(op.source.type), op.result.type
    if not isinstance(op.source.type, ir.RankedTensorType) or not is_integer(source):
        return f"expects a tile to count of integers, but got {op.source.type}"
    if len(shape_of(result)) != 1 or str(element_of(result)) != "i32":
        return f"expects counts in a tile of one axis of i32, but got {result}"
    return None


def _ends_with_yield(op: ir.OpView) -> str | None:
    blocks = op.regions[0].blocks
    body = list(blocks[0].operations) if len(blocks) else []
    if not body or body[-1].operation.name not in _YIELDS:
        return "expects regions to end with 'nv_tileaa.yield'"
    return None


def _generate(op: ir.OpView) -> str | None:
    block = op.regions[0].blocks[0]
    rank, element = len(shape_of(op.result.type)), element_of(op.result.type)
    if [str(argument.type) for argument in block.arguments] != ["index"] * rank:
        return f"expects a region of {rank} indices"
    yielded = [value.type for value in list(block.operations)[-1].operands]
    return None if yielded == [element] else f"expects the region to yield one {element}"


def _yields_results(op: ir.OpView) -> str | None:
    yielded = [value.type for value in list(op.regions[0].blocks[0].operations)[-1].operands]
    results = [result.type for result in op.results]
    if yielded == results:
        return None
    return f"expects the region to yield {_list(results)}, but got {_list(yielded)}"


def _takes_values(op: ir.OpView) -> str | None:
    given = [value.type for value in op.operands]
    taken = [argument.type for argument in op.regions[0].blocks[0].arguments]
    return None if given == taken else f"expects a region of {_list(given)}, but got {_list(taken)}"


def _directives(op: ir.OpView) -> str | None:
    for name in (ENTER, LEAVE):
        texts = op.attributes[name] if name in op.attributes else ir.ArrayAttr.get([])
        if not isinstance(texts, ir.ArrayAttr) or any(
            not isinstance(text, ir.StringAttr) or _UNQUOTABLE.search(text.value) for text in texts
        ):
            return f"expects {name} to be an array of texts of one line without quotes"
    return None


def _passes_on(op: ir.OpView) -> str | None:
    given, results = ([v.type for v in values] for values in (op.operands, op.results))
    if given == results:
        return None
    return f"expects results of {_list(given)}, but got {_list(results)}"


def _list(types: Sequence[ir.Type]) -> str:
    return f"[{', '.join(map(str, types))}]"


def _conv_tile(op: ir.OpView) -> str | None:
    """In the order of the specification."""
    if view_parts(op.result.type) is None or memref_parts(op.source.type) is None:
        return f"cannot cut {op.source.type} into {op.result.type}"
    if any(not 1 <= size <= MAX_FILTER for size in ir.DenseI32ArrayAttr(op.filter_sizes)):
        return "expects filter size must be in range 1 to 3"
    params = ir.DictAttr(op.conv_params)
    lengths = {len(ir.DenseI32ArrayAttr(params[at].attr)) for at in range(len(params))}
    if len(lengths) > 1:
        return "expects conv params size matched with each other"
    channel = ir.IntegerAttr(op.channel_axis).value
    groups = [list(ir.DenseI32ArrayAttr(group)) for group in ir.ArrayAttr(op.dim_groups)]
    own = [group for group in groups if channel in group]
    if not own:
        return "expects channel must be a dimGroup"
    if any(len(group) > 1 for group in own):
        return "expects channel dimGroup should contain only channel"
    return None


def _conv_dot(op: ir.OpView) -> str | None:
    if op.acc.type == op.result.type:
        return None
    return f"expects a result of {op.acc.type}, but got {op.result.type}"


_ARGUMENTS: dict[str, Any] = {"values": Sequence[Operand[Any]]}
_RESULTS: dict[str, Any] = {"results_": Sequence[Result[Any]]}
_MIXED_ARGUMENTS = slots("values", Operand[Any])
_MIXED_RESULTS = slots("outputs", Result[Any])


def _mixable(
    suffix: str, arguments: dict[str, Any], results: dict[str, Any]
) -> tuple[OperationSpec, ...]:
    """What is called on each element, whose effects are unknown unless it has the unit attribute
    `pure`: it may then be left out, run again, or moved. And `pragma`.
    """
    return (
        OperationSpec(
            f"extern_elementwise{suffix}",
            {**arguments, "result": Result[Any], "symbol": ir.FlatSymbolRefAttr},
            "A function of the module (llvm.func) or of libdevice, called on each element.",
            (CallEffects,),
            (_in_registers, _one_shape),
        ),
        OperationSpec(
            f"call_elementwise_intrinsic{suffix}",
            {**arguments, "result": Result[Any], "intrinsic": ir.StringAttr},
            "An intrinsic of LLVM, its overloads spelt out, called on each element.",
            (CallEffects,),
            (_in_registers, _one_shape),
        ),
        OperationSpec(
            f"elementwise_inline_asm{suffix}",
            {**arguments, **results, "asm": ir.StringAttr, "constraints": ir.StringAttr},
            "Assembly for each element, or each `packed_element` of them: elements of fewer than "
            "32 bits share registers, the first one in the lowest bits.",
            (CallEffects,),
            (_in_registers, _one_shape, _packed),
        ),
        OperationSpec(
            f"pragma{suffix}",
            {**arguments, **results, "body": Region},
            "Directives for what the region, which takes the values, holds; what it yields are the "
            "results. Optional: "
            "`ocgEnterDirectives` and `ocgLeaveDirectives`.",
            checks=(_ends_with_yield, _takes_values, _yields_results, _directives),
        ),
    )


SPECS = (
    *_mixable("", _ARGUMENTS, _RESULTS),
    *_mixable("_mixed", _MIXED_ARGUMENTS, _MIXED_RESULTS),
    OperationSpec(
        "histogram",
        {"source": Operand[Any], "result": Result[Any]},
        "How often each number from 0 on stands in a tile, one counter per number. Numbers are "
        "read without a sign; those that have no counter are not counted.",
        (Pure,),
        (_histogram,),
    ),
    OperationSpec(
        "generate",
        {"result": Result[Any], "body": Region},
        "A tile whose elements are what the region yields for their indices.",
        checks=(_ends_with_yield, _generate),
    ),
    OperationSpec(
        "optimization_barrier",
        {**_ARGUMENTS, **_RESULTS},
        "The same values, which nothing may be computed across.",
        checks=(_in_registers, _passes_on),
    ),
    OperationSpec(
        "message",
        {**_ARGUMENTS, "text": ir.StringAttr},
        "A text for whoever compiles the program.",
    ),
    OperationSpec(
        "conv_tile",
        {
            "source": Operand[Any],
            "result": Result[Any],
            "filter_sizes": Any,  # array<i32>
            "conv_params": ir.DictAttr,
            "dim_groups": ir.ArrayAttr,
            "channel_axis": ir.IntegerAttr,
        },
        "A grid of tiles of an activation, of which neighbours overlap by the filter.",
        (Pure,),
        (_conv_tile,),
    ),
    OperationSpec(
        "conv_dot",
        {
            "activation": Operand[Any],
            "filter": Operand[Any],
            "acc": Operand[Any],
            "result": Result[Any],
            "conv_params": ir.DictAttr,
        },
        "acc + activation * filter, a convolution.",
        (Pure,),
        (_conv_dot,),
    ),
)

#: Of convolutions the specification names parameters, but not what they mean; it describes no
#: conversion of them ("Lowering nv_tileaa to nv_tileas").
NOT_COMPILED = ("nv_tileaa.conv_tile", "nv_tileaa.conv_dot")

for _spec in SPECS:
    declare(NvTileAA, _spec, module=__name__)
