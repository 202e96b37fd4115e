"""How long layout questions take, against the limits that the compiler relies on.

    python benchmarks/layouts.py

One line per question: the median of a few runs in milliseconds and its limit. Exits with 1 if a
limit is passed. Limits hold for one core of a server of 2020 or later, with room for noise.
"""

# ruff: noqa: E501  (a table)

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable

from tile_cute.atoms import find_mma, mma_rows
from tile_cute.atoms.descriptors import canonical_buffer, match_operand
from tile_cute.atoms.tiled import tiled_fragment
from tile_cute.bridge import coords_to_offset, to_cute
from tile_cute.layout_algebra import composition
from tile_cute.linear import (
    LinearLayout,
    best_shared_layout,
    blocked,
    invert_and_compose,
    memory_access,
    plan_conversion,
    swizzled_rows,
    vector_width,
)
from tile_cute.text import parse_layout

RUNS = 15
TILE = (128, 256)
ROWS = blocked(TILE, (1, 8), (1, 32), (4, 1), (1, 0))
COLUMNS = blocked(TILE, (8, 1), (16, 2), (1, 4), (0, 1))
PIECES = blocked(TILE, (1, 4), (1, 32), (4, 1), (1, 0))
SMALL = blocked((16, 64), (1, 4), (2, 16), (4, 1), (1, 0))
SMALL_TURNED = blocked((16, 64), (1, 2), (1, 32), (4, 1), (1, 0))
SWIZZLED = swizzled_rows(TILE, (1, 0), 16, 128)


def fragment() -> LinearLayout:
    row = find_mma("sm_80", family="mma.sync", a="f16", acc="f32", k=16)[0]
    return tiled_fragment(row.atom(16, 8), "c", (128, 256, 16), (2, 2))


FRAGMENT = fragment()

# (question, what answers it, limit in milliseconds)
QUESTIONS: list[tuple[str, Callable[[], object], float]] = [
    ("plan 128x256 f32, rows to columns", lambda: plan_conversion(ROWS, COLUMNS, 32), 2.0),
    ("plan 128x256 f16, rows to columns", lambda: plan_conversion(ROWS, COLUMNS, 16), 2.0),
    ("plan 128x256 f32, MMA to rows", lambda: plan_conversion(FRAGMENT, ROWS, 32), 2.0),
    ("plan 128x256 f32 in two passes", lambda: plan_conversion(ROWS, COLUMNS, 32, max_smem=65536), 2.5),
    ("plan 128x256 f32, within warps", lambda: plan_conversion(ROWS, PIECES, 32), 2.5),
    ("plan 16x64 f32, small tile", lambda: plan_conversion(SMALL, SMALL_TURNED, 32), 1.0),
    ("plan 128x256, nothing to do", lambda: plan_conversion(ROWS, ROWS, 32), 0.5),
    ("best shared layout 128x256 f16", lambda: best_shared_layout(ROWS, COLUMNS, 16), 3.0),
    ("access to a swizzled buffer", lambda: memory_access(SWIZZLED, ROWS, 16), 1.0),
    ("invert and compose", lambda: invert_and_compose(ROWS, COLUMNS), 0.3),
    ("vector width", lambda: vector_width(ROWS, (1, 0), 16), 0.05),
    ("blocked layout", lambda: blocked(TILE, (1, 8), (1, 32), (4, 1), (1, 0)), 0.2),
    ("text round trip", lambda: LinearLayout.parse(str(FRAGMENT)), 0.5),
    ("MMA fragment of a tile", fragment, 3.0),
    ("canonical operand and descriptor", lambda: match_operand(canonical_buffer(128, 64, 16, "K", "128B"), 16), 1.0),
    ("CuTe composition", lambda: composition(parse_layout("(128,256):(256,1)"), (64, 64)), 0.5),  # type: ignore[arg-type]
    ("CuTe to bits and back", lambda: to_cute(coords_to_offset(parse_layout("S<3,4,3> o 0 o (8,64):(64,1)"))), 0.5),
    ("find an MMA among all rows", lambda: find_mma("sm_90a", a="f16", acc="f32", family="wgmma"), 3.0),
]  # fmt: skip


def measure(question: Callable[[], object]) -> float:
    """Median milliseconds of a few runs, after one that fills caches."""
    question()
    times = []
    for _ in range(RUNS):
        start = time.perf_counter()
        question()
        times.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times)


def main() -> int:
    mma_rows()
    late = 0
    print(f"{'question':<40} {'ms':>8} {'limit':>8}")
    for name, question, limit in QUESTIONS:
        taken = measure(question)
        mark = "" if taken <= limit else "  over the limit"
        late += taken > limit
        print(f"{name:<40} {taken:>8.3f} {limit:>8.3f}{mark}")
    return 1 if late else 0


if __name__ == "__main__":
    sys.exit(main())
