"""Loads through pointers that read the elements of others, a number of elements further on.

A stencil gathers the neighbours of each element, so that its loads read almost the same memory,
each by an element more to the left or to the right. Such loads are a family. With what an element's
address, mask and padding are as forms of its coordinates (`elements`), a load is another one moved
by (d0, d1) if its forms are those of the other one with c0 + d0 and c1 + d1 for c0 and c1.

They read the same only if nothing is written in between: those of a family stand in one block, no
operation that may write is between them, and their tokens wait for the same.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator
from dataclasses import dataclass

from tile_core.mlir import ir
from tile_tileas.access import CP_ASYNC, AccessPlan
from tile_tileas.analysis.axis import shape_of
from tile_tileas.analysis.caches import asked
from tile_tileas.analysis.elements import INDUCTION, Elements
from tile_tileas.analysis.forms import Form, Forms, TooDeepError
from tile_tileas.analysis.tokens import ACCESSES, PASSING, is_weak, only_reads
from tile_tileas.sched.facts import memory_effect

LOAD = "nv_tileas.load"
#: The cache operator of loads that each ask memory anew (PTX ISA, "Cache Operators").
_NEWLY = "cv"
#: Elements along an axis that a thread may have next to each other.
_FEW = 8


@dataclass(frozen=True)
class Member:
    """A load of a family, and by how many elements along each axis it is further on than the one
    whose offset is zero.
    """

    op: ir.OpView
    offset: tuple[int, ...]


def families(func: ir.Operation) -> list[list[Member]]:
    """The families of a function, of two loads at least, in program order."""
    found: list[list[Member]] = []
    for region in func.regions:
        for block in region.blocks:
            found += _of_block(block)
    return found


def _of_block(block: ir.Block) -> Iterator[list[Member]]:
    for section in _sections(block):
        alike: dict[Hashable, list[ir.OpView]] = defaultdict(list)
        for load in section:
            alike[_kind(load)].append(load)
        for loads in alike.values():
            if len(loads) > 1:
                yield from _related(loads)
    for op in block.operations:
        for region in op.regions:
            for inner in region.blocks:
                yield from _of_block(inner)


def _sections(block: ir.Block) -> Iterator[list[ir.OpView]]:
    """Loads of a block with nothing between them that may write."""
    now: list[ir.OpView] = []
    for op in block.operations:
        if op.operation.name == LOAD and is_weak(op):
            now += [op] if _may_share(op) else []
        elif _may_write(op):
            yield now
            now = []
    yield now


def _may_write(op: ir.OpView) -> bool:
    """Whether memory may be another one after it, for loads whose tokens do not say so. Threads of
    a block that wait for each other write nothing.
    """
    name = op.operation.name
    if name in ACCESSES:
        return not _only_reads(op)
    if len(op.regions):
        return any(_may_write(i) for r in op.regions for b in r.blocks for i in b.operations)
    return name != "nv_tileas.sync" and memory_effect(op) == "write"


def _may_share(load: ir.OpView) -> bool:
    """Whether threads load elements of a tile into registers."""
    plan = AccessPlan.of(load)
    if not shape_of(load.result) or asked(load)[0] == _NEWLY or "volatile" in load.attributes:
        return False
    return plan is not None and plan.copy != CP_ASYNC


def _kind(load: ir.OpView) -> Hashable:
    """What two loads have in common of which one may give the other elements."""
    attributes = sorted((n, str(load.attributes[n])) for n in load.attributes if n != "access")
    has = (load.mask is None, load.other is None)
    return str(load.result.type), str(load.base.type), tuple(attributes), has, _waits_for(load)


def _waits_for(load: ir.OpView) -> frozenset[ir.Value]:
    """What a load's token comes from, but for other loads of the block."""
    found: set[ir.Value] = set()
    stack = [token for token in load.operands if str(token.type) == str(load.results[1].type)]
    seen: set[ir.Value] = set()
    while stack:
        token = stack.pop()
        if token in seen:
            continue
        seen.add(token)
        maker = token.owner
        if not isinstance(maker, ir.Block) and _passes_on(maker, load.operation.block):
            stack += [each for each in maker.operands if each.type == token.type]
        else:
            found.add(token)
    return frozenset(found)


def _passes_on(op: ir.OpView, block: ir.Block) -> bool:
    """Whether who waits for the operation waits for no more than what it waits for itself, but for
    what stands in other blocks.
    """
    reads = op.operation.name in ACCESSES and _only_reads(op)
    return op.operation.block == block and (reads or op.operation.name in PASSING)


def _only_reads(op: ir.OpView) -> bool:
    return only_reads(op) and is_weak(op)


def _related(loads: list[ir.OpView]) -> Iterator[list[Member]]:
    """Families among loads that are alike. Of those that read the very same, the first alone: where
    they are far apart, its elements would take registers all the way.
    """
    elements = Elements()
    found: dict[tuple[Form, ...], dict[tuple[int, ...], Member]] = {}
    for load in loads:
        try:
            offset, key = _placed(_forms(load, elements), load, elements.forms)
        except TooDeepError:
            continue
        found.setdefault(key, {}).setdefault(offset, Member(load, offset))
    yield from (list(members.values()) for members in found.values() if len(members) > 1)


def _forms(load: ir.OpView, elements: Elements) -> list[Form]:
    values = (load.base, load.mask, load.other)
    return [elements[value] for value in values if value is not None]


def _placed(
    of: list[Form], load: ir.OpView, forms: Forms
) -> tuple[tuple[int, ...], tuple[Form, ...]]:
    """How far on a load of these forms is, and what it would be if it were not."""
    offset = tuple(forms.start(of, axis) for axis in range(len(shape_of(load.result))))
    back = tuple((axis, (axis, -by)) for axis, by in enumerate(offset))
    return offset, tuple(forms.moved(form, back) for form in of)


def shifts(loop: ir.OpView, step: int) -> bool:
    """Whether a load of a loop's body reads what it read an iteration before, a few elements
    further on: no more than a thread has next to each other.
    """
    body = loop.regions[0].blocks[0]
    elements = Elements(body.arguments[0])
    forms = elements.forms
    for load in body.operations:
        if load.operation.name != LOAD or not is_weak(load) or not shape_of(load.result):
            continue
        try:
            now = _forms(load, elements)
            later = [forms.moved(form, ((INDUCTION, (INDUCTION, step)),)) for form in now]
            (before, one), (after, other) = (_placed(of, load, forms) for of in (now, later))
        except TooDeepError:
            continue
        by = [b - a for a, b in zip(before, after, strict=True)]
        if one == other and any(by) and max(map(abs, by)) <= _FEW:
            return True
    return False
