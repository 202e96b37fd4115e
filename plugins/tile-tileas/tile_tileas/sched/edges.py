"""Dependences through values: within an iteration, and carried to later ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tile_tileaa.dialect import MemTokenType

from tile_core.mlir import ir
from tile_core.sched import Edge, LoopOp
from tile_tileas.analysis.pressure import used_values
from tile_tileas.dialect.pipelines import ConsumerTokenType, ProducerTokenType


def data_edges(
    ops: Sequence[ir.OpView], position: Mapping[ir.Value, int], nodes: Sequence[LoopOp]
) -> list[Edge]:
    """From each operation to the users of its results in the block, those in regions included."""
    return [
        _edge(source, at, value, nodes)
        for at, op in enumerate(ops)
        for source, value in sorted(_sources(op, position).items())
    ]


def _sources(op: ir.OpView, position: Mapping[ir.Value, int]) -> dict[int, ir.Value]:
    """The operations that `op` needs, each with a value; a token only where there is no other."""
    found: dict[int, ir.Value] = {}
    for value in used_values(op):
        source = position.get(value)
        if source is not None and (source not in found or _is_token(found[source])):
            found[source] = value
    return found


def _edge(
    source: int, user: int, value: ir.Value, nodes: Sequence[LoopOp], distance: int = 0
) -> Edge:
    """An edge for `value`. Who waits for a token waits for its place in the order of accesses, or
    of an end of a pipe: for stages to be full or empty, `pipes` has edges.
    """
    if _is_token(value):
        return Edge(source, user, 0, distance, "token")
    return Edge(source, user, nodes[source].latency, distance)


def _is_token(value: ir.Value) -> bool:
    return isinstance(value.type, MemTokenType | ProducerTokenType | ConsumerTokenType)


def carried_edges(
    block: ir.Block,
    ops: Sequence[ir.OpView],
    position: Mapping[ir.Value, int],
    nodes: Sequence[LoopOp],
) -> list[Edge]:
    """Values that later iterations take through arguments of the block.

    An argument that is handed on as another one (a, b = b, c) arrives an iteration later still.
    """
    carried = dict(carried_values(block))
    edges = []
    for argument in carried:
        value, distance, seen = carried[argument], 1, {argument}
        while value in carried and value not in seen:
            seen.add(value)
            value, distance = carried[value], distance + 1
        if value in position:
            for at, op in enumerate(ops):
                if argument in used_values(op):
                    edges.append(_edge(position[value], at, value, nodes, distance))
    return edges


def carried_values(block: ir.Block) -> list[tuple[ir.Value, ir.Value]]:
    """(argument of a loop body, value it has in the next iteration).

    For `scf.while` the body is the region before the condition; the one behind it must only hand
    values back.
    """
    terminator = list(block.operations)[-1]
    if block.owner.name == "scf.for":
        return list(zip(list(block.arguments)[1:], terminator.operands, strict=True))
    passed = list(terminator.operands)[1:]  # operands of scf.condition behind the condition
    after = block.owner.regions[1].blocks[0]
    handed = dict(zip(after.arguments, passed, strict=True))
    back = list(after.operations)[-1].operands
    return [
        (argument, handed[value])
        for argument, value in zip(block.arguments, back, strict=True)
        if value in handed
    ]
