"""Running passes over textual MLIR, as `tilec opt` does it, and checking expected diagnostics."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tile_core.artifact import Artifact, Stages
from tile_core.diagnostics import InputError, SourceLocation, TileError
from tile_core.frontend import FrontendContext, read_text
from tile_core.pipeline.build import Plan, build
from tile_core.pipeline.instrument import Instrumentation, watchers
from tile_core.pipeline.reproducer import is_reproducer, read_reproducer
from tile_core.pipeline.resolve import Request, Resolved, load, resolve
from tile_core.pipeline.text import parse_list, parse_text
from tile_core.pipeline.tileir_text import DEFAULT_LEVEL, TileirText, is_tileir, parse_tileir
from tile_core.pipeline.timing import Clock
from tile_core.registry import Registry
from tile_core.rehearsal import rehearse

SPLITTER = "// -----"


@dataclass(frozen=True)
class Selection:
    """What to run: at most one of `passes`, `pass_pipeline`, `pipeline`, `reproducer`."""

    passes: str | None = None
    pass_pipeline: str | None = None
    pipeline: str | None = None
    opt_level: int | None = None
    stop_after: str | None = None
    start_at: str | None = None
    reproducer: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)
    pass_options: Mapping[str, Any] = field(default_factory=dict)
    target: str = "sm_100"
    #: Whether somebody asked for that target; if not, a `tileir{}` text may.
    target_given: bool = True

    def count(self) -> int:
        """How many of the exclusive choices are made."""
        chosen = (self.passes, self.pass_pipeline, self.pipeline, self.reproducer or None)
        return sum(choice is not None for choice in chosen)


@dataclass(frozen=True)
class OptJob:
    """A selection and how to run it."""

    registry: Registry
    selection: Selection = Selection()
    name: str = "-"
    instrumentations: tuple[Instrumentation | str, ...] = ()
    verify: str = "pass"
    generic: bool = False
    debug_info: bool = False


@dataclass(frozen=True)
class OptResult:
    """The text that came out, and what the run recorded."""

    text: str
    artifact: Artifact


def optimize(text: str, first_line: int, job: OptJob) -> OptResult:
    """Run the job's passes over one module.

    Args:
        first_line: how many lines of the file come before `text`, for messages.

    Raises:
        TileError: the text is no module, or a pass failed.
    """
    from tile_core.pipeline.run import Run
    from tile_core.session import session_of

    resolved = resolved_of(text, job)
    plan = build(resolved, job.registry)
    seen = watchers((*job.instrumentations, *_watchers_of(job.selection)), job.registry)
    rehearse(text.encode(), job.registry, resolved, verify=job.verify, watchers=seen)
    clock = Clock()
    artifact = Artifact(plan.target, plan.options, "mlir", Stages(), clock.root)
    with session_of(job.registry) as session:
        try:
            module = read_text(text, FrontendContext(plan.target), session)
            run = Run(
                plan, session, module,
                instrumentations=seen, verify=job.verify, clock=clock,
            )  # fmt: skip
            artifact.remarks, artifact.statistics = run.remarks, run.statistics
            run.execute()
        except TileError as error:
            for one in error.every():
                one.where = _moved(one.where, first_line, job.name)
            raise
        asm = module.operation.get_asm(
            print_generic_op_form=job.generic, enable_debug_info=job.debug_info
        )
    clock.stop()
    artifact.stages.add("mlir", asm + "\n")
    return OptResult(asm + "\n", artifact)


def plan_of(text: str, job: OptJob) -> Plan:
    """What the job runs on `text`."""
    return build(resolved_of(text, job), job.registry)


def resolved_of(text: str, job: OptJob) -> Resolved:
    """The pipeline that the job runs on `text`."""
    chosen = job.selection
    if chosen.pass_pipeline is not None and is_tileir(chosen.pass_pipeline):
        chosen = _of_tileir(chosen, parse_tileir(chosen.pass_pipeline))
    if chosen.pipeline is not None or (chosen.opt_level is not None and chosen.count() == 0):
        request = Request(
            chosen.target, chosen.opt_level, chosen.pipeline, chosen.options, chosen.pass_options
        )
        resolved = resolve(load(request, job.registry), request, job.registry)
        if chosen.start_at is not None:
            resolved = resolved.since(chosen.start_at)
        if chosen.stop_after is not None:
            resolved = resolved.upto(chosen.stop_after)
        return resolved
    return _free(text, chosen, job.registry)


def _watchers_of(chosen: Selection) -> tuple[str, ...]:
    """The instrumentations that a `tileir{}` text asks for."""
    text = chosen.pass_pipeline
    return parse_tileir(text).instrumentations if text is not None and is_tileir(text) else ()


def _of_tileir(chosen: Selection, asked: TileirText) -> Selection:
    """The level that a `tileir{}` text stands for; the command line's own options go before it."""
    level = asked.opt_level if asked.opt_level is not None else DEFAULT_LEVEL
    target = chosen.target if chosen.target_given or asked.target is None else asked.target
    return replace(
        chosen,
        pass_pipeline=None,
        opt_level=level if chosen.opt_level is None else chosen.opt_level,
        options={**asked.options, **chosen.options},
        pass_options={**asked.pass_options, **chosen.pass_options},
        target=target,
    )


def _free(text: str, chosen: Selection, registry: Registry) -> Resolved:
    """A pipeline given on the command line; its options are those of the -O level's file."""
    if chosen.reproducer:
        if not is_reproducer(text):
            raise InputError("the input does not start with the comments of a reproducer")
        about = read_reproducer(text)
        segments = parse_text(about.pipeline, registry)
        return Resolved("reproducer", registry.target(about.target), about.options, segments)
    if chosen.pass_pipeline is not None:
        segments = parse_text(chosen.pass_pipeline, registry)
    else:
        segments = parse_list(chosen.passes, registry) if chosen.passes else ()
    request = Request(chosen.target, chosen.opt_level, None, chosen.options)
    base = resolve(load(request, registry), request, registry)
    return replace(base, name="command line", segments=segments, emitters=())


def split_input(text: str) -> list[tuple[str, int]]:
    """The parts between splitter lines, each with the number of lines before it."""
    parts: list[tuple[str, int]] = []
    lines: list[str] = []
    first = 0
    for number, line in enumerate(text.splitlines(keepends=True), start=1):
        if line.rstrip() == SPLITTER:
            parts.append(("".join(lines), first))
            lines, first = [], number
        else:
            lines.append(line)
    parts.append(("".join(lines), first))
    return parts


def _moved(where: SourceLocation | str | None, lines: int, name: str) -> Any:
    """A place in a part of the input, as a place in the whole file."""
    if not isinstance(where, SourceLocation) or where.file != "-":
        return where
    return SourceLocation(name, where.line + lines if where.line else 0, where.column)


# --- expected diagnostics --------------------------------------------------------------------

_EXPECTED = re.compile(
    r"//.*?expected-(?P<kind>error|warning|remark|note)\s*"
    r"(?:@(?P<at>[+-]\d+|above|below|unknown))?\s*\{\{(?P<text>.*?)\}\}"
)


@dataclass(frozen=True)
class _Diagnostic:
    kind: str
    line: int | None  # None matches anywhere
    text: str


def verify_diagnostics_of(text: str, first_line: int, job: OptJob) -> list[str]:
    """Problems: expected diagnostics that did not come, and those that came unexpected."""
    wanted = _expected(text)
    seen = _observed(text, job)
    problems: list[str] = []
    for want in wanted:
        hit = next((s for s in seen if _matches(want, s)), None)
        if hit is not None:
            seen.remove(hit)
            continue
        place = f"{job.name}:{(want.line or 0) + first_line}"
        problems.append(f'{place}: error: expected {want.kind} "{want.text}" was not produced')
    for extra in seen:
        if extra.kind == "error":
            place = f"{job.name}:{(extra.line or 0) + first_line}"
            problems.append(f"{place}: error: unexpected {extra.kind}: {extra.text}")
    return problems


def _expected(text: str) -> list[_Diagnostic]:
    found: list[_Diagnostic] = []
    code_lines = [not line.strip().startswith("//") for line in text.splitlines()]
    for number, line in enumerate(text.splitlines(), start=1):
        for match in _EXPECTED.finditer(line):
            at = match["at"]
            if at == "unknown":
                found.append(_Diagnostic(match["kind"], None, match["text"]))
                continue
            place = number + _offset(at, number, code_lines)
            found.append(_Diagnostic(match["kind"], place, match["text"]))
    return found


def _offset(at: str | None, number: int, code_lines: list[bool]) -> int:
    """How far from the comment's line the diagnostic is: above and below skip comments."""
    if at is None:
        return 0
    if at not in ("above", "below"):
        return int(at)
    step = -1 if at == "above" else 1
    place = number + step
    while 1 <= place <= len(code_lines) and not code_lines[place - 1]:
        place += step
    return place - number


def _observed(text: str, job: OptJob) -> list[_Diagnostic]:
    quiet = replace(job, name="-")
    found: list[_Diagnostic] = []
    try:
        remarks = optimize(text, 0, quiet).artifact.remarks
    except TileError as error:
        for one in error.every():
            line = one.where.line if isinstance(one.where, SourceLocation) else None
            found.append(_Diagnostic("error", line or None, one.message))
            found += [_Diagnostic("note", None, note) for note in one.notes]
        return found
    for remark in remarks:
        kind = "warning" if remark.kind == "warning" else "remark"
        found.append(_Diagnostic(kind, remark.where.line if remark.where else None, remark.message))
    return found


def _matches(want: _Diagnostic, seen: _Diagnostic) -> bool:
    same_line = want.line is None or seen.line is None or want.line == seen.line
    return want.kind == seen.kind and same_line and want.text in seen.text
