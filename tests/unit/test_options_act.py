"""Options that no other test sets: each changes what comes out, or is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
import tile_sched.plugin
import tile_tileaa.plugin
import tile_tileas.plugin

from tile_core import api
from tile_core.diagnostics import ConfigurationError
from tile_core.hookspecs import Lazy, hookimpl
from tile_core.opt import OptJob, Selection, optimize
from tile_core.registry import Registry
from tile_core.sched import LoopGraph, MachineModel, Schedule, ScheduleOptions

TILE_SPEC_VERSION = 1
EXAMPLES = Path(__file__).parents[2] / "examples" / "bytecode"
FUNCTION = """
func.func @f(%x: tensor<64xf32>) attributes {nv_tileaa.kernel_spec = {num_warps = 4 : i32}} {
  %0 = math.absf %x : tensor<64xf32>
  return
}
"""


class Asked:
    """A scheduler that keeps what it was asked for."""

    name = "asked"
    options = ScheduleOptions()

    def schedule(self, loop: LoopGraph, model: MachineModel) -> Schedule:
        """One operation when the one before it is done."""
        Asked.options = loop.options
        starts, at = [], 0
        for op in loop.ops:
            starts.append(at)
            at += max(1, op.latency)
        return Schedule(tuple(starts), ii=max(1, at))


@hookimpl
def tile_schedulers() -> list[Lazy]:
    """The one above."""
    return [Lazy("asked", f"{__name__}:Asked")]


def _registry() -> Registry:
    import sys

    return Registry.of(
        here=sys.modules[__name__], sched=tile_sched.plugin, tileaa=tile_tileaa.plugin,
        tileas=tile_tileas.plugin,
    )  # fmt: skip


def _schedule(options: str) -> ScheduleOptions:
    passes = f"tileas-generate-schedule-constraints{{scheduler=asked {options}}}"
    optimize(FUNCTION, 0, OptJob(_registry(), Selection(passes=passes)))
    return Asked.options


@pytest.mark.parametrize(
    ("option", "wanted"),
    [
        ("", ScheduleOptions(1, heed_occupancy=True)),
        (
            "max-constraint-iterations=3",
            ScheduleOptions(1, heed_occupancy=True, max_constraint_iterations=3),
        ),
        ("rrt-size-threshold=7", ScheduleOptions(1, heed_occupancy=True, rrt_size_threshold=7)),
        ("heed-occupancy=false", ScheduleOptions(1)),
        ("enable-random-delay=true", ScheduleOptions(1, heed_occupancy=True, random_delay=True)),
    ],
)
def test_schedulers_are_asked_for_it(option: str, wanted: ScheduleOptions) -> None:
    assert _schedule(option) == wanted


@pytest.mark.parametrize(
    ("passes", "word"),
    [
        ("tileas-generate-schedule-constraints{machine-model=abacus}", "abacus"),
        ("tileas-generate-schedule-constraints{scheduler=serial parts=nothing}", "takes no parts"),
        (
            "tileas-generate-schedule-constraints,tileas-materialize-schedule{machine-model=abacus}",
            "abacus",
        ),
        ("tileas-assign-layouts{strategy=whim}", "whim"),
    ],
)
def test_names_that_do_not_exist_are_refused(passes: str, word: str) -> None:
    with pytest.raises(ConfigurationError, match=word):
        optimize(FUNCTION, 0, OptJob(_registry(), Selection(passes=passes)))


@pytest.mark.parametrize(
    ("option", "value"),
    [("index-bitwidth", 64)],
)
def test_reserved_options_are_refused_at_every_level(option: str, value: int) -> None:
    for level in range(4):
        with pytest.raises(ConfigurationError, match=option):
            api.plan_for("sm_90", opt_level=level, options={option: value})


def test_the_path_without_bounds_checks() -> None:
    """`fast-path`, of the pipeline and of convert-tileas-to-llvm."""
    program = (EXAMPLES / "matmul_f16.tileirbc").read_bytes()

    def ptx(**options: bool) -> str:
        made = api.compile(program, "sm_80", emit="ptx", opt_level=1, options=options)
        return str(made.stages["ptx"])

    assert ptx() != ptx(**{"fast-path": False})
    assert ptx() == ptx(**{"fast-path": True})
