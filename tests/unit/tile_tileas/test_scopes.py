"""The named parts of compilations, which reports of time are searched for (page 060)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import tile_core
from tile_core.opt import OptJob, Selection, optimize
from tile_core.pipeline.timing import Span
from tile_core.registry import default_registry

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = ROOT / "examples" / "bytecode"
SCHEDULES = ROOT / "tests" / "filecheck" / "tileas" / "tileas-materialize-schedule.mlir"

#: Each inside of the one that it is written under.
NESTED = {
    "TileASPrepareForScheduling": (
        "decomposeTiledLoadStoreView", "refineVecSizeOfAtoms", "TileASSliceAndFuse",
        "runCanonicalizer", "compactMemLayout", "refreshBoxDim",
    ),
    "TileASSliceAndFuse": ("sliceAndFuse",),
    "runCanonicalizer": ("unrollSmallLoopsForScheduling", "decomposeSingleOp"),
    "unrollSmallLoopsForScheduling": ("loopUnrollByFactor", "loopUnrollByHeuristic"),
    "TileASGenerateSchedule": (
        "IRWalk::findTargetForLoops",
        "ResourceConstraintBuilder::tryAddConstraintToAvoidRegSpilling",
    ),
    "tileas-materialize-schedule": ("legalizeLoopScheduleForMaterialization",),
    "SerializeGPUModule": ("CompileNVVM",),
    "CompileNVVM": ("llvm-ir", "ptx"),
}  # fmt: skip


def test_scopes_stand_where_the_specification_has_them() -> None:
    data = (EXAMPLES / "saxpy_loop_f16.tileirbc").read_bytes()
    options = {"persistent-stages": 2, "persistent-scheduler": "fast"}
    made = tile_core.compile(data, "sm_90", opt_level=2, emit="ptx", options=options)
    wanted = {(outer, inner) for outer, inside in NESTED.items() for inner in inside}
    assert wanted - set(_pairs(made.timings)) == set()


def test_a_loop_that_overlaps_is_written_out_in_a_scope() -> None:
    parts = SCHEDULES.read_text(encoding="utf-8").split("// -----")
    overlapping = next(part for part in parts if "Two stages" in part)
    job = OptJob(default_registry(), Selection(passes="tileas-materialize-schedule"))
    made = optimize(overlapping, 0, job).artifact
    pair = ("tileas-materialize-schedule", "Schedule::unrollStaticForLoop")
    assert pair in set(_pairs(made.timings))


def _pairs(span: Span) -> Iterator[tuple[str, str]]:
    for child in span.children:
        yield span.name, child.name
        yield from _pairs(child)
