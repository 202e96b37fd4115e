"""What can watch a run: hooks before and after pipelines, passes and analyses.

"Before" hooks are called in the order of installation, "after" hooks in reverse, so that the
first to see a pass begin is the last to see it end.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar

from tile_core.diagnostics import ConfigurationError

if TYPE_CHECKING:
    from tile_core.diagnostics import TileError
    from tile_core.mlir import ir
    from tile_core.pipeline.build import Step
    from tile_core.pipeline.run import Run
    from tile_core.registry import Registry


class Instrumentation:
    """Base class; every hook does nothing.

    `before_pass` and its partners are called per pass and anchor operation; `before_step` and
    `after_step` once per pass, with the whole module, around all its anchors. Hooks may look
    at the IR, not change it.
    """

    name: ClassVar[str] = ""
    #: What a registered one is made with, as "NAME=WHAT" says; e.g. "FILE". Empty: nothing.
    takes: ClassVar[str] = ""

    def before_pipeline(self, run: Run) -> None: ...

    def after_pipeline(self, run: Run) -> None: ...

    def pipeline_failed(self, run: Run, error: TileError) -> None:
        """Called last when the run ends early, whatever the reason."""

    def before_step(self, step: Step, run: Run) -> None: ...

    def after_step(self, step: Step, run: Run) -> None: ...

    def permits(self, action: str, tag: str, op: ir.Operation, run: Run) -> bool:
        """Whether an action may happen (`tile_core.pipeline.actions`); asked right before it."""
        return True

    def before_pass(self, step: Step, op: ir.Operation, run: Run) -> None: ...

    def after_pass(self, step: Step, op: ir.Operation, run: Run) -> None: ...

    def after_pass_failed(
        self, step: Step, op: ir.Operation, run: Run, error: TileError
    ) -> None: ...

    def before_analysis(self, name: str, op: ir.Operation, run: Run) -> None: ...

    def after_analysis(self, name: str, op: ir.Operation, run: Run) -> None: ...


def watchers(wanted: Iterable[Instrumentation | str], registry: Registry) -> list[Instrumentation]:
    """Instrumentations, registered ones by "NAME" or "NAME=WHAT" (`Instrumentation.takes`).

    Raises:
        ConfigurationError: an unknown name, nothing for one that takes something or something for
            one that takes nothing, or an object that is none.
    """
    found: list[Instrumentation] = []
    for item in wanted:
        watcher = _registered(item, registry) if isinstance(item, str) else item
        if not isinstance(watcher, Instrumentation):
            raise ConfigurationError(
                f"{item!r} is not an instrumentation",
                hint="derive it from tile_core.pipeline.instrument.Instrumentation",
            )
        found.append(watcher)
    return found


def _registered(item: str, registry: Registry) -> Instrumentation:
    name, _, given = item.partition("=")
    made = registry.load("instrumentation", name)
    takes = getattr(made, "takes", "")
    if bool(given) != bool(takes):
        wrong = f"takes a {takes}" if takes else "takes nothing"
        usage = f"{name}={takes}" if takes else name
        raise ConfigurationError(
            f"the instrumentation '{name}' {wrong}, but is given '{given}'"
            if given else f"the instrumentation '{name}' {wrong}",
            hint=f"--instrument {usage}",
        )  # fmt: skip
    return made(given) if takes else made()
