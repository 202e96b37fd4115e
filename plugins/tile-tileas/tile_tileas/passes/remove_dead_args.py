"""tileas-remove-dead-args: what loops carry and branches give, but nobody needs, goes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tile_core.mlir import ir
from tile_core.passes import Pass, PassContext
from tile_tileas.pipelining.slices import is_pure

_BOUNDS = 3  # of an scf.for: lower, upper, step


@dataclass(frozen=True)
class RemoveDeadArgs(Pass):
    """Remove arguments of loops, and results of branches, that reach no effect and no result.

    An argument whose only use is to compute what it is next goes, too, which clean-up by MLIR
    leaves: to it, a cycle is a use. What computed it is left for clean-up.
    """

    name = "tileas-remove-dead-args"
    anchor = "func.func"
    statistics = {"arguments": "values that are carried or given no more"}

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        for region in op.regions:
            for block in region.blocks:
                cx.count("arguments", _block(block))


def _block(block: ir.Block) -> int:
    """Loops and branches of a block, the last first: what uses one of its results is seen before,
    and what is inside of it after, when its arguments are as few as they get.
    """
    removed = 0
    for op in reversed(list(block.operations)):
        new = op
        if op.operation.name == "scf.for":
            dead = _dead_of_loop(op)
            new = _loop_without(op, dead) if dead else op
            removed += len(dead)
        elif op.operation.name == "scf.if":
            dead = [at for at, result in enumerate(op.results) if not _is_used(result)]
            new = _branch_without(op, dead) if dead else op
            removed += len(dead)
        for region in new.regions:
            for inner in region.blocks:
                removed += _block(inner)
    return removed


def _is_used(value: ir.Value) -> bool:
    return next(iter(value.uses), None) is not None


# --- loops ----------------------------------------------------------------------------------------


def _dead_of_loop(loop: ir.OpView) -> list[int]:
    """Positions of values that the loop carries for nothing, highest first."""
    block = loop.regions[0].blocks[0]
    *body, end = block.operations
    arguments, yielded = list(block.arguments)[1:], list(end.operands)
    live: set[ir.Value] = set()
    stack = [value for at, value in enumerate(yielded) if _is_used(loop.results[at])]
    for op in body:
        if len(op.regions) or not is_pure(op):
            stack += _used(op)
    numbers = {argument: at for at, argument in enumerate(arguments)}
    while stack:
        value = stack.pop()
        if value in live:
            continue
        live.add(value)
        if value in numbers:
            stack.append(yielded[numbers[value]])
        elif not isinstance(value.owner, ir.Block) and value.owner.operation.block == block:
            stack += value.owner.operands
    needed = (_is_used(loop.results[at]) or arguments[at] in live for at in range(len(arguments)))
    return [at for at, needs in reversed(list(enumerate(needed))) if not needs]


def _used(op: ir.OpView) -> Iterator[ir.Value]:
    """What an operation takes, and what its regions do."""
    yield from op.operands
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                yield from _used(inner)


def _loop_without(loop: ir.OpView, dead: Sequence[int]) -> ir.Operation:
    """The loop in which nothing at those positions is carried."""
    operands = list(loop.operands)
    kept = [at for at in range(len(loop.results)) if at not in dead]
    block = loop.regions[0].blocks[0]
    for at in dead:
        # What still uses it only computes what it would be next.
        block.arguments[1 + at].replace_all_uses_with(operands[_BOUNDS + at])
        block.erase_argument(1 + at)
    _end_with(block, kept)
    carried = [operands[_BOUNDS + at] for at in kept]
    return _made_anew(loop, [*operands[:_BOUNDS], *carried], kept)


def _branch_without(branch: ir.OpView, dead: Sequence[int]) -> ir.Operation:
    """The branch that gives nothing at those positions."""
    kept = [at for at in range(len(branch.results)) if at not in dead]
    for region in branch.regions:
        _end_with(region.blocks[0], kept)
    return _made_anew(branch, list(branch.operands), kept)


def _end_with(block: ir.Block, kept: Sequence[int]) -> None:
    end = block.operations[len(block.operations) - 1]
    values = [end.operands[at] for at in kept]
    ir.Operation.create(end.operation.name, [], values, loc=end.location, ip=ir.InsertionPoint(end))
    end.operation.erase()


def _made_anew(old: ir.OpView, operands: Sequence[ir.Value], kept: Sequence[int]) -> ir.Operation:
    attributes = {name: old.attributes[name] for name in old.attributes}
    new = ir.Operation.create(
        old.operation.name,
        [old.results[at].type for at in kept],
        operands,
        attributes,
        regions=len(old.regions),
        loc=old.location,
        ip=ir.InsertionPoint(old),
    )
    for region, made in zip(old.regions, new.regions, strict=True):
        if len(region.blocks):
            region.blocks[0].append_to(made)
    for at, result in zip(kept, new.results, strict=True):
        old.results[at].replace_all_uses_with(result)
    old.operation.erase()
    return new
