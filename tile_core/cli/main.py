"""`tilec`: finds the verb, runs it, and turns errors into one message and an exit code."""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import rich_click as click

from tile_core import own_process
from tile_core.blame import TRACEBACK
from tile_core.diagnostics import ExitCode, TileError, UsageError, nearest
from tile_core.excerpt import rendered

if TYPE_CHECKING:
    from tile_core.registry import Registry

#: Environment variable with names of plugins to leave out, separated by commas.
DISABLE = "TILEC_DISABLE_PLUGINS"


@dataclass
class Application:
    """What all verbs share; `ctx.obj`."""

    disabled: tuple[str, ...] = ()
    _registries: dict[bool, Registry] = field(default_factory=dict)

    @cached_property
    def registry(self) -> Registry:
        """Everything installed; a broken plugin is an error."""
        from tile_core.registry import default_registry

        return default_registry(frozenset(self.disabled))

    @cached_property
    def lenient_registry(self) -> Registry:
        """Everything that works; what does not is in `broken`."""
        from tile_core.registry import Registry

        return Registry.discover(self.disabled, strict=False)


class Verbs(click.RichGroup):
    """Verbs of the framework and of plugins; each is imported when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        registry = _application(ctx).lenient_registry
        return [entry.lazy.name for entry in registry.entries("command")]

    def get_command(self, ctx: click.Context, cmd_name: str) -> Any:
        from tile_core import builtin

        for lazy in builtin.tile_cli_commands():
            if lazy.name == cmd_name:
                return lazy.load()
        registry = _application(ctx).lenient_registry
        if not registry.has("command", cmd_name):
            return None
        try:
            return registry.load("command", cmd_name)
        except TileError as error:
            return _broken_verb(cmd_name, error)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        name = args[0]
        if self.get_command(ctx, name) is None and not name.startswith("-"):
            close = nearest(name, self.list_commands(ctx))
            raise UsageError(
                f"there is no command '{name}'",
                hint=f"did you mean '{close}'?" if close else "`tilec --help` lists them",
            )
        return super().resolve_command(ctx, args)


def _broken_verb(name: str, error: TileError) -> click.Command:
    """A verb that cannot be loaded: in the list, but it only says why."""

    def complain(**_: object) -> None:
        raise error

    settings = {"ignore_unknown_options": True, "allow_extra_args": True}
    return click.RichCommand(
        name=name,
        callback=complain,
        help=f"Cannot be loaded: {error.message}",
        context_settings=settings,
    )


def _application(ctx: click.Context) -> Application:
    return ctx.ensure_object(Application)


def _print_version(ctx: click.Context, _param: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        from tile_core.cli.version import version_text

        disabled = _from_environment() + tuple(ctx.params.get("disable_plugin", ()))
        click.echo(version_text(disabled))
        ctx.exit()


def _from_environment() -> tuple[str, ...]:
    return tuple(name for name in os.environ.get(DISABLE, "").split(",") if name)


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--disable-plugin",
    multiple=True,
    metavar="NAME",
    is_eager=True,
    help=f"Leave out a plugin or distribution (also: {DISABLE}, separated by commas).",
)
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    callback=_print_version,
    help="Versions, and a fingerprint of pipelines and plugins.",
)
@click.option(
    "--traceback",
    is_flag=True,
    expose_value=False,
    help=f"Show Python's traceback of an error (also: {TRACEBACK}=1); goes with every command.",
)
@click.pass_context
def cli(ctx: click.Context, disable_plugin: tuple[str, ...]) -> None:
    """An open compiler for CUDA Tile IR."""
    ctx.obj = Application(_from_environment() + disable_plugin)


def run(arguments: list[str] | None = None) -> int:
    """Run the command line; the exit code."""
    arguments, traces = _without_traceback(sys.argv[1:] if arguments is None else arguments)
    try:
        result = cli.main(args=arguments, prog_name="tilec", standalone_mode=False)
        return result if isinstance(result, int) else ExitCode.OK
    except TileError as error:
        if error.__cause__ is not None and traces:
            traceback.print_exception(error.__cause__)
        return _fail(rendered(error), error.exit_code)
    except click.NoSuchOption as error:
        return _fail(_unknown_option(error), ExitCode.USAGE)
    except click.ClickException as error:
        return _fail(f"error: {_sentence(error.format_message())}", ExitCode.USAGE)
    except (click.Abort, KeyboardInterrupt):
        return _fail("error: interrupted", 130)
    except BrokenPipeError:
        # The reader of our output went away; Python would complain again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.OK
    except Exception as error:
        if traces:
            traceback.print_exception(error)
        message = f"error: internal error: {type(error).__name__}: {error}".splitlines()[0]
        return _fail(f"{message}\nhint: --traceback shows where", ExitCode.COMPILE)


def _unknown_option(error: click.NoSuchOption) -> str:
    """What is said of an option that a verb does not have; often it is a verb itself."""
    message = f"error: no such option '{error.option_name}'"
    assert error.ctx is not None
    root = error.ctx.find_root()
    verb = error.option_name.lstrip("-")
    if verb in cli.list_commands(root):
        return f"{message}\nhint: '{verb}' is a command: {root.command_path} {verb}"
    if error.possibilities:
        return f"{message}\nhint: did you mean '{error.possibilities[0]}'?"
    return f"{message}\nhint: `{error.ctx.command_path} --help` lists them"


def _without_traceback(arguments: list[str]) -> tuple[list[str], bool]:
    """The arguments less `--traceback`, which may stand anywhere before `--`; whether it did."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    own = [argument for argument in arguments[:end] if argument != "--traceback"]
    return own + arguments[end:], len(own) < end or bool(os.environ.get(TRACEBACK))


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    """One line in the words of our errors, without the place in our own sources."""
    print(f"warning: {message}", file=sys.stderr)


def run_as(arguments: list[str], _program: str) -> int:
    """`run`, as a compile server calls it."""
    warnings.showwarning = _show_warning
    return run(arguments)


def main() -> None:
    """The command line in a process of its own."""
    warnings.showwarning = _show_warning
    own_process.claim()
    own_process.loading()
    code = int(run())
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        code = code or int(ExitCode.CONFIGURATION)
    except ValueError:
        pass  # a server that was told to leave has closed its own output
    # Output files are complete by now; taking MLIR's contexts apart would cost 60 ms.
    os._exit(code)


def _sentence(message: str) -> str:
    message = message.strip().rstrip(".").replace("\n", " ")
    return message[:1].lower() + message[1:]


def _fail(text: str, code: int) -> int:
    sys.stdout.flush()
    print(text, file=sys.stderr)
    return int(code)
