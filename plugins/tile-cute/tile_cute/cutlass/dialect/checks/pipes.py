"""Rules of pipes and of executors."""

from __future__ import annotations

from tile_core.mlir import ir
from tile_cute.cutlass.dialect.around import (
    ASYNC_EXEC,
    MOST_WARPS,
    enclosing_mask,
    integer,
    integers,
    kernel_spec,
    word,
)
from tile_cute.cutlass.dialect.types import name_of, numbers_of, participants_of
from tile_cute.cutlass.pipes import EXECUTORS, Shape
from tile_cute.errors import LayoutError

_INIT = "cutlass.pipeline.init"
_SWITCH = "cutlass.pipeline.switch_by_executor"
#: Named barriers of a block; 0 is the block's own (PTX ISA, "bar").
NAMED_BARRIERS = 16
#: Bytes that one phase of an mbarrier may wait for (PTX ISA, "mbarrier").
_MOST_BYTES = (1 << 20) - 1


def shape_of(op: ir.OpView | ir.Operation, listed: ir.Type | None = None) -> Shape:
    """Who takes part in the pipe that an `init` initialises.

    Args:
        listed: the type of its participants, where the operand has another one by now.
    """
    operands = op.operation.operands
    if len(operands) > 1:
        producers, consumers = participants_of(listed or operands[1].type)
    else:
        producers, consumers = integers(op, "participants"), integers(op, "consumers")
    executor = word(op, "executor", EXECUTORS, "cooperative")
    ctas = kernel_spec(op).get("num_ctas", 1) if executor == "cluster" else 1
    stages = integer(op, "numStages", 0)
    return Shape(stages, producers, consumers, executor, ctas)


def pipeline_init(op: ir.OpView) -> None:
    """Counts, lists, barriers, groups, in this order; then what the executor asks for."""
    stages = integer(op, "numStages", 0)
    if stages <= 0 or stages != numbers_of(op.operation.operands[0].type)[0]:
        raise LayoutError(f"{_INIT}: invalid numStages")
    shape = shape_of(op)
    if len(shape.producers) != integer(op, "numProducers"):
        raise LayoutError(f"{_INIT}: participants length mismatch")
    if len(shape.consumers) != integer(op, "numConsumers"):
        raise LayoutError(f"{_INIT}: consumers length mismatch")
    base = integer(op, "barrier_id_base", 0)
    if not 0 <= base < NAMED_BARRIERS:
        raise LayoutError(
            f"{_INIT}: barrier_id_base {base} is no named barrier, 0 to {NAMED_BARRIERS - 1}"
        )
    group = integer(op, "producer_group_id", 0)
    if group == integer(op, "consumer_group_id", 1):
        raise LayoutError(f"{_INIT}: producers and consumers are both group {group}")
    _warps(shape.producers, _INIT)
    _warps(shape.consumers, _INIT)
    try:
        shape.check()
    except LayoutError as error:
        raise LayoutError(f"{_INIT}: {error}") from error
    _arrive_counts(op, shape)


def _arrive_counts(op: ir.OpView, shape: Shape) -> None:
    """`arrive_counts`, where it is written down, is what follows from the participants."""
    if "arrive_counts" not in op.operation.attributes:
        return
    found = integers(op, "arrive_counts")
    if found != shape.arrivals():
        raise LayoutError(
            f"{_INIT}: expects arrive_counts {list(shape.arrivals())}, but got {list(found)}"
        )


def _warps(warps: tuple[int, ...], who: str) -> None:
    if not warps or len(set(warps)) != len(warps) or not set(warps) <= set(range(MOST_WARPS)):
        raise LayoutError(f"{who}: expects different warps, 0 to {MOST_WARPS - 1}, but got {warps}")


def participants(op: ir.OpView) -> None:
    """The type lists what the attributes do."""
    listed = participants_of(op.operation.results[0].type)
    found = integers(op, "producers"), integers(op, "consumers")
    if listed != found:
        raise LayoutError(f"expects participants {found}, but its type lists {listed}")
    for warps in listed:
        _warps(warps, "cutlass.pipeline.make_participants")


def same_stages(op: ir.OpView) -> None:
    """Pipes and cursors of one operation have the same stages."""
    values = [*op.operation.operands, *op.operation.results]
    rings = ("pipeline", "pipeline_state")
    found = [numbers_of(value.type)[0] for value in values if name_of(value.type) in rings]
    for other in found:
        if other != found[0]:
            raise LayoutError(f"expects a cursor of {found[0]} stages, but got one of {other}")
    if found and found[0] < 1:
        raise LayoutError(f"expects at least one stage, but got {found[0]}")


def commit(op: ir.OpView) -> None:
    """A number of bytes that a barrier can count."""
    same_stages(op)
    count = integer(op, "transaction_bytes", 0)
    if not 0 <= count <= _MOST_BYTES:
        raise LayoutError(f"expects 0 to {_MOST_BYTES} transaction_bytes, but got {count}")


# --- executors -----------------------------------------------------------------------------------


def arms_of(op: ir.OpView | ir.Operation) -> list[ir.OpView]:
    """The arms of a switch."""
    return list(op.operation.regions[0].blocks[0].operations)


def async_exec(op: ir.OpView) -> None:
    """Its warps are among those that come to it."""
    if "mask" not in op.operation.attributes:
        return
    mask = integer(op, "mask")
    _contiguous(mask, "cutlass.async.exec")
    outer = enclosing_mask(op)
    if outer is not None and mask & ~outer:
        raise LayoutError(f"cutlass.async.exec: mask {mask:#x} has warps outside of {outer:#x}")


def _contiguous(mask: int, who: str) -> None:
    if mask <= 0 or mask >= 1 << MOST_WARPS:
        raise LayoutError(f"{who}: expects a mask of warps, but got {mask:#x}")
    low = mask & -mask
    if (mask // low) & (mask // low + 1):
        raise LayoutError(f"{who}: expects a mask of neighbouring warps, but got {mask:#x}")


def switch_by_executor(op: ir.OpView) -> None:
    """Arms with equal counts, disjoint masks that cover all warps that come to the switch."""
    if len(op.operation.regions[0].blocks) != 1:
        raise LayoutError(f"{_SWITCH}: expects one block of '{ASYNC_EXEC}'")
    arms = arms_of(op)
    if not arms or any(arm.operation.name != ASYNC_EXEC for arm in arms):
        raise LayoutError(f"{_SWITCH}: expects a region of '{ASYNC_EXEC}'")
    covered = 0
    counts = set()
    for arm in arms:
        mask = integer(arm, "mask", 0)
        _contiguous(mask, _SWITCH)
        if covered & mask:
            raise LayoutError(f"{_SWITCH}: participants {covered & mask:#x} are in two arms")
        covered |= mask
        counts.add((integer(arm, "numProducers", 0), integer(arm, "numConsumers", 0)))
    if len(counts) > 1:
        raise LayoutError(
            f"{_SWITCH}: expects the same (producers, consumers) in all arms, but got "
            f"{sorted(counts)}"
        )
    outer = enclosing_mask(op)
    if outer is not None and covered != outer:
        raise LayoutError(f"{_SWITCH}: expects arms for all warps {outer:#x}, but got {covered:#x}")
