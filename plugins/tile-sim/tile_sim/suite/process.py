"""Imported at the start of a program that a test runs: the simulator behind cuTile and torch.

Nothing is imported until the program itself imports torch or cuTile, since most tools started by
tests (compilers, `tilec` itself) are not such programs.
"""

from __future__ import annotations

import os
import sys
from importlib.machinery import ModuleSpec
from typing import Any

_AWAITED = ("torch", "cuda.tile")


class _Waiting:
    """An import hook that sees the first import of torch or cuTile, and then goes."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name in _AWAITED and self in sys.meta_path:
            sys.meta_path.remove(self)  # type: ignore[arg-type]
            _install()
        return None


def _install() -> None:
    from tile_sim import cutile
    from tile_sim.suite import torch_cuda

    cutile.settings.cache = os.environ.get("TILE_SIM_CACHE")
    torch_cuda.install(cutile.settings.capability)


def leave_alone() -> None:
    """For the process that runs the tests: it installs the simulator itself."""
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, _Waiting)]


if "TILE_SIM_ARCH" in os.environ:
    sys.meta_path.insert(0, _Waiting())  # type: ignore[arg-type]
