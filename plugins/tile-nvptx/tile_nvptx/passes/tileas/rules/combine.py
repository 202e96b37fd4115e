"""The region of a reduction or scan, applied to whole vectors or to one element at a time."""

from __future__ import annotations

from tile_tileas.tile_graph import kind_of

from tile_core.mlir import ir
from tile_core.passes import error_at
from tile_nvptx.passes.tileas.thread.build import Builder
from tile_nvptx.passes.tileas.thread.state import Kernel
from tile_nvptx.passes.tileas.thread.types import count_of, vector_of

Fragments = list[ir.Value]  # one vector per folded tile, all of one width

#: Operations that give the same whichever way round their operands are.
_SYMMETRIC = frozenset(
    f"{dialect}.{name}"
    for dialect, names in (
        ("nv_tileaa", ("addf", "maxf", "minf", "mulf")),
        ("arith", ("addf", "addi", "andi", "mulf", "muli", "ori", "xori")),
        ("arith", ("maximumf", "maxnumf", "maxsi", "maxui")),
        ("arith", ("minimumf", "minnumf", "minsi", "minui")),
    )
    for name in names
)

_CONTROL = ("scf.", "nv_tileas.yield")


def is_symmetric(op: ir.OpView) -> bool:
    """Whether combining a with b is surely the same as combining b with a."""
    block = op.regions[0].blocks[0]
    ops = list(block.operations)
    return (
        len(ops) == 2
        and ops[0].operation.name in _SYMMETRIC
        and set(ops[0].operands) == set(block.arguments)
    )


def combine(op: ir.OpView, cx: Kernel, first: Fragments, second: Fragments) -> Fragments:
    """The region of `op` on vectors; element by element if there is control flow in it.

    `first` and `second` are what its arguments 2i and 2i + 1 stand for: elements and accumulators
    in a reduction, accumulators and elements in a scan.
    """
    block = op.regions[0].blocks[0]
    pairs = [v for pair in zip(first, second, strict=True) for v in pair]
    for argument, value in zip(block.arguments, pairs, strict=True):
        cx.stand_for(value, argument.type)
    _refuse_others(block)
    if any(len(inner.regions) for inner in block.operations):
        return _one_by_one(block, cx, pairs)
    return _on_vectors(block, cx, pairs)


def _refuse_others(block: ir.Block) -> None:
    """Raise an error for what does not work on the scalars of one thread alone."""
    for inner in block.operations:
        name = inner.operation.name
        scalars = not any(
            isinstance(value.type, ir.RankedTensorType)
            for value in (*inner.operands, *inner.results)
        )
        known = kind_of(inner.operation) in ("same", "source") or name.startswith(_CONTROL)
        if not known or not scalars:
            raise error_at(inner, "is not supported in the region of a reduction or scan")
        for region in inner.regions:
            for nested in region.blocks:
                _refuse_others(nested)


def _on_vectors(block: ir.Block, cx: Kernel, pairs: Fragments) -> Fragments:
    """All elements at once: the operations are elementwise."""
    count = count_of(pairs[0].type)
    mapping: dict[ir.Value, ir.Value] = dict(zip(block.arguments, pairs, strict=True))
    clones = []
    for inner in block.operations:
        operands = [_as_vector(cx, operand, mapping, count) for operand in inner.operands]
        clone = inner.operation.clone(ip=cx.insertion_point)
        for at, operand in enumerate(operands):
            clone.operands[at] = operand
        _widen_results(clone, count)
        mapping.update(zip(inner.results, clone.results, strict=True))
        clones.append(clone)
    return _converted(cx, clones)


def _one_by_one(block: ir.Block, cx: Kernel, pairs: Fragments) -> Fragments:
    """Each element of each thread takes its own way through the region."""
    b, found = Builder(cx), list[Fragments]()
    for at in range(count_of(pairs[0].type)):
        scalars = [b.extract(value, at) for value in pairs]
        for argument, value in zip(block.arguments, scalars, strict=True):
            cx.stand_for(value, argument.type)
        mapping: dict[ir.Value, ir.Value] = dict(zip(block.arguments, scalars, strict=True))
        clones = []
        for inner in block.operations:
            clone = inner.operation.clone(ip=cx.insertion_point)
            _remap(clone, mapping)
            mapping.update(zip(inner.results, clone.results, strict=True))
            clones.append(clone)
        found.append(_converted(cx, clones))
    return [b.concat([b.splat(v, 1) for v in column]) for column in zip(*found, strict=True)]


def _remap(op: ir.Operation, mapping: dict[ir.Value, ir.Value]) -> None:
    """Take operands, those of nested operations too, from `mapping` where it has them."""
    for at, operand in enumerate(op.operands):
        if operand in mapping:
            op.operands[at] = mapping[operand]
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                _remap(inner.operation, mapping)


def _converted(cx: Kernel, clones: list[ir.Operation]) -> Fragments:
    """Convert the clones of a region's operations; what its terminator gives."""
    end = clones.pop()  # holds the results while the others are converted
    for clone in clones:
        cx.convert_op(clone.opview)
    found = list(end.operands)
    end.erase()
    return found


def _as_vector(
    cx: Kernel, value: ir.Value, mapping: dict[ir.Value, ir.Value], count: int
) -> ir.Value:
    if value not in mapping:  # a scalar from outside the region
        mapping[value] = Builder(cx).splat(value, count)
        cx.stand_for(mapping[value], cx.before(value))
    return mapping[value]


def _widen_results(op: ir.Operation, count: int) -> None:
    for result in op.results:
        result.set_type(vector_of(count, result.type))
    if op.name == "arith.constant":
        type_ = op.results[0].type
        op.attributes["value"] = ir.DenseElementsAttr.get_splat(type_, op.attributes["value"])
