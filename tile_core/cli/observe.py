"""Options that make a run visible: printing, timing, statistics, remarks, reproducers."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import rich_click as click

from tile_core.artifact import Artifact, Stage
from tile_core.cli.output import write_file
from tile_core.diagnostics import ConfigurationError
from tile_core.remarks import CATEGORIES, KINDS

F = TypeVar("F", bound=Callable[..., Any])


def observe_options(command: F) -> F:
    """Adds the options; their values arrive as keyword arguments for `observers`."""
    for decorate in reversed(
        (
            click.option("--print-ir-before", multiple=True, metavar="PASS",
                         help="Print the IR before a pass; 'all' for every pass."),
            click.option("--print-ir-after", multiple=True, metavar="PASS",
                         help="Print the IR after a pass; 'all' for every pass."),
            click.option("--print-ir-after-change", is_flag=True,
                         help="Print the IR after passes that changed it."),
            click.option("--print-ir-after-failure", is_flag=True,
                         help="Print the IR after a pass that failed."),
            click.option("--print-ir-module-scope", is_flag=True,
                         help="Print whole modules instead of what a pass runs on."),
            click.option("--filter-print-funcs", multiple=True, metavar="NAME,NAME",
                         help="Print only the IR of these functions."),
            click.option("--diff", is_flag=True, help="Print what each pass changed, as a diff."),
            click.option("--pretty", is_flag=True, help="Print IR for reading: short locations, "
                         "names for long types."),
            click.option("--dump-dir", type=click.Path(path_type=Path),
                         help="Write the IR after every pass, a file each, and the final stages."),
            click.option("--time-passes", is_flag=True, help="Report the time of every pass."),
            click.option("--timing-display", type=click.Choice(["list", "tree", "json"]),
                         default="list", show_default=True, help="Form of --time-passes."),
            click.option("--trace", metavar="FILE.json", help="Write a Chrome trace."),
            click.option("--statistics", is_flag=True, help="Print what the passes counted."),
            click.option("--remarks", metavar="FILE",
                         help="Say what was chosen for each load, store, product and loop, and why "
                         "nothing better: '-' prints it to standard error, a FILE gets YAML, a "
                         "FILE.json JSON."),
            click.option("--remarks-only", multiple=True, metavar="KIND|CATEGORY",
                         type=click.Choice([*KINDS, *CATEGORIES]),
                         help="Only such remarks, several times if need be: passed, missed, "
                         "failed, analysis, warning; memory, tensorcore, layout, ..."),
            click.option("--reproducer", metavar="FILE",
                         help="If a pass fails, write what it takes to replay that."),
            click.option("--instrument", multiple=True, metavar="NAME[=FILE]",
                         help="Let a registered instrumentation watch the run, such as "
                         "schedule-trace=FILE (`tilec plugins list`)."),
            click.option("--opt-bisect-limit", type=click.IntRange(0), metavar="N",
                         help="Leave out all but the first N passes that -O0 does without."),
            click.option("--opt-bisect-funcs", multiple=True, metavar="NAME,NAME",
                         help="Count and leave out passes on these functions alone."),
            click.option("--debug-counter", multiple=True, metavar="TAG=FIRST-LAST",
                         help="Of a pass, or a rewrite as PASS.RULE, let only these times happen."),
            click.option("--log-actions-to", metavar="FILE",
                         help="Write down every pass and every rewrite that is tried; '-' is "
                         "standard error."),
            click.option("--verify-each", is_flag=True, help="Verify the IR after every pass."),
            click.option("--no-verify", is_flag=True, help="Never verify the IR."),
        )
    ):  # fmt: skip
        command = decorate(command)
    return command


@dataclass
class Observers:
    """What watches a run, and what is reported after it."""

    instrumentations: list[Any] = field(default_factory=list)
    verify: str = "segment"
    time_passes: bool = False
    timing_display: str = "list"
    trace: str | None = None
    statistics: bool = False
    remarks: str | None = None
    remarks_only: tuple[str, ...] = ()
    dump_dir: Path | None = None
    pretty: bool = False

    @property
    def passes_are_watched(self) -> bool:
        """Whether passes have to run, for something that only they can tell."""
        reports = (self.instrumentations, self.time_passes, self.trace, self.statistics)
        return any(reports) or self.dump_dir is not None

    def report(self, artifact: Artifact) -> None:
        """Print and write what was asked for."""
        from tile_core.pipeline import timing
        from tile_core.pipeline.report import statistics_text

        root = artifact.timings
        if self.time_passes:
            form = {"list": timing.as_list, "tree": timing.as_tree, "json": timing.as_json}
            sys.stderr.write(form[self.timing_display](root))
        if self.trace is not None:
            write_file(self.trace, timing.as_chrome_trace(root))
        if self.statistics:
            sys.stderr.write(statistics_text(artifact.statistics))
        if self.remarks is not None:
            self._remark(artifact)

    def _remark(self, artifact: Artifact) -> None:
        from tile_core import remarks

        path, said = str(self.remarks), remarks.chosen(artifact.remarks, self.remarks_only)
        if path == "-":
            sys.stderr.write(remarks.as_listing(said))
        elif path.endswith(".json"):
            write_file(path, json.dumps(remarks.as_json(said), indent=1) + "\n")
        else:
            write_file(path, remarks.as_yaml(said))

    def on_stage(self, kind: str, product: Stage) -> None:
        """Keep what an emitter made, also when a later one fails."""
        if self.dump_dir is not None:
            suffix = {"llvm": "ll"}.get(kind, kind)
            write_file(str(self.dump_dir / f"output.{suffix}"), product)


def observers(values: Mapping[str, Any]) -> Observers:
    """What the values of `observe_options` ask for.

    Raises:
        ConfigurationError: options that exclude each other.
    """
    if values["verify_each"] and values["no_verify"]:
        raise ConfigurationError("--verify-each and --no-verify exclude each other")
    if values["remarks"] in ("all", *KINDS, *CATEGORIES):
        # Which ones, as tileiras has it; what is meant here is where they go.
        word = values["remarks"]
        some = "" if word == "all" else f" --remarks-only {word}"
        raise ConfigurationError(
            f"--remarks {word}: it takes '-' or a file", hint=f"--remarks -{some} prints them"
        )
    found = Observers(
        verify="pass" if values["verify_each"] else "none" if values["no_verify"] else "segment",
        time_passes=values["time_passes"],
        timing_display=values["timing_display"],
        trace=values["trace"],
        statistics=values["statistics"],
        remarks=values["remarks"],
        remarks_only=values["remarks_only"],
        dump_dir=values["dump_dir"],
        pretty=values["pretty"],
    )
    found.instrumentations = _instrumentations(values)
    return found


def _instrumentations(values: Mapping[str, Any]) -> list[Any]:
    from tile_core.pipeline.dump import DiffIR, DumpDirectory, PrintIR
    from tile_core.pipeline.instrument import Instrumentation
    from tile_core.pipeline.reproducer import Reproducer

    found: list[Any] = list(values["instrument"])
    if values["reproducer"]:
        found.append(Reproducer(values["reproducer"]))
    printing = [f"print_ir_{when}" for when in ("before", "after", "after_change", "after_failure")]
    if any(values[name] for name in printing):
        found.append(
            PrintIR(
                before=values["print_ir_before"],
                after=values["print_ir_after"],
                after_change=values["print_ir_after_change"],
                after_failure=values["print_ir_after_failure"],
                module_scope=values["print_ir_module_scope"],
                readable=values["pretty"],
                functions=_names(values["filter_print_funcs"]),
            )
        )
    if values["diff"]:
        found.append(DiffIR())
    if values["dump_dir"] is not None:
        found.append(DumpDirectory(values["dump_dir"]))
    found += _over_actions(values)
    if (values["time_passes"] or values["trace"]) and not found:
        # A watcher keeps upstream passes apart, so that each has its own time.
        found.append(Instrumentation())
    return found


def _over_actions(values: Mapping[str, Any]) -> list[Any]:
    """Limits and counters first, so that the log has what they let happen behind what they say."""
    from tile_core.pipeline.actions import BisectLimit, DebugCounter, LogActions

    found: list[Any] = []
    if values["opt_bisect_limit"] is not None:
        functions = _names(values["opt_bisect_funcs"])
        found.append(BisectLimit(values["opt_bisect_limit"], functions))
    elif values["opt_bisect_funcs"]:
        raise ConfigurationError("--opt-bisect-funcs needs --opt-bisect-limit")
    if values["debug_counter"]:
        found.append(DebugCounter(values["debug_counter"]))
    if values["log_actions_to"]:
        found.append(LogActions(values["log_actions_to"]))
    return found


def _names(texts: tuple[str, ...]) -> list[str]:
    return [name for text in texts for name in text.split(",") if name]
