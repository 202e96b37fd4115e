"""Rules of what CUTLASS's main loops report."""

from __future__ import annotations

from tile_core.mlir import ir
from tile_cute.cutlass.dialect.around import (
    ASYNC_EXEC,
    constant,
    flag,
    integer,
    kernel_spec,
    parents,
)
from tile_cute.errors import LayoutError

_START = "cutlass.tile_scheduler_mods_report_mainloop_start"
_END = "cutlass.tile_scheduler_mods_report_mainloop_end"
#: The profile of `throttle` at which others wait, too.
COOPERATIVE = 2


def _region(op: ir.OpView | ir.Operation) -> ir.Operation:
    for parent in parents(op):
        if parent.name == ASYNC_EXEC:
            return parent
    raise LayoutError(f"expects to stand in '{ASYNC_EXEC}'")


def _siblings(op: ir.OpView) -> list[ir.OpView]:
    return list(op.operation.block.operations)


def mods(op: ir.OpView) -> None:
    """One end in the same region, behind it, with the same flag and participants."""
    _region(op)
    siblings = _siblings(op)
    at = siblings.index(op)
    probes = [o for o in siblings if o.operation.name in (_START, _END)]
    after = [o for o in siblings[at + 1 :] if o.operation.name in (_START, _END)]
    if not after or after[0].operation.name != _END or len(probes) % 2:
        raise LayoutError("expects one mods_report_mainloop_end behind it, in the same region")
    end = after[0]
    if flag(op, "is_2cta_mma") != flag(end, "is_2cta_mma"):
        raise LayoutError("expects the end of its pair to have the same is_2cta_mma")
    if op.operation.operands[1] != end.operation.operands[1]:
        raise LayoutError("expects the end of its pair to have the same participants")
    _participants(op)


def _participants(op: ir.OpView) -> None:
    """No more bits than the cluster has blocks, or pairs of them."""
    mask = constant(op.operation.operands[1])
    if mask is None:
        return
    blocks = kernel_spec(op).get("num_ctas", 1)
    most = max(blocks // 2, 1) if flag(op, "is_2cta_mma") else blocks
    if mask.bit_count() > most:
        raise LayoutError(f"expects at most {most} participants, but got mask {mask:#x}")


def mods_end(op: ir.OpView) -> None:
    """A start before it, whose time it takes."""
    _region(op)
    before = _siblings(op)[: _siblings(op).index(op)]
    probes = [o for o in before if o.operation.name in (_START, _END)]
    if not probes or probes[-1].operation.name != _START:
        raise LayoutError("expects one mods_report_mainloop_start before it, in the same region")


def throttle(op: ir.OpView) -> None:
    """A known profile; the cooperative one between a start and its end."""
    _region(op)
    profile = integer(op, "profile")
    if not 0 <= profile <= COOPERATIVE:
        raise LayoutError(f"expects a profile of 0, 1 or 2, but got {profile}")
    if profile != COOPERATIVE:
        return
    place: ir.Operation = op.operation
    while True:
        siblings = list(place.block.operations)
        at = [o.operation for o in siblings].index(place)
        probes = [o for o in siblings[:at] if o.operation.name in (_START, _END)]
        if probes:
            if probes[-1].operation.name == _START:
                return
            break
        parent = place.parent
        if parent is None or parent.operation.name == ASYNC_EXEC:
            break
        place = parent.operation
    raise LayoutError("expects to stand between a start and an end of the main loop's report")
