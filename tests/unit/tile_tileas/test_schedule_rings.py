"""Rings in dependence graphs: stages of buffers and of pipes that come around again."""

from __future__ import annotations

import pytest
from support.functions import function
from tile_sched.buffers.handoff import rings
from tile_tileas.sched.bodies import bodies_of
from tile_tileas.sched.machinery import Machinery
from tile_tileas.sched.model import loop_graph
from tile_tileas.sched.pipes import pipes_of

from tile_core.sched import Edge, LoopGraph, Ring, Schedule
from tile_core.target import builtin_targets

MACHINERY = Machinery.of(builtin_targets()["sm_90"], 4)

HEAD = """
#t = #nv_tileas.layout<"lane=[[1],[2],[4],[8],[16]] : 32">
#s = #nv_tileas.layout<"offset=[[1],[2],[4],[8],[16]] : 32">
!t = tensor<32xf32, #t>
!b = !nv_tileas.buffer<tensor<32xf32, #s>, "shared", STAGES : i32>
!v = !nv_tileas.buffer<tensor<32xf32, #s>, "shared", 1 : i32>
!pt = !nv_tileas.pipeline_producer_token
!ct = !nv_tileas.pipeline_consumer_token
!it = !nv_tileas.pipeline_iterator<!v>
func.func @f(%n: i32, %x: !t) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %two = arith.constant 2 : i32
  %last = arith.constant LAST : i32
  %stages = arith.constant STAGES : i32
  %buffer = "nv_tileas.alloc_tensor"() {alignment = 128 : i32} : () -> !b
"""


def graph_of(body: str, stages: int) -> LoopGraph:
    text = (HEAD + body + "  return\n}\n").replace("STAGES", str(stages))
    with function(text.replace("LAST", str(stages - 1))) as func:
        loop = bodies_of(func)[1]
        return loop_graph(loop.block, MACHINERY, is_loop=True, pipes=pipes_of(func))


def between(graph: LoopGraph, kind: str, names: tuple[str, ...]) -> set[tuple[str, str, int]]:
    """(operation, later operation, iterations) of edges of a kind; operations of `names`."""
    at = [at for at, op in enumerate(graph.ops) if op.name.split(".")[1] in names]
    label = {op: f"{names[0][0]}{number}" for number, op in enumerate(at)}
    return {
        (label[e.src], label[e.dst], e.distance)
        for e in graph.edges
        if e.kind == kind and e.src in label and e.dst in label
    }


ROTATING = """
  scf.for %i = %zero to %n step %one iter_args(%w = WRITE, %r = READ) -> (i32, i32) : i32 {
    %into = "nv_tileas.buffer_view"(%buffer, %w) : (!b, i32) -> !v
    "nv_tileas.copy"(%x, %into) : (!t, !v) -> ()
    %from = "nv_tileas.buffer_view"(%buffer, %r) : (!b, i32) -> !v
    %y = "nv_tileas.copy"(%from) : (!v) -> !t
    %w1 = arith.addi %w, %one : i32
    %w2 = NEXT
    %r1 = arith.addi %r, %one : i32
    %at = arith.cmpi eq, %r1, %stages : i32
    %r2 = arith.select %at, %zero, %r1 : i32
    scf.yield %w2, %r2 : i32, i32
  }
"""
REMAINDER = "arith.remui %w1, %stages : i32"


@pytest.mark.parametrize(
    ("stages", "write", "read", "expected"),
    [
        # Written two iterations before it is read; the stage is written again one later.
        (3, "%two", "%zero", {("c0", "c1", 2), ("c1", "c0", 1), ("c0", "c0", 3)}),
        (3, "%zero", "%zero", {("c0", "c1", 0), ("c1", "c0", 3), ("c0", "c0", 3)}),
        (4, "%one", "%zero", {("c0", "c1", 1), ("c1", "c0", 3), ("c0", "c0", 4)}),
        # Read before it is written, four iterations after the last time.
        (4, "%zero", "%one", {("c0", "c1", 3), ("c1", "c0", 1), ("c0", "c0", 4)}),
        # Nobody knows where the reads are: they keep the program's order with all writes.
        (3, "%two", "%n", {("c0", "c1", 0), ("c1", "c0", 1), ("c0", "c0", 3)}),
    ],
)
def test_stages_of_a_buffer_meet_when_they_come_around(stages, write, read, expected) -> None:
    text = ROTATING.replace("WRITE", write).replace("READ", read).replace("NEXT", REMAINDER)
    assert between(graph_of(text, stages), "memory", ("copy",)) == expected


@pytest.mark.parametrize(
    "following",
    [
        "arith.addi %w1, %one : i32",  # another step than the reads'
        "arith.muli %w1, %one : i32",  # not followed
        "arith.remui %w1, %two : i32",  # around another ring
    ],
)
def test_what_goes_around_otherwise_keeps_the_order_of_the_program(following: str) -> None:
    text = ROTATING.replace("WRITE", "%two").replace("READ", "%zero").replace("NEXT", following)
    found = between(graph_of(text, 3), "memory", ("copy",))
    assert {("c0", "c1", 0), ("c1", "c0", 1)} <= found


FIXED = """
  scf.for %i = %zero to %n step %one : i32 {
    %a = "nv_tileas.buffer_view"(%buffer, %zero) : (!b, i32) -> !v
    "nv_tileas.copy"(%x, %a) : (!t, !v) -> ()
    %b = "nv_tileas.buffer_view"(%buffer, %one) : (!b, i32) -> !v
    "nv_tileas.copy"(%x, %b) : (!t, !v) -> ()
    %c = "nv_tileas.buffer_view"(%buffer, %zero) : (!b, i32) -> !v
    %y = "nv_tileas.copy"(%c) : (!v) -> !t
  }
"""


def test_stages_that_stay_are_apart() -> None:
    found = between(graph_of(FIXED, 2), "memory", ("copy",))
    assert found == {("c0", "c2", 0), ("c2", "c0", 1), ("c0", "c0", 1), ("c1", "c1", 1)}


def test_a_step_below_zero_is_right_for_powers_of_two_alone() -> None:
    """2^32 - 1 modulo 3 is 0, not 2."""
    text = ROTATING.replace("WRITE", "%zero").replace("READ", "%zero")
    text = text.replace("%w1 = arith.addi", "%w1 = arith.subi").replace("NEXT", REMAINDER)
    text = text.replace("%r1 = arith.addi %r, %one", "%r1 = arith.subi %r, %one")
    text = text.replace("%at = arith.cmpi eq, %r1, %stages : i32", "")
    text = text.replace("arith.select %at, %zero, %r1 : i32", "arith.remui %r1, %stages : i32")
    assert ("c1", "c0", 3) not in between(graph_of(text, 3), "memory", ("copy",))


_NONE = "operandSegmentSizes = array<i32: " + ", ".join(["0"] * 16) + ">"
_P = "nv_tileas.async_pipeline_"
PIPE = f"""
  %pt, %ct = "{_P}create_pipeline"() {{numStages = STAGES : i32, producerGroupId = 0 : i8,
    consumerGroupId = 0 : i8, {_NONE}}} : () -> (!pt, !ct)
  %p0 = "{_P}create_iterator"(%pt) : (!pt) -> !it
  %c0 = "{_P}create_iterator"(%ct) : (!ct) -> !it
"""
LOOP = f"""
  %z:4 = scf.for %i = %zero to %n step %one iter_args(%p = %pt, %pi = PLACE, %c = %ct, %ci = %c0)
      -> (!pt, !it, !ct, !it) : i32 {{
    %p1 = "{_P}producer_acquire"(%p, %pi) : (!pt, !it) -> !pt
    %p2 = "{_P}producer_commit"(%p1, %pi) {{kind = "generic"}} : (!pt, !it) -> !pt
    %pn = "{_P}inc_iter"(%pi) : (!it) -> !it
    %c1 = "{_P}consumer_wait"(%c, %ci) {{consumer_idx = 0 : i32}} : (!ct, !it) -> !ct
    %c2 = "{_P}consumer_release"(%c1, %ci) {{kind = "generic"}} : (!ct, !it) -> !ct
    %cn = "{_P}inc_iter"(%ci) : (!it) -> !it
    scf.yield %p2, %pn, %c2, CARRIED : !pt, !it, !ct, !it
  }}
"""
ENDS = tuple(
    f"async_pipeline_{name}"
    for name in ("producer_acquire", "producer_commit", "consumer_wait", "consumer_release")
)
AHEAD = f'  %p9 = "{_P}inc_iter"(%p0) : (!it) -> !it\n'


@pytest.mark.parametrize(
    ("before", "place", "carried", "expected"),
    [
        ("", "%p0", "%cn", {("a1", "a2", 0), ("a3", "a0", 3)}),
        # The producer is a stage ahead when the loop begins.
        (AHEAD, "%p9", "%cn", {("a1", "a2", 1), ("a3", "a0", 2)}),
        # The consumer reads one stage over and over: nothing is known, the program's order stays.
        ("", "%p0", "%ci", {("a0", "a1", 0), ("a1", "a2", 0), ("a2", "a3", 0), ("a3", "a0", 1)}),
    ],
)
def test_pipes_have_a_ring_of_their_depth(before, place, carried, expected) -> None:
    loop = LOOP.replace("PLACE", place).replace("CARRIED", carried)
    assert between(graph_of(PIPE + before + loop, 3), "ring", ENDS) == expected


def test_a_pipe_is_a_ring_of_the_schedule() -> None:
    """Producer and consumer two stages apart, of three: as deep as the pipe is."""
    graph = graph_of(PIPE + LOOP.replace("PLACE", "%p0").replace("CARRIED", "%cn"), 3)
    late = {"consumer_wait", "consumer_release", "yield"}
    starts = tuple(200 if op.name.rsplit("_", 2)[-2:] and _is_late(op.name, late) else 0
                   for op in graph.ops)  # fmt: skip
    (found,) = rings(graph, Schedule(starts, 100))
    assert isinstance(found, Ring)
    assert (found.name, found.depth) == ("Pipe_0", 3)
    assert [graph.ops[op].name.rsplit("_", 1)[1] for op in found.producers] == ["acquire", "commit"]
    assert [graph.ops[op].name.rsplit("_", 1)[1] for op in found.consumers] == ["wait", "release"]
    assert any(edge == Edge(edge.src, edge.dst, edge.latency, 3) for edge in graph.edges)


def _is_late(name: str, late: set[str]) -> bool:
    return any(name.endswith(part) for part in late)
