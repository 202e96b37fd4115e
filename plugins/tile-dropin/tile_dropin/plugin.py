"""What this distribution adds to tilec. Imports nothing heavy: hooks return lazy references."""

from __future__ import annotations

from collections.abc import Iterable

from tile_core.hookspecs import Lazy, hookimpl

TILE_SPEC_VERSION = 1


@hookimpl
def tile_cli_commands() -> Iterable[Lazy]:
    """Verbs of `tilec`."""
    home = "tile_dropin.cli"
    return (
        Lazy("activate", f"{home}:activate", "Make cuTile and others call this `tileiras`"),
        Lazy("deactivate", f"{home}:deactivate", "Undo `tilec activate`"),
    )


@hookimpl
def tile_checks() -> Iterable[Lazy]:
    """What `tilec doctor` looks at."""
    return (
        Lazy("dropin", "tile_dropin.checks:check_clients", "cuTile, and which tileiras it calls"),
    )
