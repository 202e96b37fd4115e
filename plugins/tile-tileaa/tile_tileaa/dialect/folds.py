"""Operations that fold tiles, `reduce` and `scan`, and what ends their regions.

`folds("nv_tileaa")` and `folds("nv_tileas")` are the same tables for two dialects.

IRDL asks all values of a variadic group to be of one type. An operation whose operands differ in
type therefore has a twin, `<name>_mixed`, whose groups are `Mixed`.
"""

# pyright: reportGeneralTypeIssues=false

from collections.abc import Sequence
from typing import Any

from tile_core.dialect import (
    Check,
    Mixed,
    Operand,
    OperationSpec,
    Pure,
    PureRegions,
    Region,
    Result,
    Terminator,
    declare,
)
from tile_core.mlir import ir
from tile_tileaa.dialect.base import NvTileAA
from tile_tileaa.dialect.types import element_of, shape_of

#: Runs of equal types that the operands of one operation may form. Programs come with no more:
#: `tile_cudatile.dialect.runs` sees to it.
SLOTS = 16

#: Dialects without effects, whose operations a combiner may hold beside our own pure ones.
_COMBINING = ("arith.", "math.", "scf.", "ub.")


def is_mixed(types: Sequence[ir.Type]) -> bool:
    """Whether values of these types need the `_mixed` form of an operation."""
    return any(type_ != types[0] for type_ in types)


def slots(name: str, kind: Any) -> dict[str, Any]:
    """Fields of a group whose values may differ in type."""
    return {name: Mixed(kind, SLOTS)}


def _axis(op: ir.OpView) -> str | None:
    """`axis` is one of every operand's, and all operands have one shape."""
    shape = shape_of(op.operands[0].type)
    axis = ir.IntegerAttr(op.attributes["axis"]).value
    if not 0 <= axis < len(shape):
        return f"expects an axis of at least 0 and below {len(shape)}, but got {axis}"
    for value in op.operands:
        if shape_of(value.type) != shape:
            return f"expects operands of one shape, but got {shape} and {shape_of(value.type)}"
    return None


def _identities(op: ir.OpView) -> str | None:
    count = len(ir.ArrayAttr(op.attributes["identities"]))
    if count == len(op.operands):
        return None
    return f"expects {len(op.operands)} identities, but got {count}"


def _results(removes_axis: bool) -> Check:
    def check(op: ir.OpView) -> str | None:
        if len(op.results) != len(op.operands):
            return f"expects {len(op.operands)} results, but got {len(op.results)}"
        shape = shape_of(op.operands[0].type)
        if removes_axis:
            del shape[ir.IntegerAttr(op.attributes["axis"]).value]
        for operand, result in zip(op.operands, op.results, strict=True):
            if shape_of(result.type) != shape:
                return f"expects results of shape {shape}, but got {shape_of(result.type)}"
            if element_of(result.type) != element_of(operand.type):
                return f"expects a result of {element_of(operand.type)}, but got {result.type}"
        return None

    return check


def _combiner(dialect: str) -> Check:
    """The region takes two scalars per operand and yields one; it does nothing else."""
    ends = (f"{dialect}.yield", f"{dialect}.yield_mixed")

    def check(op: ir.OpView) -> str | None:
        blocks = op.regions[0].blocks
        if len(blocks) != 1:
            return f"expects a region of one block, but got {len(blocks)}"
        body = list(blocks[0].operations)
        if not body or body[-1].operation.name not in ends:
            return f"expects regions to end with '{ends[0]}'"
        wanted = [element_of(value.type) for value in op.operands]
        twice = [type_ for type_ in wanted for _ in range(2)]
        if [argument.type for argument in blocks[0].arguments] != twice:
            return f"expects region arguments of {_list(twice)}"
        if [value.type for value in body[-1].operands] != wanted:
            return f"expects the region to yield {_list(wanted)}"
        for inner in body[:-1]:
            name = inner.operation.name
            if not name.startswith(_COMBINING) and Pure not in getattr(inner, "_traits", ()):
                return f"expects a region without effects, but it has '{name}'"
        return None

    return check


def _list(types: Sequence[ir.Type]) -> str:
    return f"[{', '.join(map(str, types))}]"


_FOLDS = ("reduce", "scan", "reduce_mixed", "scan_mixed")


def _inside(dialect: str, others: tuple[str, ...]) -> Check:
    parents = [f"{dialect}.{name}" for name in (*_FOLDS, *others)]

    def check(op: ir.OpView) -> str | None:
        parent = op.operation.parent
        if parent is not None and parent.name in parents:
            return None
        return f"expects parent op to be one of '{', '.join(parents)}'"

    return check


def folds(dialect: str, others: tuple[str, ...] = ()) -> tuple[OperationSpec, ...]:
    """The operations of both forms for the dialect of that name.

    Args:
        others: further operations of the dialect whose regions end in its `yield`.
    """
    both: dict[str, Any] = {"axis": ir.IntegerAttr}
    last: dict[str, Any] = {"identities": ir.ArrayAttr, "combiner": Region}
    reverse: dict[str, Any] = {"reverse": Any}  # bool
    uniform: dict[str, Any] = {
        "inputs": Sequence[Operand[Any]],
        "outputs": Sequence[Result[Any]],
    }
    mixed = {**slots("inputs", Operand[Any]), **slots("outputs", Result[Any])}
    traits = (PureRegions,)
    reduces = (_axis, _identities, _results(True), _combiner(dialect))
    scans = (_axis, _identities, _results(False), _combiner(dialect))
    folding = "Fold `axis` away; the region combines (element, accumulator) pairs, one per operand."
    running = (
        "Prefixes along `axis`, each element included; `reverse` starts at the end. The region "
        "combines (accumulator, element) pairs, one per operand."
    )
    several = " Operands differ in type."
    ends, inside = (Pure, Terminator), (_inside(dialect, others),)
    return (
        OperationSpec("reduce", {**uniform, **both, **last}, folding, traits, reduces),
        OperationSpec("reduce_mixed", {**mixed, **both, **last}, folding + several, traits,
                      reduces),
        OperationSpec("scan", {**uniform, **both, **reverse, **last}, running, traits, scans),
        OperationSpec("scan_mixed", {**mixed, **both, **reverse, **last}, running + several, traits,
                      scans),
        OperationSpec("yield", {"values": Sequence[Operand[Any]]}, "Ends the region of a fold.",
                      ends, inside),
        OperationSpec("yield_mixed", slots("values", Operand[Any]),
                      "Ends the region of a fold of several types.", ends, inside),
    )  # fmt: skip


for _spec in folds(NvTileAA.DIALECT_NAMESPACE, ("generate", "pragma", "pragma_mixed")):
    declare(NvTileAA, _spec, module=__name__)
