"""Answers that need no compiler, such as `--version`, for the compiled client.

A process that gave one leaves it beside the snapshots, with the files that it came from: their time
and size, as `tile_core.snapshot` looks at them, and the variables that choose among files. The
client gives it again if all of that is as it was; otherwise Python does, and leaves it anew.

    TILEC-ANSWERS 1
    variable <name>=<value>      or: variable <name>, when it is not set
    file <time in ns> <size> <path>
    answer <option> <bytes>
    <that many bytes>
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from tile_core import defaults
from tile_core.server import client
from tile_core.snapshot import Stamp, cache_folder, stamp

HEAD = "TILEC-ANSWERS 1"
#: What decides which file of defaults is read.
_VARIABLES = ("TILEC_DEFAULTS", "XDG_CONFIG_HOME", "HOME")


def path(entry: str) -> Path:
    """Where the client that asks for `entry` looks."""
    number = client.fnv(f"{client.identity()}\n{entry}")
    return cache_folder() / "snapshots" / f"answers-{number:016x}"


def keep(entry: str, texts: Mapping[str, str], stamps: list[Stamp]) -> None:
    """Leave the answers `texts` (by option) for the client; a disk that takes nothing is no error.

    Args:
        stamps: of the files behind them; of none, nothing is left.
    """
    if not stamps:
        return
    held = defaults.path()
    more = [stamp(os.path.realpath(sys.executable)), *([stamp(held)] if held else [])]
    lines = [HEAD]
    for name in _VARIABLES:
        value = os.environ.get(name)
        lines.append(f"variable {name}" + ("" if value is None else f"={value}"))
    lines += [f"file {time} {size} {file}" for file, time, size, _ in (*stamps, *more)]
    if any("\n" in line for line in lines):
        return
    data = "\n".join([*lines, ""]).encode("utf-8", "surrogateescape")
    for option, text in texts.items():
        body = text.encode()
        data += f"answer {option} {len(body)}\n".encode() + body
    file = path(entry)
    temporary = file.with_suffix(f".{os.getpid()}.part")
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as out:
            out.write(data)
        temporary.replace(file)
    except OSError:
        with suppress(OSError):
            temporary.unlink()
