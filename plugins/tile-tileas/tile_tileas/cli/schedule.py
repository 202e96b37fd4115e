"""`tilec schedule`: what a scheduler makes of a program's loops, to look at and to edit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import rich_click as click

from tile_core.cli.arguments import completing
from tile_core.cli.output import STDIO, Output, read_bytes
from tile_core.diagnostics import CompileError, ConfigurationError, UsageError

_PASS = "tileas-generate-schedule-constraints"
#: How a result is written: option -> file ending it is meant for.
_FORMATS = ("text", "json", "svg", "html", "trace")


@click.command("schedule")
@click.argument("source", metavar="INPUT")
@click.option(
    "--gpu-name",
    default="sm_90",
    show_default=True,
    shell_complete=completing("target"),
    help="GPU to schedule for.",
)
@click.option(
    "--scheduler",
    default="cost",
    show_default=True,
    shell_complete=completing("scheduler"),
    help="Scheduler to ask.",
)
@click.option(
    "--with",
    "other",
    metavar="NAME",
    shell_complete=completing("scheduler"),
    help="A second scheduler, to compare with.",
)
@click.option("--stages", default=0, show_default=True, help="Iterations in flight; 0: no bound.")
@click.option("--machine-model", default="sm", show_default=True, help="Resources and times.")
@click.option("--loop", "wanted", metavar="NAME", help='Only one body, e.g. "kernel/loop1".')
@click.option("--schedule", "given", metavar="FILE", help="Take an edited JSON file, and check it.")
@click.option(
    "--format", "kind", type=click.Choice(_FORMATS), default="text", show_default=True,
    help="What to write; trace is a Chrome trace of every decision.",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
@click.option("-o", "--output", default=STDIO, metavar="FILE", help="Output file [default: -].")
@click.pass_obj
def schedule(
    app: Any,
    source: str,
    gpu_name: str,
    scheduler: str,
    other: str | None,
    stages: int,
    machine_model: str,
    wanted: str | None,
    given: str | None,
    kind: str,
    as_json: bool,
    output: str,
) -> None:
    """Schedule the loops of INPUT and show them: operations by cycle, units over cycles.

    Nothing is compiled; with `--schedule FILE` the starts of a file are shown and checked instead
    of a scheduler's. To compile with them: -D tileas-generate-schedule-constraints.schedule=FILE.
    """
    if stages < 0:
        raise UsageError("--stages must not be negative")
    if as_json:
        kind = "json"
    if other is not None and (kind != "text" or given is not None):
        raise UsageError("--with compares two schedulers, and only as text")
    graphs = graphs_of_program(
        app.registry, read_bytes(source), gpu_name, stages, machine_model,
        trace=kind == "trace", name=source,
    )  # fmt: skip
    names = [graph.name for graph, _ in graphs]
    if wanted is not None:
        if wanted not in names:
            raise UsageError(f"there is no body '{wanted}'", hint=f"there are {', '.join(names)}")
        graphs = [(graph, model) for graph, model in graphs if graph.name == wanted]
    if given is not None:
        bodies = _from_file(graphs, given, names)
    else:
        bodies = [_scheduled(app, graph, model, scheduler) for graph, model in graphs]
    text = _written(bodies, kind)
    if other is not None:
        from tile_sched.view.text import comparison

        against = [_scheduled(app, graph, model, other) for graph, model in graphs]
        text = comparison(list(zip(bodies, against, strict=True))) + "\n"
    with Output(output) as file:
        file.commit(text)


def graphs_of_program(
    registry: Any,
    program: bytes,
    gpu_name: str,
    stages: int,
    machine_model: str = "sm",
    *,
    trace: bool = False,
    name: str = "-",
) -> list[tuple[Any, Any]]:
    """The (graph, machine) of every body of a program, as the scheduling pass of -O3 sees them."""
    from tile_core.api import compile as compile_program
    from tile_core.pipeline.instrument import Instrumentation
    from tile_core.sched import ScheduleOptions
    from tile_tileas.passes.schedule import graphs_of

    found: list[tuple[Any, Any]] = []

    class Collect(Instrumentation):
        """Makes the graphs before the pass that schedules them."""

        name = "collect-graphs"

        def before_pass(self, step: Any, op: Any, run: Any) -> None:
            if step.name == _PASS:
                options = ScheduleOptions(max_stages=stages, trace=trace)
                staged = step.work.pipeline_strategy != "none"
                bodies = graphs_of(op, run.context, options, machine_model, staged=staged)
                found.extend((graph, model) for _, graph, model in bodies)

    compile_program(
        program, gpu_name, opt_level=3, emit=f"mlir:{_PASS}", registry=registry,
        instrumentations=[Collect()], name=name, keep_stages=False,
    )  # fmt: skip
    return found


def _scheduled(app: Any, graph: Any, model: Any, name: str) -> Any:
    from tile_core.sched import Infeasible
    from tile_core.sched.document import Body

    found = app.registry.load("scheduler", name)().schedule(graph, model)
    if isinstance(found, Infeasible):
        raise CompileError(f"'{graph.name}' cannot be scheduled by '{name}': {found.reason}")
    body = Body(graph.name, graph.ops[-1].where, graph, model, name, found)
    _check(body, f"scheduler '{name}'")
    return body


def _from_file(graphs: Sequence[tuple[Any, Any]], path: str, names: list[str]) -> list[Any]:
    """Bodies with the starts of a file; those that are not in it are left out."""
    from tile_core.sched.document import from_json

    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"cannot read '{path}': {error}") from error
    edited = {body.name: body for body in from_json(text, path)}
    unknown = sorted(set(edited) - set(names))
    if unknown:
        raise ConfigurationError(f"the program has no body '{unknown[0]}'", where=path)
    bodies = []
    for graph, model in graphs:
        if graph.name in edited:
            body = replace(edited[graph.name], graph=graph, model=model, scheduler=path)
            _check(body, "it")
            bodies.append(body)
    return bodies


def _check(body: Any, who: str) -> None:
    from tile_core.sched import IncompleteError, violations

    try:
        wrong = next(violations(body.graph, body.model, body.schedule), None)
    except IncompleteError as error:
        raise CompileError(f"the schedule of '{body.name}' is refused: {who} {error}") from error
    if wrong is not None:
        raise CompileError(
            f"the schedule of '{body.name}' is refused: {who} {wrong.message}",
        )


def _written(bodies: Sequence[Any], kind: str) -> str:
    from tile_sched.view import page, text, trace

    from tile_core.sched.document import to_json

    if kind == "json":
        return to_json(bodies) + "\n"
    if kind == "svg":
        if len(bodies) != 1:
            names = ", ".join(body.name for body in bodies)
            raise UsageError("an SVG shows one body", hint=f"choose with --loop: {names}")
        return page.svg(bodies[0])
    if kind == "html":
        return page.html(bodies)
    if kind == "trace":
        return trace.chrome_trace(bodies) + "\n"
    parts = []
    for body in bodies:
        notes = [f"note: {note}" for note in body.schedule.notes]
        parts.append("\n".join([text.summary(body), *notes, "", text.table(body), "",
                                text.chart(body), ""]))  # fmt: skip
    return "\n".join(parts)


def shown(app: Any, source: str, gpu_name: str, scheduler: str) -> list[tuple[str, str]]:
    """Each body of a program, and its schedule as the command prints it."""
    graphs = graphs_of_program(app.registry, read_bytes(source), gpu_name, 0, name=source)
    bodies = [_scheduled(app, graph, model, scheduler) for graph, model in graphs]
    return [(body.name, _written([body], "text")) for body in bodies]
