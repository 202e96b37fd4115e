"""Which loads schedulers take as done: those that run ahead of their loop."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from math import prod
from pathlib import Path

from support.tiles import registry
from tile_tileas.access import TMA, AccessPlan
from tile_tileas.sched.machinery import Machinery
from tile_tileas.sched.model import loop_graph
from tile_tileas.sched.staged import feeds_products, runs_ahead

import tile_core
from tile_core.mlir import ir
from tile_core.session import session_of
from tile_core.target import builtin_targets

PRODUCTS = Path(__file__).parents[3] / "examples" / "bytecode" / "matmul_f32.tileirbc"
REGISTRY = registry()


@cache
def _text() -> str:
    """The products of an example, before they are scheduled."""
    made = tile_core.compile(
        PRODUCTS.read_bytes(), "sm_80", opt_level=3, stop_after="segment:tileas", registry=REGISTRY
    )
    return str(made.output)


def _inside(op: ir.Operation | ir.OpView) -> Iterator[ir.OpView]:
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                yield inner
                yield from _inside(inner)


@contextmanager
def _load() -> Iterator[ir.OpView]:
    """The first load of the loop."""
    with session_of(REGISTRY) as session:
        module = session.parse(_text())
        with session.context, ir.Location.unknown():
            ops = list(_inside(module.operation))
            yield next(op for op in ops if op.operation.name == "nv_tileas.tiled_load")


def _kind(load: ir.OpView, *, staged: bool = True, room: int = 1 << 20) -> str:
    machinery = Machinery.of(builtin_targets()["sm_80"], 4, staged=staged)
    graph = loop_graph(load.operation.block, replace(machinery, shared=room), is_loop=True)
    return graph.ops[list(load.operation.block.operations).index(load)].kind


def _use_token(load: ir.OpView) -> None:
    token = load.results[1]
    place = ir.InsertionPoint(list(load.operation.block.operations)[-1])
    name = "nv_tileaa.join_mem_token"
    ir.Operation.create(name, results=[token.type], operands=[token, token], ip=place)


def test_a_load_whose_token_is_needed_runs_ahead_as_it_was_planned() -> None:
    with _load() as load:
        assert feeds_products(load)
        _use_token(load)
        assert not feeds_products(load)
        assert runs_ahead(load)
        assert (_kind(load), _kind(load, staged=False)) == ("staged", "load")


def test_what_threads_load_themselves_does_not() -> None:
    with _load() as load:
        _use_token(load)
        plan = AccessPlan.of(load)
        assert plan is not None
        load.attributes["access"] = plan.without("a test").attribute()
        assert not runs_ahead(load)
        assert _kind(load) == "load"


def test_a_tile_that_is_needed_elsewhere_does_not() -> None:
    with _load() as load:
        _use_token(load)
        tile = load.results[0]
        place = ir.InsertionPoint(list(load.operation.block.operations)[-1])
        ir.Operation.create("arith.addf", results=[tile.type], operands=[tile, tile], ip=place)
        assert not runs_ahead(load)


def test_what_finds_no_room_does_not() -> None:
    """Two stages of all loads of the loop, or one that tensor maps refill."""
    with _load() as load:
        loads = [op for op in load.operation.block.operations if op.operation.name == load.name]
        tiles = [ir.RankedTensorType(op.results[0].type) for op in loads]
        assert [runs_ahead(op) for op in loads] == [True, True]
        stage = sum(prod(tile.shape) * 4 for tile in tiles)
        assert (_kind(load, room=2 * stage), _kind(load, room=2 * stage - 1)) == ("staged", "load")
        for op in loads:
            plan = AccessPlan.of(op)
            assert plan is not None
            op.attributes["access"] = plan.by(TMA, "a test").attribute()
        assert (_kind(load, room=stage), _kind(load, room=stage - 1)) == ("staged", "load")
