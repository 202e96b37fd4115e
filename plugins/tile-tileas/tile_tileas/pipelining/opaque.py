"""Values of which LLVM and ptxas know nothing, so that they are made where the program says."""

from __future__ import annotations

from collections.abc import Callable

from tile_core.insertion import Inserter
from tile_core.mlir import ir
from tile_tileas.analysis.constants import splat
from tile_tileas.pipelining.writer import Writer

_BARRIER, _SPLAT = "nv_tileaa.optimization_barrier", "nv_tileaa.splat"
_MAKING = ("arith.constant", _BARRIER, _SPLAT)


def opaque(at: Inserter, value: ir.Value) -> ir.Value:
    """The same scalar, which is computed in front of here."""
    return at.create(_BARRIER, [value], [value.type]).result


def everywhere(at: Inserter, number: ir.Attribute, type_: ir.Type) -> ir.Value:
    """A tile that holds `number` everywhere; registers are written here, and not in front of what
    branches here, as those of constants are.
    """
    scalar = at.create("arith.constant", [], [type_.element_type], {"value": number}).result
    return at.create(_SPLAT, [opaque(at, scalar)], [type_]).result


def read_or(
    at: Writer, condition: ir.Value, read: Callable[[], ir.Value], other: ir.Value
) -> ir.Value:
    """An `scf.if`: the tile that `read` gives, or as a rule not, `other`: where that is one number,
    it is made there, as it takes as many instructions as registers.
    """
    number = splat(other)
    if number is None:
        return at.choice(condition, lambda: [read()], [other])[0]
    outer, type_ = at.place, other.type
    branch = at.create("scf.if", [condition], [type_], regions=2)
    then, otherwise = (region.blocks.append() for region in branch.regions)
    at.move(ir.InsertionPoint(then))
    at.create("scf.yield", [read()])
    at.move(ir.InsertionPoint(otherwise))
    at.create("scf.yield", [everywhere(at, number, type_)])
    at.move(outer)
    return branch.results[0]


def given_alone(block: ir.Block) -> ir.Attribute | None:
    """The number of a tile that holds it everywhere, if a block does nothing but give that."""
    *making, end = block.operations
    if len(end.operands) != 1 or any(op.operation.name not in _MAKING for op in making):
        return None
    value = end.operands[0]
    while not isinstance(value.owner, ir.Block) and value.owner.operation.name in _MAKING[1:]:
        value = value.owner.operands[0]
    return splat(value)
