"""Operation classes of the MLIR dialect, made from the operation tables.

`AddFOp`, `LoadViewTkoOp`, ... with a property per operand, result, attribute and region, as
`tile_core.dialect.Operation` gives them. Optional and unit attributes are not declared (IRDL has
no optional attributes): `op.attributes` has them or not. Properties are in snake case
(`initValues` is `init_values`), operand `from` is `from_`; `get_global`'s symbol is
`attributes["name"]`, since `name` is the operation's own.

Groups of values that may differ in type are `Mixed`; `MIXED` says for how many types.
"""

import re
from collections.abc import Sequence
from functools import cache
from typing import Any

from tile_core.dialect import (
    READ,
    WRITE,
    Effects,
    IsolatedFromAbove,
    Mixed,
    NoEffect,
    NoTerminator,
    Operand,
    Operation,
    OperationSpec,
    Pure,
    Region,
    Result,
    Terminator,
    declare,
)
from tile_core.mlir import ir
from tile_cudatile.dialect.types import (
    CudaTile,
    GatherScatterViewType,
    PartitionViewType,
    StridedViewType,
    TensorViewType,
    TileType,
    TokenType,
)
from tile_cudatile.ops import ALL_OPS
from tile_cudatile.ops import constraints as c
from tile_cudatile.ops.spec import OpSpec, ValueSpec


class WeakLoadEffects(Effects):
    """A weak load reads; a stronger one also orders, which must stay."""

    @staticmethod
    def get_effects(op: Any, effects: ir.MemoryEffectInstancesList) -> None:
        effects.append(READ)
        if ir.StringAttr(op.attributes["memory_ordering_semantics"]).value != "weak":
            effects.append(WRITE)


#: Traits besides those that the tables' `effects` and `terminator` give.
_TRAITS: dict[str, list[type]] = {
    "module": [IsolatedFromAbove, NoTerminator],
    "entry": [IsolatedFromAbove],
    "load_view_tko": [WeakLoadEffects],
    "load_ptr_tko": [WeakLoadEffects],
    # Their bodies hold pure operations only.
    "reduce": [NoEffect],
    "scan": [NoEffect],
    # Nothing is lost with an assumption that nobody uses.
    "assume": [NoEffect],
}
_EFFECTS: dict[str, list[type]] = {"pure": [Pure], "none": [NoEffect]}

#: Slots of the groups that may mix types: as many runs of equal types as they can hold. What is
#: folded is of one shape, so that its types are no more than there are elements; what loops and
#: branches carry may be of any. Slots are not free: a hundred more cost 5 ms of every cold start.
RUNS = 32
CARRIED_RUNS = 128
_INDEX_RUNS = 3  # scalars, the index tile of a gather/scatter view, scalars
MIXED: dict[tuple[str, str], int] = {
    ("for", "initValues"): CARRIED_RUNS,
    ("for", "resultValues"): CARRIED_RUNS,
    ("loop", "initValues"): CARRIED_RUNS,
    ("loop", "resultValues"): CARRIED_RUNS,
    ("if", "results"): CARRIED_RUNS,
    ("reduce", "operands"): RUNS,
    ("reduce", "results"): RUNS,
    ("scan", "operands"): RUNS,
    ("scan", "results"): RUNS,
    ("break", "operands"): CARRIED_RUNS,
    ("continue", "operands"): CARRIED_RUNS,
    ("return", "operands"): RUNS,
    ("yield", "operands"): CARRIED_RUNS,
    ("print_tko", "args"): RUNS,
} | {
    (spec.name, operand.name): _INDEX_RUNS
    for spec in ALL_OPS
    for operand in spec.operands
    if operand.name == "index"
}

_CLASSES: dict[c.Constraint, Any] = {
    c.TOKEN_TYPE: TokenType,
    c.TENSOR_VIEW: TensorViewType,
    c.PARTITION_VIEW: PartitionViewType,
    c.STRIDED_VIEW: StridedViewType,
    c.GATHER_SCATTER_VIEW: GatherScatterViewType,
    c.VIEW: PartitionViewType | StridedViewType | GatherScatterViewType,
    c.ANY: Any,
}
_ATTRIBUTES: dict[str, Any] = {
    "enum": ir.StringAttr,
    "i32": ir.IntegerAttr,
    "i64": ir.IntegerAttr,
    "str": ir.StringAttr,
    "symbol": ir.FlatSymbolRefAttr,
    "array": ir.ArrayAttr,
    "predicate": ir.DictAttr,
    "type": ir.TypeAttr,
}


@cache
def property_name(name: str) -> str:
    """The Python property for an operand, result or region of that name."""
    if name == "from":
        return "from_"
    return re.sub("[A-Z]", lambda match: f"_{match[0].lower()}", name)


def _annotations(spec: OpSpec) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for operand in spec.operands:
        fields[property_name(operand.name)] = _group(spec, operand, Operand)
    for attr in spec.attrs:
        if not attr.flagged and attr.name != "name":
            fields[attr.name] = _ATTRIBUTES.get(attr.kind, Any)
    for result in spec.results:
        fields[property_name(result.name)] = _group(spec, result, Result)
    for region in spec.regions:
        fields[property_name(region)] = Region
    return fields


def _group(spec: OpSpec, group: ValueSpec, kind: Any) -> Any:
    annotation = kind[_CLASSES.get(group.constraint, TileType)]
    slots = MIXED.get((spec.name, group.name))
    if slots is not None:
        return Mixed(annotation, slots)
    if group.arity == "optional":
        return annotation | None
    return Sequence[annotation] if group.arity == "variadic" else annotation


def _define(spec: OpSpec) -> type[Operation]:
    traits = _TRAITS.get(spec.name) or _EFFECTS.get(spec.effects, [])
    if spec.terminator:
        traits = [*traits, Terminator]
    declared = OperationSpec(
        spec.name, _annotations(spec), f"`cuda_tile.{spec.name}`.", tuple(traits)
    )
    made = declare(CudaTile, declared, spec.class_name, __name__)
    if any(r.arity == "variadic" for r in spec.results):
        # The only result group.
        name = property_name(spec.results[0].name)
        setattr(made, name, property(lambda self: self.operation.results))
    return made


def operand_groups(op: ir.OpView | ir.Operation) -> dict[str, list[ir.Value]]:
    """The operands of an operation of this dialect by the group names of its declaration.

    An absent optional operand is an empty list.
    """
    operation = op.operation
    spec = ALL_OPS.by_name[operation.name.removeprefix("cuda_tile.")]
    operands = list(operation.operands)
    if not spec.variable:
        return {group.name: [value] for group, value in zip(spec.operands, operands, strict=True)}
    sizes = _segments(operation, spec)
    found: dict[str, list[ir.Value]] = {}
    start = slot = 0
    for group in spec.operands:
        slots = MIXED.get((spec.name, group.name), 1)
        size = sum(sizes[slot : slot + slots])
        found[group.name] = operands[start : start + size]
        start, slot = start + size, slot + slots
    return found


def _segments(operation: ir.Operation, spec: OpSpec) -> list[int]:
    """Sizes of the slots; IRDL asks for the attribute only where they do not follow without."""
    if "operandSegmentSizes" in operation.attributes:
        return list(ir.DenseI32ArrayAttr(operation.attributes["operandSegmentSizes"]))
    rest = len(operation.operands) - sum(group.arity == "one" for group in spec.operands)
    return [
        size
        for group in spec.operands
        for size in (
            [1]
            if group.arity == "one"
            else [rest] + [0] * (MIXED.get((spec.name, group.name), 1) - 1)
        )
    ]


CLASSES: dict[str, type[Operation]] = {spec.name: _define(spec) for spec in ALL_OPS}
globals().update({cls.__name__: cls for cls in CLASSES.values()})
__all__ = [cls.__name__ for cls in CLASSES.values()]  # pyright: ignore
