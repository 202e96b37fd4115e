"""Kernels of agents and pipes, from text of nv_tileas to PTX, run in the simulator's check mode."""

from __future__ import annotations

from functools import cache

import pytest
from support.mutants import mutants
from support.pipe_kernels import PASSES, Doubling, passes, placed, ptx_of
from tile_sim import SimError

from tile_core.diagnostics import CompileError, TileError

FETCHES = ("generic", "cp.async", "tma")


@cache
def compiled(kernel: Doubling, opt_level: int = 1) -> str:
    return kernel.ptx(opt_level)


def check(kernel: Doubling, tiles: int, schedule: str, seed: int = 0) -> None:
    report, _ = kernel.run(compiled(kernel), tiles, schedule=schedule, seed=seed)
    assert not report.findings, "\n".join(map(str, report.findings))


@pytest.mark.parametrize("one_agent", [False, True], ids=["agents", "one agent"])
@pytest.mark.parametrize("stages", [1, 2, 3, 4])
@pytest.mark.parametrize("fetch", FETCHES)
def test_any_depth_and_number_of_rounds(fetch: str, stages: int, one_agent: bool) -> None:
    kernel = Doubling(fetch, stages=stages, one_agent=one_agent)
    for tiles in range(stages + 4):
        check(kernel, tiles, "late")
    for schedule in ("early", "random"):
        check(kernel, stages + 3, schedule)


@pytest.mark.parametrize("one_agent", [False, True], ids=["agents", "one agent"])
@pytest.mark.parametrize("fetch", FETCHES)
def test_stores_by_tensor_maps(fetch: str, one_agent: bool) -> None:
    kernel = Doubling(fetch, "tma", one_agent=one_agent)
    for tiles in (0, 1, 5):
        for schedule in ("late", "early", "random"):
            check(kernel, tiles, schedule)


@pytest.mark.parametrize("warps", [1, 2, 8])
def test_producers_of_any_size(warps: int) -> None:
    """A tensor map needs one warp; threads that copy need as many as their layout has."""
    check(Doubling("tma", producer_warps=warps), 5, "late")


@pytest.mark.parametrize("target", ["sm_80", "sm_89", "sm_120"])
def test_copies_of_threads_on_every_target(target: str) -> None:
    for one_agent in (False, True):
        check(Doubling("cp.async", stages=3, target=target, one_agent=one_agent), 7, "late")


@pytest.mark.parametrize("target", ["sm_100", "sm_120"])
def test_tensor_maps_on_later_targets(target: str) -> None:
    check(Doubling("tma", "tma", stages=3, target=target), 7, "late")


def test_registers_move_between_agents() -> None:
    kernel = Doubling("tma", registers=(40, 216))
    text = " ".join(compiled(kernel).split())
    assert "setmaxnreg.dec.sync.aligned.u32 40" in text
    assert "setmaxnreg.dec.sync.aligned.u32 216" in text  # 256 threads start with 248 each
    check(kernel, 5, "late")
    with pytest.raises(TileError, match="changes registers of a part of a warpgroup"):
        Doubling("tma", registers=(40, 232), producer_warps=1).ptx()
    with pytest.raises(TileError, match="agents want 65536 registers, but the block has 63488"):
        Doubling("tma", registers=(256, 256)).ptx()
    with pytest.raises(TileError, match="changes registers, which sm_80 does not do"):
        Doubling("cp.async", registers=(40, 232), target="sm_80").ptx()


@pytest.mark.parametrize(
    "kernel",
    [
        Doubling("generic"),
        Doubling("cp.async", "tma"),
        Doubling("tma", "tma", stages=3),
        Doubling("cp.async", one_agent=True),
        Doubling("tma", one_agent=True),
    ],
    ids=lambda kernel: f"{kernel.fetch}-{kernel.store}{'-one' if kernel.one_agent else ''}",
)
def test_every_synchronisation_is_needed(kernel: Doubling) -> None:
    """Each one removed or changed once is found: by a wrong result, an error, or a finding.

    All but fences where another one stands between the reads and the copy, or nothing was read.
    """
    spare = {("tma", "tma"): ["fence 3 removed"], ("tma", "generic"): ["fence 1 removed"]}
    missed = [
        what
        for what, text in mutants(kernel.lowered())
        if not is_caught(kernel, ptx_of(text, kernel.target, 1))
    ]
    assert missed == spare.get((kernel.fetch, kernel.store), [])


def is_caught(kernel: Doubling, ptx: str) -> bool:
    for tiles in (1, 5, 2):
        for schedule, seed in (("late", 0), ("early", 0), ("random", 0), ("random", 1)):
            try:
                report, _ = kernel.run(ptx, tiles, schedule=schedule, seed=seed)
            except (SimError, AssertionError):
                return True
            if report.findings:
                return True
    return False


def test_levels_agree() -> None:
    kernel = Doubling("tma")
    for level in (0, 3):
        report, _ = kernel.run(compiled(kernel, level), 4, schedule="late")
        assert not report.findings


def test_what_cannot_be_done_is_said() -> None:
    text = Doubling("cp.async").text().replace("f32", "f16")
    before, after = '#r = #nv_tileas.layout<"register=[[0,1],', '#r = #nv_tileas.layout<"register=['
    narrow = text.replace(before, after, 1).replace("lane=[[0,4],", "lane=[[0,1],[0,4],", 1)
    narrow = narrow.replace("[1,0]] warp=[[2,0]", "] warp=[[1,0],[2,0]", 1).replace(",]", "]")
    lowered = placed(passes(narrow, PASSES, "sm_90"))
    with pytest.raises(CompileError, match=r"copies 2 bytes at a time, but cp\.async"):
        ptx_of(lowered, "sm_90", 1)


def test_pipes_that_agents_use_wrongly_are_refused() -> None:
    kernel = Doubling("tma")
    still = kernel.text().replace("scf.yield %t1, %j", "scf.yield %t1, %i", 1)
    with pytest.raises(CompileError, match="agent 1 means stage 0 in round 0 of pipe 0 to acquire"):
        passes(still, PASSES, "sm_90")
    unused = PASSES.replace("tileas-assign-phases,", "")
    with pytest.raises(CompileError, match="has an iterator; run 'tileas-assign-phases' before"):
        passes(kernel.text(), unused, "sm_90")


@pytest.mark.parametrize("store", ["generic", "tma"])
@pytest.mark.parametrize("one_agent", [False, True], ids=["agents", "one agent"])
@pytest.mark.parametrize("fetch", FETCHES)
def test_stages_are_held_for_less(fetch: str, one_agent: bool, store: str) -> None:
    """With smaller regions the same numbers; what orders accesses stays between them."""
    kernel = Doubling(fetch, store, one_agent=one_agent)
    names = f"tileas-optimize-pipeline-region,tileas-remove-dead-args,{PASSES}"
    lowered = placed(passes(kernel.text(), names, kernel.target))
    if fetch == "generic" or (store == "generic" and not one_agent):
        assert lowered != kernel.lowered()
    text = ptx_of(lowered, kernel.target, 1)
    for tiles in (0, 1, 5):
        for schedule in ("late", "early", "random"):
            report, _ = kernel.run(text, tiles, schedule=schedule)
            assert not report.findings, "\n".join(map(str, report.findings))


@pytest.mark.parametrize(
    "places", ["tileas-buffer-assign", "tileas-allocate-shared{separate-bytes=0}"]
)
@pytest.mark.parametrize("store", ["generic", "tma"])
@pytest.mark.parametrize("one_agent", [False, True], ids=["agents", "one agent"])
def test_places_by_lifetimes(one_agent: bool, store: str, places: str) -> None:
    """Nothing of one agent lies where another works meanwhile."""
    kernel = Doubling("tma", store, stages=3, one_agent=one_agent)
    lowered = passes(kernel.text(), f"{PASSES},{places}", kernel.target)
    text = ptx_of(lowered, kernel.target, 1)
    for tiles in (0, 1, 7):
        for schedule in ("late", "early", "random"):
            report, _ = kernel.run(text, tiles, schedule=schedule)
            assert not report.findings, "\n".join(map(str, report.findings))
