"""What the plugin brings, tested as a third party would: no GPU, no kernel."""

from __future__ import annotations

import pytest
from tile_plugin_example import plugin
from tile_plugin_example.latest_start import LatestStart
from tile_plugin_example.thread_chunks import ThreadChunks
from tile_tileas.layouts import TileGraph, TileNode, TileValue, problem_with

from tile_core.diagnostics import ConfigurationError
from tile_core.inspection import problems_of_plugin
from tile_core.opt import OptJob, Selection, optimize
from tile_core.registry import Registry
from tile_core.sched import Edge, LoopGraph, LoopOp, MachineModel, Schedule, violations

MODEL = MachineModel("sm_90", (("alu", 2),), 4)
LIMIT = "example-limit-registers"


def graph(count: int, *edges: tuple[int, int, int, int]) -> LoopGraph:
    ops = tuple(LoopOp(f"op{i}", "compute", 2) for i in range(count))
    return LoopGraph(ops, tuple(Edge(*edge) for edge in edges))


def test_everything_registered_loads() -> None:
    # The pipeline extends that of -O, so the compiler's own plugins have to be there.
    assert problems_of_plugin(Registry.discover(), "example") == []


def test_operations_start_as_late_as_their_users_allow() -> None:
    # 0 and 1 are independent; 1 is used at once, 0 only at the end.
    loop = graph(4, (0, 3, 2, 0), (1, 2, 2, 0), (2, 3, 2, 0))
    found = LatestStart().schedule(loop, MODEL)
    assert isinstance(found, Schedule)
    assert found.start == (2, 0, 2, 4)
    assert found.order() == (1, 0, 2, 3)


def test_schedules_respect_every_dependence() -> None:
    loop = graph(6, (0, 2, 5, 0), (1, 2, 0, 0), (2, 4, 1, 0), (3, 5, 9, 0), (5, 0, 3, 1))
    found = LatestStart().schedule(loop, MODEL)
    assert isinstance(found, Schedule)
    assert not list(violations(loop, MODEL, found))
    assert found.num_stages == 1


def test_empty_bodies() -> None:
    assert LatestStart().schedule(graph(0), MODEL) == Schedule((), 1)


@pytest.mark.parametrize("shape", [(1,), (64,), (4096,), (8, 128), (1, 1024), (2, 4, 8), ()])
@pytest.mark.parametrize("warps", [1, 4, 8])
def test_layouts_are_legal(shape: tuple[int, ...], warps: int) -> None:
    tiles = TileGraph(
        (TileValue(shape, 32),), (TileNode("source", "arith.constant", (), (0,)),), warps
    )
    assert problem_with(tiles, ThreadChunks().assign(tiles)) is None


def run(text: str, passes: str):
    return optimize(text, 0, OptJob(Registry.of(example=plugin), Selection(passes=passes)))


KERNEL = "gpu.module @k { llvm.func @f() attributes {nvvm.kernel} { llvm.return } }"


def test_kernels_get_a_limit() -> None:
    result = run(KERNEL, f"{LIMIT}{{count=96}}")
    assert "nvvm.maxnreg = 96 : i32" in result.text
    assert result.artifact.statistics == {(LIMIT, "limited"): 1}


def test_other_functions_are_left_alone() -> None:
    plain = KERNEL.replace("attributes {nvvm.kernel} ", "")
    assert "maxnreg" not in run(plain, LIMIT).text


def test_a_limit_that_is_there_stays() -> None:
    result = run(KERNEL.replace("{nvvm.kernel}", "{nvvm.kernel, nvvm.maxnreg = 32 : i32}"), LIMIT)
    assert "nvvm.maxnreg = 32" in result.text
    assert result.artifact.remarks[0].message == "has a register limit already"


def test_limits_out_of_range() -> None:
    with pytest.raises(ConfigurationError, match="must be 24 to 255, but got 300"):
        run(KERNEL, f"{LIMIT}{{count=300}}")
