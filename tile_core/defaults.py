"""What `tilec doctor --gpu` found out about this user's GPU, as defaults of pipeline options.

A table says which value stands instead of a pipeline's own: `[instead.tma-descriptors] host =
"off"`. What a command line or a caller asks for stands as it is. The file's digest is part of
`tileiras --version`, and the values are part of the artifact cache's keys.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from tile_core.diagnostics import ConfigurationError
from tile_core.digests import sha256

#: A file instead of the user's own; "off": none.
VARIABLE = "TILEC_DEFAULTS"
#: Option -> value of a pipeline -> value instead of it.
Instead = Mapping[str, Mapping[str, str]]


def path() -> Path | None:
    """The file: `tilec/defaults.toml` in XDG_CONFIG_HOME or ~/.config; None: switched off."""
    chosen = os.environ.get(VARIABLE, "")
    if chosen.strip().lower() in ("off", "0", "false"):
        return None
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CONFIG_HOME", "")
    home = Path(base) if Path(base).is_absolute() else Path.home() / ".config"
    return home / "tilec" / "defaults.toml"


def text() -> str:
    """What the file holds; "" if there is none."""
    file = path()
    try:
        return file.read_text(encoding="utf-8") if file is not None else ""
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"cannot read '{file}': {error}", hint=_HINT) from error


_HINT = f"`tilec doctor --gpu --forget` removes it, {VARIABLE}=off leaves it aside"


def digest() -> str:
    """Eight hex digits for what stands instead of pipelines' values; "" for nothing."""
    held = text()
    return sha256(held.encode()).hexdigest()[:8] if held else ""


def instead() -> Instead:
    """The tables of the file.

    Raises:
        ConfigurationError: it cannot be read, or is not of that form.
    """
    held = text()
    if not held:
        return {}
    import tomli

    try:
        tables = tomli.loads(held).get("instead", {})
    except tomli.TOMLDecodeError as error:
        raise ConfigurationError(f"{path()}: {error}", hint=_HINT) from error
    well = isinstance(tables, dict) and all(
        isinstance(t, dict) and all(isinstance(v, str) for v in t.values()) for t in tables.values()
    )
    if not well:
        raise ConfigurationError(
            f"{path()}: 'instead' holds a table of strings for each option", hint=_HINT
        )
    return tables


def keep(tables: Instead, about: Mapping[str, str]) -> Path | None:
    """Write the file, and who it is about; no tables remove it. The file; None: switched off.

    Raises:
        ConfigurationError: it cannot be written.
    """
    file = path()
    if file is None:
        return None
    if not tables:
        forget()
        return file
    from tile_core.cli.output import write_file

    lines = ["# Written by `tilec doctor --gpu`, which also removes it (--forget).", "", "[gpu]"]
    lines += [f"{name} = {_quoted(value)}" for name, value in about.items()]
    for option, table in tables.items():
        lines += ["", f"[instead.{option}]"]
        lines += [f"{value} = {_quoted(other)}" for value, other in table.items()]
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigurationError(f"cannot make '{file.parent}': {error.strerror}") from error
    write_file(str(file), "\n".join(lines) + "\n")
    return file


def _quoted(value: str) -> str:
    plain = "".join(c if c.isprintable() else " " for c in value)
    return '"' + plain.replace("\\", "\\\\").replace('"', '\\"') + '"'


def forget() -> bool:
    """Remove the file; whether there was one."""
    file = path()
    with suppress(FileNotFoundError):
        if file is not None:
            file.unlink()
            return True
    return False
