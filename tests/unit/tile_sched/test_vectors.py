"""Schedules whose interval was confirmed minimal by exhaustive search: what the schedulers must
find, cycle by cycle, on the specification's own machine model."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.loops import MODEL, SPEC, L, M, R, W, graph, op
from tile_sched.buffers.rings import in_flight, ring_depth, stage_count_parity
from tile_sched.graph.bounds import bounds
from tile_sched.graph.closure import closure
from tile_sched.placement.costs import gallop, inversions, schedule_cost, spill_surcharge
from tile_sched.schedulers.cost import CostScheduler, FastScheduler
from tile_sched.schedulers.exact import ExactScheduler
from tile_sched.schedulers.ims import IterativeScheduler
from tile_sched.schedulers.serial import SerialScheduler

from tile_core.sched import (
    Constraints,
    Edge,
    Infeasible,
    LoopGraph,
    LoopOp,
    ReservationTable,
    Schedule,
    Use,
    body_order,
    stage_orders,
    violations,
)
from tile_core.sched.dsu import DisjointSets

V2 = graph((L, W, M, R), (0, 3, 8, 0))
V3 = graph((L, M), (0, 1, 8, 0), (1, 1, 8, 1))
X, Y = op("X", 4, (16, 3)), op("Y", 2, (16, 2))
V6 = graph((X, Y), (0, 1, 4, 0))
C = op("C", 7, (18, 7))
V10 = graph((L, C, M), (0, 1, 8, 0), (1, 2, 7, 0), (2, 2, 8, 1))


def cost(loop: LoopGraph) -> Schedule:
    found = CostScheduler().schedule(loop, MODEL)
    assert isinstance(found, Schedule)
    assert not list(violations(loop, MODEL, found))
    for other in (IterativeScheduler(), ExactScheduler()):
        same = other.schedule(loop, MODEL)
        assert isinstance(same, Schedule)
        assert same.ii == found.ii, other.name
        assert not list(violations(loop, MODEL, same))
    return found


def mii(loop: LoopGraph) -> dict[str, int]:
    found = bounds(loop, MODEL)
    assert found is not None
    return {"res": found.resource, "fine": found.fine, "rec": found.recurrence, "dep": found.depth}


def depth(loop: LoopGraph, schedule: Schedule, src: int, dst: int) -> int:
    edge = next(e for e in loop.edges if (e.src, e.dst) == (src, dst))
    return ring_depth(loop, schedule, edge)


def test_v1_serial_is_a_topological_walk_in_program_order() -> None:
    ops = tuple(LoopOp(f"o{at}", "compute", 1) for at in range(5))
    edges = [(0, 3, 1, 0), (1, 2, 1, 0), (2, 3, 1, 0), (3, 4, 1, 0), (4, 0, 1, 1)]
    found = SerialScheduler().schedule(graph(ops, *edges), MODEL)
    assert isinstance(found, Schedule)
    assert stage_orders(found) == tuple((0, at) for at in range(5))
    broken = SerialScheduler().schedule(graph(ops, *edges, (2, 1, 1, 0)), MODEL)
    assert broken == Infeasible("it depends on itself within one iteration")


def test_v2_two_writers_of_shared_memory() -> None:
    found = cost(V2)
    assert mii(V2)["res"] == 15
    assert (found.start, found.ii) == ((0, 8, 0, 8), 15)
    assert stage_orders(found) == ((0, 0), (0, 2), (0, 1), (0, 3))
    assert (found.num_stages, in_flight(V2, found), stage_count_parity(V2, found)) == (1, 1, 2)
    table = ReservationTable(15, MODEL)
    for node, at in zip(V2.ops, found.start, strict=True):
        table.commit(node.footprint, at)
    assert table.rows() == (0x48C00,) * 8 + (0xC000,) * 7
    short = ReservationTable(8, MODEL)
    short.commit(L.footprint, 0)
    assert not any(short.probe(W.footprint, at) for at in range(8))


def test_v3_load_and_accumulating_product() -> None:
    found = cost(V3)
    assert (mii(V3)["res"], mii(V3)["rec"]) == (8, 8)
    assert (found.start, found.ii) == ((0, 8), 8)
    assert stage_orders(found) == ((0, 0), (1, 0))
    assert (found.num_stages, in_flight(V3, found), stage_count_parity(V3, found)) == (2, 2, 3)
    table = ReservationTable(8, MODEL)
    for node, at in zip(V3.ops, found.start, strict=True):
        table.commit(node.footprint, at)
    assert table.rows() == (0x48C00,) * 8
    assert depth(V3, found, 0, 1) == 2


def test_v4_recurrence_over_two_iterations() -> None:
    ops = (op("a", 4, (7, 1)), op("b", 7, (15, 1)), op("c", 5, (6, 1)))
    loop = graph(ops, (0, 1, 4, 0), (1, 0, 7, 2), (2, 2, 5, 1))
    assert (mii(loop)["res"], mii(loop)["rec"]) == (1, 6)
    found = cost(loop)
    assert (found.start, found.ii) == ((0, 4, 0), 6)
    assert closure(2, loop.edges[:2], 6) == [[-1, 4], [-5, -1]]
    tight = closure(2, loop.edges[:2], 5)
    assert any((tight[at][at] or 0) > 0 for at in range(2))


def test_v5_pool() -> None:
    nine = tuple(LoopOp(f"o{at}", "compute", 1, uses=(Use("alu_fma_issue", 1),)) for at in range(9))
    found = cost(graph(nine))
    assert mii(graph(nine))["fine"] == 3
    assert (found.start, found.ii) == ((0,) * 4 + (1,) * 4 + (2,), 3)
    table = ReservationTable(3, MODEL)
    table.commit(nine[0].footprint, 0)
    assert table.rows() == (0, 0, 0), "a pool has no row bit"


def test_v6_resources_push_an_op_behind_its_dependence() -> None:
    found = cost(V6)
    assert mii(V6)["res"] == 5
    assert (found.start, found.ii) == ((0, 8), 5)
    assert stage_orders(found) == ((0, 0), (1, 0))
    traced = CostScheduler().schedule(replace(V6, options=replace(V6.options, trace=True)), MODEL)
    assert [(d.cycle, d.gate) for d in traced.decisions if d.op == 1] == [
        (4, "G3"), (5, "G3"), (6, "G3"), (7, "G3"), (8, ""),
    ]  # fmt: skip


def test_v7_footprints_fold() -> None:
    assert not ReservationTable(4, MODEL).fits(R.footprint)
    twice = (Use("tp_smem_wr", 1), Use("tp_smem_wr", 1, at=4))
    fits = [ii for ii in range(1, 12) if ReservationTable(ii, MODEL).fits(twice)]
    assert fits == [3, 5, 6, 7, 8, 9, 10, 11]


def test_v8_max_depth() -> None:
    shallow = replace(Y, constraints=Constraints(max_depth=0))
    loop = replace(V6, ops=(X, shallow))
    assert mii(loop)["dep"] == 5
    found = cost(loop)
    assert (found.start, found.ii, found.num_stages) == ((0, 4), 6, 1)


def test_v9_a_group_stays_in_one_stage() -> None:
    group = Constraints(gid=3)
    loop = replace(V3, ops=tuple(replace(node, constraints=group) for node in V3.ops))
    found = cost(loop)
    assert (found.start, found.ii) == ((0, 8), 9)
    assert stage_orders(found) == ((0, 0), (0, 1))


def test_v10_three_transports() -> None:
    found = cost(V10)
    assert (found.start, found.ii) == ((0, 8, 15), 8)
    assert stage_orders(found) == ((0, 0), (1, 0), (1, 1))
    assert (found.num_stages, in_flight(V10, found)) == (2, 3)
    assert (depth(V10, found, 0, 1), depth(V10, found, 1, 2)) == (2, 2)


def test_v11_two_loads() -> None:
    loop = graph((L, L, M), (0, 2, 8, 0), (1, 2, 8, 0), (2, 2, 8, 1))
    found = cost(loop)
    assert mii(loop)["res"] == 16
    assert (found.start, found.ii, found.stages) == ((0, 8, 16), 16, (0, 0, 1))


@pytest.mark.parametrize(("slots", "ii", "stages"), [(1, 16, 1), (2, 8, 2), (3, 8, 2)])
def test_v12_ring_of_so_many_slots(slots: int, ii: int, stages: int) -> None:
    loop = replace(V3, edges=(*V3.edges, Edge(1, 0, 8, slots, "ring")))
    assert mii(loop)["rec"] == ii
    found = cost(loop)
    assert (found.ii, found.num_stages) == (ii, stages)


def test_v13_mutex() -> None:
    loop = graph((op("p", 3, (8, 1)), op("q", 4, (15, 1))), (0, 1, 3, 0), (1, 0, 4, 1))
    found = cost(loop)
    assert (mii(loop)["rec"], found.ii, found.start) == (7, 7, (0, 3))


def test_v14_order_of_the_body_is_not_stage_and_order() -> None:
    ops = (op("z", 1, (16, 3)), op("a", 4, (16, 3)), op("b", 1, (15, 1)))
    loop = graph(ops, (1, 2, 4, 0), (2, 1, 1, 1))
    assert (mii(loop)["res"], mii(loop)["rec"]) == (6, 5)
    found = cost(loop)
    assert (found.start, found.ii, found.stages) == ((0, 3, 7), 6, (0, 0, 1))
    assert body_order(loop, found) == (0, 2, 1)
    by_stage = sorted(range(3), key=lambda at: stage_orders(found)[at])
    assert by_stage == [0, 1, 2], "which would feed a a stale b"


def test_v15_costs() -> None:
    assert schedule_cost(V2, MODEL, cost(V2)) == (0, 0, 0, 2, 1)
    assert schedule_cost(V3, MODEL, cost(V3)) == (0, 0, 0, 1, 0)
    assert inversions("lwmr", "lmrw") == 2


def test_v16_surcharge() -> None:
    found = [spill_surcharge(pressure, 100) for pressure in (100, 101, 340, 341, 1000)]
    assert found == [0, 17, 4080, 4096, 4096]


def test_v17_gallop() -> None:
    probed: list[int] = []

    def probe(at: int) -> bool:
        probed.append(at)
        return at >= 5

    assert gallop(probe, 1, 100) == 5
    assert probed == [1, 2, 4, 8, 8, 4, 6, 5]
    assert gallop(probe, 1, 3) is None
    assert gallop(lambda at: at >= 0, 0, 9) == 0


def test_v18_closure_takes_the_longest_path() -> None:
    edges = [Edge(0, 1, 4), Edge(1, 3, 4), Edge(0, 2, 8), Edge(2, 3, 8)]
    assert closure(4, edges, 10)[0][3] == 16


def test_v19_unions_have_a_direction() -> None:
    first, second, third = DisjointSets(), DisjointSets(), DisjointSets()
    first.union(3, 7)
    first.union(7, 3)
    assert (first.find(3), first.find(7)) == (7, 7)
    second.union(7, 3)
    second.union(3, 7)
    assert second.find(7) == 3
    third.union(5, 3)
    third.union(3, 1)
    assert third.find(5) == 1


def test_spec_rows() -> None:
    """Slots, bits and durations of the four encodings that the specification gives."""
    for node, row, cycles in ((L, 0x8800, 8), (M, 0x40400, 8), (W, 0x8000, 7), (R, 0x4000, 7)):
        table = ReservationTable(8, MODEL)
        table.commit(node.footprint, 0)
        assert table.rows() == (row,) * cycles + (0,) * (8 - cycles)
    assert SPEC.slots["tp_mma"] == 19


def test_fast_finds_the_same_where_the_first_arm_does() -> None:
    for loop in (V2, V3, V6, V10):
        assert FastScheduler().schedule(loop, MODEL) == CostScheduler().schedule(loop, MODEL)
