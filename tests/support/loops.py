"""Loop graphs for tests of schedulers: the operations of the specification's examples, and
random ones."""

from __future__ import annotations

from hypothesis import strategies as st
from tile_sched.machine import load_machine

from tile_core.sched import (
    Constraints,
    Edge,
    LoopGraph,
    LoopOp,
    MachineModel,
    ScheduleOptions,
    Use,
)

SPEC = load_machine("spec")
MODEL = SPEC.model("sm_100", 4)
SLOT = {number: name for name, number in SPEC.slots.items()}


def op(name: str, latency: int, *slots: tuple[int, int], **more: object) -> LoopOp:
    """An op that holds each (slot number, cycles)."""
    uses = tuple(Use(SLOT[slot], cycles) for slot, cycles in slots)
    return LoopOp(name, "compute", latency, uses=uses, **more)  # pyright: ignore


def of_class(name: str, class_: str) -> LoopOp:
    """An op of a class of the specification's model."""
    cost = SPEC.cost(class_, {})
    return LoopOp(name, "compute", cost.latency, uses=cost.uses)


L = of_class("L", "tma_load")
M = of_class("M", "mma")
W = of_class("W", "smem_write")
R = of_class("R", "smem_read")


def graph(
    ops: tuple[LoopOp, ...], *edges: tuple[int, int, int, int], **options: object
) -> LoopGraph:
    """A loop of `ops`, edges as (src, dst, latency, distance)."""
    return LoopGraph(
        ops,
        tuple(Edge(*edge) for edge in edges),
        options=ScheduleOptions(**options),  # pyright: ignore
    )


SMALL = MachineModel("test", (("s1", 1), ("s2", 1), ("p2", 2), ("p3", 3)), 4)
_RESOURCES = ("s1", "s2", "p2", "p3")


@st.composite
def loops(draw: st.DrawFn, most: int = 14, longest: int = 9) -> LoopGraph:
    """Loops without a cycle at distance 0, on `SMALL`."""
    count = draw(st.integers(1, most))
    ops = []
    for at in range(count):
        uses = tuple(
            Use(resource, draw(st.integers(1, 4)), 1, draw(st.integers(0, 3)))
            for resource in sorted(draw(st.sets(st.sampled_from(_RESOURCES), max_size=2)))
        )  # fmt: skip
        depth = draw(st.sampled_from([None] * 6 + [0, 1]))
        gid = draw(st.sampled_from([None] * 6 + [1, 2]))
        ops.append(
            LoopOp(f"op{at}", "compute", draw(st.integers(0, longest)), uses=uses,
                   constraints=Constraints(gid=gid, max_depth=depth),
                   registers=draw(st.integers(0, 8)))
        )  # fmt: skip
    edges = []
    for dst in range(1, count):
        for src in draw(st.sets(st.integers(0, dst - 1), max_size=3)):
            edges.append(Edge(src, dst, draw(st.sampled_from([0, ops[src].latency]))))
    for _ in range(draw(st.integers(0, 3))):
        src, dst = draw(st.integers(0, count - 1)), draw(st.integers(0, count - 1))
        edges.append(Edge(src, dst, ops[src].latency, draw(st.integers(1, 3))))
    return LoopGraph(tuple(ops), tuple(edges))
