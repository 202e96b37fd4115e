"""The client as a compiled program, where there is a C compiler to make it.

Python without `site` starts in 7 ms, which is most of what a served `--version` takes; `client.c`
starts in less than one. Where no compiler is found, or the system is not Linux, the script
`client.py` does the same.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tile_core.server import client

#: Names of compilers, in the order in which they are tried after $CC.
_COMPILERS = ("cc", "gcc", "clang")
_SOURCE = Path(__file__).with_name("client.c")


def compiler() -> str | None:
    """The C compiler: what CC names, or the first found on the PATH."""
    named = os.environ.get("CC", "").split()
    return next((p for name in (*named[:1], *_COMPILERS) if (p := shutil.which(name))), None)


def compiled(entry: str, mark: str) -> bytes | None:
    """A program that does what `python -S -E client.py ENTRY` does; None if it cannot be made.

    Args:
        entry: what a server runs for it, "module:function".
        mark: a text that stands in the file, to tell it from other programs.
    """
    tool = compiler()
    if tool is None or not sys.platform.startswith("linux"):
        return None
    texts = {
        "TILEC_PYTHON": sys.executable, "TILEC_CLIENT": os.path.realpath(client.__file__),
        "TILEC_ENTRY": entry, "TILEC_IDENTITY": client.installation(), "TILEC_MARK": mark,
    }  # fmt: skip
    if not all(text.isascii() and text.replace("\n", "").isprintable() for text in texts.values()):
        return None  # the script quotes them better
    quoted = {name: text.replace("\\", "\\\\").replace('"', '\\"') for name, text in texts.items()}
    defines = [f'#define {n} "{t}"'.replace("\n", "\\n") for n, t in quoted.items()]
    defines += [f"#define TILEC_PROTOCOL {client.PROTOCOL}", f'#include "{_SOURCE}"', ""]
    with tempfile.TemporaryDirectory(prefix="tilec-") as folder:
        source, made = Path(folder, "client.c"), Path(folder, "client")
        source.write_text("\n".join(defines))
        command = [tool, "-O2", "-o", str(made), str(source)]
        try:
            done = subprocess.run(command, capture_output=True, timeout=60)
            works = done.returncode == 0 and os.access(made, os.X_OK)
            return made.read_bytes() if works else None
        except (OSError, subprocess.TimeoutExpired):
            return None
