"""tileas-reuse-loads: threads have elements of loads from others that read the same memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tile_core.mlir import ir
from tile_core.passes import Pass, PassContext
from tile_tileas.access import AccessPlan
from tile_tileas.analysis.shifted import Member, families
from tile_tileas.dialect import layout_of
from tile_tileas.pipelining.cp_async import KEPT
from tile_tileas.reuse import Shifted, Source, sources, widest_first
from tile_tileas.sched.facts import is_pure


@dataclass(frozen=True)
class ReuseLoads(Pass):
    """Load what no other load of the block has brought: of nine gathers of the neighbours of each
    element, which differ by a number of elements, most ask for what their thread has.

    Those with wide vectors come first, in front of all others. Behind tileas-insert-barriers: what
    a load brings is used in more places then, but in no other thread.
    """

    name = "tileas-reuse-loads"
    anchor = "func.func"
    preserves = ("axis", "bounds")
    statistics = {
        "loads": "loads of which a thread has elements",
        "elements": "of a thread, by these",
    }

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        for family in families(op):
            _share(family, cx)


def _share(family: Sequence[Member], cx: PassContext) -> None:
    loads = [_shifted(member) for member in family]
    layout = layout_of(family[0].op.result.type)
    if layout is None:
        return
    order = widest_first(loads)
    first = [family[at].op for at in order if loads[at].vector == loads[order[0]].vector]
    if not any(map(_shared, sources(layout, [loads[at] for at in order]))):
        return
    if not _moved_in_front(family[0].op, first):
        order = list(range(len(family)))
    tiles: list[ir.Value] = []
    taken = sources(layout, [loads[at] for at in order])
    for load, registers in zip([family[at].op for at in order], taken, strict=True):
        shared = _shared(registers)
        tiles.append(_replaced(load, registers, tiles) if shared else load.result)
        if shared:
            cx.count("loads")
            cx.count("elements", shared)


def _shared(registers: Sequence[Source]) -> int:
    """Registers whose elements are not loaded."""
    return len(registers) - registers.count(None)


def _shifted(member: Member) -> Shifted:
    plan = AccessPlan.of(member.op)
    assert plan is not None, "as `families` says"
    return Shifted(member.offset, plan.order[0], plan.vector)


def _moved_in_front(place: ir.OpView, loads: Sequence[ir.OpView]) -> bool:
    """Put loads, and what they need, in front of all others of their family, of which `place` is
    the first; nothing if one of them needs more than arithmetic that stands behind it.
    """
    ops = list(place.operation.block.operations)
    at = {result: number for number, op in enumerate(ops) for result in op.results}
    begin, needed = at[place.results[0]], set[int]()
    stack = [load.results[0] for load in loads]
    while stack:
        number = at.get(stack.pop(), -1)
        if number <= begin or number in needed:
            continue
        if not (is_pure(ops[number]) or ops[number] in loads):
            return False
        needed.add(number)
        stack += ops[number].operands
    for number in sorted(needed):
        ops[number].operation.move_before(place.operation)
    if needed and place in loads:
        place.operation.move_before(ops[min(needed)].operation)
    return True


def _replaced(load: ir.OpView, registers: Sequence[Source], tiles: Sequence[ir.Value]) -> ir.Value:
    """The tile with the elements of registers that have a source from there."""
    given = sorted({source[0] for source in registers if source is not None})
    groups = [[load.base], [load.mask], [load.other], [tiles[number] for number in given]]
    groups = [[value for value in group if value is not None] for group in groups]
    rest = ir.Operation.create(
        "nv_tileas.load_rest",
        results=[load.result.type],
        operands=[value for group in groups for value in group],
        attributes={name: load.attributes[name] for name in KEPT if name in load.attributes}
        | {
            "sources": ir.DenseI32ArrayAttr.get(
                [-1 if source is None else given.index(source[0]) for source in registers]
            ),
            "registers": ir.DenseI32ArrayAttr.get(
                [0 if source is None else source[1] for source in registers]
            ),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(group) for group in groups]),
        },
        loc=load.location,
        ip=ir.InsertionPoint(load),
    ).result
    load.result.replace_all_uses_with(rest)
    token = next((each for each in load.operands if each.type == load.results[1].type), None)
    if token is None:
        with ir.InsertionPoint(load):
            token = ir.Operation.create(
                "nv_tileaa.create_mem_token", [load.results[1].type], loc=load.location
            ).result
    load.results[1].replace_all_uses_with(token)
    load.operation.erase()
    return rest
