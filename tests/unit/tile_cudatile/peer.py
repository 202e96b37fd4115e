"""The released disassembler, where the `nvidia-cuda-tileiras` package is installed."""

from __future__ import annotations

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
    return shutil.which("tileirdisasm")


DISASSEMBLER = _find()
needs_disassembler = pytest.mark.skipif(DISASSEMBLER is None, reason="needs tileirdisasm")


def disassemble(data: bytes, folder: Path) -> subprocess.CompletedProcess[str]:
    """What the released disassembler says about a file."""
    assert DISASSEMBLER is not None
    path = folder / "program.tileirbc"
    path.write_bytes(data)
    return subprocess.run(
        [DISASSEMBLER, str(path)], capture_output=True, text=True, check=False, timeout=20
    )
