"""Lower bounds of the initiation interval."""

from __future__ import annotations

from dataclasses import dataclass

from tile_core.sched import LoopGraph, MachineModel, topological_order
from tile_sched.graph.closure import has_positive_cycle
from tile_sched.graph.components import depths, recurrences


@dataclass(frozen=True)
class Bounds:
    """No schedule has a shorter interval than the largest of these, in cycles."""

    resource: int  # ResMII: the busiest slot
    fine: int  # FineMII: the busiest pool
    recurrence: int  # RecMII: the tightest cycle of dependences
    depth: int  # DepMII: operations that must start within so many stages
    busiest: str = ""  # slot or pool behind `resource` or `fine`, whichever is larger
    cycle: tuple[int, ...] = ()  # operations of the component behind `recurrence`

    @property
    def mii(self) -> int:
        """The largest bound, at least 1."""
        return max(1, self.resource, self.fine, self.recurrence, self.depth)

    @property
    def reason(self) -> str:
        """Which bound decides, in words."""
        mii = self.mii
        if mii == self.recurrence:
            return f"recurrence through {', '.join(f'#{op}' for op in self.cycle)}"
        if mii in (self.resource, self.fine):
            return f"resource '{self.busiest}'"
        return "max_depth" if mii == self.depth else "nothing"


def bounds(loop: LoopGraph, model: MachineModel) -> Bounds | None:
    """The bounds of `loop` on `model`; None if it depends on itself within an iteration."""
    if topological_order(loop) is None:
        return None
    demand = busy_cycles(loop)
    load = {name: -(-cycles // model.capacity(name)) for name, cycles in demand.items()}
    slots = [load[name] for name in load if model.capacity(name) == 1]
    pools = [load[name] for name in load if model.capacity(name) > 1]
    recurrence, cycle = rec_mii(loop)
    return Bounds(
        max(slots, default=1),
        max(pools, default=1),
        recurrence,
        dep_mii(loop),
        max(sorted(load), key=lambda name: load[name], default=""),
        cycle,
    )


def busy_cycles(loop: LoopGraph) -> dict[str, int]:
    """Resource -> cycles times amount that one iteration asks of it."""
    demand: dict[str, int] = {}
    for op in loop.ops:
        for use in op.footprint:
            demand[use.resource] = demand.get(use.resource, 0) + use.cycles * use.amount
    return demand


def rec_mii(loop: LoopGraph) -> tuple[int, tuple[int, ...]]:
    """The smallest interval without a positive cycle, and the component that sets it."""
    best, behind = 1, ()
    for members, edges in recurrences(loop):
        if not has_positive_cycle(members, edges, best):
            continue
        low, high = best, max(1, sum(max(0, edge.latency) for edge in edges))
        while high - low > 1:
            middle = (low + high) // 2
            if has_positive_cycle(members, edges, middle):
                low = middle
            else:
                high = middle
        best, behind = high, tuple(members)
    return best, behind


def dep_mii(loop: LoopGraph) -> int:
    """What `max_depth` asks: an op at depth d, in stage m at most, needs (d + 1) / (m + 1)."""
    depth = depths(loop)
    found = 1
    for op, at in zip(loop.ops, depth, strict=True):
        bound = depth_limit(loop, op.constraints.max_depth)
        if bound is not None:
            found = max(found, -(-(at + 1) // (bound + 1)))
    return found


def depth_limit(loop: LoopGraph, max_depth: int | None) -> int | None:
    """The last stage that an op may be in: its own bound, and the body's."""
    most = loop.options.max_stages
    if not most:
        return max_depth
    return most - 1 if max_depth is None else min(most - 1, max_depth)


def longest_interval(loop: LoopGraph) -> int:
    """An interval at which one iteration after the other always fits."""
    wait = [max(op.duration, 1) for op in loop.ops]
    for edge in loop.edges:
        wait[edge.src] = max(wait[edge.src], edge.latency)
    return max(1, sum(wait))
