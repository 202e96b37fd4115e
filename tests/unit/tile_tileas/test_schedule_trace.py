"""`schedule-trace=FILE`: decisions of the schedulers of a compilation, as a Chrome trace."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import tile_core
from tile_core.cli.main import run
from tile_core.diagnostics import ConfigurationError, ExitCode
from tile_core.opt import OptJob, Selection, optimize
from tile_core.registry import default_registry
from tile_core.sched.document import from_json

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = ROOT / "examples" / "bytecode" / "matmul_f16.tileirbc"
OPTIONS = {"scheduler": "cost", "max-stages": 0}
#: Otherwise this loop, which another pass lets run ahead, keeps the program's order: no decisions.
PASS = "tileas-generate-schedule-constraints"
ALWAYS = {f"{PASS}.heed-occupancy": False}
MODULE = """cuda_tile.module @m {
  entry @one(%p: tile<ptr<f32>>) { return }
  entry @two(%p: tile<ptr<f32>>) { return }
}
"""


def compiled(path: Path | None, **more: Any) -> tile_core.Artifact:
    watching = [f"schedule-trace={path}"] if path is not None else []
    return tile_core.compile(
        PROGRAM.read_bytes(), "sm_90", emit="ptx", options=OPTIONS,
        pass_options={**ALWAYS, **more}, instrumentations=watching,
    )  # fmt: skip


def test_decisions_of_each_body_are_told_and_change_nothing(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    traced = compiled(path)
    assert traced.stages["ptx"] == compiled(None).stages["ptx"]
    events = json.loads(path.read_text())["traceEvents"]
    bodies = {e["args"]["name"] for e in events if e["name"] == "process_name"}
    assert bodies == {"matmul_f16/body", "matmul_f16/loop1"}
    decisions = [e["args"] for e in events if "arm" in e.get("args", {})]
    assert any(seat["cycle"] is not None and not seat["gate"] for seat in decisions)
    assert any(child.name == "DumpTraceImpl::run" for child in _spans(traced.timings))


def test_a_file_that_schedules_has_no_decisions(tmp_path: Path) -> None:
    """The starts are the file's: nobody decided anything."""
    given, path = tmp_path / "s.json", tmp_path / "t.json"
    assert run(["schedule", str(PROGRAM), "--json", "-o", str(given)]) == ExitCode.OK
    loop = next(b for b in from_json(given.read_text(), "s") if b.name.endswith("loop1"))
    compiled(path, **{f"{PASS}.schedule": str(given)})
    events = json.loads(path.read_text())["traceEvents"]
    process = next(e["pid"] for e in events if e["args"].get("name") == loop.name)
    events = [e for e in events if e["pid"] == process]
    assert not [e for e in events if "arm" in e["args"]]
    held = {(e["args"]["op"], e["ts"]) for e in events if e["ph"] == "X"}
    assert held == {
        (op, start + use.at)
        for op, start in enumerate(loop.schedule.start)
        for use in loop.graph.ops[op].footprint
    }


def test_a_pipeline_text_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    text = f"tileir{{opt-level=3 compute-capability=sm_90 schedule-trace-file={path}}}"
    chosen = Selection(pass_pipeline=text, target_given=False)
    optimize(MODULE, 0, OptJob(default_registry(), chosen))
    events = json.loads(path.read_text())["traceEvents"]
    assert [e["args"]["name"] for e in events if e["name"] == "process_name"] == [
        "one/body",
        "two/body",
    ]


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        ("schedule-trace", "takes a FILE"),
        ("schedule-trace=/nowhere/at/all.json", "cannot write '/nowhere/at/all.json'"),
    ],
)
def test_what_is_wrong_is_told(wanted: str, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        tile_core.compile(PROGRAM.read_bytes(), "sm_90", emit="ptx", instrumentations=[wanted])


def _spans(span: Any) -> Any:
    for child in span.children:
        yield child
        yield from _spans(child)
