"""A kernel's loops and branches once more, with nothing in them but some loops and their needs."""

from __future__ import annotations

from collections.abc import Sequence

from tile_core.mlir import ir
from tile_tileas.agents.needs import FOR, IF, WHILE, Needs
from tile_tileas.cloning import replace_operands
from tile_tileas.pipelining.writer import Writer


class Replica:
    """Moves `loops` into copies of what they stand in, made where `at` is.

    What a loop or a branch carries and the loops do not need is not carried by its copy.
    """

    def __init__(self, at: Writer, needs: Needs, loops: Sequence[ir.Operation]) -> None:
        self._at, self._needs, self._loops = at, needs, loops
        self._new: dict[ir.Value, ir.Value] = {}

    def of(self, ops: Sequence[ir.OpView]) -> None:
        """Copies of those of `ops` that are needed."""
        for op in ops:
            name = op.operation
            if name in self._loops:
                replace_operands(op, self._new)
                self._at.place.insert(name.detach_from_parent())
            elif name in self._needs.control:
                with self._at.instead_of(op):
                    {FOR: self._for, IF: self._if, WHILE: self._while}[name.name](op)
            elif any(result in self._needs.values for result in op.results):
                copy = name.clone(ip=self._at.place)
                replace_operands(copy, self._new)
                self._map(op.results, copy.results)

    def _map(self, old: Sequence[ir.Value], new: Sequence[ir.Value]) -> None:
        self._new.update(zip(old, new, strict=True))

    def _values(self, values: Sequence[ir.Value]) -> list[ir.Value]:
        return [self._new.get(value, value) for value in values]

    def _needed(self, values: Sequence[ir.Value]) -> list[int]:
        return [at for at, value in enumerate(values) if value in self._needs.values]

    def _region(self, old: ir.Region, new: ir.Region, arguments: Sequence[ir.Value]) -> None:
        """The body of `new`, where `arguments` of the old one are its own; without its end."""
        types = [argument.type for argument in arguments]
        locations = [ir.Location.unknown() for _ in types]
        block = new.blocks.append(*types, arg_locs=locations)
        self._map(arguments, list(block.arguments))
        self._at.move(ir.InsertionPoint(block))
        self.of(list(old.blocks[0].operations))

    def _end(self, region: ir.Region, name: str, places: Sequence[int]) -> None:
        values = list(_last(region).operands)
        self._at.create(name, self._values([values[at] for at in places]))

    def _for(self, op: ir.OpView) -> None:
        outer, block = self._at.place, op.regions[0].blocks[0]
        induction, *carried = block.arguments
        kept = self._needed(carried)
        operands = list(op.operands)
        start = self._values([*operands[:3], *(operands[3 + at] for at in kept)])
        types = [carried[at].type for at in kept]
        new = self._at.create("scf.for", start, types, _attributes(op), regions=1)
        self._region(op.regions[0], new.regions[0], [induction, *(carried[at] for at in kept)])
        self._end(op.regions[0], "scf.yield", kept)
        self._map([op.results[at] for at in kept], list(new.results))
        self._at.move(outer)

    def _if(self, op: ir.OpView) -> None:
        outer, kept = self._at.place, self._needed(op.results)
        types = [op.results[at].type for at in kept]
        new = self._at.create("scf.if", self._values(op.operands), types, regions=2)
        for old, region in zip(op.regions, new.regions, strict=True):
            if len(old.blocks):
                self._region(old, region, [])
                self._end(old, "scf.yield", kept)
        self._map([op.results[at] for at in kept], list(new.results))
        self._at.move(outer)

    def _while(self, op: ir.OpView) -> None:
        outer = self._at.place
        before, after = (list(region.blocks[0].arguments) for region in op.regions)
        kept = self._needed(before)
        given = sorted({*self._needed(after), *self._needed(op.results)})
        types = [op.results[at].type for at in given]
        start = self._values([op.operands[at] for at in kept])
        new = self._at.create("scf.while", start, types, _attributes(op), regions=2)
        self._region(op.regions[0], new.regions[0], [before[at] for at in kept])
        self._end(op.regions[0], "scf.condition", [0, *(at + 1 for at in given)])
        self._region(op.regions[1], new.regions[1], [after[at] for at in given])
        self._end(op.regions[1], "scf.yield", kept)
        self._map([op.results[at] for at in given], list(new.results))
        self._at.move(outer)


def _last(region: ir.Region) -> ir.OpView:
    block = region.blocks[0]
    return block.operations[len(block.operations) - 1]


def _attributes(op: ir.OpView) -> dict[str, ir.Attribute]:
    return {name: op.attributes[name] for name in op.attributes}
