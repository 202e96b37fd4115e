"""`--json`, which every verb that prints something takes: the same facts, for programs."""

from __future__ import annotations

import json
from typing import Any

import rich_click as click

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def print_json(value: Any) -> None:
    """Print what JSON can hold, on standard output."""
    click.echo(json.dumps(value, indent=1))
