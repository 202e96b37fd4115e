"""Agents: sets of warps that run code of their own. Without `agent_switch`, the block is one."""

from __future__ import annotations

from dataclasses import dataclass, field

from tile_core.mlir import ir


@dataclass
class Agent:
    """Some warps of a block, and where code that depends on their threads only goes.

    Attributes:
        anchor: an operation at the top of the agent's code; values are computed before it, once.
        num_warps: how many warps the agent has.
        first_warp: the first of them, counted in the block.
        entry: the operation at the top of the kernel, where variables of threads are made; None
            where that is `anchor`.
        barrier: the named barrier at which its threads meet; None for that of the whole block.
        only: the warp, counted in the agent, whose first thread alone runs this code.
    """

    anchor: ir.Operation
    num_warps: int
    first_warp: int = 0
    barrier: int | None = None
    entry: ir.Operation | None = None
    only: int | None = None
    values: dict[tuple[object, ...], ir.Value] = field(default_factory=dict)

    @property
    def threads(self) -> int:
        """How many threads the agent has."""
        return 32 * self.num_warps
