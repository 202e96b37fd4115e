"""What leaders of teams do, as an agent of its own beside the threads that they lead.

    for i:                                      for i:
        threads wait for S(i), ..                   the leader waits until all of its team are there
        they arrive                                 it begins products; their end arrives
                                                    the copier waits for what they read, and copies

A leader that is one of its team's threads has their work, too: on a B200 (model) beginning the
products of 128 rows of attention takes 55 clk for each of 16 instructions of 64.
`tileas-specialize-warps` makes the agents.
"""

from __future__ import annotations

from collections.abc import Iterator

from tile_core.mlir import ir
from tile_tileas.analysis.users import operations, within
from tile_tileas.dialect.barriers import COPIER, LEADER, TEAM
from tile_tileas.dialect.tensor import UMMA
from tile_tileas.pipelining.apart import LEADS, PRODUCER
from tile_tileas.pipelining.slices import is_pure

#: Of a loop: leaders of its teams, and the thread that copies for it, are an agent of their own.
LED_APART = "nv_tileas.led_apart"
_IF, _ARRIVE, _TURN = "scf.if", "nv_tileas.barrier_arrive", "nv_tileas.barrier_turn"


def mark_leaders(func: ir.Operation) -> None:
    """Mark what leaders do in and around loops that say so (`LED_APART`)."""
    entry = func.regions[0].blocks[0]
    loops = [op for op in entry.operations if LED_APART in op.attributes]
    if not loops:
        return
    for block in (*(loop.regions[0].blocks[0] for loop in loops), entry):
        _mark(block, within_loop=block != entry)
    for loop in loops:
        del loop.attributes[LED_APART]


def has_agents(func: ir.Operation) -> bool:
    """Whether a kernel has operations that agents beside the first one will do."""
    return any(
        PRODUCER in op.attributes or LED_APART in op.attributes
        for op in operations(func.regions[0])
    )


def _number() -> ir.Attribute:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(32), LEADS)


def _mark(block: ir.Block, *, within_loop: bool) -> None:
    marked: list[ir.Operation] = []
    for op in reversed(list(block.operations)):
        alone = within_loop or op.operation.name == _TURN
        if _is_led(op) or (alone and _is_for(op, marked)):
            marked.append(op.operation)
            op.attributes[PRODUCER] = _number()


def _is_led(op: ir.OpView) -> bool:
    """Whether leaders of teams do it, or the thread that copies."""
    if op.operation.name == _IF:
        return any(COPIER in one.attributes and TEAM in one.attributes for one in _inside(op))
    if TEAM not in op.attributes:
        return False
    products = op.operation.name == _ARRIVE and _kind(op) == "tcgen05"
    return products or op.operation.name in UMMA or LEADER in op.attributes


def _kind(op: ir.OpView) -> str:
    return ir.StringAttr(op.attributes["kind"]).value


def _inside(op: ir.OpView) -> Iterator[ir.OpView]:
    for region in op.regions:
        for block in region.blocks:
            yield from block.operations


def _is_for(op: ir.OpView, marked: list[ir.Operation]) -> bool:
    """Whether nothing but what is `marked` uses what an operation without effects gives, or a turn
    that leaders count.
    """
    users = [use.owner.operation for result in op.results for use in result.uses]
    may = op.operation.name == _TURN or (is_pure(op) and not len(op.regions))
    return may and bool(users) and all(within(user, op.operation.block) in marked for user in users)
