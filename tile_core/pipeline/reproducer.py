"""Files that replay a failure: the IR, what was about to run on it, and what was installed.

The file is textual MLIR that starts with comments:

    // tilec reproducer
    // target: sm_90
    // options: {"num-warps": 4}
    // plugins: tilec 0.1.0, tile-tileas 0.1.0
    // pipeline: builtin.module(gpu.module(func.func(tileas-slicing)))
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tile_core.diagnostics import ConfigurationError, InputError, TileError
from tile_core.pipeline.instrument import Instrumentation
from tile_core.pipeline.resolve import SegmentCall
from tile_core.pipeline.text import as_text

if TYPE_CHECKING:
    from tile_core.mlir import ir
    from tile_core.pipeline.build import Step
    from tile_core.pipeline.run import Run

TITLE = "// tilec reproducer"


@dataclass(frozen=True)
class Reproduction:
    """What a reproducer file says besides its IR."""

    target: str
    options: Mapping[str, Any]
    plugins: tuple[str, ...]
    pipeline: str

    def header(self) -> str:
        """The comments at the top of the file."""
        return (
            f"{TITLE}\n// target: {self.target}\n"
            f"// options: {json.dumps(dict(self.options), sort_keys=True)}\n"
            f"// plugins: {', '.join(self.plugins)}\n// pipeline: {self.pipeline}\n"
        )


class Reproducer(Instrumentation):
    """Writes a reproducer when a pass fails.

    While the run lasts, the file holds the run's whole input and pipeline, so that it is there
    even when the process dies; a pass that raises replaces it by its own input and itself alone;
    a run that succeeds removes it.
    """

    name = "reproducer"

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        self._before = ""
        self._failed = False

    def before_pipeline(self, run: Run) -> None:
        self._write(run, _print(run), run.plan.steps())

    def before_step(self, step: Step, run: Run) -> None:
        self._before = _print(run)

    def after_pass_failed(self, step: Step, op: ir.Operation, run: Run, error: TileError) -> None:
        if not self._failed:  # later passes saw the IR that this one has spoilt
            self._write(run, self._before, [step])
        self._failed = True

    def pipeline_failed(self, run: Run, error: TileError) -> None:
        error.noted(f"reproducer generated at `{self._path}`")

    def after_pipeline(self, run: Run) -> None:
        self._path.unlink(missing_ok=True)

    def _write(self, run: Run, text: str, steps: list[Step]) -> None:
        about = Reproduction(
            run.plan.target.name,
            run.plan.options,
            tuple(str(plugin) for plugin in run.session.registry.plugins),
            as_text([SegmentCall(s.segment, s.nest, (s.call,)) for s in steps]),
        )
        try:
            self._path.write_text(about.header() + text, encoding="utf-8")
        except OSError as error:
            raise ConfigurationError(f"cannot write '{self._path}': {error.strerror}") from error


def _print(run: Run) -> str:
    # Generic form, because the IR may not be valid.
    asm = run.module.operation.get_asm(enable_debug_info=True, print_generic_op_form=True)
    return asm + "\n"


def is_reproducer(text: str) -> bool:
    """Whether `text` is a reproducer file."""
    return text.startswith(TITLE)


def read_reproducer(text: str) -> Reproduction:
    """What the comments of a reproducer say.

    Raises:
        InputError: a line is missing or broken.
    """
    found: dict[str, str] = {}
    for line in text.splitlines()[1:]:
        match = re.match(r"// (\w+): ?(.*)", line)
        if match is None:
            break
        found[match[1]] = match[2]
    try:
        options = json.loads(found["options"])
        plugins = tuple(name for name in found["plugins"].split(", ") if name)
        return Reproduction(found["target"], options, plugins, found["pipeline"])
    except (KeyError, ValueError) as error:
        raise InputError(f"not a whole reproducer: {type(error).__name__}: {error}") from error
