"""`tilec cache`."""

from __future__ import annotations

import json
import time
from dataclasses import asdict

import rich_click as click

from tile_core.cache import Cache
from tile_core.diagnostics import ConfigurationError


@click.group("cache")
def cache() -> None:
    """List, trim and empty the cache of compiled artifacts.

    TILEC_CACHE_DIR says where it is, TILEC_CACHE_SIZE how many MiB it may take, TILEC_CACHE=off
    that there is none.
    """


def _cache() -> Cache:
    found = Cache.of_environment()
    if found is None:
        raise ConfigurationError("the cache is switched off", hint="unset TILEC_CACHE")
    return found


@cache.command("ls")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def ls(as_json: bool) -> None:
    """List the artifacts, longest unused first."""
    found = _cache()
    entries = found.entries()
    if as_json:
        click.echo(json.dumps([asdict(entry) for entry in entries], indent=1))
        return
    for entry in entries:
        used = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(entry.used))
        about = entry.about
        level = about.get("opt-level")
        what = f"{about.get('target', '?'):7} -O{3 if level is None else level} {about.get('emit')}"
        click.echo(f"{entry.key[:12]}  {used}  {entry.size:9}  {what:18} {about.get('name', '')}")
    size = sum(entry.size for entry in entries)
    click.echo(f"{len(entries)} artifacts, {size} of {found.limit} bytes, in {found.folder}")


@cache.command("gc")
@click.option("--size", type=int, metavar="MIB", help="Make it this small [default: its limit].")
def gc(size: int | None) -> None:
    """Remove the longest unused artifacts until the rest fits."""
    removed, freed = _cache().collect(None if size is None else size << 20)
    click.echo(f"removed {removed} artifacts, {freed} bytes")


@cache.command("clear")
def clear() -> None:
    """Remove all artifacts."""
    removed, freed = _cache().clear()
    click.echo(f"removed {removed} artifacts, {freed} bytes")
