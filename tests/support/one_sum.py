"""A cuTile program: two products of a step add to one sum, and one stage of each tile fits.

    python one_sum.py late

It is run for sm_100 in check mode, under the schedule that is named, and compared with NumPy.
"""

# pyright: basic, reportArgumentType=false

from __future__ import annotations

import sys

import cuda.tile as ct
import numpy as np
from tile_sim.cutile import settings

Int = ct.Constant[int]
ROWS, PART, COLUMNS, LENGTH = 128, 256, 64, 1024


@ct.kernel
def one_sum(x, y, a, b, out, rows: Int, part: Int, columns: Int):
    total = ct.full((rows, columns), 0.0, dtype=ct.float32)
    for j in range(ct.cdiv(x.shape[1], part)):
        total = ct.mma(ct.load(x, (0, j), (rows, part)), ct.load(a, (j, 0), (part, columns)), total)
        total = ct.mma(ct.load(y, (0, j), (rows, part)), ct.load(b, (j, 0), (part, columns)), total)
    ct.store(out, (0, 0), total)


def main(schedule: str) -> None:
    """Run it, and compare."""
    settings.arch, settings.compiler, settings.opt_level = "sm_100", "tilec", 3
    settings.strict = True
    settings.launch.update(schedule=schedule)
    draw = np.random.default_rng(0)
    x, y = (draw.integers(-2, 3, (ROWS, LENGTH)).astype(np.float16) for _ in range(2))
    a, b = (draw.integers(-2, 3, (LENGTH, COLUMNS)).astype(np.float16) for _ in range(2))
    out = np.zeros((ROWS, COLUMNS), np.float32)
    ct.launch(None, (1, 1, 1), one_sum, (x, y, a, b, out, ROWS, PART, COLUMNS))
    x, y, a, b = (one.astype(np.float32) for one in (x, y, a, b))
    np.testing.assert_array_equal(out, x @ a + y @ b)


if __name__ == "__main__":
    main(*sys.argv[1:])
