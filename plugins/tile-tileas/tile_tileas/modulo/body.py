"""What a loop's operations allow: from MLIR to `plan`'s plain numbers, or why it cannot be."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tile_core.mlir import ir
from tile_core.sched import LoopGraph
from tile_tileas.analysis.pressure import used_values
from tile_tileas.modulo.plan import Dependences
from tile_tileas.sched.facts import is_cheap, is_pure
from tile_tileas.sched.staged import feeds_products

_LOOPS = ("scf.for", "scf.while")


def why_not(loop: ir.OpView | ir.Operation) -> str | None:
    """Why iterations of a loop cannot overlap whatever the schedule; None if they can."""
    if loop.operation.name != "scf.for":
        return "whether there is a next iteration is known only at the end of this one"
    return None


def has_loops(loop: ir.OpView | ir.Operation) -> bool:
    """Whether there is a loop in the body of a loop."""
    block = loop.regions[0].blocks[0]
    return any(name in _LOOPS for op in block.operations for name in _inside(op))


def is_persistent(loop: ir.OpView | ir.Operation) -> bool:
    """Whether a loop walks over tiles as far apart as there are blocks."""
    if loop.operation.name != "scf.for":
        return False
    step = loop.operands[2].owner
    while not isinstance(step, ir.Block) and step.name == "nv_tileaa.assume":
        step = step.operands[0].owner
    return not isinstance(step, ir.Block) and step.name == "nv_tileaa.get_num_programs"


def _inside(op: ir.OpView) -> Iterator[str]:
    yield op.operation.name
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                yield from _inside(inner)


@dataclass(frozen=True)
class LoopBody:
    """The body of an `scf.for`: operations without the terminator, and where values are from."""

    loop: ir.OpView
    ops: tuple[ir.OpView, ...]
    owner: dict[ir.Value, int]  # result -> operation
    arguments: tuple[ir.Value, ...]  # without the induction variable
    yielded: tuple[ir.Value, ...]

    @classmethod
    def of(cls, loop: ir.OpView) -> LoopBody:
        block = loop.regions[0].blocks[0]
        *ops, end = block.operations
        owner = {result: at for at, op in enumerate(ops) for result in op.results}
        return cls(loop, tuple(ops), owner, tuple(block.arguments)[1:], tuple(end.operands))

    @property
    def induction(self) -> ir.Value:
        """The induction variable."""
        return self.loop.regions[0].blocks[0].arguments[0]


def dependences(body: LoopBody, graph: LoopGraph, *, late_loads: bool) -> Dependences:
    """What binds the operations; `late_loads`: those of products are staged by another pass."""
    uses = [
        (body.owner[value], at)
        for at, op in enumerate(body.ops)
        for value in used_values(op)
        if value in body.owner
    ]
    kept = frozenset(body.owner[value] for value in body.yielded if value in body.owner)
    cheap = frozenset(
        at
        for at, op in enumerate(body.ops)
        if is_cheap(op) or (graph.ops[at].constraints.recomputable and is_pure(op))
    )
    late: frozenset[int] = frozenset()
    if late_loads:
        late = frozenset(at for at, op in enumerate(body.ops) if feeds_products(op))
    return Dependences(len(body.ops), tuple(uses), graph.edges, kept, cheap, late)
