"""Kernels of one mechanism each, in PTX: for the model's own numbers, and for a real GPU."""

from __future__ import annotations

from tile_time.mechanisms.copies import copies
from tile_time.mechanisms.core import core
from tile_time.mechanisms.memory import memory
from tile_time.mechanisms.numbers import NUMBERS, Number
from tile_time.mechanisms.open import unsettled
from tile_time.mechanisms.record import Mechanism
from tile_time.mechanisms.sync import sync
from tile_time.mechanisms.tensor import mma, tcgen05, wgmma

__all__ = ["NUMBERS", "Mechanism", "Number", "every"]


def every() -> list[Mechanism]:
    """All of them, for every GPU."""
    return [*core(), *memory(), *mma(), *wgmma(), *copies(), *tcgen05(), *sync(), *unsettled()]
