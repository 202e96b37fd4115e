"""Imported at the start of a program that a test runs: the simulator behind cuTile and torch.

Nothing happens until the program itself imports torch or cuTile, since most programs started by
tests (compilers, `tilec` itself) do not.
"""

from __future__ import annotations

import builtins
import os
from typing import Any

_AWAITED = ("torch", "cuda.tile")
_original = builtins.__import__


def _import(name: str, *args: Any, **kwargs: Any) -> Any:
    """Stands for `__import__` until one of the modules is asked for."""
    if name.startswith(_AWAITED):
        leave_alone()
        _install()
    return _original(name, *args, **kwargs)


def _install() -> None:
    from tile_sim import cutile
    from tile_sim.cutile import torch_cuda
    from tile_sim.suite import notes

    cutile.settings.cache = os.environ.get("TILE_SIM_CACHE")
    cutile.settings.strict = "TILE_SIM_CHECK" in os.environ
    cutile.settings.launch = {"schedule": os.environ.get("TILE_SIM_SCHEDULE", "late")}
    notes.follow(cutile._SESSION, notes.to_file)
    torch_cuda.install(cutile.settings.capability)


def leave_alone() -> None:
    """For the process that runs the tests: it installs the simulator itself."""
    if builtins.__import__ is _import:
        builtins.__import__ = _original


if "TILE_SIM_ARCH" in os.environ:
    builtins.__import__ = _import
