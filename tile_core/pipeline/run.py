"""Running a plan over a module."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any

from tile_core.blame import internal_error, is_mistake
from tile_core.diagnostics import CompileError, TileError
from tile_core.locations import source_location
from tile_core.mlir import ir
from tile_core.passes import PassContext, invalidated
from tile_core.pipeline.actions import PASS
from tile_core.pipeline.anchors import anchors, symbol
from tile_core.pipeline.build import ANY, Plan, PlanSegment, Step
from tile_core.pipeline.failures import Failures, together
from tile_core.pipeline.instrument import Instrumentation
from tile_core.pipeline.legality import check_removed
from tile_core.pipeline.results import Results
from tile_core.pipeline.timing import Clock
from tile_core.remarks import About, Remark
from tile_core.session import Session, from_mlir

#: When the IR is verified: after every pass, after every segment, or never.
VERIFY = ("pass", "segment", "none")


class Run:
    """One run of a plan; the services that its passes use (`tile_core.passes.Services`).

    Args:
        verify: one of `VERIFY`.
        left: what the reader of the module knows of it (`FrontendContext.leave`).
        on_segment: called with a segment's name and the module when the segment is done.
    """

    def __init__(
        self,
        plan: Plan,
        session: Session,
        module: ir.Module,
        *,
        instrumentations: Sequence[Instrumentation] = (),
        verify: str = "segment",
        clock: Clock | None = None,
        left: Iterable[tuple[str, ir.Operation, Any]] = (),
        on_segment: Callable[[str, ir.Module], None] | None = None,
    ) -> None:
        self.plan = plan
        self.session = session
        self.module = module
        self.remarks: list[Remark] = []
        self._said: set[Remark] = set()
        self.statistics: dict[tuple[str, str], int] = {}
        self.clock = clock or Clock()
        self._watchers = tuple(instrumentations)
        self._verify = verify
        self._on_segment = on_segment
        self._results = Results()
        for name, op, value in left:
            self._results.keep(name, op, value)
        self._context = PassContext(plan.target, plan.options, self)
        self._step: Step | None = None
        self._anchor: ir.Operation | None = None
        self._errors: list[CompileError] = []
        self._failures = Failures()

    @property
    def context(self) -> PassContext:
        """What passes know, for instrumentations that compute what a pass would."""
        return self._context

    def execute(self) -> None:
        """Run every pass.

        Raises:
            TileError: a pass failed, or left IR that is not valid.
        """
        handler = self.session.context.attach_diagnostic_handler(self._take_diagnostic)
        try:
            with self.session.context:
                self._before("before_pipeline")
                for segment in self.plan.segments:
                    with self.clock.span(segment.name, "segment"):
                        self._run_segment(segment)
                    if self._on_segment is not None:
                        self._on_segment(segment.name, self.module)
                self._after("after_pipeline")
        except TileError as error:
            with self.session.context:
                self._after("pipeline_failed", extra=(error,))
            raise
        finally:
            handler.detach()

    def _run_segment(self, segment: PlanSegment) -> None:
        for group in self._groups(segment.steps):
            if len(group) > 1:
                self._run_native_group(group)
            else:
                self._run_step(group[0])
            if self._failures and not self._anchors(group[-1]):
                break
        self._failures.raise_all()
        if self._verify == "segment" and segment.steps:
            self._verify_after(self.module.operation, segment.steps[-1], segment)
        check_removed(self.module, segment.removes, segment.name)

    def _groups(self, steps: Sequence[Step]) -> list[list[Step]]:
        """Upstream passes in a row run in one go, unless something wants to see each."""
        groups: list[list[Step]] = []
        together = not self._watchers and self._verify != "pass"
        for step in steps:
            joins = together and groups and step.work is None and groups[-1][-1].work is None
            if joins:
                groups[-1].append(step)
            else:
                groups.append([step])
        return groups

    def _run_native_group(self, group: list[Step]) -> None:
        """Run upstream passes as one; a failure can name only all of them."""
        names = ",".join(step.name for step in group)
        text = ",".join(step.native for step in group)
        joined = replace(group[0], call=replace(group[0].call, name=names), native=text)
        self._step = joined
        with self.clock.span(names, "pass"):
            ops = self._anchors(joined)
            for op in ops:
                self._anchor = op
                with self._going_on(ops, op):
                    self._guarded(joined, op, lambda op=op: self._native(joined, text, op))
        kept = set(group[0].preserves).intersection(*(step.preserves for step in group))
        self._results.drop(tuple(sorted(kept)))
        self._step = self._anchor = None

    def _run_step(self, step: Step) -> None:
        self._step = step
        if step.work is not None:
            self.session.load_dialects(step.work.dependent_dialects)
        self._before("before_step", step)
        with self.clock.span(step.name, "pass", segment=step.segment):
            ops = self._anchors(step)
            for op in ops:
                if self.permits(PASS, step.name, op):
                    with self._going_on(ops, op):
                        self._run_on(step, op)
        self._results.drop(step.preserves)
        if not self._failures:
            self._after("after_step", step)
        self._step = None

    @contextmanager
    def _going_on(self, ops: Sequence[ir.Operation], op: ir.Operation) -> Iterator[None]:
        """Where there are several anchors, an error of one is kept, and the others have their turn;
        what is wrong with the configuration or the pass is wrong for all of them.
        """
        try:
            yield
        except CompileError as error:
            if (len(ops) == 1 and not self._failures) or is_mistake(error):
                raise
            self._failures.add(op, error)

    def _run_on(self, step: Step, op: ir.Operation) -> None:
        self._anchor = op
        self._before("before_pass", step, op)
        try:
            if step.work is None:
                self._guarded(step, op, lambda: self._native(step, step.native, op))
            else:
                work = step.work
                # Types and attributes that a pass makes need a location to report at.
                with op.location:
                    self._guarded(step, op, lambda: work.run(op, self._context))
        except TileError as error:
            self._after("after_pass_failed", step, op, extra=(error,))
            raise
        self._after("after_pass", step, op)
        if self._verify == "pass":
            try:
                self._verify_after(op, step, None)
            except TileError as error:
                self._after("after_pass_failed", step, op, extra=(error,))
                raise
        self._anchor = None

    def _native(self, step: Step, text: str, op: ir.Operation) -> None:
        self.session.native(op.name if step.anchor == ANY else step.anchor, text).run(op)

    def _guarded(self, step: Step, op: ir.Operation, work: Callable[[], None]) -> None:
        """Run `work`; whatever it raises becomes a `TileError` that names pass and anchor."""
        self._errors.clear()
        try:
            work()
            if self._errors:
                # An emitted error fails the run even if the pass went on.
                first, *rest = self._errors
                raise together(first, rest)
        except TileError as error:
            raise error.noted(running(step, op)) from error.__cause__
        except ir.MLIRError as error:
            found = from_mlir(error, CompileError, f"pass '{step.name}' failed")
            raise found.noted(running(step, op)) from None
        except Exception as error:
            raise self._internal(step, op, error) from error

    def _internal(self, step: Step, op: ir.Operation, error: Exception) -> TileError:
        registry = self.session.registry
        known = step.work is not None and registry.has("pass", step.name)
        return internal_error(
            f"pass '{step.name}'",
            error,
            registry,
            owner=registry.owner("pass", step.name) if known else "MLIR",
            notes=(running(step, op),),
            hint="; --reproducer=FILE saves what replays it",
        )

    def _anchors(self, step: Step) -> list[ir.Operation]:
        return self._failures.without(anchors(self.module.operation, step.nest))

    def _verify_after(self, op: ir.Operation, step: Step, segment: PlanSegment | None) -> None:
        try:
            op.verify()
        except ir.MLIRError as error:
            found = from_mlir(error, CompileError, "the IR is not valid")
            reason = found.message
            if segment is None:
                found.message = f"between-pass verifier rejected IR after '{step.name}': {reason}"
            else:
                found.message = f"verifier rejected IR after segment '{segment.name}': {reason}"
                found.hint = "--verify-each finds the pass"
            raise found from None
        except TileError as error:
            raise error.noted(f"the IR after '{step.qualified}' is not valid") from None
        except Exception as error:
            what = f"a verifier, on the IR after '{step.qualified}'"
            owner = "the plugin whose operation it is"
            raise internal_error(what, error, self.session.registry, owner=owner) from error

    # --- watchers --------------------------------------------------------------------------------

    def _before(self, hook: str, *args: Any) -> None:
        for watcher in self._watchers:
            self._tell(watcher, hook, *args, self)

    def _after(self, hook: str, *args: Any, extra: tuple[Any, ...] = ()) -> None:
        for watcher in reversed(self._watchers):
            self._tell(watcher, hook, *args, self, *extra)

    def _tell(self, watcher: Instrumentation, hook: str, *args: Any) -> Any:
        try:
            return getattr(watcher, hook)(*args)
        except (TileError, OSError):
            raise
        except Exception as error:
            name = watcher.name or type(watcher).__name__
            what, owner = f"instrumentation '{name}'", type(watcher).__module__
            raise internal_error(what, error, self.session.registry, owner=owner) from error

    @property
    def is_watched(self) -> bool:
        """Whether there are watchers."""
        return bool(self._watchers)

    def permits(self, action: str, tag: str, op: ir.Operation) -> bool:
        """Whether all watchers let an action happen; each is asked, as some of them count."""
        answers = [self._tell(w, "permits", action, tag, op, self) for w in self._watchers]
        return all(answers)

    def _take_diagnostic(self, diagnostic: Any) -> bool:
        """Warnings and remarks become remarks; errors end the run when the pass is done."""
        if diagnostic.severity == ir.DiagnosticSeverity.ERROR:
            place = source_location(diagnostic.location)
            self._errors.append(CompileError(str(diagnostic.message), where=place))
            return True
        kind = "warning" if diagnostic.severity == ir.DiagnosticSeverity.WARNING else "analysis"
        name = self._step.name if self._step else ""
        place = source_location(diagnostic.location)
        function = symbol(self._anchor) if self._anchor is not None else ""
        self.remarks.append(Remark(kind, name, "", function, str(diagnostic.message), place))
        return True

    # --- services of passes (tile_core.passes.Services) ---------------------------------------

    def analysis(self, kind: type[Any], op: ir.Operation) -> Any:
        """The analysis of `op`, computed at most once until a pass invalidates it."""
        found = self._results.find(kind.name, op)
        if found is None:
            self._before("before_analysis", kind.name, op)
            with self.clock.span(kind.name, "analysis"):
                found = kind(op, self._context)
            self._results.keep(kind.name, op, found)
            self._after("after_analysis", kind.name, op)
        return found

    def publish(self, name: str, op: ir.Operation, value: Any) -> None:
        """Keep `value` for a later pass that requires `name`."""
        if self._step is None or self._step.work is None or name not in self._step.work.publishes:
            raise TypeError(f"{name} is not among the analyses that the pass publishes")
        self._results.keep(name, op, value, fresh=True)

    def published(self, name: str, op: ir.Operation) -> Any:
        """What an earlier pass published; an error if a pass in between dropped it."""
        found = self._results.find(name, op)
        if found is None:
            raise CompileError(invalidated(name))
        return found

    def accepted(self, name: str, op: ir.Operation) -> Any:
        """What an earlier pass published, or None."""
        return self._results.find(name, op)

    def count(self, statistic: str, amount: int) -> None:
        """Raise a statistic of the running pass."""
        step = self._step
        if step is None or step.work is None or statistic not in step.work.statistics:
            raise TypeError(f"the pass declares no statistic '{statistic}'")
        key = (step.name, statistic)
        self.statistics[key] = self.statistics.get(key, 0) + amount

    def remark(self, op: ir.Operation, kind: str, message: str, about: About) -> None:
        """Collect a remark about `op`; one that was made before (of a copied loop) is left out."""
        name = self._step.name if self._step else ""
        function = symbol(self._anchor) if self._anchor is not None else ""
        operation = op.operation
        place = source_location(operation.location)
        made = Remark(kind, name, operation.name, function, message, place).described(about)
        if made not in self._said:
            self._said.add(made)
            self.remarks.append(made)

    def error(self, error: CompileError) -> None:
        """Keep an error; the run fails when the pass is done with its operation."""
        self._errors.append(error)

    def scope(self, name: str) -> AbstractContextManager[Any]:
        """Time a named part of a pass."""
        return self.clock.span(name, "scope")

    def scheduler(self, name: str) -> Any:
        """A scheduler by name."""
        return self.session.registry.load("scheduler", name)()

    def schedule_part(self, name: str) -> Any:
        """A gate, cost or arm by name."""
        return self.session.registry.load("schedule-part", name)()

    def machine_model(self, name: str) -> tuple[str, str]:
        """Where the machine model `name` is, and its text."""
        return self.session.registry.text("machine-model", name)

    def layout_strategy(self, name: str) -> Any:
        """A layout strategy by name."""
        return self.session.registry.load("layout-strategy", name)()

    def patterns(self, pass_name: str) -> list[Any]:
        """Rule sets that plugins add to a conversion pass."""
        return self.session.registry.patterns(pass_name)


def running(step: Step, op: ir.Operation) -> str:
    """Which pass runs on what, for messages."""
    name = symbol(op)
    return f"in pass '{step.name}' on '{op.name}'" + (f" @{name}" if name else "")
