"""Agents: disjoint sets of warps of a block, each with code and a register budget of its own.

    "nv_tileas.async_pipeline_agent_switch"() ({
      "nv_tileas.agent"() ({ ...; "nv_tileas.async_pipeline_yield"() : () -> () })
        {num_warps = 1 : i32, max_regs = 24 : i32}
      "nv_tileas.agent"() ({ ... }) {num_warps = 4 : i32, max_regs = 0 : i32}
    }) {num_agents_per_group = array<i32: 1, 1>, isolated = false}

The specification has a region per agent; operations defined through IRDL have a fixed number of
regions, so that each agent is an operation here. Texts follow it, "nv_tileas verifiers".
"""

# pyright: reportGeneralTypeIssues=false

from typing import Any

from tile_core.dialect import NoTerminator, OperationSpec, ReadsAndWrites, Region, declare
from tile_core.mlir import ir
from tile_tileas.dialect.base import NvTileAS

AGENT = "nv_tileas.agent"
SWITCH = "nv_tileas.async_pipeline_agent_switch"
YIELD = "nv_tileas.async_pipeline_yield"

#: On an agent of which the first thread of each warp does all that there is. Others would run ahead
#: of it, through loops whose waits are not theirs, and a warp runs one way at a time.
ALONE = "alone"
#: `max_regs` of an agent that keeps what the launch gives it.
INHERIT = 0
#: Bounds and granule of `setmaxnreg` (PTX ISA).
LEAST_REGISTERS, MOST_REGISTERS, REGISTER_GRANULE = 24, 256, 8


def agents_of(op: Any) -> list[ir.OpView]:
    """The agents of a switch, in order."""
    return list(op.regions[0].blocks[0].operations)


def warps_of(agent: Any) -> int:
    """How many warps an agent has."""
    return ir.IntegerAttr(agent.attributes["num_warps"]).value


def _agents(op: ir.OpView) -> str | None:
    """Nothing but agents; groups cover them; warps fit what the kernel launches."""
    if len(op.regions[0].blocks) != 1:
        return "expects one block of agents"
    found = agents_of(op)
    if not found or any(item.operation.name != AGENT for item in found):
        return f"expects a region of '{AGENT}' operations"
    sizes = op.num_agents_per_group
    if not isinstance(sizes, ir.DenseI32ArrayAttr) or sum(sizes) != len(found):
        return f"expects num_agents_per_group to count {len(found)} agents, but got {sizes}"
    start = 0
    for size in sizes:
        if len({warps_of(agent) for agent in found[start : start + size]}) > 1:
            return "agent regions disagree on warp count"
        start += size
    budget = _budget(op.operation)
    if budget is not None and sum(map(warps_of, found)) > budget:
        return "agent warp count exceeds module budget"
    return None


def _budget(op: ir.Operation | None) -> int | None:
    """Warps of the kernel that an operation is in, where that is known."""
    while op is not None:
        if "nv_tileaa.kernel_spec" in op.attributes:
            return ir.IntegerAttr(
                ir.DictAttr(op.attributes["nv_tileaa.kernel_spec"])["num_warps"]
            ).value
        op = op.parent.operation if op.parent is not None else None
    return None


def _agent(op: ir.OpView) -> str | None:
    parent = op.operation.parent
    if parent is None or parent.name != SWITCH:
        return f"expects parent op '{SWITCH}'"
    blocks = list(op.regions[0].blocks)
    last = list(blocks[0].operations)[-1:] if len(blocks) == 1 else []
    if not last or last[0].operation.name != YIELD or len(last[0].operands):
        return f"expects regions to end with '{YIELD}'"
    warps, registers = op.num_warps.value, op.max_regs.value
    if warps < 1:
        return f"expects at least one warp, but got {warps}"
    legal = LEAST_REGISTERS <= registers <= MOST_REGISTERS and registers % REGISTER_GRANULE == 0
    if registers != INHERIT and not legal:
        return (
            f"expects max_regs to be {INHERIT} or a multiple of {REGISTER_GRANULE} from "
            f"{LEAST_REGISTERS} to {MOST_REGISTERS}, but got {registers}"
        )
    return None


_FIELDS: dict[str, Any] = {"body": Region}

SPECS = (
    OperationSpec(
        "async_pipeline_agent_switch",
        {**_FIELDS, "num_agents_per_group": Any, "isolated": Any},
        "Each agent runs its region once, all at the same time; the switch ends when all have. "
        "The first agent has the first warps of the block, the next those after them.",
        (ReadsAndWrites, NoTerminator),
        (_agents,),
    ),
    OperationSpec(
        "agent",
        {**_FIELDS, "num_warps": ir.IntegerAttr, "max_regs": ir.IntegerAttr},
        "What one agent does. `max_regs` are the registers of each of its threads; 0 keeps what "
        "the launch gives. With `alone` the first thread of each warp does it alone.",
        (ReadsAndWrites,),
        (_agent,),
    ),
)

for _spec in SPECS:
    declare(NvTileAS, _spec, module=__name__)
