"""Loops with pipes whose iterations overlap: rings bound how far producers run ahead."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cache

import pytest
import support.schedulers
from support.mutants import mutants
from support.pipe_kernels import PASSES, Doubling, passes, placed, ptx_of
from support.tiles import registry
from tile_sim import SimError
from tile_tileas.passes import materialize_schedule
from tile_tileas.sched.pipes import PipeSteps

import tile_core
from tile_core.diagnostics import CompileError

GENERATE = (
    "tileas-generate-schedule-constraints{scheduler=SCHEDULER max-stages=0 heed-occupancy=false}"
)
SCHEDULE = f"{GENERATE},tileas-materialize-schedule"


@dataclass(frozen=True)
class Scheduled(Doubling):
    """One agent that produces and consumes in turn, as a scheduler orders it."""

    one_agent: bool = True
    scheduler: str = "cost"

    def scheduled(self) -> str:
        """With iterations that overlap; pipes are still there."""
        return passes(self.text(), SCHEDULE.replace("SCHEDULER", self.scheduler), self.target)

    def lowered(self) -> str:
        return placed(passes(self.scheduled(), PASSES, self.target))


@cache
def compiled(kernel: Scheduled) -> str:
    return kernel.ptx(1)


def stages_of(kernel: Scheduled) -> int:
    """How many iterations of the loop are in flight."""
    text = passes(kernel.text(), GENERATE.replace("SCHEDULER", kernel.scheduler), kernel.target)
    (found,) = re.findall(r"scf.for.*?nv_tile.aws.stage = array<i64: ([\d, ]+)>", text, re.DOTALL)
    return max(map(int, found.split(","))) + 1


@pytest.mark.parametrize("scheduler", ["cost", "ims", "exact"])
@pytest.mark.parametrize("fetch", ["generic", "cp.async"])
def test_producers_run_ahead_as_far_as_the_pipe_is_deep(fetch: str, scheduler: str) -> None:
    if scheduler == "exact":
        pytest.importorskip("ortools")
    found = [stages_of(Scheduled(fetch, stages=at, scheduler=scheduler)) for at in (1, 2, 3, 4)]
    assert found[0] == 1
    assert found[1] == 2
    assert all(stages <= depth for depth, stages in enumerate(found, 1))
    assert max(found) > 2


@pytest.mark.parametrize("stages", [1, 2, 3, 4])
@pytest.mark.parametrize("fetch", ["generic", "cp.async"])
def test_any_number_of_rounds(fetch: str, stages: int) -> None:
    kernel = Scheduled(fetch, stages=stages)
    for tiles in range(stages + 4):
        for schedule in ("late", "early", "random") if tiles in (1, stages + 3) else ("late",):
            report, _ = kernel.run(compiled(kernel), tiles, schedule=schedule, seed=0)
            assert not report.findings, "\n".join(map(str, report.findings))


def test_what_copies_by_tensor_maps_keeps_the_order_of_the_program() -> None:
    """They have no tokens, so that nobody says what they may pass."""
    assert stages_of(Scheduled("tma", stages=3)) == 1


@pytest.mark.parametrize("fetch", ["generic", "cp.async"])
def test_every_synchronisation_is_needed(fetch: str) -> None:
    """All but two meetings: the first one, as the ring starts empty, and that before the loop
    reads, as the threads met before they filled the next stage.
    """
    spare = {"generic": ["sync 1 removed", "sync 3 removed"], "cp.async": []}
    kernel = Scheduled(fetch)
    missed = [
        what
        for what, text in mutants(kernel.lowered())
        if not is_caught(kernel, ptx_of(text, kernel.target, 1))
    ]
    assert missed == spare[fetch]


def is_caught(kernel: Scheduled, ptx: str) -> bool:
    for tiles in (1, 5, 2, 4):
        for schedule, seed in (("late", 0), ("early", 0), ("random", 0), ("random", 1)):
            try:
                report, _ = kernel.run(ptx, tiles, schedule=schedule, seed=seed)
            except (SimError, AssertionError):
                return True
            if report.findings:
                return True
    return False


def test_a_ring_with_a_stage_too_many_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The schedule then fills a stage that nobody has read, which pipes are checked for."""
    right = PipeSteps._meetings

    def wrong(self: PipeSteps, before, after, step, stages):
        return right(self, before, after, step, stages + 1 if stages else 0)

    monkeypatch.setattr(PipeSteps, "_meetings", wrong)
    kernel = Scheduled("generic", stages=2)
    assert stages_of(kernel) == 3
    with pytest.raises(CompileError, match="waits for ever to acquire pipe 0"):
        kernel.lowered()


# --- tiles that a schedule hands from stage to stage ---------------------------------------------


@dataclass(frozen=True)
class Carried(Scheduled):
    """A loop without pipes: its tile is loaded in one stage, and doubled and stored in a later
    one. `rings` says where it is meanwhile.
    """

    scheduler: str = "scattered-3"
    rings: str = "shared"

    def _head(self) -> str:
        return super()._head().split("%pt, %ct")[0]

    def _one_agent(self) -> str:
        weak = 'mem_semantic = "weak"'
        load, store = "operandSegmentSizes = array<i32: 1, 2, 0>", "array<i32: 1, 1, 2, 0>"
        return f"""
%r = scf.for %q = %zero to %n step %one iter_args(%last = %two) -> !u : i32 {{
  %l:2 = "nv_tileas.tiled_load"(%vx, %q, %zero) {{{weak}, {load}}} : (!view, i32, i32) -> (!u, !tok)
  %h = math.absf %l#0 : !u
  %d = arith.mulf %h, %two : !u
  %e = arith.maximumf %d, %l#0 : !u
  %w = "nv_tileas.tiled_store"(%vy, %e, %q, %zero) {{{weak}, operandSegmentSizes = {store}}}
    : (!view, !u, i32, i32) -> !tok
  scf.yield %e : !u
}}
"""

    def scheduled(self) -> str:
        made = SCHEDULE.replace("SCHEDULER", self.scheduler) + f"{{rings={self.rings}}}"
        return passes(self.text(), made, self.target)


SCATTERED = tuple(cls.name for cls in support.schedulers.SCATTERED)


@pytest.mark.parametrize("scheduler", SCATTERED)
def test_tiles_cross_stages_in_pipes(scheduler: str) -> None:
    """The pipes that the schedule asked for, by name, whatever the schedule and the rounds."""
    kernel = Carried(scheduler=scheduler)
    pipes = re.findall(r'nv_tileas.pipe = "(Pipe_\d)"', kernel.scheduled())
    assert len(set(pipes)) == len(pipes)
    assert stages_of(kernel) > 1 or not pipes
    for tiles in range(7):
        for schedule in ("late", "early", "random") if tiles == 6 else ("late",):
            report, _ = kernel.run(compiled(kernel), tiles, schedule=schedule, seed=0)
            assert not report.findings, "\n".join(map(str, report.findings))


def test_most_schedules_ask_for_a_pipe_and_none_has_one_in_registers() -> None:
    kernels = [Carried(scheduler=name) for name in SCATTERED]
    assert sum("create_pipeline" in kernel.scheduled() for kernel in kernels) > len(kernels) / 2
    for name in SCATTERED:
        kernel = Carried(scheduler=name, rings="registers")
        assert "create_pipeline" not in kernel.scheduled()


def test_a_pipe_with_a_stage_too_few_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right = materialize_schedule.crossings

    def shallow(*given):
        return [replace(crossing, depth=crossing.depth - 1) for crossing in right(*given)]

    monkeypatch.setattr(materialize_schedule, "crossings", shallow)
    refused = [name for name in SCATTERED if _is_refused(Carried(scheduler=name))]
    assert refused


def _is_refused(kernel: Carried) -> bool:
    """Or right: a reader that comes before the next filling of a step leaves it its stage."""
    try:
        ptx = ptx_of(kernel.lowered(), kernel.target, 1)
    except CompileError as error:
        return bool(re.search("ring edge|waits for ever|at least one stage", str(error)))
    for tiles in (2, 5):
        report, _ = kernel.run(ptx, tiles, schedule="late", seed=0)
        assert not report.findings
    return False


def test_a_pipeline_has_pipes_where_it_is_asked_to() -> None:
    kernel, made = Carried(scheduler="ims"), {}
    text = passes(kernel.text(), "tileas-plan-accesses", kernel.target)
    for rings in ("registers", "shared"):
        made[rings] = tile_core.compile(
            text, kernel.target, opt_level=2, start_at="tileas-prepare-for-scheduling",
            emit="ptx", registry=registry(), keep_stages=False,
            options={"scheduler": "ims", "max-stages": 0, "rings": rings},
        )  # fmt: skip
        for tiles in (0, 2, 6):
            report, _ = kernel.run(str(made[rings].stages["ptx"]), tiles, schedule="late")
            assert not report.findings
    assert "st.shared" in str(made["shared"].stages["ptx"])
    assert "st.shared" not in str(made["registers"].stages["ptx"])
