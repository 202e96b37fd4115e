"""Compiling from Python: `tile_core.compile(source, "sm_90") -> Artifact`."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tile_core import own_process
from tile_core.artifact import Artifact, Stage, Stages
from tile_core.blame import internal_error
from tile_core.diagnostics import (
    ConfigurationError,
    InputError,
    SourceLocation,
    TileError,
    nearest,
)
from tile_core.emit import EmitContext
from tile_core.frontend import FrontendContext, check_format, read_input
from tile_core.options import configured
from tile_core.pipeline.build import Plan, build
from tile_core.pipeline.instrument import Instrumentation, watchers
from tile_core.pipeline.merge import Merged
from tile_core.pipeline.resolve import PassCall, Request, Resolved, load, resolve
from tile_core.pipeline.timing import SERIALIZE, Clock, EmissionSpans
from tile_core.references import LazyEmitter, LazyFrontend
from tile_core.registry import Registry, default_registry
from tile_core.rehearsal import rehearse

if TYPE_CHECKING:
    from tile_core.session import Session

#: Stage kinds that every pipeline has; emitters add theirs ("llvm", "ptx", "cubin").
INPUT_STAGE, MLIR_STAGE = "tileir", "mlir"


def compile(  # noqa: A001 - the verb of the command line and of the field
    source: bytes | str,
    target: str,
    *,
    opt_level: int | None = None,
    pipeline: str | None = None,
    options: Mapping[str, Any] | None = None,
    pass_options: Mapping[str, Any] | None = None,
    emit: str = "cubin",
    stop_after: str | None = None,
    start_at: str | None = None,
    without: Collection[str] = (),
    instrumentations: Sequence[Instrumentation | str] = (),
    registry: Registry | None = None,
    verify: str = "segment",
    toolchain: Mapping[str, Path] | None = None,
    name: str = "-",
    keep_stages: bool = True,
    on_stage: Callable[[str, Stage], None] | None = None,
) -> Artifact:
    """Compile a program.

    Args:
        source: TileIR bytecode, or textual MLIR; with `start_at`, what that stage takes.
        target: "sm_90", ...
        opt_level: 0 to 3; 3 when neither this nor `pipeline` is given.
        pipeline: a registered pipeline or the path of a TOML file, instead of the level's.
        options: pipeline options, e.g. {"num-warps": 8}; strings are read as on a command line.
        pass_options: {"pass.option": value}.
        emit: the last stage to make: "tileir", "mlir", "mlir:SEGMENT", "mlir:PASS", "llvm",
            "ptx" or "cubin"; or what an emitter makes of one of these, such as "sass" and "obj".
        stop_after: a segment, pass or emitter to end with, instead of `emit`; or what an emitter
            makes ("llvm"). Where that is a segment's name as well, say "segment:NAME".
        start_at: a segment, pass or emitter to begin with; or what an emitter takes.
        without: passes to leave out, as "segment/id" (`Resolved.names`).
        instrumentations: `tile_core.pipeline.instrument.Instrumentation` objects, or names of
            registered ones.
        verify: "segment", "pass" or "none": when the IR is verified.
        toolchain: paths of tools, e.g. {"ptxas": Path(...)}.
        name: what messages call the input.
        keep_stages: keep a copy of the IR after every segment, for `Artifact.stages`.
        on_stage: called with each emitter's product as soon as it is there.

    Raises:
        TileError: `InputError`, `ConfigurationError` or `CompileError`.
    """
    clock = Clock()
    with clock.span("prepare", "pipeline"):
        registry = registry or default_registry()
        request = Request(target, opt_level, pipeline, options or {}, pass_options or {})
        ends = _Ends(emit, stop_after, start_at, frozenset(without))
        data = source.encode() if isinstance(source, str) else bytes(source)
        registry.target(target)
        if start_at is None:
            check_format(data, name, registry)  # before the options, as tileiras has it
        course = _course(request, registry, ends)
        asks_for_more = keep_stages or instrumentations or pass_options or without
        if start_at is not None or asks_for_more or not course.is_short_for(data, registry):
            course.make_ready(registry)
    job = _Job(
        registry, verify, watchers(instrumentations, registry), dict(toolchain or {}),
        name, keep_stages, on_stage,
    )  # fmt: skip
    return job.run(data, course, clock)


# --- what will happen ----------------------------------------------------------------------------


@dataclass(frozen=True)
class _Ends:
    """Which part of a pipeline runs."""

    emit: str
    stop_after: str | None = None
    start_at: str | None = None
    without: frozenset[str] = frozenset()


@dataclass
class _Course:
    """What a compilation does: passes, then emitters, and the stage to end with."""

    resolved: Resolved  # cut down to what runs
    reads: bool  # its input is MLIR, or what becomes that; else an emitter's
    emit: str
    plan: Plan | None = None  # the passes, when they are loaded
    ready: bool = False

    def make_ready(self, registry: Registry) -> None:
        """Load the passes and the emitters."""
        if not self.ready:
            _prepare(self.resolved, registry)
            # Only what runs is built, so what is cut off need not be installed.
            self.plan = build(self.resolved, registry) if self.reads else None
            self.ready = True

    def is_short_for(self, data: bytes, registry: Registry) -> bool:
        """Whether `data` holds nothing to compile, and the first emitter knows what that makes."""
        if self.ready or not self.reads or not self.resolved.emitters:
            return False  # where all is loaded, the short way only takes a second reading
        entry = registry.frontend_for(data)
        empty = entry.lazy.empty if entry and isinstance(entry.lazy, LazyFrontend) else None
        if empty is None or _lazy_emitter(self.resolved.emitters[0].name, registry).empty is None:
            return False
        return bool(empty.load()(data))


def plan_for(
    target: str,
    *,
    opt_level: int | None = None,
    pipeline: str | None = None,
    options: Mapping[str, Any] | None = None,
    pass_options: Mapping[str, Any] | None = None,
    emit: str | None = None,
    registry: Registry | None = None,
) -> Resolved:
    """The resolved pipeline that `compile` would run with these arguments.

    Args:
        emit: makes the chain of emitters reach that far, if a registered one can; `compile` cuts
            what is behind it.
    """
    registry = registry or default_registry()
    request = Request(target, opt_level, pipeline, options or {}, pass_options or {})
    return resolve(_reaching(load(request, registry), emit, registry), request, registry)


def _reaching(merged: Merged, emit: str | None, registry: Registry) -> Merged:
    """The pipeline with an emitter more, where one makes `emit` of what its chain makes."""
    made = [_lazy_emitter(name, registry).produces for name in merged.emit.chain]
    if emit is None or emit in made:
        return merged
    for entry in registry.entries("emitter"):
        lazy = _lazy_emitter(entry.lazy.name, registry)
        if lazy.produces == emit and lazy.consumes in made:
            chain = [*merged.emit.chain[: made.index(lazy.consumes) + 1], lazy.name]
            return replace(merged, emit=replace(merged.emit, chain=chain))
    return merged


def _course(request: Request, registry: Registry, ends: _Ends) -> _Course:
    """What to do; remembered for registered pipelines, whose files do not change."""
    if request.pipeline is not None and not registry.has("pipeline", request.pipeline):
        return _make_course(request, registry, ends)
    key = (
        request.target, request.opt_level, request.pipeline,
        tuple(sorted((k, type(v), v) for k, v in request.options.items())),
        tuple(sorted((k, type(v), v) for k, v in request.pass_options.items())),
        tuple((k, *v.items()) for k, v in request.instead.items()),
    )  # fmt: skip
    return _remembered(registry, key, ends)


@lru_cache(maxsize=64)
def _remembered(registry: Registry, key: tuple[Any, ...], ends: _Ends) -> _Course:
    target, level, pipeline, options, pass_options, instead = key
    request = Request(
        target, level, pipeline,
        {k: v for k, _, v in options}, {k: v for k, _, v in pass_options},
        {option: dict(values) for option, *values in instead},
    )  # fmt: skip
    return _make_course(request, registry, ends)


def _make_course(request: Request, registry: Registry, ends: _Ends) -> _Course:
    emit = ends.emit
    merged = load(request, registry)
    if merged.head.kind == "listing":
        raise ConfigurationError(
            f"pipeline '{merged.head.name}' is a listing for display and does not compile",
            hint="O0, O1, O2 and O3 do",
        )
    resolved = resolve(_reaching(merged, ends.stop_after or emit, registry), request, registry)
    kinds = [_lazy_emitter(call.name, registry) for call in resolved.emitters]
    if ends.stop_after is not None:
        emit = _stage_of(ends.stop_after, kinds, resolved)
    if ends.without:
        resolved = resolved.leaving_out(ends.without)
    reads = True
    if ends.start_at is not None:
        resolved, reads = _from(resolved, ends.start_at, kinds)
        kinds = kinds[len(kinds) - len(resolved.emitters) :]
    resolved = _until(resolved, emit, kinds)
    return _Course(resolved, reads, emit)


def _prepare(resolved: Resolved, registry: Registry) -> None:
    """Check the emitters' options, and start what takes long while the passes load and run."""
    # The last ones first: those that read MLIR import it, which takes longer than all the rest.
    for call in reversed(resolved.emitters):
        prewarm = getattr(make_emitter(call, registry), "prewarm", None)
        if prewarm is not None:
            prewarm()


def _lazy_emitter(name: str, registry: Registry) -> LazyEmitter:
    lazy = registry.entry("emitter", name).lazy
    assert isinstance(lazy, LazyEmitter)  # the registry checked what the hook returned
    return lazy


def _stage_of(stop_after: str, kinds: list[LazyEmitter], resolved: Resolved) -> str:
    for lazy in kinds:
        if stop_after in (lazy.name, lazy.produces):
            _check_unique(stop_after, resolved, lazy.name)
            return lazy.produces
    return stop_after if stop_after in (INPUT_STAGE, MLIR_STAGE) else f"mlir:{stop_after}"


def _check_unique(name: str, resolved: Resolved, emitter: str) -> None:
    """Refuse what names an emitter, or what it takes or makes, and a segment or pass as well."""
    for segment in resolved.segments:
        if segment.name == name:
            kind, mine = "segment", f"segment:{name}"
        elif calls := [c for c in segment.passes if name in (c.name, c.id)]:
            kind, mine = "pass", f"{segment.name}/{calls[0].id}"
        else:
            continue
        raise ConfigurationError(
            f"'{name}' is a {kind} of pipeline '{resolved.name}', and a stage of emitter "
            f"'{emitter}'",
            hint=f"say {mine} for the {kind}"
            + ("" if name == emitter else f", {emitter} for the emitter"),
        )


def _until(resolved: Resolved, emit: str, kinds: list[LazyEmitter]) -> Resolved:
    if emit == INPUT_STAGE:
        return replace(resolved, segments=(), emitters=())
    if emit == MLIR_STAGE:
        return replace(resolved, emitters=())
    if emit.startswith("mlir:"):
        return replace(resolved.upto(emit.removeprefix("mlir:")), emitters=())
    produced = [lazy.produces for lazy in kinds]
    if emit in produced:
        return replace(resolved, emitters=resolved.emitters[: produced.index(emit) + 1])
    known = [INPUT_STAGE, MLIR_STAGE, "mlir:PASS", *produced]
    close = nearest(emit, known)
    raise ConfigurationError(
        f"pipeline '{resolved.name}' cannot emit '{emit}'",
        notes=(f"it makes: {', '.join(known)}",),
        hint=f"did you mean '{close}'?" if close else None,
    )


def _from(resolved: Resolved, start_at: str, kinds: list[LazyEmitter]) -> tuple[Resolved, bool]:
    """The pipeline from `start_at` on, and whether its input is MLIR."""
    for at, lazy in enumerate(kinds):
        if start_at in (lazy.name, lazy.consumes):
            _check_unique(start_at, resolved, lazy.name)
            rest = replace(resolved, segments=(), emitters=resolved.emitters[at:])
            return rest, lazy.consumes == MLIR_STAGE
    return resolved.since(start_at), True


# --- doing it ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Job:
    """A compilation, but for its input and its course."""

    registry: Registry
    verify: str
    instrumentations: Sequence[Instrumentation]
    toolchain: dict[str, Path]
    name: str
    keep_stages: bool
    on_stage: Callable[[str, Stage], None] | None

    def run(self, data: bytes, course: _Course, clock: Clock) -> Artifact:
        own_process.loaded()
        stages = Stages()
        artifact = Artifact(
            course.resolved.target, course.resolved.options, course.emit, stages, clock.root
        )
        with _place_named(self.name), ExitStack() as stack:
            product: Any = data
            if course.plan is not None:
                with clock.span("context", "pipeline"):
                    from tile_core.session import session_of

                    session = stack.enter_context(session_of(self.registry))
                product = self._passes(data, course, artifact, clock, session)
                stack.enter_context(session.context)
            elif course.resolved.emitters and not course.reads:
                first = course.resolved.emitters[0]
                kind = _lazy_emitter(first.name, self.registry).consumes
                product = _decoded(data, self.name, first, kind)
            self._emit(product, course, artifact, clock)
        clock.stop()
        return artifact

    def _passes(
        self, data: bytes, course: _Course, artifact: Artifact, clock: Clock, session: Session
    ) -> Any:
        from tile_core.pipeline.run import Run

        plan = course.plan
        assert plan is not None
        with clock.span("read", "frontend"):
            rehearse(
                data, self.registry, course.resolved,
                verify=self.verify, watchers=self.instrumentations,
            )  # fmt: skip
            cx = FrontendContext(plan.target, self.name, plan.options)
            module = read_input(data, cx, session)
        self._keep(artifact, INPUT_STAGE, module, last=not plan.segments)
        run = Run(
            plan,
            session,
            module,
            instrumentations=self.instrumentations,
            verify=self.verify,
            clock=clock,
            left=cx.left,
            on_segment=lambda name, module: self._keep(artifact, f"mlir:{name}", module),
        )
        artifact.remarks, artifact.statistics = run.remarks, run.statistics
        run.execute()
        self._keep(artifact, MLIR_STAGE, module, last=True)
        if course.emit.startswith("mlir:"):
            self._keep(artifact, course.emit, module, last=True)
        return module

    def _keep(self, artifact: Artifact, name: str, module: Any, *, last: bool = False) -> None:
        if not (self.keep_stages or artifact.emit == name):
            return
        operation = module.operation
        # A later segment changes the module in place; a clone is quick, printing is not.
        kept = operation if last else operation.clone()
        artifact.stages.add(name, lambda: _printed(kept, module))

    def _emit(self, product: Any, course: _Course, artifact: Artifact, clock: Clock) -> None:
        with clock.span(SERIALIZE, "scope"):
            self._emit_all(product, course, artifact, EmissionSpans(clock))

    def _emit_all(
        self, product: Any, course: _Course, artifact: Artifact, spans: EmissionSpans
    ) -> None:
        cx = EmitContext(artifact.target, artifact.options, self.toolchain)
        calls = course.resolved.emitters
        if course.reads and course.plan is None:
            product = self._of_nothing(calls[0], cx, artifact)
            calls = calls[1:]
        for call in calls:
            emitter = make_emitter(call, self.registry)
            with spans.emitter(call.name, getattr(emitter, "scope", "")):
                try:
                    product = emitter.emit(product, cx)
                except TileError:
                    raise
                except Exception as error:
                    owner = self.registry.owner("emitter", call.name)
                    what = f"emitter '{call.name}'"
                    raise internal_error(what, error, self.registry, owner=owner) from error
            kind = _lazy_emitter(call.name, self.registry).produces
            artifact.stages.add(kind, product)
            artifact.metadata[call.name] = getattr(emitter, "metadata", {})
            artifact.remarks += getattr(emitter, "remarks", ())
            if self.on_stage is not None:
                self.on_stage(kind, product)
        spans.close()

    def _of_nothing(self, call: PassCall, cx: EmitContext, artifact: Artifact) -> Any:
        """What the first emitter makes of a program without anything to compile."""
        lazy = _lazy_emitter(call.name, self.registry)
        assert lazy.empty is not None  # `_Course.is_short_for`
        product = lazy.empty.load()(cx)
        artifact.stages.add(lazy.produces, product)
        artifact.metadata[call.name] = {}
        if self.on_stage is not None:
            self.on_stage(lazy.produces, product)
        return product


def make_emitter(call: PassCall, registry: Registry) -> Any:
    """The emitter that `call` names, with its options.

    Raises:
        ConfigurationError: unknown emitter or option.
    """
    known = registry.load("emitter", call.name)
    return configured(known, f"emitter '{call.name}'", call.options)


def _printed(operation: Any, module: Any) -> str:
    del module  # keeps the operations of `operation` alive
    return operation.get_asm(enable_debug_info=True) + "\n"


#: How MLIR begins, behind comments and aliases; `module asm` is LLVM's.
_MLIR = re.compile(
    r"(?:\s|//[^\n]*|[#!][\w.]+ = [^\n]*)*"
    r'(?:"?builtin\.module\b|module\b(?!\s+asm\b)|"?(?:gpu\.module|func\.func|llvm\.func)\b)'
)


def _decoded(data: bytes, name: str, taker: PassCall, kind: str) -> str:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"'{name}' is not text: {error.reason}") from error
    if _MLIR.match(text):
        raise InputError(
            f"'{name}' is MLIR, and emitter '{taker.name}' takes {kind}",
            hint="start at the emitter that takes mlir, or at a segment or pass",
        )
    return text


@contextmanager
def _place_named(name: str) -> Iterator[None]:
    """Give errors in textual input, whose locations say "-", the input's name."""
    try:
        yield
    except TileError as error:
        for one in error.every():
            if isinstance(one.where, SourceLocation) and one.where.file == "-":
                one.where = SourceLocation(name, one.where.line, one.where.column)
        raise
