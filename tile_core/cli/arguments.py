"""Options that several verbs share, and how their values are read."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import rich_click as click
from click.shell_completion import CompletionItem

from tile_core.diagnostics import UsageError

F = TypeVar("F", bound=Callable[..., Any])


def completing(kind: str) -> Callable[..., list[CompletionItem]]:
    """Completion with the registered names of a kind, and what each is."""

    def complete(_ctx: Any, _param: Any, incomplete: str) -> list[CompletionItem]:
        from tile_core.registry import Registry
        from tile_core.target import builtin_targets

        entries = Registry.discover(strict=False).entries(kind)
        found = dict.fromkeys(builtin_targets(), "") if kind == "target" else {}
        found |= {entry.lazy.name: entry.lazy.summary for entry in entries}
        return [
            CompletionItem(name, help=about)
            for name, about in sorted(found.items())
            if name.startswith(incomplete)
        ]

    return complete


def _complete_setting(_ctx: Any, _param: Any, incomplete: str) -> list[CompletionItem]:
    """`option=`, and behind it the values that it may have."""
    from tile_core.pipeline.resolve import Request, load
    from tile_core.registry import default_registry

    registry = default_registry()
    known = load(Request("sm_90", 3, None, {}, {}), registry).options
    name, sign, value = incomplete.partition("=")
    if not sign:
        return [CompletionItem(f"{n}=", help=o.help) for n, (o, _) in known.items()
                if n.startswith(incomplete)]  # fmt: skip
    if name not in known:
        return []
    option = known[name][0]
    values = list(option.choices) or (registry.names(option.names) if option.names else [])
    values = values or (["true", "false"] if option.type == "bool" else [])
    return [CompletionItem(f"{name}={v}") for v in map(str, values) if v.startswith(value)]


def _complete_pass_setting(_ctx: Any, _param: Any, incomplete: str) -> list[CompletionItem]:
    """`pass.option=`."""
    from tile_core.options import fields_of
    from tile_core.registry import default_registry

    registry = default_registry()
    name, dot, _ = incomplete.partition(".")
    if not dot:
        names = (*registry.names("pass"), *registry.names("emitter"))
        return [CompletionItem(f"{n}.") for n in sorted(names) if n.startswith(incomplete)]
    for kind in ("pass", "emitter"):
        if registry.has(kind, name):
            options = fields_of(registry.load(kind, name))
            spelled = [f"{name}.{option}=" for option in options]
            return [CompletionItem(text) for text in spelled if text.startswith(incomplete)]
    return []


def pipeline_options(command: F) -> F:
    """`--gpu-name`, `-O`, `--pipeline`, `--set`, `-D`, `--scheduler`, `--layout-strategy`."""
    for decorate in reversed(
        (
            click.option("--gpu-name", default="sm_100", show_default=True, metavar="SM",
                         shell_complete=completing("target"),
                         help="GPU architecture: sm_80, sm_90, ..."),
            click.option("-O", "--opt-level", type=int, metavar="LEVEL",
                         help="Optimization level, 0 to 3 [default: 3]."),
            click.option("--pipeline", metavar="NAME|FILE.toml",
                         shell_complete=completing("pipeline"),
                         help="A pipeline instead of the level's."),
            click.option("--set", "settings", multiple=True, metavar="OPTION=VALUE",
                         shell_complete=_complete_setting,
                         help="Set a pipeline option."),
            click.option("-D", "pass_settings", multiple=True, metavar="PASS.OPTION=VALUE",
                         shell_complete=_complete_pass_setting,
                         help="Set an option of a pass or emitter."),
            click.option("--scheduler", metavar="NAME", shell_complete=completing("scheduler"),
                         help="Same as --set scheduler=NAME."),
            click.option("--layout-strategy", metavar="NAME",
                         shell_complete=completing("layout-strategy"),
                         help="Same as --set layout-strategy=NAME."),
        )
    ):  # fmt: skip
        command = decorate(command)
    return command


def settings_of(
    settings: Iterable[str], scheduler: str | None, layout_strategy: str | None
) -> dict[str, str]:
    """Pipeline options from `--set` and its shorthands; the last one wins."""
    found = assignments(settings, "--set")
    if scheduler is not None:
        found["scheduler"] = scheduler
    if layout_strategy is not None:
        found["layout-strategy"] = layout_strategy
    return found


def pass_settings_of(settings: Iterable[str]) -> dict[str, Any]:
    """Pass options from `-D`, marked as spelled so that each takes its option's type."""
    from tile_core.options import Spelled

    return {key: Spelled(value) for key, value in assignments(settings, "-D").items()}


def assignments(texts: Iterable[str], flag: str) -> dict[str, str]:
    """`key=value` texts as a dict.

    Raises:
        UsageError: a text without `=`.
    """
    found: dict[str, str] = {}
    for text in texts:
        key, sign, value = text.partition("=")
        if not sign or not key.strip():
            raise UsageError(f"{flag} '{text}' is not KEY=VALUE")
        found[key.strip()] = value.strip()
    return found
