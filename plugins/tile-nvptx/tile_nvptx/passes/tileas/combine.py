"""The region of a reduction or scan, applied to whole vectors."""

from __future__ import annotations

from tile_core.convert import Conversion
from tile_core.mlir import ir
from tile_core.passes import error_at
from tile_nvptx.passes.tileas.build import Builder
from tile_nvptx.passes.tileas.rules import state
from tile_nvptx.passes.tileas.types import count_of, vector_of

Fragments = list[ir.Value]  # one vector per folded tile, all of one width

#: Operations that give the same whichever way round their operands are.
_SYMMETRIC = frozenset(
    f"{dialect}.{name}"
    for dialect, names in (
        ("nv_tileaa", ("addf", "mulf")),
        ("arith", ("addf", "addi", "andi", "mulf", "muli", "ori", "xori")),
        ("arith", ("maximumf", "maxnumf", "maxsi", "maxui")),
        ("arith", ("minimumf", "minnumf", "minsi", "minui")),
    )
    for name in names
)


def is_symmetric(op: ir.OpView) -> bool:
    """Whether combining a with b is surely the same as combining b with a."""
    block = op.regions[0].blocks[0]
    ops = list(block.operations)
    return (
        len(ops) == 2
        and ops[0].operation.name in _SYMMETRIC
        and set(ops[0].operands) == set(block.arguments)
    )


def combine(
    op: ir.OpView, cx: Conversion, elements: Fragments, accumulators: Fragments
) -> Fragments:
    """The region of `op` on vectors: its operations are elementwise."""
    block = op.regions[0].blocks[0]
    count = count_of(elements[0].type)
    pairs = [v for pair in zip(elements, accumulators, strict=True) for v in pair]
    mapping = dict(zip(block.arguments, pairs, strict=True))
    clones = []
    for inner in block.operations:
        if len(inner.regions):
            raise error_at(inner, "is not supported in the region of a reduction or scan")
        operands = [_as_vector(cx, operand, mapping, count) for operand in inner.operands]
        clone = inner.operation.clone(ip=cx.insertion_point)
        for at, operand in enumerate(operands):
            clone.operands[at] = operand
        _widen_results(clone, count)
        known = state(cx).source_types
        if len(inner.results) and inner.results[0] in known:
            known[clone.results[0]] = known[inner.results[0]]
        mapping.update(zip(inner.results, clone.results, strict=True))
        clones.append(clone)
    end = clones.pop()  # holds the results while the other clones are converted
    for clone in clones:
        cx.convert_op(clone.opview)
    found = list(end.operands)
    end.erase()
    return found


def _as_vector(
    cx: Conversion, value: ir.Value, mapping: dict[ir.Value, ir.Value], count: int
) -> ir.Value:
    if value not in mapping:  # a scalar from outside the region
        mapping[value] = Builder(cx).splat(value, count)
    return mapping[value]


def _widen_results(op: ir.Operation, count: int) -> None:
    for result in op.results:
        result.set_type(vector_of(count, result.type))
    if op.name == "arith.constant":
        type_ = op.results[0].type
        op.attributes["value"] = ir.DenseElementsAttr.get_splat(type_, op.attributes["value"])
