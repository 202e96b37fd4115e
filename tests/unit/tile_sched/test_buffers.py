"""Lifetimes, named barriers, shared memory and pipes: vectors V20 to V23."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.loops import MODEL, L, M, graph
from tile_sched.buffers.handoff import mutexes, rings
from tile_sched.buffers.lifetimes import Barriers, Request, place_shared, rows
from tile_sched.buffers.pipes import Member, Pipe, solve
from tile_sched.schedulers.cost import CostScheduler

from tile_core.diagnostics import CompileError
from tile_core.sched import Edge, Handle, LoopGraph, LoopOp, Mutex, Ring, Schedule

V3 = graph((L, M), (0, 1, 8, 0), (1, 1, 8, 1))
CAPACITY = 232448


def bits(*cycles: int) -> int:
    return sum(1 << cycle for cycle in cycles)


def test_v20_lifetimes_wrap() -> None:
    a, b, c = rows(3, 7, 5), rows(2, 3, 5), rows(8, 9, 5)
    assert (a, b, c) == (bits(3, 4, 0, 1), bits(2), bits(3))
    assert not a & b
    assert a & c


@given(st.integers(0, 40), st.integers(0, 40), st.integers(1, 12))
def test_rows_are_the_cycles_one_by_one(start: int, length: int, ii: int) -> None:
    wanted = bits(*{cycle % ii for cycle in range(start, start + length)})
    assert rows(start, start + length, ii) == wanted


def test_v21_barriers_are_used_again() -> None:
    pool = Barriers(size=2, first=0)
    assert [pool.bind(bits(0, 1, 2)), pool.bind(bits(1, 2, 3)), pool.bind(bits(4, 5))] == [0, 1, 0]
    with pytest.raises(CompileError, match="fails to assign named barrier"):
        pool.bind(bits(0, 1, 2, 3, 4, 5))


def test_barrier_0_is_the_blocks_own() -> None:
    pool = Barriers()
    assert [pool.bind(1) for _ in range(15)] == list(range(1, 16))


def test_v22_depth_is_bounded_by_shared_memory() -> None:
    def tiles(depth: int) -> list[Request]:
        return [Request(name, 128 * 64 * 2, depth, 1024) for name in ("a", "b")]

    assert place_shared(tiles(7), CAPACITY) == {"a": 0, "b": 114688}
    with pytest.raises(CompileError, match="fails to assign smem buffer"):
        place_shared(tiles(8), CAPACITY)


def test_buffers_that_never_live_together_share_bytes() -> None:
    found = place_shared(
        [Request("a", 100, lifetime=bits(0, 1)), Request("b", 100, lifetime=bits(2)),
         Request("c", 100, lifetime=bits(1, 2))],
        1024,
    )  # fmt: skip
    assert found == {"a": 0, "b": 0, "c": 128}


def test_v23_producers_of_one_value_share_a_pipe() -> None:
    p, consumer = Member(0, "r", 0, 0), Member(9, "r", 1, 0)
    again = Member(1, "r", 0, 2, reads=True)
    assert solve("r", consumer, [again, p]).pipes == (Pipe("r", (0, 1), 9, 2),)
    assert solve("r", consumer, [again, p]).pipes[0].canonical == 0
    anew = Member(1, "r", 0, 2)
    assert [pipe.producers for pipe in solve("r", consumer, [p, anew]).pipes] == [(0,), (1,)]
    nothing = solve("r", consumer, [Member(3, "other", 0, 0)])
    assert nothing.trivial
    assert nothing.pipes[0].canonical is None


# --- rings and mutexes of schedules --------------------------------------------------------------


def test_values_that_cross_stages_have_rings() -> None:
    """V3 with registers: the load of stage 0 is taken in stage 1; the accumulator stays."""
    load, product = replace(L, registers=4), replace(M, registers=8)
    loop = replace(V3, ops=(load, product))
    found = CostScheduler().schedule(loop, MODEL)
    assert isinstance(found, Schedule)
    assert rings(loop, found) == (Ring("Pipe_0", (0,), (1,), 2, 4),)
    assert rings(loop, replace(found, start=(0, 8), ii=16)) == ()


def test_a_value_handed_on_twice_lives_as_many_iterations() -> None:
    """x of two iterations ago: the reader, which comes behind the writer, finds a third slot."""
    loop = LoopGraph(
        (LoopOp("x", "compute", 1, registers=2), LoopOp("y", "compute", 1)),
        (Edge(0, 1, 1, distance=2),),
    )
    assert [ring.depth for ring in rings(loop, Schedule((0, 1), 4))] == [3]
    assert [ring.depth for ring in rings(loop, Schedule((1, 0), 4))] == [2]


def test_buffers_have_rings_of_all_their_producers() -> None:
    """A store and an update of one buffer, read a stage later; a back edge bounds the slots."""
    ops = tuple(LoopOp(name, "compute", 8) for name in ("fill", "update", "read"))
    handles = (
        Handle("buffer0", 0, writes=True),
        Handle("buffer0", 1, writes=True, reads=True),
        Handle("buffer0", 2, writes=False, reads=True),
    )
    edges = (Edge(0, 1, 8, kind="memory"), Edge(1, 2, 8, kind="memory"))
    loop, schedule = LoopGraph(ops, edges, handles=handles), Schedule((0, 8, 16), 10)
    assert rings(loop, schedule) == (Ring("Pipe_0", (0, 1), (2,), 3),)
    bound = replace(loop, edges=(*edges, Edge(2, 0, 8, distance=2, kind="memory")))
    assert rings(bound, schedule) == (Ring("Pipe_0", (0, 1), (2,), 2),)


def test_what_keeps_its_place_is_a_mutex() -> None:
    ops = tuple(LoopOp(name, "barrier", 1) for name in ("print", "sum", "print"))
    edges = (Edge(0, 2, 0, kind="mutex"), Edge(2, 0, 0, distance=1, kind="mutex"))
    assert mutexes(LoopGraph(ops, edges)) == (Mutex("Mutex_0", (0, 2)),)
    assert mutexes(LoopGraph(ops, ())) == ()
