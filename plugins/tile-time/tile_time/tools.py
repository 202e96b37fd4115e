"""NVIDIA's tools that the model needs: ptxas and nvdisasm."""

from __future__ import annotations

from collections.abc import Iterable

from tile_nvptx.emit import toolchain

from tile_core.diagnostics import TileError
from tile_core.doctor import Finding


def check() -> Iterable[Finding]:
    """For `tilec doctor`."""
    try:
        found = toolchain.require("nvdisasm")
    except TileError as error:
        # Compiling needs none of it.
        detail = f"{error.message}; `tilec time` and --emit=sass need it"
        yield Finding("nvdisasm", False, detail, error.hint or "", needed=False)
        return
    yield Finding("nvdisasm", True, f"{found.path} ({found.origin})")
