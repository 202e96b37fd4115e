"""tileas-assign-phases: iterators become numbers, and uses of pipes say stage and phase.

An iterator is one i32: bit 31 is the phase, the others are the stage. It is carried through loops
and branches as the iterator was, so that no operation changes its shape.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from tile_core.insertion import Before
from tile_core.mlir import ir
from tile_core.passes import Pass, PassContext, error_at
from tile_tileas.dialect.pipelines import is_iterator
from tile_tileas.pipes.extract import REGIONS, STEPS, extract

_P = "nv_tileas.async_pipeline_"
_PHASE = -(1 << 31)  # bit 31 as a signed number
_STAGE = (1 << 31) - 1
_EQ = 0  # arith.CmpIPredicate


@dataclass(frozen=True)
class AssignPhases(Pass):
    """Give every use of a pipe its stage and phase, and let loops carry them as integers."""

    name = "tileas-assign-phases"
    anchor = "func.func"
    statistics: ClassVar[dict[str, str]] = {"iterators": "iterators that became integers"}

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        found = extract(op.opview)
        stages = {
            name: ir.IntegerAttr(made.attributes["numStages"]).value
            for name, made in found.created.items()
        }
        sizes = _Sizes(op, {v: stages[p] for v, p in found.pipe_of.items()})
        for inner in list(_walk(op)):
            if inner.operation.name in STEPS or inner.operation.name in REGIONS:
                _use(inner)
        steps = [inner for inner in _walk(op) if inner.operation.name == f"{_P}inc_iter"]
        # Before any is replaced: one may step what another has stepped.
        sized = [(step, sizes.of(step)) for step in steps]
        for inner in list(_walk(op)):
            if inner.operation.name == f"{_P}create_iterator":
                cx.count("iterators")
                _replace(inner, Before(inner).constant(0))
        for step, size in sized:
            _replace(step, _after(Before(step), step.operands[0], size))
        _retype(op)


class _Sizes:
    """Stages of the pipe that an iterator belongs to: that of the tokens it is used with."""

    def __init__(self, func: ir.Operation, tokens: dict[ir.Value, int]) -> None:
        self.tokens = tokens
        self.known: dict[ir.Value, int] = {}
        for op in _walk(func):
            if op.operation.name == f"{_P}create_iterator":
                self.known[op.results[0]] = tokens[op.operands[0]]
        self._spread(func)

    def _spread(self, func: ir.Operation) -> None:
        """Follow iterators through steps and control flow, in program order."""
        for op in _walk(func):
            name = op.operation.name
            if name == f"{_P}inc_iter":
                self._same(op.operands[0], op.results[0])
            elif name == "scf.for":
                for at, initial in enumerate(list(op.operands)[3:]):
                    self._same(initial, op.regions[0].blocks[0].arguments[at + 1])
                    self._same(initial, op.results[at])
            elif name == "scf.while":
                arguments = op.regions[0].blocks[0].arguments
                for initial, argument in zip(op.operands, arguments, strict=True):
                    self._same(initial, argument)
            elif name == "scf.condition":
                loop = op.operation.parent
                assert loop is not None
                for at, value in enumerate(list(op.operands)[1:]):
                    self._same(value, loop.regions[1].blocks[0].arguments[at])
                    self._same(value, loop.results[at])
            elif name == "scf.yield":
                owner = op.operation.parent
                if owner is not None and owner.name == "scf.if":
                    for value, result in zip(op.operands, owner.results, strict=True):
                        self._same(value, result)

    def _same(self, source: ir.Value, target: ir.Value) -> None:
        if source in self.known:
            self.known[target] = self.known[source]

    def of(self, op: ir.OpView) -> int:
        """Stages of the pipe of an `inc_iter`."""
        if op.operands[0] not in self.known:
            raise error_at(op, "steps an iterator of a pipe that is not known here")
        return self.known[op.operands[0]]


def _split(before: Before, iterator: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Stage and phase."""
    stage = before.with_constant("andi", iterator, _STAGE)
    return stage, before.with_constant("shrui", iterator, 31)


def _after(before: Before, iterator: ir.Value, stages: int) -> ir.Value:
    """The next stage; behind the last one the first, in the other phase."""
    following = before.with_constant("addi", iterator, 1)
    phase = before.with_constant("andi", iterator, _PHASE)
    turned = before.with_constant("xori", phase, _PHASE)
    predicate = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), _EQ)
    reached = [before.with_constant("andi", following, _STAGE), before.constant(stages)]
    at_end = before.create("arith.cmpi", reached, [before.i1], {"predicate": predicate}).result
    choice = [at_end, turned, following]
    return before.create("arith.select", choice, [before.i32]).result


def _use(op: ir.OpView) -> None:
    """Stage and phase in place of the iterator of one use of a pipe."""
    token, *index = op.operands
    if len(index) != 1 or not is_iterator(index[0].type):
        return
    before = Before(op)
    made = before.create(
        op.operation.name,
        [token, *_split(before, index[0])],
        [result.type for result in op.results],
        {name: op.attributes[name] for name in op.attributes},
        regions=len(op.regions),
    )
    for old, new in zip(op.regions, made.regions, strict=True):
        old.blocks[0].append_to(new)
    for old, new in zip(op.results, made.results, strict=True):
        old.replace_all_uses_with(new)
    op.operation.erase()


def _replace(op: ir.OpView, value: ir.Value) -> None:
    op.results[0].replace_all_uses_with(value)
    op.operation.erase()


def _retype(func: ir.Operation) -> None:
    """What control flow carries is an integer now."""
    i32 = ir.IntegerType.get_signless(32)
    for op in _walk(func):
        values = [*op.results]
        for region in op.regions:
            values += [argument for block in region.blocks for argument in block.arguments]
        for value in values:
            if is_iterator(value.type):
                value.set_type(i32)


def _walk(op: ir.Operation | ir.OpView) -> Iterator[ir.OpView]:
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                yield inner
                yield from _walk(inner)
