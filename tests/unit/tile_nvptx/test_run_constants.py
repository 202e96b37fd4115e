"""Functions of constants, which MLIR and LLVM compute: the same numbers as at run time."""

from __future__ import annotations

import numpy as np
from support.programs import Program
from tile_cudatile import types as t


def test_the_angle_of_zeros_is_a_number() -> None:
    p = Program()
    tile = t.Tile((4,), t.F32)
    zeros = p.constant(tile, 0.0)
    p.store(p.emit("atan2", [zeros, zeros], tile), (4,), t.F32)
    p.agrees(np.ones(4, np.float32), opt_level=1)
