"""Operations of the specification that no program of cuda_tile needs.

They are verified, and `convert-tileaa-to-tileas` refuses them (`NOT_COMPILED`).
IRDL asks all operands of one group to be of one type.
"""

# pyright: reportGeneralTypeIssues=false

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
from tile_tileaa.dialect.types import (
    element_of,
    is_integer,
    memref_parts,
    shape_of,
    view_parts,
)

MAX_FILTER = 3


class AsmEffects(Effects):
    """Assembly may do anything, unless it is said to be pure."""

    @staticmethod
    def get_effects(op: Any, effects: ir.MemoryEffectInstancesList) -> None:
        if "pure" not in op.attributes:
            effects.append(READ)
            effects.append(WRITE)


def _one_shape(op: ir.OpView) -> str | None:
    values = [*op.operands, *op.results]
    shape = shape_of(values[0].type)
    for value in values:
        if shape_of(value.type) != shape:
            return f"expects tiles of one shape, but got {shape} and {shape_of(value.type)}"
    return None


def _histogram(op: ir.OpView) -> str | None:
    source, result = element_of(op.source.type), op.result.type
    if not is_integer(source):
        return f"expects a tile to count of integers, but got {source}"
    if len(shape_of(result)) != 1 or str(element_of(result)) != "i32":
        return f"expects counts in a tile of one axis of i32, but got {result}"
    return None


def _ends_with_yield(op: ir.OpView) -> str | None:
    blocks = op.regions[0].blocks
    body = list(blocks[0].operations) if len(blocks) else []
    if not body or body[-1].operation.name != "nv_tileaa.yield":
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

SPECS = (
    OperationSpec(
        "extern_elementwise",
        {**_ARGUMENTS, "result": Result[Any], "symbol": ir.FlatSymbolRefAttr},
        "A function of a library, called on each element.",
        checks=(_one_shape,),
    ),
    OperationSpec(
        "call_elementwise_intrinsic",
        {**_ARGUMENTS, "result": Result[Any], "intrinsic": ir.StringAttr},
        "An intrinsic of LLVM, called on each element.",
        checks=(_one_shape,),
    ),
    OperationSpec(
        "elementwise_inline_asm",
        {
            **_ARGUMENTS,
            "results_": Sequence[Result[Any]],
            "asm": ir.StringAttr,
            "constraints": ir.StringAttr,
        },
        "Assembly for each element. Optional: the unit attribute `pure`.",
        (AsmEffects,),
        (_one_shape,),
    ),
    OperationSpec(
        "histogram",
        {"source": Operand[Any], "result": Result[Any]},
        "How often each number from 0 on stands in a tile, one counter per number.",
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
        "pragma",
        {**_ARGUMENTS, "results_": Sequence[Result[Any]], "body": Region},
        "Directives for what the region holds; its values are the results.",
        checks=(_ends_with_yield, _yields_results),
    ),
    OperationSpec(
        "optimization_barrier",
        {**_ARGUMENTS, "results_": Sequence[Result[Any]]},
        "The same values, which nothing may be computed across.",
        checks=(_passes_on,),
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

#: What nothing compiles yet. `generate` and `pragma` have nv_tileas forms of the same name, the
#: others pass through nv_tileas as they are (Tile IR specification, "Lowering nv_tileaa to
#: nv_tileas" and "nv_tileas operation roster"); of convolutions it describes no conversion at all.
NOT_COMPILED = tuple(f"nv_tileaa.{spec.name}" for spec in SPECS)
WITHOUT_CONVERSION = ("nv_tileaa.conv_tile", "nv_tileaa.conv_dot")

for _spec in SPECS:
    declare(NvTileAA, _spec, module=__name__)
