"""What can watch a run: hooks before and after pipelines, passes and analyses.

"Before" hooks are called in the order of installation, "after" hooks in reverse, so that the
first to see a pass begin is the last to see it end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from tile_core.mlir import ir
    from tile_core.pipeline.build import Step
    from tile_core.pipeline.run import Run


class Instrumentation:
    """Base class; every hook does nothing.

    `before_pass` and its partners are called per pass and anchor operation; `before_step` and
    `after_step` once per pass, with the whole module, around all its anchors. Hooks may look
    at the IR, not change it.
    """

    name: ClassVar[str] = ""

    def before_pipeline(self, run: Run) -> None: ...

    def after_pipeline(self, run: Run) -> None: ...

    def before_step(self, step: Step, run: Run) -> None: ...

    def after_step(self, step: Step, run: Run) -> None: ...

    def before_pass(self, step: Step, op: ir.Operation, run: Run) -> None: ...

    def after_pass(self, step: Step, op: ir.Operation, run: Run) -> None: ...

    def after_pass_failed(
        self, step: Step, op: ir.Operation, run: Run, error: Exception
    ) -> None: ...

    def before_analysis(self, name: str, op: ir.Operation, run: Run) -> None: ...

    def after_analysis(self, name: str, op: ir.Operation, run: Run) -> None: ...
