"""Which pass is to blame: `bisect` names the first one after which results differ.

Two ways, after one another:

* While the module is still `cuda_tile`, the reference evaluator runs what each pass leaves. The
  first pass after which the result is another one is to blame, without doubt.
* Below that, the IR between two passes cannot be run, but passes can be left out, as with LLVM's
  `-opt-bisect-limit`. The passes of -O0 are mandatory; whatever else the pipeline does beyond
  them, in its order, is a *step*: an option with another value, a mandatory pass with other
  options, a further pass. The program is compiled with the first 0, 1, 2, ... steps and all
  mandatory passes, and run. The step that first makes the result wrong is named; it may have
  uncovered a mistake of a later pass, since code only runs through all of them.

A pass that fails, or leaves IR that the verifier refuses, or ends the process, is named at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from tile_cudatile import from_mlir, read_bytecode, verify, write_bytecode
from tile_cudatile.evaluator import EvaluationError

import tile_core
from tile_core.api import plan_for
from tile_core.diagnostics import CompileError, TileError
from tile_core.pipeline.instrument import Instrumentation
from tile_core.pipeline.resolve import Resolved
from tile_core.registry import Registry
from tile_fuzz.case import Case, launches_of
from tile_fuzz.compare import differences
from tile_fuzz.oracle import Failure, Reference, Setting
from tile_fuzz.workers import Worker, try_setting

Report = Callable[[str], None]


@dataclass(frozen=True)
class Step:
    """Something that the pipeline does beyond the mandatory passes.

    One of: `option` (with `before`, its value in the mandatory pipeline), `tuned` (a mandatory
    pass, whose options are `options` there), `enabled` ("segment/id" of a further pass).
    """

    name: str
    option: str = ""
    before: Any = None
    tuned: str = ""
    options: dict[str, Any] = field(default_factory=dict, hash=False)
    enabled: str = ""


@dataclass(frozen=True)
class Verdict:
    """Who is to blame; several if what would tell them apart does not compile.

    `culprits` is empty if there is no failure, or if the mandatory passes alone fail, which
    `failure` tells apart.
    """

    culprits: tuple[str, ...]
    failure: Failure | None
    how: str


def bisect(case: Case, setting: Setting, registry: Registry, worker: Worker,
           report: Report) -> Verdict:  # fmt: skip
    """Finds the pass after which the case fails under a setting.

    `worker` runs what may crash, with the same registry. `report` is told of every attempt.
    """
    data = write_bytecode(case.packed())
    failure: Failure | None = worker.ask(try_setting, data, setting)
    if failure is None:
        return Verdict((), None, "the results are those of the reference evaluator")
    report(f"as it is: {failure.kind}: {failure.detail.splitlines()[0]}")
    if failure.kind == "undefined":
        return Verdict((), failure, "the program does what the language leaves undefined")
    names = _resolved(setting, registry).names()
    if failure.kind in ("compile", "crash", "timeout", "internal"):
        return _failing_pass(data, setting, names, failure, worker, report)
    found = _evaluated(data, setting, names, worker, report)
    if found is not None:
        return Verdict((found,), failure, "the evaluator gives another result after it")
    return _left_out(data, setting, registry, failure, worker, report)


def _resolved(setting: Setting, registry: Registry) -> Resolved:
    return plan_for(
        setting.target, opt_level=setting.opt_level, pipeline=setting.pipeline,
        options=setting.options, pass_options=setting.pass_options, registry=registry,
    )  # fmt: skip


# --- passes that fail -----------------------------------------------------------------------------


class _Last(Instrumentation):
    """Remembers the pass that failed."""

    def __init__(self) -> None:
        self.failed: str | None = None

    def after_pass_failed(self, step: Any, op: Any, run: Any, error: Any) -> None:
        self.failed = step.qualified


def failing_pass(registry: Registry, data: bytes, setting: Setting, upto: str) -> str | None:
    """The pass, of those up to `upto`, that fails or leaves invalid IR; "" if it has no name."""
    last = _Last()
    try:
        tile_core.compile(
            data, setting.target, opt_level=setting.opt_level, pipeline=setting.pipeline,
            options=setting.options, pass_options=setting.pass_options, without=setting.without,
            stop_after=upto, instrumentations=(last,), verify="pass", registry=registry,
            keep_stages=False,
        )  # fmt: skip
    except TileError:
        return last.failed or ""
    return None


def _failing_pass(
    data: bytes, setting: Setting, names: list[str], failure: Failure, worker: Worker,
    report: Report,
) -> Verdict:  # fmt: skip
    for name in names[-1:] if failure.kind == "compile" else names:
        found = worker.ask(failing_pass, data, setting, name)
        if isinstance(found, Failure):
            return Verdict((name,), failure, f"the compiler does not survive it: {found.detail}")
        if found is not None:
            return Verdict((found or name,), failure, "it fails, or leaves IR that is not valid")
        report(f"{name}: compiles")
    return Verdict((), failure, "all passes succeed: code generation fails")


# --- evaluating -----------------------------------------------------------------------------------


def differs_after(registry: Registry, data: bytes, setting: Setting, name: str) -> bool | None:
    """Whether the evaluator disagrees on what a pass leaves; None if that is not cuda_tile."""
    from tile_core.session import session_of

    module = read_bytecode(data)
    case = Case(module, launches_of(module))
    artifact = tile_core.compile(
        data, setting.target, opt_level=setting.opt_level, pipeline=setting.pipeline,
        options=setting.options, pass_options=setting.pass_options, without=setting.without,
        stop_after=name, registry=registry, keep_stages=False,
    )  # fmt: skip
    with session_of(registry) as session:
        parsed = session.parse(str(artifact.output))
        with session.context:
            try:
                after = from_mlir(parsed)
            except CompileError:
                return None
    verify(after)
    reference = Reference(case, ftz=setting.ftz)
    try:
        changed = Reference(Case(after, case.launches), ftz=setting.ftz)
    except EvaluationError:
        return True
    for launch, found, wanted in zip(case.launches, changed.after, reference.after, strict=True):
        for argument, a, b in zip(launch.arguments, found, wanted, strict=True):
            if argument.count is not None and len(differences(a, b, argument)):
                return True
    return False


def _evaluated(
    data: bytes, setting: Setting, names: list[str], worker: Worker, report: Report
) -> str | None:
    for name in names:
        found = worker.ask(differs_after, data, setting, name)
        if found is None or isinstance(found, Failure):
            return None
        report(f"{name}: the evaluator's result is {'another one' if found else 'the same'}")
        if found:
            return name
    return None


# --- leaving out ----------------------------------------------------------------------------------


def _left_out(
    data: bytes, setting: Setting, registry: Registry, failure: Failure, worker: Worker,
    report: Report,
) -> Verdict:  # fmt: skip
    steps = list(steps_of(setting, registry))
    doubtful: list[str] = []
    for taken in range(len(steps) + 1):
        name = steps[taken - 1].name if taken else "mandatory passes alone"
        tried = _with_steps(setting, registry, steps[:taken], steps[taken:])
        found: Failure | None = worker.ask(try_setting, data, tried)
        if found is not None and found.kind in ("compile", "crash", "timeout", "internal"):
            report(f"{name}: does not compile without what follows")
            doubtful.append(name)
            continue
        report(f"{name}: {'right' if found is None else found.kind}")
        if found is not None:
            culprits = (*doubtful, name) if taken else ()
            how = "with it, the result is wrong; without it and what follows, right"
            if not taken:
                how = "the mandatory passes alone give a wrong result; none can be left out"
            return Verdict(culprits, found, how)
        doubtful = []
    return Verdict((), failure, "no prefix of the pipeline gives a wrong result")


def steps_of(setting: Setting, registry: Registry) -> Iterator[Step]:
    """What a pipeline does beyond the mandatory passes: options first, then passes in order."""
    ours, least = _resolved(setting, registry), _mandatory(setting, registry)
    for option, value in ours.options.items():
        before = least.options.get(option, value)
        if before != value:
            yield Step(f"option {option} = {value} (not {before})", option=option, before=before)
    known = {call.name: call for call in least.passes()}
    for segment in ours.segments:
        for call in segment.passes:
            name = f"{segment.name}/{call.id}"
            if call.name not in known:
                yield Step(name, enabled=name)
                continue
            usual = _usual_options(known[call.name].options, least, ours)
            other = {k: v for k, v in usual.items() if call.options.get(k, v) != v}
            if other:
                yield Step(f"options of {name}", tuned=call.id, options=other)


def _mandatory(setting: Setting, registry: Registry) -> Resolved:
    return plan_for(setting.target, opt_level=0, registry=registry)


def _usual_options(options: Any, least: Resolved, ours: Resolved) -> dict[str, Any]:
    """A mandatory pass's options, but for those that follow from options of the pipeline."""
    follows = {(type(v), v) for k, v in least.options.items() if ours.options.get(k, v) != v}
    return {k: v for k, v in options.items() if (type(v), v) not in follows}


def _with_steps(
    setting: Setting, registry: Registry, taken: list[Step], left: list[Step]
) -> Setting:
    """The setting with only some steps."""
    del taken  # what is not left out is there
    options = dict(setting.options)
    options.update({step.option: step.before for step in left if step.option})
    passes = dict(setting.pass_options)
    for step in left:
        passes.update({f"{step.tuned}.{k}": v for k, v in step.options.items()})
    reduced = replace(setting, options=options, pass_options=passes)
    present = set(_resolved(replace(setting, options=options), registry).names())
    without = frozenset(step.enabled for step in left if step.enabled) & present
    return replace(reduced, without=setting.without | without)
