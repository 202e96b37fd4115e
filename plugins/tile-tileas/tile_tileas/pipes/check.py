"""All checks of pipes in one."""

from __future__ import annotations

from tile_tileas.pipes.balance import balance_problems
from tile_tileas.pipes.execute import deadlock_problems
from tile_tileas.pipes.model import Kernel, Problem


def problems_of(kernel: Kernel) -> list[Problem]:
    """What is wrong with the use of pipes; nothing is run whose counts do not add up."""
    found = list(balance_problems(kernel))
    return found or list(deadlock_problems(kernel))
