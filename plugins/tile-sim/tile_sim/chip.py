"""What a simulated device says of itself where nothing but its architecture is known."""

from __future__ import annotations

from tile_core.machines import machine_for
from tile_core.machines.schema import Chip


def chip_of(capability: tuple[int, int]) -> Chip:
    """The chip of the GPU that stands for (9, 0): persistent kernels choose their grid by its
    multiprocessors.
    """
    major, minor = capability
    return machine_for(f"sm_{major}{minor}").chip
