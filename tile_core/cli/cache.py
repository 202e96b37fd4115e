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
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def gc(size: int | None, as_json: bool) -> None:
    """Remove the longest unused artifacts until the rest fits."""
    _say(*_cache().collect(None if size is None else size << 20), as_json)


@cache.command("clear")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def clear(as_json: bool) -> None:
    """Remove all artifacts."""
    _say(*_cache().clear(), as_json)


def _say(removed: int, freed: int, as_json: bool) -> None:
    record = {"removed": removed, "bytes": freed}
    click.echo(json.dumps(record) if as_json else f"removed {removed} artifacts, {freed} bytes")
