"""Options that several verbs share, and how their values are read."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import rich_click as click

from tile_core.diagnostics import UsageError

F = TypeVar("F", bound=Callable[..., Any])


def pipeline_options(command: F) -> F:
    """`--gpu-name`, `-O`, `--pipeline`, `--set`, `-D`, `--scheduler`, `--layout-strategy`."""
    for decorate in reversed(
        (
            click.option("--gpu-name", default="sm_100", show_default=True, metavar="SM",
                         help="GPU architecture: sm_80, sm_90, ..."),
            click.option("-O", "--opt-level", type=int, metavar="LEVEL",
                         help="Optimization level, 0 to 3 [default: 3]."),
            click.option("--pipeline", metavar="NAME|FILE.toml",
                         help="A pipeline instead of the level's."),
            click.option("--set", "settings", multiple=True, metavar="OPTION=VALUE",
                         help="Set a pipeline option."),
            click.option("-D", "pass_settings", multiple=True, metavar="PASS.OPTION=VALUE",
                         help="Set an option of a pass or emitter."),
            click.option("--scheduler", metavar="NAME", help="Same as --set scheduler=NAME."),
            click.option("--layout-strategy", metavar="NAME",
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
