"""A simulator of PTX that runs compiled kernels with no GPU.

`Module(ptx).launch(entry, grid, block, args)` runs a kernel on NumPy arrays; `time(program, gpu,
grid=..., args=...)` says how long a GPU takes for it (needs tile-time).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tile_time.api import time

    from tile_sim.device import Device
    from tile_sim.errors import SimError
    from tile_sim.machine.launch import LaunchReport
    from tile_sim.machine.parameters import RawBuffer
    from tile_sim.machine.tensormap import TensorMap
    from tile_sim.module import Module

__all__ = ["Device", "LaunchReport", "Module", "RawBuffer", "SimError", "TensorMap", "time"]

_HOMES = {
    "Device": "tile_sim.device",
    "RawBuffer": "tile_sim.machine.parameters",
    "Module": "tile_sim.module",
    "SimError": "tile_sim.errors",
    "TensorMap": "tile_sim.machine.tensormap",
    "LaunchReport": "tile_sim.machine.launch",
    # How long it takes is another plugin's matter.
    "time": "tile_time.api",
}


def __getattr__(name: str) -> object:
    """Nothing is imported before it is used."""
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'tile_sim' has no attribute {name!r}")
