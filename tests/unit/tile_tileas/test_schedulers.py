"""Schedulers never break a dependence, and the passes refuse those that do."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest
import support.schedulers
import tile_sched.plugin
import tile_tileaa.plugin
import tile_tileas.plugin
from hypothesis import given, settings
from hypothesis import strategies as st
from support.functions import function
from tile_sched.schedulers.list import ListScheduler
from tile_sched.schedulers.serial import SerialScheduler
from tile_tileas.sched.bodies import bodies_of
from tile_tileas.sched.facts import memory_effect
from tile_tileas.sched.model import Machinery, loop_graph

from tile_core.cli.main import run
from tile_core.diagnostics import CompileError, ConfigurationError
from tile_core.opt import OptJob, Selection, optimize
from tile_core.registry import Registry
from tile_core.sched import (
    Constraints,
    Edge,
    Infeasible,
    LoopGraph,
    LoopOp,
    MachineModel,
    Schedule,
    Use,
    violated_edge,
    violations,
)
from tile_core.target import builtin_targets

SCHEDULERS = (SerialScheduler, ListScheduler)
UNITS = (("alu", 2), ("lsu", 1), ("sfu", 1))
MODEL = MachineModel("sm_90", UNITS, 4)


@st.composite
def graphs(draw: st.DrawFn) -> LoopGraph:
    count = draw(st.integers(1, 14))
    ops = tuple(
        LoopOp(f"op{at}", "compute", draw(st.sampled_from([0, 1, 4, 30, 400])), unit=unit)
        for at, unit in enumerate(
            draw(st.tuples(*[st.sampled_from(["alu", "lsu", "sfu"])] * count))
        )
    )
    edges: list[Edge] = []
    for dst in range(1, count):
        for src in draw(st.sets(st.integers(0, dst - 1), max_size=3)):
            edges.append(Edge(src, dst, draw(st.sampled_from([0, ops[src].latency]))))
    edges += [Edge(at, count - 1, 0) for at in range(count - 1)]
    for _ in range(draw(st.integers(0, 2))):
        src, dst = draw(st.integers(0, count - 1)), draw(st.integers(0, count - 1))
        edges.append(Edge(src, dst, ops[src].latency, distance=draw(st.integers(1, 2))))
    return LoopGraph(ops, tuple(edges))


@pytest.mark.parametrize("scheduler", SCHEDULERS, ids=lambda s: s.name)
@settings(max_examples=100, deadline=None)
@given(graph=graphs())
def test_no_dependence_is_broken(scheduler, graph: LoopGraph) -> None:
    found = scheduler().schedule(graph, MODEL)
    assert isinstance(found, Schedule)
    assert len(found.start) == len(graph.ops)
    assert violated_edge(graph, found) is None
    assert found.num_stages == 1
    assert scheduler().schedule(graph, MODEL) == found


@settings(max_examples=100, deadline=None)
@given(graph=graphs())
def test_list_respects_latencies_and_units(graph: LoopGraph) -> None:
    found = ListScheduler().schedule(graph, MODEL)
    assert isinstance(found, Schedule)
    for edge in graph.edges:
        if edge.distance == 0:
            assert found.start[edge.dst] >= found.start[edge.src] + max(1, edge.latency)
    for unit, width in UNITS:
        starts = [s for s, op in zip(found.start, graph.ops, strict=True) if op.unit == unit]
        assert all(starts.count(cycle) <= width for cycle in starts)


def test_list_starts_the_critical_path_first() -> None:
    """op1 is the slow one: it goes before op0, on the same unit."""
    ops = (
        LoopOp("op0", "compute", 4, unit="lsu"),
        LoopOp("op1", "load", 400, unit="lsu"),
        LoopOp("end", "control", 0),
    )
    graph = LoopGraph(ops, (Edge(0, 2, 4), Edge(1, 2, 400)))
    found = ListScheduler().schedule(graph, MODEL)
    assert isinstance(found, Schedule)
    assert found == Schedule((1, 0, 400), ii=401)
    assert found.order() == (1, 0, 2)


def test_a_circle_within_an_iteration_is_infeasible() -> None:
    ops = (LoopOp("a", "compute", 1), LoopOp("b", "compute", 1))
    graph = LoopGraph(ops, (Edge(0, 1, 1), Edge(1, 0, 1)))
    reason = "it depends on itself within one iteration"
    assert ListScheduler().schedule(graph, MODEL) == Infeasible(reason)


def test_a_unit_the_machine_lacks_is_infeasible() -> None:
    graph = LoopGraph((LoopOp("a", "mma", 8, unit="tensor"),), ())
    model = MachineModel("sm_90", (("tensor", 0),), num_warps=4)
    reason = "'a' needs 'tensor', of which the SM has none"
    assert ListScheduler().schedule(graph, model) == Infeasible(reason)


@pytest.mark.parametrize(
    ("edge", "schedule", "broken"),
    [
        (Edge(0, 1, 4), Schedule((0, 4), 8), False),
        (Edge(0, 1, 4), Schedule((0, 3), 8), True),  # in order, but too early
        (Edge(0, 1, 0), Schedule((1, 1), 8), False),  # one cycle, program order decides
        (Edge(0, 1, 4), Schedule((2, 1), 8), True),
        (Edge(1, 0, 4), Schedule((1, 1), 8), True),
        (Edge(1, 0, 4, distance=1), Schedule((0, 5), 9), False),
        (Edge(1, 0, 4, distance=1), Schedule((0, 5), 8), True),
        (Edge(1, 0, 4, distance=2), Schedule((0, 5), 5), False),
    ],
)
def test_violated_edge(edge: Edge, schedule: Schedule, broken: bool) -> None:
    graph = LoopGraph((LoopOp("a", "compute", 1), LoopOp("b", "compute", 1)), (edge,))
    assert violated_edge(graph, schedule) == (edge if broken else None)


# --- the graph of a block -----------------------------------------------------------------------

LOOP = """
func.func @f(%p: !p, %n: i32, %x: f32) {
  scf.for %i = %n to %n step %n iter_args(%s = %x) -> (f32) : i32 {
    %a:2 = "nv_tileas.load"(%p) WEAK : (!p) -> (f32, !nv_tileaa.mem_token)
    %b:2 = "nv_tileas.load"(%p) WEAK : (!p) -> (f32, !nv_tileaa.mem_token)
    %t = "nv_tileas.store"(%p, %s) STORE : (!p, f32) -> !nv_tileaa.mem_token
    %c:2 = "nv_tileas.load"(%p) WEAK : (!p) -> (f32, !nv_tileaa.mem_token)
    %r = arith.addf %a#0, %s : f32
    scf.yield %r : f32
  }
  return
}
"""
WEAK_STORE = '{mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 1, 0, 0>}'
LOOP = "!p = !nv_tileaa.ptr<f32, 1 : i32>\n" + LOOP.replace(
    "WEAK", '{mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 0, 0, 0>}'
).replace("STORE", WEAK_STORE)


MACHINERY = Machinery.of(builtin_targets()["sm_90"], 4)


def test_memory_keeps_its_order_except_among_weak_accesses() -> None:
    """Weak accesses without tokens may pass; an ordered one passes nothing that it may meet."""
    text = LOOP.replace(WEAK_STORE, WEAK_STORE.replace('"weak"', '"relaxed", mem_scope = "tl_blk"'))
    with function(text) as func:
        (_, loop) = bodies_of(func)
        graph = loop_graph(loop.block, MACHINERY, is_loop=True)
        scalar = graph.ops[4].latency
        names = [op.name.split(".")[1] for op in graph.ops]
        assert names == ["load", "load", "store", "load", "addf", "yield"]
        inner = {edge for edge in graph.edges if edge.dst != 5 and edge.distance == 0}
        assert inner == {Edge(0, 2, 0), Edge(1, 2, 0), Edge(2, 3, 0), Edge(0, 4, scalar)}
        assert Edge(4, 5, scalar) in graph.edges
        assert {e for e in graph.edges if e.distance} == {
            Edge(4, 2, scalar, distance=1), Edge(4, 4, scalar, distance=1),
            # memory: the loads of the next iteration behind the store of this one, and so on
            Edge(2, 0, 0, distance=1), Edge(2, 1, 0, distance=1),
            Edge(3, 2, 0, distance=1), Edge(2, 2, 0, distance=1),
        }  # fmt: skip


def test_weak_accesses_are_ordered_by_tokens_alone() -> None:
    text = LOOP.replace('%c:2 = "nv_tileas.load"(%p) {', '%c:2 = "nv_tileas.load"(%p, %t) {')
    at = text.index("%c:2")
    text = text[:at] + text[at:].replace(
        "1, 0, 0, 0>} : (!p)", "1, 0, 0, 1>} : (!p, !nv_tileaa.mem_token)", 1
    )
    with function(text) as func:
        (_, loop) = bodies_of(func)
        graph = loop_graph(loop.block, MACHINERY, is_loop=True)
        assert not [edge for edge in graph.edges if edge.kind == "memory"]
        tokens = [edge for edge in graph.edges if edge.kind == "token"]
        assert tokens == [Edge(2, 3, 0)]  # for its place, not for the store to be done


ROTATION = """
func.func @f(%n: i32, %x: f32) {
  %r:2 = scf.for %i = %n to %n step %n iter_args(%a = %x, %b = %x) -> (f32, f32) : i32 {
    %c = arith.addf %b, %x : f32
    scf.yield %c, %a : f32, f32
  }
  return
}
"""


def test_a_value_that_is_handed_on_arrives_two_iterations_later() -> None:
    with function(ROTATION) as func:
        (_, loop) = bodies_of(func)
        graph = loop_graph(loop.block, MACHINERY, is_loop=True)
        inner = [(e.src, e.dst, e.distance) for e in graph.edges if e.dst == 0]
        assert inner == [(0, 0, 2)]


BUFFERS = """
#t = #nv_tileas.layout<"lane=[[1],[2],[4],[8],[16]] : 32">
#s = #nv_tileas.layout<"offset=[[1],[2],[4],[8],[16]] : 32">
!v = !nv_tileas.buffer<tensor<32xf32, #s>, "shared", 1 : i32>
func.func @f(%n: i32, %x: tensor<32xf32, #t>) {
  %p = "nv_tileas.alloc_tensor"() {alignment = 128 : i32} : () -> !v
  %q = "nv_tileas.alloc_tensor"() {alignment = 128 : i32} : () -> !v
  scf.for %i = %n to %n step %n : i32 {
    "nv_tileas.copy"(%x, %p) : (tensor<32xf32, #t>, !v) -> ()
    "nv_tileas.copy"(%x, %q) : (tensor<32xf32, #t>, !v) -> ()
    %y = "nv_tileas.copy"(%p) : (!v) -> tensor<32xf32, #t>
  }
  return
}
"""


def test_buffers_are_ordered_one_by_one() -> None:
    """What is read comes behind what was written there, and the next write behind that."""
    with function(BUFFERS) as func:
        (_, loop) = bodies_of(func)
        graph = loop_graph(loop.block, MACHINERY, is_loop=True)
        found = {(e.src, e.dst, e.distance) for e in graph.edges if e.kind == "memory"}
        assert found == {(0, 2, 0), (2, 0, 1), (0, 0, 1), (1, 1, 1)}


WHILE = """
func.func @f(%x: f32, %c: i1) {
  %r = scf.while (%a = %x) : (f32) -> f32 {
    %b = arith.addf %a, %a : f32
    scf.condition(%c) %b : f32
  } do {
  ^bb0(%d: f32):
    scf.yield %d : f32
  }
  return
}
"""


def test_values_of_while_loops_come_back_through_their_condition() -> None:
    with function(WHILE) as func:
        (_, loop) = bodies_of(func)
        assert (loop.name, loop.is_loop) == ("loop1", True)
        graph = loop_graph(loop.block, MACHINERY, is_loop=True)
        assert [op.name for op in graph.ops] == ["arith.addf", "scf.condition"]
        assert [(e.src, e.dst) for e in graph.edges if e.distance == 1] == [(0, 0)]


def test_times_come_from_the_machine_file_and_the_size_of_tiles() -> None:
    text = """
    func.func @f(%x: tensor<64x64xf32>, %y: tensor<128x64xf32>) {
      %0 = arith.addf %x, %x : tensor<64x64xf32>
      %1 = arith.addf %y, %y : tensor<128x64xf32>
      %2 = math.exp2 %x : tensor<64x64xf32>
      return
    }
    """
    with function(text) as func:
        graph = loop_graph(bodies_of(func)[0].block, MACHINERY, is_loop=False)
        small, large, special, _ = graph.ops
        machine = MACHINERY.machine
        cycles = 64 * 64 / 32 / machine.pipes.fma.rate
        assert Use("alu_or_fmaheavy", int(cycles)) in small.footprint
        assert Use("alu_or_fmaheavy", int(2 * cycles)) in large.footprint
        assert small.latency == cycles + machine.pipes.fma.latency
        assert Use("xu", int(64 * 64 / 32 / machine.pipes.mufu.rate)) in special.footprint
        assert small.registers == 64 * 64 // 128


def test_constraints_are_read_once_per_operation() -> None:
    text = """
    func.func @f(%x: f32) {
      %0 = arith.addf %x, %x {tileas.schedule.constraint.gid = 7 : i32,
        tileas.schedule.constraint.leader_gid = 3 : i64, tileas.schedule.constraint.max_depth = 0 : i32,
        tileas.schedule.constraint.force_serial_execution, tileas.recomputable,
        tileas.enable_defusion_if_fusion_extending_liveness, tileas.preferred_atom_size = 16 : i32,
        tileas.max_num_slices_for_non_reduce_axis = -1 : i32,
        tileas.max_num_of_recomputations = 2 : i32} : f32
      %1 = arith.mulf %0, %x : f32
      return
    }
    """  # noqa: E501
    with function(text) as func:
        graph = loop_graph(bodies_of(func)[0].block, MACHINERY, is_loop=False)
        assert graph.ops[0].constraints == Constraints(7, 3, 0, True, True, True, 16, 0xFFFFFFFF, 2)
        assert graph.ops[1].constraints == Constraints()


def test_a_constraint_of_the_wrong_type_is_refused() -> None:
    text = """
    func.func @f(%x: f32) {
      %0 = arith.addf %x, %x {tileas.schedule.constraint.gid = "seven"} : f32
      return
    }
    """
    with function(text) as func, pytest.raises(CompileError, match="to be an integer"):
        loop_graph(bodies_of(func)[0].block, MACHINERY, is_loop=False)


# --- the passes ---------------------------------------------------------------------------------


@cache
def registry() -> Registry:
    return Registry.of(
        tests=support.schedulers,
        sched=tile_sched.plugin,
        tileaa=tile_tileaa.plugin,
        tileas=tile_tileas.plugin,
    )


GENERATE = "tileas-generate-schedule-constraints"


def scheduled(scheduler: str, text: str) -> str:
    passes = (
        f"tileas-generate-schedule-constraints{{scheduler={scheduler}}},tileas-materialize-schedule"
    )
    return optimize(text, 0, OptJob(registry(), Selection(passes=passes))).text


STRAIGHT = """
func.func @f(%x: tensor<64x64xf32>) attributes {nv_tileaa.kernel_spec = {num_warps = 4 : i32}} {
  %0 = math.absf %x : tensor<64x64xf32>
  %1 = arith.negf %0 : tensor<64x64xf32>
  %2 = math.exp2 %x : tensor<64x64xf32>
  return
}
"""


@pytest.mark.parametrize(
    ("scheduler", "message"),
    [
        (
            "backwards",
            "scheduler 'backwards' starts 'arith.negf' (#1) in cycle 2, before "
            "'math.absf' (#0) in cycle 3: data edge 0 -> 1, latency 68, distance 0",
        ),
        (
            "forgetful",
            "scheduler 'forgetful' has 3 starts for 4 operations",
        ),
        (
            "impatient",
            "scheduler 'impatient' starts 'arith.negf' (#1) in cycle 1, less than "
            "its latency after 'math.absf' (#0) in cycle 0: data edge 0 -> 1, latency 68, "
            "distance 0",
        ),
        (
            "crowding",
            "scheduler 'crowding' starts 'math.absf' (#0) in cycle 0, but 'alu' "
            "is taken in cycle 0 of the interval of 1: 1 of 1 in use, 1 more wanted for 64 cycles",
        ),
        (
            "overlapping",
            "scheduler 'overlapping' puts 'func.return' (#3) into stage 1, but 1 may be in flight",
        ),
    ],
)
def test_wrong_schedulers_are_refused(scheduler: str, message: str) -> None:
    with pytest.raises(CompileError) as caught:
        scheduled(scheduler, STRAIGHT)
    assert caught.value.message == f"'func.func' op failed to legalize schedule: {message}"
    assert caught.value.where is not None


def between(passes: str) -> str:
    passes = f"{GENERATE}{{scheduler=list}},{passes},tileas-materialize-schedule"
    return optimize(STRAIGHT, 0, OptJob(registry(), Selection(passes=passes))).text


def test_passes_in_between_preserve_the_analysis_or_are_refused() -> None:
    assert 'strategy = "list, 4"' in between("test-careful")
    with pytest.raises(ConfigurationError) as caught:
        between("mlir:cse")
    assert caught.value.message == INVALIDATED
    assert "'mlir:cse' between" in caught.value.notes[0]


def test_a_pass_that_says_so_in_vain_is_found() -> None:
    with pytest.raises(CompileError) as caught:
        between("test-careless")
    assert caught.value.message == f"'func.func' op {INVALIDATED}"


INVALIDATED = (
    "cleanup pass invalidated ScheduleAnalysis; rerun constraint generation or remove the pass"
)


def test_members_of_a_group_in_different_stages_are_refused() -> None:
    together = Constraints(gid=1)
    ops = tuple(LoopOp(name, "compute", 1, constraints=together) for name in "ab")
    loop, model = LoopGraph(ops, ()), MachineModel("sm_90", (("alu", 1),), 4)
    (found,) = violations(loop, model, Schedule((0, 5), 4))
    assert found.rule == "group"
    assert found.message == (
        "puts 'b' (#1) into stage 1, but its group 1 is in stage 0, with 'a' (#0)"
    )
    assert not list(violations(loop, model, Schedule((0, 3), 4)))


@pytest.mark.parametrize("scheduler", ["list", "cost", "fast", "ims", "exact"])
def test_another_scheduler_is_one_line_of_a_pipeline(
    scheduler: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`tilec pipeline diff` has that line, and the pass that takes it, with no other option."""
    mine = tmp_path / "mine.toml"
    line = f'scheduler = "{scheduler}"'
    mine.write_text(f'[pipeline]\nname = "mine"\nextends = "O3"\n[set]\n{line}\n')
    assert run(["pipeline", "diff", "O3", str(mine)]) == 1
    rows = capsys.readouterr().out.splitlines()[2:]
    before, after = ([r[1:] for r in rows if r.startswith(sign)] for sign in "-+")
    assert after[0] == line
    assert [r.replace("serial", scheduler) for r in before] == after
    assert [r.split("{")[0].strip() for r in after[1:]] == ["tileas-generate-schedule-constraints"]


def test_a_scheduler_may_find_nothing() -> None:
    with pytest.raises(CompileError, match="op failed to find a schedule: 'hopeless': the weather"):
        scheduled("hopeless", STRAIGHT)


@pytest.mark.parametrize("scheduler", ["serial", "list"])
def test_right_ones_are_not(scheduler: str) -> None:
    text = scheduled(scheduler, STRAIGHT)
    assert text.index("math.absf") < text.index("arith.negf") < text.index("return")
    assert "nv_tileas" not in text


def test_list_moves_a_load_up() -> None:
    """In program order the load comes last; it takes longest, so `list` does not let it wait."""
    text = """
    !p = !nv_tileaa.ptr<f32, 1 : i32>
    func.func @f(%p: !p, %x: f32) attributes {nv_tileaa.kernel_spec = {num_warps = 4 : i32}} {
      %0 = math.exp %x : f32
      %1 = math.log %0 : f32
      %2:2 = "nv_tileas.load"(%p) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 0, 0, 0>} : (!p) -> (f32, !nv_tileaa.mem_token)
      %3 = arith.addf %1, %2#0 : f32
      return
    }
    """  # noqa: E501
    serial, moved = scheduled("serial", text), scheduled("list", text)
    assert serial.index("math.log") < serial.index("nv_tileas.load")
    assert moved.index("nv_tileas.load") < moved.index("math.log") < moved.index("arith.addf")


PERSISTENT = """
func.func @f(%n: i32, %x: tensor<64xf32>) attributes {nv_tileaa.kernel_spec = {num_warps = 4 : i32}} {
  %blocks = "nv_tileaa.get_num_programs"() {axis = 0 : i32} : () -> i32
  %one = arith.constant 1 : i32
  %a = scf.for %i = %n to %n step STEP iter_args(%s = %x) -> tensor<64xf32> : i32 {
    %0 = math.exp %x : tensor<64xf32>
    %1 = arith.addf %0, %s : tensor<64xf32>
    scf.yield %1 : tensor<64xf32>
  }
  return
}
"""  # noqa: E501


@pytest.mark.parametrize(
    ("step", "options", "stages"),
    [
        ("%blocks", "persistent-scheduler=cost persistent-stages=2", 2),
        ("%blocks", "persistent-scheduler=cost", 1),
        ("%one", "persistent-scheduler=cost persistent-stages=2", 1),
        ("%blocks", "persistent-stages=2", 1),  # `serial`, which overlaps nothing
        ("%one", "persistent-scheduler=cost persistent-stages=2 max-stages=2", 1),
    ],
)
def test_loops_over_the_grid_overlap(step: str, options: str, stages: int) -> None:
    passes = f"tileas-generate-schedule-constraints{{scheduler=serial {options}}}"
    text = optimize(
        PERSISTENT.replace("STEP", step), 0, OptJob(registry(), Selection(passes=passes))
    ).text
    (found,) = re.findall(r"scf.for.*?nv_tile.aws.stage = array<i64: ([\d, ]+)>", text, re.DOTALL)
    assert max(map(int, found.split(","))) + 1 == stages


EFFECTS = """
!p = !nv_tileaa.ptr<f32, 1 : i32>
func.func @f(%p: !p, %x: f32, %c: i1) {
  %0:2 = "nv_tileas.load"(%p) {mem_semantic = "weak", volatile,
    operandSegmentSizes = array<i32: 1, 0, 0, 0>} : (!p) -> (f32, !nv_tileaa.mem_token)
  %9:2 = "nv_tileas.load"(%p) {mem_semantic = "weak",
    operandSegmentSizes = array<i32: 1, 0, 0, 0>} : (!p) -> (f32, !nv_tileaa.mem_token)
  %1 = "nv_tileaa.optimization_barrier"(%x) : (f32) -> f32
  "nv_tileaa.message"(%x) {text = "x"} : (f32) -> ()
  %2 = "nv_tileaa.call_elementwise_intrinsic"(%x) {intrinsic = "llvm.sqrt"} : (f32) -> f32
  %3 = "nv_tileaa.elementwise_inline_asm"(%x) {asm = "", constraints = ""} : (f32) -> f32
  %4 = "nv_tileaa.elementwise_inline_asm"(%x) {asm = "", constraints = "", pure} : (f32) -> f32
  %5 = "nv_tileaa.fma"(%x, %x, %x) : (f32, f32, f32) -> f32
  %6 = scf.if %c -> f32 {
    scf.yield %x : f32
  } else {
    %7 = "nv_tileaa.optimization_barrier"(%x) : (f32) -> f32
    scf.yield %7 : f32
  }
  cf.assert %c, "no"
  return
}
"""


def test_effects_are_what_is_declared_and_else_the_worst() -> None:
    """A volatile load keeps its place, and so does whatever declares nothing."""
    with function(EFFECTS) as func:
        found = [memory_effect(op) for op in func.regions[0].blocks[0].operations]
    volatile, barrier, message, call, asm, branch, check = ["write"] * 7
    assert found == [
        volatile, "read", barrier, message, call, asm, "none", "none", branch, check, "none",
    ]  # fmt: skip
