"""`tilec fuzz`, `tilec reduce` and `tilec bisect`."""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

import rich_click as click

from tile_core.cli.arguments import completing, pass_settings_of, pipeline_options, settings_of
from tile_core.cli.as_json import json_option, print_json
from tile_core.cli.output import read_bytes
from tile_core.cli.progress import Progress
from tile_core.diagnostics import ExitCode, TileError, UsageError, nearest
from tile_fuzz.favoured import FAVOURED
from tile_fuzz.witness import REFUSED, WITNESSES

#: Programs between two signs of life.
_OFTEN = 100
_TARGETS = ("sm_80", "sm_90", "sm_100", "sm_120")


def _generator_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for decorate in (
        click.option("--avoid", multiple=True, metavar="NAME",
                     help="Leave out an operation, an element type or another feature."),
        click.option("--gaps", is_flag=True,
                     help="Also draw what the compiler is known to refuse."),
        click.option("--operations", default=24, show_default=True,
                     help="Statements of a kernel."),
        click.option("--favour", multiple=True, type=click.Choice(FAVOURED),
                     help="Draw more of these, and loops of more turns."),
        click.option("--elements", default=1024, show_default=True, help="Elements of a tile."),
        click.option("--patience", default=300.0, show_default=True, metavar="SECONDS",
                     help="Time that one program may take."),
    ):  # fmt: skip
        command = decorate(command)
    return command


def _launch_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """How to launch a program without a recipe: the words of `tilec run`."""
    for decorate in (
        click.option("--with-shape", is_flag=True, help="Pass arrays as cuTile does: address, "
                     "shape, strides."),
        click.option("--arg", "args", multiple=True, metavar="SPEC",
                     help="f32=1.5, f32[128,64]=random, f32[64]=bits@7 or @file.npy, in order; "
                     "~ in front of results that are approximations."),
        click.option("--grid", metavar="X,Y,Z", help="Tile blocks, where the program has no "
                     "recipe."),
        click.option("--entry", metavar="NAME", help="The kernel, if there are several."),
    ):  # fmt: skip
        command = decorate(command)
    return command


@click.command("fuzz")
@click.option(
    "--seeds",
    default="0:100",
    show_default=True,
    metavar="FIRST:LAST",
    help="Programs to try; LAST is not one of them.",
)
@click.option("--jobs", default=1, show_default=True, help="Processes.")
@click.option(
    "--gpu-name",
    "targets",
    multiple=True,
    metavar="SM",
    shell_complete=completing("target"),
    help=f"Architecture, several times if need be [default: {', '.join(_TARGETS)}].",
)
@click.option(
    "-O",
    "--opt-level",
    "levels",
    multiple=True,
    type=int,
    metavar="LEVEL",
    help="Level, several times if need be [default: all].",
)
@click.option(
    "--pipeline",
    metavar="NAME|FILE.toml",
    shell_complete=completing("pipeline"),
    help="A pipeline instead of the levels'.",
)
@click.option(
    "--set", "settings", multiple=True, metavar="OPTION=VALUE", help="Set a pipeline option."
)
@click.option(
    "-D",
    "pass_settings",
    multiple=True,
    metavar="PASS.OPTION=VALUE",
    help="Set an option of a pass or emitter.",
)
@click.option("--every", is_flag=True, help="Every level on every architecture.")
@click.option(
    "--each",
    multiple=True,
    metavar="OPTION=V1,V2,...",
    help="Compile once with each of these values; given again, with each combination.",
)
@json_option
@click.option("--save", metavar="DIR", help="Write failing programs to a folder.")
@click.option("--coverage", is_flag=True, help="Only tell what of the language they consist of.")
@click.option("--stop-after", default=0, metavar="COUNT", help="End after so many failures.")
@click.option(
    "--witness", type=click.Choice(WITNESSES), help="Also run the code of another compiler."
)
@_generator_options
@click.pass_obj
def fuzz(app: Any, **given: Any) -> int:
    """Compile random programs and compare what they do with the reference evaluator.

    Each failure is printed with the command that makes it small.
    """
    from tile_fuzz.campaign import campaign

    plan = _plan(given)
    if given["coverage"]:
        return _coverage(plan, given["as_json"])
    failures, refused = Counter(), Counter()
    told: list[dict[str, Any]] = []
    codes: dict[int, list[int]] = {}
    started = time.monotonic()
    bar = Progress("programs", len(plan.seeds))
    for number, (seed, tried) in enumerate(_with_bar(bar, campaign(plan, _source(app))), 1):
        failure, codes[seed] = tried.failure, tried.tally.codes
        if number % _OFTEN == 0 and not sys.stderr.isatty():
            said = f"{number} of {len(plan.seeds)} programs"
            said += f", {refused.total()} refused by {plan.witness}" if plan.witness else ""
            click.echo(said, err=True)
        if failure is None:
            continue
        if failure.kind == REFUSED:
            refused[failure.what] += 1
            continue
        failures[failure.key] += 1
        told.append(_told(seed, failure, given))
        if not given["as_json"]:
            click.echo(f"seed {seed}: {failure}\n  {told[-1]['reduce']}")
        if given["save"]:
            _save_seed(seed, plan.limits, given["save"])
        if given["stop_after"] and sum(failures.values()) >= given["stop_after"]:
            break
    seconds = time.monotonic() - started
    if given["as_json"]:
        print_json({"programs": len(plan.seeds), "seconds": seconds, "failures": told,
                    "refused": dict(refused), "codes": codes})  # fmt: skip
    else:
        _summarize(plan, failures, refused, seconds)
        compiled, ran = (sum(map(len, c)) for c in (codes.values(), map(set, codes.values())))
        click.echo(f"{compiled} compilations gave {ran} different codes, each of which ran")
    return ExitCode.COMPILE if failures else ExitCode.OK


def _summarize(plan: Any, failures: Counter[Any], refused: Counter[Any], seconds: float) -> None:
    total = failures.total()
    click.echo(f"{len(plan.seeds)} programs, {total} failures, {seconds:.0f} s")
    for (kind, what), count in failures.most_common():
        click.echo(f"  {count} x {kind}: {what}")
    if plan.witness is not None:
        click.echo(f"{plan.witness} refused {refused.total()} of the programs")
    for what, count in refused.most_common():
        click.echo(f"  {count} x {what}")


def _told(seed: int, failure: Any, given: dict[str, Any]) -> dict[str, Any]:
    """A failure as `--json` prints it."""
    return {
        "seed": seed, "kind": failure.kind, "what": failure.what, "detail": failure.detail,
        "setting": None if failure.setting is None else str(failure.setting),
        "reduce": _command(seed, failure, given),
    }  # fmt: skip


def _with_bar(bar: Progress, results: Iterable[Any]) -> Iterator[Any]:
    """The results; the bar goes on with each."""
    with bar:
        for result in results:
            bar.advance()
            yield result


def _coverage(plan: Any, as_json: bool) -> int:
    """What the programs have of the operations, their types and attributes, and what none has."""
    from tile_fuzz.coverage import expected, features
    from tile_fuzz.generator import generate

    found = Counter()
    for seed in plan.seeds:
        found.update(features(generate(seed, plan.limits)))
    known = expected()
    missing = sorted(known - found.keys())
    if as_json:
        print_json({"drawn": dict(sorted(found.items())), "never": missing, "known": len(known)})
        return ExitCode.OK
    for name, count in sorted(found.items()):
        click.echo(f"{count:8} {name}")
    click.echo(f"{len(known) - len(missing)} of {len(known)} that the tables of the language have")
    for name in missing:
        click.echo(f"never    {name}")
    return ExitCode.OK


def _plan(given: dict[str, Any]) -> Any:
    from tile_fuzz.campaign import Plan
    from tile_fuzz.oracle import Setting

    base = Setting(
        "", None, given["pipeline"], settings_of(given["settings"], None, None),
        pass_settings_of(given["pass_settings"]),
    )  # fmt: skip
    return Plan(
        _seeds(given["seeds"]),
        given["targets"] or _TARGETS,
        given["levels"] or (0, 1, 2, 3),
        base,
        _limits(given),
        given["every"],
        given["jobs"],
        given["patience"],
        given["witness"],
        _each(given["each"]),
    )


def _each(texts: Iterable[str]) -> tuple[dict[str, Any], ...]:
    """The options of every `--each OPTION=V1,V2`, a dictionary per combination of values."""
    choices = []
    for text in texts:
        name, _, values = text.partition("=")
        if not name or not all(values.split(",")):
            raise UsageError(f"--each '{text}' is not OPTION=V1,V2,...")
        choices.append([f"{name}={value}" for value in values.split(",")])
    return tuple(settings_of(chosen, None, None) for chosen in product(*choices))


def _seeds(text: str) -> range:
    first, _, last = text.partition(":")
    if not first.isdigit() or not (last or first).isdigit():
        raise UsageError(f"--seeds '{text}' is not FIRST:LAST")
    return range(int(first), int(last) if last else int(first) + 1)


def _limits(given: dict[str, Any]) -> Any:
    from tile_fuzz.generator import Settings
    from tile_fuzz.generator.gaps import GAPS
    from tile_fuzz.generator.names import avoidable

    known = () if given["gaps"] else GAPS
    for name in given["avoid"]:
        if name not in avoidable():
            close = nearest(name, tuple(avoidable()))
            hint = f"did you mean '{close}'?" if close else None
            raise UsageError(f"--avoid '{name}' names nothing that is drawn", hint=hint)
    return Settings(
        operations=given["operations"],
        elements=given["elements"],
        avoid=frozenset((*given["avoid"], *known)),
        favour=frozenset(given["favour"]),
    )


def _command(seed: int, failure: Any, given: dict[str, Any]) -> str:
    """The command that reduces a failure."""
    setting = "" if failure.setting is None else f" {failure.setting}"
    limits = "".join(f' --avoid "{name}"' for name in given["avoid"])
    limits += " --gaps" * given["gaps"]
    limits += "".join(f" --favour {name}" for name in given["favour"])
    for name, usual in (("operations", 24), ("elements", 1024)):
        if given[name] != usual:
            limits += f" --{name} {given[name]}"
    return f"tilec reduce --seed {seed}{setting}{limits} -o seed{seed}.mlir"


def _save_seed(seed: int, limits: Any, folder: str) -> None:
    from tile_fuzz.case import save
    from tile_fuzz.generator import generate

    Path(folder).mkdir(parents=True, exist_ok=True)
    save(generate(seed, limits), Path(folder) / f"seed{seed}.tileirbc")


def _source(app: Any) -> Any:
    from tile_fuzz.workers import Installed

    return Installed(tuple(app.disabled))


def _setting(given: dict[str, Any]) -> Any:
    from tile_fuzz.oracle import Setting

    return Setting(
        given["gpu_name"],
        given["opt_level"],
        given["pipeline"],
        settings_of(given["settings"], given["scheduler"], given["layout_strategy"]),
        pass_settings_of(given["pass_settings"]),
        witness=given.get("witness"),
    )


# --- reduce ---------------------------------------------------------------------------------------


@click.command("reduce")
@click.argument("source", metavar="[INPUT]", required=False)
@click.option("--seed", type=int, help="The program that `tilec fuzz` makes of a seed.")
@click.option(
    "-o",
    "--output",
    required=True,
    metavar="FILE",
    help="Where the small program goes: .mlir, else bytecode.",
)
@click.option("--witness", type=click.Choice(WITNESSES), help="As for fuzz.")
@click.option("--seconds", default=600.0, show_default=True, help="When to stop.")
@_launch_options
@_generator_options
@pipeline_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def reduce(app: Any, **given: Any) -> int:
    """Make a failing program small, so that it still fails in the same way."""
    from tile_cudatile import write_bytecode

    from tile_fuzz.case import save
    from tile_fuzz.shrink import Shrinker
    from tile_fuzz.workers import Worker, try_setting

    setting = _setting(given)
    case = _case(app, given)
    worker = Worker(_source(app), given["patience"])
    try:
        failure = worker.ask(try_setting, write_bytecode(case.packed()), setting)
        if failure is None:
            raise TileError("the program does not fail", notes=(f"it was compiled with {setting}",))
        if not given["as_json"]:
            click.echo(f"{failure}")

        def fails(candidate: Any) -> bool:
            found = worker.ask(try_setting, write_bytecode(candidate.packed()), setting)
            return found is not None and found.key == failure.key

        shrinker = Shrinker(case, fails, given["seconds"], lambda text: click.echo(text, err=True))
        with Progress("reducing"):
            small = shrinker.run()
        save(small, Path(given["output"]))
        before, after = (len(list(_operations(one))) for one in (case, small))
        command = f"tilec bisect {given['output']} {setting}"
        if given["as_json"]:
            record = {"failure": str(failure), "operations": [before, after],
                      "attempts": shrinker.checked, "output": given["output"],
                      "bisect": command}  # fmt: skip
            click.echo(json.dumps(record, indent=1))
        else:
            click.echo(
                f"{before} operations became {after}, in {shrinker.checked} attempts\n"
                f"bisect: {command}"
            )
    finally:
        worker.close()
    return ExitCode.OK


def _operations(case: Any) -> list[Any]:
    return [op for entry in case.module.entries for op in entry.body.walk()]


def _case(app: Any, given: dict[str, Any]) -> Any:
    """The case of a file or of a seed."""
    from tile_fuzz.case import load
    from tile_fuzz.generator import generate

    if (given["source"] is None) == (given.get("seed") is None):
        raise UsageError("give a file or --seed, one of them")
    if given["source"] is None:
        return generate(given["seed"], _limits(given))
    case = load(read_bytes(given["source"]), app.registry)
    return _launched(case, given)


def _launched(case: Any, given: dict[str, Any]) -> Any:
    """The case with the launch that options spell, if they do."""
    from tile_fuzz.case import Launch

    if not given["args"] and not given["grid"]:
        if not case.launches:
            raise UsageError(
                "the program has no recipe: say how to launch it",
                hint="--grid 2,1,1 --with-shape --arg f32[64]=random --arg f32[64] ..., as for run",
            )
        return case
    grid = _grid(given["grid"] or "1")
    names = [entry.name for entry in case.module.entries]
    name = given["entry"] or (names[0] if len(names) == 1 else None)
    if name is None or name not in names:
        raise UsageError("--entry has to name a kernel", hint=f"there are: {', '.join(names)}")
    arguments = tuple(_arguments(given["args"], given["with_shape"]))
    return replace(case, launches=[Launch(name, grid, arguments)])


def _arguments(texts: tuple[str, ...], shapes: bool) -> Iterator[Any]:
    """What the options spell; with `shapes`, each array's shape and strides behind it."""
    from tile_sim.arguments import parse_spec
    from tile_sim.cli import as_tile_error
    from tile_sim.errors import SimError

    from tile_fuzz.case import Argument, argument_of

    for position, text in enumerate(texts):
        try:
            spec = parse_spec(text)
        except SimError as error:
            raise as_tile_error(error, text) from None
        yield argument_of(spec, position)
        if shapes and spec.shape is not None:
            strides = [prod(spec.shape[axis + 1 :]) for axis in range(len(spec.shape))]
            yield from (Argument("i32", value=n) for n in (*spec.shape, *strides))


def _grid(text: str) -> tuple[int, int, int]:
    parts = text.split(",")
    if not all(part.isdigit() and int(part) for part in parts) or len(parts) > 3:
        raise UsageError(f"--grid '{text}' is not X,Y,Z")
    x, y, z = [*map(int, parts), 1, 1][:3]
    return x, y, z


# --- bisect ---------------------------------------------------------------------------------------


@click.command("bisect")
@click.argument("source", metavar="INPUT")
@_launch_options
@click.option(
    "--patience",
    default=300.0,
    show_default=True,
    metavar="SECONDS",
    help="Time that one compilation and run may take.",
)
@pipeline_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def bisect(app: Any, **given: Any) -> int:
    """Name the pass after which the results of a program are wrong, or which fails."""
    from tile_fuzz.bisection import bisect as search
    from tile_fuzz.workers import Worker

    setting = _setting(given)
    case = _case(app, given)
    worker = Worker(_source(app), given["patience"])
    said: list[str] = []

    def say(text: str) -> None:
        said.append(text) if given["as_json"] else click.echo(f"  {text}")

    try:
        with Progress("bisecting"):
            verdict = search(case, setting, app.registry, worker, say)
    finally:
        worker.close()
    if given["as_json"]:
        record = {"culprits": list(verdict.culprits), "how": verdict.how, "steps": said}
        record["failure"] = None if verdict.failure is None else str(verdict.failure)
        click.echo(json.dumps(record, indent=1))
        return ExitCode.OK if verdict.failure is None else ExitCode.COMPILE
    if verdict.failure is None:
        click.echo(verdict.how)
        return ExitCode.OK
    blamed = " or ".join(verdict.culprits) or "no pass can be named"
    click.echo(f"{blamed}: {verdict.how}")
    return ExitCode.COMPILE
