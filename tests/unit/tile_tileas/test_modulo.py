"""Loops whose iterations overlap do what they did, whatever the schedule and their number."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
import support.schedulers
import tile_sim
from support.tiles import Kernel, registry
from tile_tileas.modulo.counting import Counting
from tile_tileas.modulo.plan import Dependences, Instance, plan
from tile_tileas.modulo.rings import Rings

import tile_core
from tile_core.registry import Registry
from tile_core.sched import Edge

TILES, SIZE = 16, 64
LAST = 2**31 - 1
TILE = f"tensor<{SIZE}xi32>"
TOKEN = "!nv_tileaa.mem_token"

#: What carries what: a sum over two iterations back (a, b), a counter that is the address, a
#: branch with a store in it, a sum over the induction variable, and one value as it was an
#: iteration ago (before).
BODY = f"""
%r:6 = scf.for LIMITS iter_args(%a = %first, %b = %second, %n = %zero, %sum = %seven,
    %before = %zero, %t = %t0) -> ({TILE}, {TILE}, i32, i32, i32, {TOKEN}) : i32 {{
  %x, %xt = "nv_tileaa.tiled_load"(%in, %n) {{mem_semantic = "weak",
    operandSegmentSizes = array<i32: 1, 1, 0>}} : (IN, i32) -> ({TILE}, {TOKEN})
  %twice = arith.addi %b, %b : {TILE}
  %scaled = arith.muli %x, %a : {TILE}
  %odd = arith.addi %scaled, %twice : {TILE}
  %wide = "nv_tileaa.splat"(%i) : (i32) -> {TILE}
  %y = arith.addi %odd, %wide : {TILE}
  %late = arith.muli %y, %x : {TILE}
  %t1 = "nv_tileaa.tiled_store"(%out, %late, %n, %t) {{mem_semantic = "weak",
    operandSegmentSizes = array<i32: 1, 1, 1, 1>}} : (OUT, {TILE}, i32, {TOKEN}) -> {TOKEN}
  %parity = arith.andi %before, %one : i32
  %is = arith.cmpi eq, %parity, %one : i32
  %t2 = scf.if %is -> {TOKEN} {{
    %again = arith.addi %late, %wide : {TILE}
    %t3 = "nv_tileaa.tiled_store"(%out, %again, %n, %t1) {{mem_semantic = "weak",
      operandSegmentSizes = array<i32: 1, 1, 1, 1>}} : (OUT, {TILE}, i32, {TOKEN}) -> {TOKEN}
    scf.yield %t3 : {TOKEN}
  }} else {{
    scf.yield %t1 : {TOKEN}
  }}
  %tripled = arith.muli %sum, %three : i32
  %total = arith.addi %tripled, %i : i32
  %next = arith.addi %n, %one : i32
  scf.yield %y, %a, %next, %total, %n, %t2 : {TILE}, {TILE}, i32, i32, i32, {TOKEN}
}}
"""

#: As many stages as schedulers like, whatever their registers cost.
OVERLAPPED = {"tileas-generate-schedule-constraints.heed-occupancy": False}


def kernel(limits: str, params: int) -> str:
    """The module of a kernel (in, out, tiles at the end, scalars at the end, bounds ...)."""
    made = Kernel()
    views = {}
    for name in ("in", "out", "ends"):
        pointer = made.param("!nv_tileaa.ptr<i32, 1 : i32>")
        memref = f"!nv_tileaa.memref<i32, array<i64: {TILES * SIZE}>, array<i64: 1>>"
        views[name] = f'!nv_tileaa.tiled_view<{memref}, array<i32: {SIZE}>, array<i32: 0>, "">'
        made.op(f'%{name}m = "nv_tileaa.make_memref"({pointer}) {{operandSegmentSizes = '
                f'array<i32: 1, 0, 0>}} : (!nv_tileaa.ptr<i32, 1 : i32>) -> {memref}')  # fmt: skip
        made.op(f'%{name} = "nv_tileaa.block_tile"(%{name}m) : ({memref}) -> {views[name]}')
    for at in range(params):
        made.op(f"%p{at} = arith.addi {made.param('i32')}, %zero : i32")
    for name, value in (("zero", 0), ("one", 1), ("three", 3), ("seven", 7)):
        made.lines.insert(0, f"%{name} = arith.constant {value} : i32")
    made.op(f"%first = arith.constant dense<5> : {TILE}")
    made.op(f"%second = arith.constant dense<11> : {TILE}")
    made.op(f'%t0 = "nv_tileaa.create_mem_token"() : () -> {TOKEN}')
    body = BODY.replace("LIMITS", limits)
    for line in body.replace("OUT", views["out"]).replace("IN", views["in"]).split("\n"):
        made.op(line)
    for at, value in enumerate(("%r#0", "%r#1", "%w2", "%w3", "%w4")):
        if value.startswith("%w"):
            made.op(f'{value} = "nv_tileaa.splat"(%r#{at}) : (i32) -> {TILE}')
        made.op(f"%c{at} = arith.constant {at} : i32")
        made.op(f'%end{at} = "nv_tileaa.tiled_store"(%ends, {value}, %c{at}) {{mem_semantic = '
                '"weak", operandSegmentSizes = array<i32: 1, 1, 1, 0>} : '
                f'({views["ends"]}, {TILE}, i32) -> {TOKEN}')  # fmt: skip
    return made.text()


@cache
def _registry() -> Registry:
    more: Any = support.schedulers  # modules hash, though no stub says so
    return registry(schedulers=more)


@cache
def module(limits: str, params: int, scheduler: str) -> tile_sim.Module:
    made = tile_core.compile(
        kernel(limits, params), "sm_90", opt_level=2, start_at="convert-tileaa-to-tileas",
        emit="ptx", registry=_registry(), keep_stages=False,
        options={"scheduler": scheduler, "max-stages": 0},
        pass_options=OVERLAPPED,
    )  # fmt: skip
    return tile_sim.Module(str(made.stages["ptx"]))


def expected(source: np.ndarray, values: range) -> tuple[np.ndarray, np.ndarray]:
    """What the loop leaves in `out` and `ends`, its induction variable being one of `values`."""
    out, ends = np.zeros((TILES, SIZE), np.int32), np.zeros((TILES, SIZE), np.int32)
    a, b = np.full(SIZE, 5, np.int32), np.full(SIZE, 11, np.int32)
    count, total, before = 0, np.int32(7), 0
    with np.errstate(over="ignore"):
        for i in values:
            wide = np.full(SIZE, i & 0xFFFFFFFF, np.uint32).view(np.int32)
            y = source[count] * a + (b + b) + wide
            out[count] = y * source[count] + (wide if before % 2 else 0)
            a, b = y, a
            total = (total * np.int32(3) + wide[0]).astype(np.int32)
            before, count = count, count + 1
    ends[0], ends[1], ends[2], ends[3], ends[4] = a, b, count, total, before
    return out, ends


def run(made: tile_sim.Module, values: range, *bounds: int, spare: int | None = None) -> None:
    """`spare`: a tile of `ends` of which nothing is expected."""
    source = np.arange(TILES * SIZE, dtype=np.int32).reshape(TILES, SIZE) * 7 - 500
    out, ends = np.zeros_like(source), np.zeros_like(source)
    words = [int(np.uint32(bound & 0xFFFFFFFF).view(np.int32)) for bound in bounds]
    report = made.launch("kernel", (1, 1, 1), None, [source, out, ends, *words], check=True)
    assert not report.findings
    if spare is not None:
        ends[spare] = 0
    for got, wanted in zip((out, ends), expected(source, values), strict=True):
        np.testing.assert_array_equal(got, wanted)


DYNAMIC = "%i = %p0 to %p1 step %p2"
SCHEDULERS = tuple(cls.name for cls in support.schedulers.SCATTERED)


@pytest.mark.parametrize("scheduler", [*SCHEDULERS, "cost", "ims"])
def test_every_count_gives_what_one_iteration_after_the_other_gives(scheduler: str) -> None:
    made = module(DYNAMIC, 3, scheduler)
    for count in range(9):
        run(made, range(3, 3 + 2 * count, 2), 3, 2 + 2 * count, 2)
    run(made, range(0), 5, -5, 1)


#: Hands on what the loop before it made; `%v` has the same value where nothing is handed on.
BEHIND = f"""
%q:2 = scf.for %k = %p0 to %p1 step %p2 iter_args(%u = %second, %v = %first)
    -> ({TILE}, {TILE}) : i32 {{{{
  %x, %xt = "nv_tileaa.tiled_load"(%in, %zero) {{{{mem_semantic = "weak",
    operandSegmentSizes = array<i32: 1, 1, 0>}}}} : (IN, i32) -> ({TILE}, {TOKEN})
  %far = "nv_tileaa.splat"(%k) : (i32) -> {TILE}
  %scaled = arith.muli %x, %far : {TILE}
  %more = arith.addi %u, %scaled : {TILE}
  scf.yield %more, %r#0 : {TILE}, {TILE}
}}}}
"""


@pytest.mark.parametrize("scheduler", SCHEDULERS[1:3])
def test_a_loop_knows_the_results_of_one_that_was_rewritten(scheduler: str) -> None:
    text = kernel(DYNAMIC, 3)
    ends = text.index('nv_tileaa.tiled_store"(%ends, %r#0')
    at = text.rindex("%c0 =", 0, ends)
    store = text[at:].split("%c1 =", 1)[0]
    spare = store.replace("%c0 = arith.constant 0", "%c9 = arith.constant 9")
    spare = spare.replace("%end0", "%end9").replace("%r#0, %c0", "%q#0, %c9")
    behind = text[at:].replace("%ends, %r#0", "%ends, %q#1", 1)
    view = text.split('%in = "nv_tileaa.block_tile"', 1)[1].split(" -> ", 1)[1].split("\n", 1)[0]
    text = text[:at] + BEHIND.format().replace("IN", view) + spare + behind
    made = tile_core.compile(
        text, "sm_90", opt_level=2, start_at="convert-tileaa-to-tileas", emit="ptx",
        registry=_registry(), keep_stages=False, pass_options=OVERLAPPED,
        options={"scheduler": scheduler, "max-stages": 0},
    )  # fmt: skip
    overlapped = [r for r in made.remarks if "iterations overlap, one begins" in r.message]
    assert len(overlapped) == 2
    for count in (0, 1, 4):
        module = tile_sim.Module(str(made.stages["ptx"]))
        run(module, range(3, 3 + 2 * count, 2), 3, 2 + 2 * count, 2, spare=9)


@pytest.mark.parametrize("scheduler", SCHEDULERS[:4])
@pytest.mark.parametrize(
    ("first", "last", "step"),
    [
        (LAST - 3, LAST, 1),
        (-(2**31), -(2**31) + 3, 1),
        (-(2**31), 2**30, 2**30),  # further apart than any signed number
        (-(2**31), 0, LAST),
        (LAST - 2**30 - 1, LAST, 2**30 + 1),
    ],
)
def test_bounds_may_lie_anywhere(scheduler: str, first: int, last: int, step: int) -> None:
    run(module(DYNAMIC, 3, scheduler), range(first, last, step), first, last, step)


@pytest.mark.parametrize("scheduler", SCHEDULERS[:3])
@pytest.mark.parametrize(
    ("first", "last", "step"), [(2**31 - 2, 2**31 + 3, 1), (0, 2**32 - 1, 2**30), (9, 3, 1)]
)
def test_unsigned_bounds(scheduler: str, first: int, last: int, step: int) -> None:
    made = module(f"unsigned {DYNAMIC}", 3, scheduler)
    run(made, range(first, last, step), first, last, step)


@pytest.mark.parametrize("scheduler", SCHEDULERS[:3])
@pytest.mark.parametrize("count", [0, 1, 2, 3, 5, 8])
def test_known_counts(scheduler: str, count: int) -> None:
    limits = "%i = %zero to %last step %one"
    made = module_of_count(limits, count, scheduler)
    run(made, range(count))


@cache
def module_of_count(limits: str, count: int, scheduler: str) -> tile_sim.Module:
    text = kernel(limits, 0).replace(
        "%one = arith.constant 1 : i32",
        f"%one = arith.constant 1 : i32\n%last = arith.constant {count} : i32",
    )
    made = tile_core.compile(
        text, "sm_90", opt_level=2, start_at="convert-tileaa-to-tileas", emit="ptx",
        registry=_registry(), keep_stages=False,
        options={"scheduler": scheduler, "max-stages": 0},
        pass_options=OVERLAPPED,
    )  # fmt: skip
    return tile_sim.Module(str(made.stages["ptx"]))


def _kernel_runs_too_long(self: Counting, fewer: int) -> Any:
    return self.upper


def _no_guard(self: Counting, number: int) -> None:
    return None


def _nothing_moves_on(self: Rings, source: Any) -> Any:
    return source


def _last_is_first(self: Counting, before: int) -> Any:
    return self.lower


MUTANTS = (
    (Counting, "kernel_end", _kernel_runs_too_long),
    (Counting, "at_least", _no_guard),
    (Counting, "from_last", _last_is_first),
    (Rings, "next", _nothing_moves_on),
)


@pytest.mark.parametrize(("cls", "name", "wrong"), MUTANTS, ids=lambda value: str(value)[:20])
def test_mutants_are_caught(
    monkeypatch: pytest.MonkeyPatch, cls: type, name: str, wrong: Any
) -> None:
    monkeypatch.setattr(cls, name, wrong)
    made = module.__wrapped__(DYNAMIC, 3, "scattered-1")
    with pytest.raises((AssertionError, tile_sim.SimError)):
        _up_to_three(made)


def _up_to_three(made: tile_sim.Module) -> None:
    for count in range(4):
        run(made, range(count), 0, count, 1)


# --- the plan, in numbers ------------------------------------------------------------------------


def test_an_address_is_made_again_where_it_is_used() -> None:
    """0 is cheap, and used in stages 0 and 2; 1 is not, and is handed on."""
    deps = Dependences(4, ((0, 1), (0, 3), (1, 2), (2, 3)), (Edge(2, 3, 0),), cheap=frozenset([0]))
    found = plan(deps, (3, 2, 0, 1), (0, 0, 1, 2))
    assert found.order == tuple(
        Instance(op, stage) for op, stage in ((0, 2), (3, 2), (2, 1), (0, 0), (1, 0))
    )
    assert found.provider(0, 2) == 2
    assert found.provider(1, 1) == 0


def test_a_late_load_goes_to_its_product_and_leaves_no_empty_stage() -> None:
    deps = Dependences(3, ((0, 1), (1, 2)), (), cheap=frozenset([1]), late=frozenset([0]))
    found = plan(deps, (2, 0, 1), (0, 3, 5))
    assert found.order == (Instance(0, 0), Instance(1, 0), Instance(2, 0))
    assert found.stages == 1


@pytest.mark.parametrize(
    ("order", "stages", "edge", "right"),
    [
        ((1, 0), (0, 1), Edge(0, 1, 0), True),
        ((0, 1), (1, 0), Edge(0, 1, 0), False),
        ((1, 0), (0, 0), Edge(0, 1, 0), False),
        ((0, 1), (1, 0), Edge(0, 1, 0, 1), True),  # an iteration later, in the same step
        ((1, 0), (1, 0), Edge(0, 1, 0, 1), False),
        ((1, 0), (1, 0), Edge(1, 0, 0, 1), True),
        ((0, 1), (0, 1), Edge(1, 0, 0, 1), False),  # in the same step, but behind
        ((1, 0), (0, 1), Edge(1, 0, 0, 1), True),
        ((0, 1), (2, 0), Edge(0, 1, 0, 2), True),
    ],
)
def test_no_plan_breaks_an_order(
    order: tuple[int, ...], stages: tuple[int, ...], edge: Edge, right: bool
) -> None:
    deps = Dependences(2, (), (edge,))
    if right:
        assert plan(deps, order, stages).stages == len(set(stages))
        return
    with pytest.raises(ValueError, match=f"operation {edge.dst} would run before"):
        plan(deps, order, stages)


# --- loops in loops ------------------------------------------------------------------------------

#: In each iteration of the outer loop, tile n is loaded, an inner loop adds `i` and what it has
#: counted, and the sum is stored: what is added last depends on the number of both loops.
NESTED = f"""
%r:2 = scf.for LIMITS iter_args(%n = %zero, %t = %t0) -> (i32, {TOKEN}) : i32 {{
  %x, %xt = "nv_tileaa.tiled_load"(%in, %n) {{mem_semantic = "weak",
    operandSegmentSizes = array<i32: 1, 1, 0>}} : (IN, i32) -> ({TILE}, {TOKEN})
  %wide = "nv_tileaa.splat"(%i) : (i32) -> {TILE}
  %few = arith.addi %n, %one : i32
  INNER
  %late = arith.muli %y#0, %x : {TILE}
  %t1 = "nv_tileaa.tiled_store"(%out, %late, %n, %t) {{mem_semantic = "weak",
    operandSegmentSizes = array<i32: 1, 1, 1, 1>}} : (OUT, {TILE}, i32, {TOKEN}) -> {TOKEN}
  scf.yield %few, %t1 : i32, {TOKEN}
}}
"""

_SUM = f"""
    %count = "nv_tileaa.splat"(%j) : (i32) -> {TILE}
    %a = arith.muli %z, %count : {TILE}
    %b = arith.addi %a, %wide : {TILE}
    %c = arith.addi %s, %b : {TILE}
"""
INNER_LOOPS = {
    "for": f"""
  %y:2 = scf.for %j = %zero to %few step %one iter_args(%s = %x, %z = %x)
      -> ({TILE}, {TILE}) : i32 {{{_SUM}
    scf.yield %c, %b : {TILE}, {TILE}
  }}
""",
    "while": f"""
  %y:3 = scf.while (%s = %x, %z = %x, %j = %zero) : ({TILE}, {TILE}, i32)
      -> ({TILE}, {TILE}, i32) {{{_SUM}
    %following = arith.addi %j, %one : i32
    %more = arith.cmpi slt, %following, %few : i32
    scf.condition(%more) %c, %b, %following : {TILE}, {TILE}, i32
  }} do {{
  ^bb0(%s: {TILE}, %z: {TILE}, %j: i32):
    scf.yield %s, %z, %j : {TILE}, {TILE}, i32
  }}
""",
}


def nested(scheduler: str, inner: str, source: np.ndarray, values: range) -> tuple[str, np.ndarray]:
    """Remarks, and what the loop leaves in `out`, of an outer loop over `values`."""
    text = kernel(DYNAMIC, 3)
    start = text.index("%r:6 = scf.for")
    views = [
        text.split(f'%{name} = "nv_tileaa.block_tile"', 1)[1].split(" -> ", 1)[1].split("\n", 1)[0]
        for name in ("in", "out")
    ]
    loop = (
        NESTED.replace("INNER", INNER_LOOPS[inner])
        .replace("LIMITS", DYNAMIC)
        .replace("IN", views[0])
        .replace("OUT", views[1])
    )
    text = text[:start] + loop + "return\n}\n}\n}\n"
    made = tile_core.compile(
        text, "sm_90", opt_level=2, start_at="convert-tileaa-to-tileas", emit="ptx",
        registry=_registry(), keep_stages=False, pass_options=OVERLAPPED,
        options={"scheduler": scheduler, "max-stages": 0},
    )  # fmt: skip
    out, ends = np.zeros_like(source), np.zeros_like(source)
    report = tile_sim.Module(str(made.stages["ptx"])).launch(
        "kernel", (1, 1, 1), None, [source, out, ends, values.start, values.stop, values.step],
        check=True,
    )  # fmt: skip
    assert not report.findings
    return "\n".join(remark.message for remark in made.remarks), out


@pytest.mark.parametrize("inner", ["for", "while"])
@pytest.mark.parametrize("scheduler", [*SCHEDULERS[::3], "cost", "ims"])
def test_loops_around_loops_are_right(scheduler: str, inner: str) -> None:
    source = np.arange(TILES * SIZE, dtype=np.int32).reshape(TILES, SIZE) * 7 - 500
    for count in (0, 1, 2, 5):
        _, out = nested(scheduler, inner, source, range(3, 3 + 2 * count, 2))
        expected = np.zeros_like(source)
        with np.errstate(over="ignore"):
            for n, i in enumerate(range(3, 3 + 2 * count, 2)):
                total, last = source[n].copy(), source[n].copy()
                for j in range(n + 1):
                    last = last * np.int32(j) + np.int32(i)
                    total += last
                expected[n] = total * source[n]
        np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize(
    ("inner", "remark"),
    [
        ("for", "runs one iteration after the other: those of a loop in its body overlap"),
        ("while", "iterations overlap, one begins"),
    ],
)
def test_outer_loops_overlap_unless_inner_ones_do(inner: str, remark: str) -> None:
    source = np.zeros((TILES, SIZE), np.int32)
    found, _ = nested(SCHEDULERS[0], inner, source, range(1))
    assert remark in found
