"""Loops that carry more than they did, or stand under a branch."""

from __future__ import annotations

from collections.abc import Sequence

from tile_core.mlir import ir
from tile_tileas.pipelining.writer import Writer


def carrying(
    old: ir.Operation | ir.OpView, first: Sequence[ir.Value]
) -> tuple[ir.Operation, ir.Block, list[ir.Value]]:
    """The loop that carries further values, which begin as `first`, in place of `old`; its body,
    which still ends as it did (`hand_on`), and what stands for them there.
    """
    at = Writer(old.location)
    at.move(ir.InsertionPoint(old))
    attributes = {name: old.attributes[name] for name in old.attributes}
    types = [*(result.type for result in old.results), *(value.type for value in first)]
    new = at.create("scf.for", [*old.operands, *first], types, attributes, regions=1)
    old.regions[0].blocks[0].append_to(new.regions[0])
    block = new.regions[0].blocks[0]
    added = [block.add_argument(value.type, old.location) for value in first]
    for before, result in zip(old.results, new.results, strict=False):
        before.replace_all_uses_with(result)
    old.operation.erase()
    return new, block, added


def hand_on(block: ir.Block, values: Sequence[ir.Value]) -> None:
    """Let the next iteration have `values`, too."""
    end = block.operations[len(block.operations) - 1]
    at = Writer(end.location)
    at.move(ir.InsertionPoint(end))
    at.create("scf.yield", [*end.operands, *values])
    end.operation.erase()


def under_branch(loop: ir.Operation) -> None:
    """Put a loop under a branch that is taken if it has an iteration; what it begins with is what
    it gives else.
    """
    at = Writer(loop.location)
    at.move(ir.InsertionPoint(loop))
    lower, upper = list(loop.operands)[:2]
    runs = at.is_less(at.wide(lower), at.wide(upper))
    types = [result.type for result in loop.results]
    branch = at.create("scf.if", [runs], types, regions=2)
    for result, outer in zip(loop.results, branch.results, strict=True):
        result.replace_all_uses_with(outer)
    at.move(ir.InsertionPoint(branch.regions[0].blocks.append()))
    at.place.insert(loop.detach_from_parent())
    at.create("scf.yield", list(loop.results))
    at.move(ir.InsertionPoint(branch.regions[1].blocks.append()))
    at.create("scf.yield", list(loop.operands)[3:])
