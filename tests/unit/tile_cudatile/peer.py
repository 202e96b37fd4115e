"""The released disassembler, where the `nvidia-cuda-tileiras` package is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest


def _find() -> str | None:
    spec = find_spec("nvidia")
    for root in spec.submodule_search_locations or () if spec else ():
        for path in sorted(Path(root).glob("*/bin/tileirdisasm")):
            return str(path)
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        found = shutil.which("tileirdisasm", path=folder)
        if found and Path(found).read_bytes()[:4] == b"\x7fELF":  # and not ours, a script
            return found
    return None


DISASSEMBLER = _find()
needs_disassembler = pytest.mark.skipif(DISASSEMBLER is None, reason="needs tileirdisasm")


def disassemble(data: bytes, folder: Path) -> subprocess.CompletedProcess[str]:
    """What the released disassembler says about a file."""
    assert DISASSEMBLER is not None
    path = folder / "program.tileirbc"
    path.write_bytes(data)
    return subprocess.run(
        [DISASSEMBLER, str(path)],
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        timeout=20,
    )
