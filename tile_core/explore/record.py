"""What the page shows of a compilation: stages by source line, changes of passes, views."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tile_core.difference import unified
from tile_core.pipeline.instrument import Instrumentation
from tile_core.pipeline.timing import spans_of
from tile_core.pretty import pretty
from tile_core.remarks import as_json

if TYPE_CHECKING:
    from tile_core.artifact import Artifact
    from tile_core.mlir import ir
    from tile_core.pipeline.build import Step
    from tile_core.pipeline.run import Run
    from tile_core.registry import Registry

#: Stages of the page that are no MLIR: how a line says where it comes from.
_TEXTS = ("llvm", "ptx")
_MLIR_PLACE = re.compile(r"  // ([^ :]+):(\d+):\d+$")
_PTX_FILE = re.compile(r'^\s*\.file\s+(\d+)\s+"([^"]+)"')
_PTX_PLACE = re.compile(r"^\s*\.loc\s+(\d+)\s+(\d+)")
_LLVM_MARK = re.compile(r"!dbg !(\d+)")
_LLVM_PLACE = re.compile(r"^!(\d+) = .*!DILocation\(line: (\d+)")
_LLVM_FILE = re.compile(r'!DIFile\(filename: "([^"]+)"')


@dataclass(frozen=True)
class View:
    """What a plugin shows: text as it is, or a picture in SVG."""

    title: str
    text: str = ""
    svg: str = ""


@dataclass
class Exploration:
    """A compilation as plugins see it that add views (hook `tile_views`).

    `given` holds the options of the command line, those of a launch among them; `stages` the texts
    of the stages in order.
    """

    source: str
    data: bytes
    target: str
    given: Mapping[str, Any]
    registry: Registry
    stages: dict[str, str] = field(default_factory=dict)


class Recorder(Instrumentation):
    """Keeps the module after every pass that changed it, and what it changed."""

    name = "explore"

    def __init__(self) -> None:
        self.passes: list[dict[str, Any]] = []
        self.stages: dict[str, str] = {}
        self._before = ""
        self._started = 0.0

    def before_pipeline(self, run: Run) -> None:
        self._before = _plain(run.module.operation)
        self._keep("input", run.module.operation)

    def before_step(self, step: Step, run: Run) -> None:
        self._started = time.perf_counter()

    def after_step(self, step: Step, run: Run) -> None:
        seconds = time.perf_counter() - self._started
        after = _plain(run.module.operation)
        stage = f"{len(self.passes) + 1:02d} {step.call.id}"
        changed = unified(self._before, after, "before", "after")
        self._before = after
        if changed:
            self._keep(stage, run.module.operation)
        self.passes.append(
            {"name": step.call.id, "stage": stage, "ms": round(1e3 * seconds, 3), "diff": changed}
        )

    def _keep(self, stage: str, op: ir.Operation) -> None:
        self.stages[stage] = pretty(op.get_asm(enable_debug_info=True))


def _plain(op: ir.Operation) -> str:
    return pretty(op.get_asm(enable_debug_info=True), locations=False, aliases=False)


def page_data(
    exploration: Exploration, recorder: Recorder, artifact: Artifact, views: list[View]
) -> dict[str, Any]:
    """Everything that the page shows, as plain data."""
    stages = dict(recorder.stages)
    stages |= {kind: str(artifact.stage(kind)) for kind in _TEXTS if kind in artifact.stages}
    exploration.stages.update(stages)
    places = {name: _lines(name, text) for name, text in stages.items()}
    return {
        "title": exploration.source,
        "target": exploration.target,
        "stages": [
            {"name": name, "text": text, "lines": places[name]} for name, text in stages.items()
        ],
        "passes": recorder.passes,
        "emitters": [
            {"name": span.name, "ms": round(1e3 * span.wall, 3)}
            for span in spans_of(artifact.timings, "emitter")
        ],
        "remarks": as_json(artifact.remarks),
        "views": [{"title": v.title, "text": v.text, "svg": v.svg} for v in views],
        "source": _sources(exploration.source, artifact),
    }


def _lines(name: str, text: str) -> list[str]:
    """For each line of a stage, "file:line" of the program; empty where it has none."""
    if name == "ptx":
        return _ptx_lines(text)
    if name == "llvm":
        return _llvm_lines(text)
    found = (_MLIR_PLACE.search(line) for line in text.splitlines())
    return [f"{m[1]}:{m[2]}" if m else "" for m in found]


def _ptx_lines(text: str) -> list[str]:
    files = {m[1]: Path(m[2]).name for m in map(_PTX_FILE.match, text.splitlines()) if m}
    found, current = [], ""
    for line in text.splitlines():
        place = _PTX_PLACE.match(line)
        if place:
            current = f"{files.get(place[1], '?')}:{place[2]}"
        elif line.startswith(("}", "\t.section")):
            current = ""
        found.append(current)
    return found


def _llvm_lines(text: str) -> list[str]:
    lines = text.splitlines()
    numbers = {m[1]: m[2] for m in map(_LLVM_PLACE.match, lines) if m}
    # The unit's own file stands first, and may not be known.
    files = [file for file in _LLVM_FILE.findall(text) if file != "<unknown>"]
    name = Path(files[0]).name if files else "?"
    marks = (_LLVM_MARK.search(line) for line in lines)
    return [f"{name}:{numbers[m[1]]}" if m and m[1] in numbers else "" for m in marks]


def _sources(source: str, artifact: Artifact) -> list[dict[str, Any]]:
    """The program's own files, where they can be read."""
    del source
    names = {remark.where.file for remark in artifact.remarks if remark.where is not None}
    found = []
    for name in sorted(names):
        try:
            text = Path(name).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            continue
        found.append({"name": Path(name).name, "text": text})
    return found
