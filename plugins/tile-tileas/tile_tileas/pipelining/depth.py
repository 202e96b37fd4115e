"""How many iterations of a loop are in flight. Plain numbers, no MLIR."""

from __future__ import annotations

from dataclasses import dataclass

#: Multiply-adds of the instruction whose time machines know, and sub-cores that issue it.
_MACS, _SUBCORES = 16 * 8 * 16, 4
#: Without numbers of the machine: a load from DRAM and one multiply-add instruction, in clk.
_LATENCY, DEFAULT_CLK = 600.0, 8.0
LEAST = 2


@dataclass(frozen=True)
class Demand:
    """A loop's step: multiply-adds of its products, bytes of one stage, and what there is.

    `budget` is the shared memory for stages, in bytes; `most` the stages that options allow.
    """

    macs: int
    stage_bytes: int
    budget: int
    most: int


def depth(demand: Demand, latency: float = _LATENCY, clk: float = DEFAULT_CLK) -> int:
    """Stages that cover `latency` (clk), as far as memory goes; 0 if not even two fit.

    `clk` is the time between two m16n8k16 of one sub-core. A step takes as long as its products
    on idle tensor cores, so a slower loop is covered as well.
    """
    interval = max(1.0, demand.macs / _MACS * clk / _SUBCORES)
    wanted = max(LEAST, min(demand.most, 1 + -int(-latency // interval)))
    fitting = demand.budget // max(1, demand.stage_bytes)
    found = min(wanted, fitting)
    return found if found >= LEAST else 0
