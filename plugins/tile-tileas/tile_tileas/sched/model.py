"""From a block of nv_tileas to the graph that schedulers see."""

from __future__ import annotations

from tile_core.mlir import ir
from tile_core.sched import Edge, LoopGraph
from tile_tileas.analysis.alias import AliasAnalysis
from tile_tileas.pipes.extract import Extracted
from tile_tileas.sched.edges import carried_edges, data_edges
from tile_tileas.sched.machinery import Machinery
from tile_tileas.sched.memory import handles_of, memory_edges
from tile_tileas.sched.nodes import node_of, trip_count
from tile_tileas.sched.pipes import PipeSteps
from tile_tileas.sched.staged import loads_ahead

__all__ = ["Machinery", "loop_graph"]


def loop_graph(
    block: ir.Block,
    machinery: Machinery,
    *,
    is_loop: bool,
    aliases: AliasAnalysis | None = None,
    pipes: Extracted | None = None,
) -> LoopGraph:
    """Data and memory dependences among the operations of `block`; the terminator is last.

    Weak loads and stores are ordered by their tokens alone, as the language says; all else that
    touches memory keeps the program's order with what it may meet (`aliases`). Values and memory
    that come back in later iterations are edges at a distance; so are stages of buffers and pipes
    (those of the function, `pipes`) that come around again.
    """
    ops = list(block.operations)
    ahead = loads_ahead(ops, machinery.shared) if machinery.staged and is_loop else frozenset[int]()
    nodes = tuple(node_of(op, machinery, ahead=at in ahead) for at, op in enumerate(ops))
    position: dict[ir.Value, int] = {
        result: at for at, op in enumerate(ops) for result in op.results
    }
    edges = data_edges(ops, position, nodes)
    steps = None if pipes is None else PipeSteps(ops, pipes)
    edges += memory_edges(ops, aliases, is_loop, steps)
    if steps is not None:
        edges += steps.edges(nodes, is_loop)
    edges += [Edge(at, len(ops) - 1, 0, kind="order") for at in range(len(ops) - 1)]
    if is_loop:
        edges += carried_edges(block, ops, position, nodes)
    trips = trip_count(block.owner) if is_loop else None
    handles = (*handles_of(ops), *(steps.handles() if steps is not None else ()))
    return LoopGraph(nodes, tuple(edges), is_loop, trips, handles=handles)
