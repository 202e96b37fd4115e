"""`tilec explain`."""

from __future__ import annotations

import json
from typing import Any

import rich_click as click
from click.shell_completion import CompletionItem


def _complete(ctx: click.Context, _param: Any, incomplete: str) -> list[CompletionItem]:
    from tile_core.explain import names_of

    names = sorted(set(names_of(_registry(ctx))))
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


def _registry(ctx: click.Context) -> Any:
    from tile_core.registry import default_registry

    return ctx.obj.registry if ctx.obj is not None else default_registry()


@click.command("explain")
@click.argument("words", nargs=-1, required=True, metavar="PASS|OPERATION|OPTION|MESSAGE|CODE",
                shell_complete=_complete)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def explain(app: Any, words: tuple[str, ...], as_json: bool) -> None:
    """Say what a pass, operation, option, error, remark or exit code means, and what to do.

    Options are named as --set (ftz) and -D (tileas-plan-accesses.max-vector-bits) name them;
    messages by any part of their text.
    """
    from tile_core.explain import explanations

    found = explanations(app.registry, " ".join(words))
    if as_json:
        click.echo(json.dumps(found, indent=1))
    else:
        click.echo("\n".join(found), nl=False)
