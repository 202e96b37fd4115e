"""The bodies of a function that are scheduled, and their schedules as attributes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tile_core.mlir import ir
from tile_core.passes import error_at, invalidated
from tile_core.sched import SCHEDULE_ANALYSIS, Schedule, stage_orders

START, INTERVAL = "nv_tileas.start", "nv_tileas.ii"
#: The specification's record of a schedule, an entry per operation of the block.
#: Mark of what may be made again in every stage that uses it.
RECOMPUTABLE = "tileas.recomputable"
STAGE, ORDER = "nv_tile.aws.stage", "nv_tile.aws.order"
INVALIDATED = invalidated(SCHEDULE_ANALYSIS)


@dataclass(frozen=True)
class BodyOf:
    """A block that is scheduled, and the operation that keeps its schedule."""

    holder: ir.OpView | ir.Operation
    block: ir.Block
    is_loop: bool
    name: str  # "body", "loop1", ...: outer before inner, in program order

    def is_around(self, other: BodyOf) -> bool:
        """Whether `other` is the body of a loop somewhere inside of this one."""
        parent = other.holder.operation.parent
        while parent is not None:
            if parent == self.holder.operation:
                return True
            parent = parent.parent
        return False


def bodies_of(func: ir.Operation | ir.OpView) -> list[BodyOf]:
    """The function's block, then the bodies of `scf.for` and `scf.while`, outer before inner.

    Of an `scf.while`, the region before the condition is its body; the other one only hands
    values on.
    """
    found = [BodyOf(func, func.regions[0].blocks[0], False, "body")]
    for op, block in _loops(func.regions[0].blocks[0]):
        found.append(BodyOf(op, block, True, f"loop{len(found)}"))
    return found


def _loops(block: ir.Block) -> Iterator[tuple[ir.OpView, ir.Block]]:
    for op in block.operations:
        name = op.operation.name
        for at, region in enumerate(op.regions if name.startswith("scf.") else ()):
            for inner in region.blocks:
                if name == "scf.for" or (name == "scf.while" and at == 0):
                    yield op, inner
                yield from _loops(inner)


def annotate(body: BodyOf, schedule: Schedule) -> None:
    """Write `schedule` on the body: start cycles on its operations, the rest on its holder."""
    i32 = ir.IntegerType.get_signless(32)
    body.holder.attributes[INTERVAL] = ir.IntegerAttr.get(i32, schedule.ii)
    pairs = stage_orders(schedule)
    body.holder.attributes[STAGE] = ir.DenseI64ArrayAttr.get([stage for stage, _ in pairs])
    body.holder.attributes[ORDER] = ir.DenseI64ArrayAttr.get([order for _, order in pairs])
    for op, start in zip(body.block.operations, schedule.start, strict=True):
        op.attributes[START] = ir.IntegerAttr.get(i32, start)


def read(body: BodyOf) -> Schedule | None:
    """The schedule on the body, or None if it has none.

    Stages and orders follow from the starts. Where they are there as well, they must agree.

    Raises:
        CompileError: an operation has no start, or an attribute is not what it should be.
    """
    holder = body.holder
    if INTERVAL not in holder.attributes:
        return None
    starts = []
    for op in body.block.operations:
        if START not in op.attributes:
            raise error_at(
                op, f"has no '{START}', although its block is scheduled", hint=INVALIDATED
            )
        starts.append(_integer(op, START))
    schedule = Schedule(tuple(starts), _integer(holder, INTERVAL))
    if schedule.ii < 1 or min(starts, default=0) < 0:
        raise error_at(holder, "has an invalid schedule: a negative cycle, or no interval")
    pairs = stage_orders(schedule)
    for key, expected in ((STAGE, [s for s, _ in pairs]), (ORDER, [o for _, o in pairs])):
        _agrees(body, key, expected)
    return schedule


def clear(body: BodyOf) -> None:
    """Remove the schedule's attributes, and the marks that were made for it."""
    for key in (INTERVAL, STAGE, ORDER):
        if key in body.holder.attributes:
            del body.holder.attributes[key]
    for op in body.block.operations:
        if RECOMPUTABLE in op.attributes:
            del op.attributes[RECOMPUTABLE]
        for key in (START, STAGE, ORDER):
            # On a loop, stages and orders that are arrays belong to its own body.
            if key in op.attributes and isinstance(op.attributes[key], ir.IntegerAttr):
                del op.attributes[key]


def _agrees(body: BodyOf, key: str, expected: list[int]) -> None:
    """Check stages or orders: an array on the holder, or an integer on every operation."""
    holder, ops = body.holder, list(body.block.operations)
    if key in holder.attributes:
        given = holder.attributes[key]
        if not isinstance(given, ir.DenseI64ArrayAttr):
            raise error_at(holder, f"has an invalid schedule: '{key}' is no array of i64")
        values = list(given)
        if len(values) != len(ops):
            raise error_at(
                holder,
                f"has an invalid schedule: '{key}' has {len(values)} entries for {len(ops)} "
                "operations",
                hint=INVALIDATED,
            )
    elif all(key in op.attributes for op in ops):
        values = [_integer(op, key) for op in ops]
    else:
        return
    for op, found, wanted in zip(ops, values, expected, strict=True):
        if found != wanted:
            raise error_at(
                op,
                f"has '{START}' for a '{key}' of {wanted}, but that says {found}",
                hint=f"stages and orders follow from starts: change those, or remove '{key}'",
            )


def _integer(op: ir.OpView | ir.Operation, key: str) -> int:
    attribute = op.attributes[key]
    if not isinstance(attribute, ir.IntegerAttr):
        raise error_at(op, f"has an invalid schedule: '{key}' is no integer, but {attribute}")
    return attribute.value
