"""Products on sm_120 by tiles that are no squares: what is chosen for them; they are right."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

_PRODUCT = """
import sys
from tile_sim import cutile
cutile.settings.arch, cutile.settings.compiler, cutile.settings.opt_level = "sm_120", "tilec", 3
cutile.settings.strict = True
cutile.settings.launch.update(schedule=sys.argv[1])
import cuda.tile as ct
import numpy as np
import tile_core
made = []
cutile.compiler.watch = lambda done: made.append(done.bytecode)
Int = ct.Constant[int]

@ct.kernel
def product(a, b, c, tm: Int, tn: Int, tk: Int):
    kind = ct.tfloat32 if a.dtype == ct.float32 else a.dtype
    total = ct.full((tm, tn), 0, dtype=ct.float32)
    for k in range(ct.num_tiles(a, axis=1, shape=(tm, tk))):
        left = ct.load(a, index=(ct.bid(0), k), shape=(tm, tk)).astype(kind)
        right = ct.load(b, index=(k, ct.bid(1)), shape=(tk, tn)).astype(kind)
        total = ct.mma(left, right, total)
    ct.store(c, index=(ct.bid(0), ct.bid(1)), tile=total)

kind, (tm, tn, tk) = sys.argv[2], map(int, sys.argv[3].split(","))
rng = np.random.default_rng(0)
a, b = (rng.integers(-4, 5, size).astype(kind) for size in ((tm, 7 * tk), (7 * tk, 2 * tn)))
c = np.zeros((tm, 2 * tn), np.float32)
ct.launch(None, (1, 2, 1), product, (a, b, c, tm, tn, tk))
np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32))
found = tile_core.compile(made[-1], "sm_120", opt_level=3, emit="ptx").remarks
line = next(at for at, text in enumerate(open(__file__), 1) if sys.argv[4] in text)
of_line = [text for text in map(str, found) if f"program.py:{line}:" in text]
assert any(sys.argv[5] in text for text in of_line), of_line
"""


@pytest.mark.parametrize("schedule", ["late", "early", "random"])
@pytest.mark.parametrize(
    ("kind", "tile", "where", "chosen"),
    [
        ("float16", "16,64,128", "for k in", "Stages = 3"),  # of one block, not two for two
        ("float32", "128,128,16", "right = ", "Shape = [16, 32]"),  # boxes of B, not of 8 columns
        ("float32", "64,128,64", "right = ", "Shape = [32, 32]"),  # of steps of 32
    ],
)
def test_tiles_of_sm_120(
    tmp_path: Path, schedule: str, kind: str, tile: str, where: str, chosen: str
) -> None:
    pytest.importorskip("cuda.tile", reason="cuTile programs; `make test` installs it")
    program = tmp_path / "program.py"  # in a file: cuTile reads its source
    program.write_text(_PRODUCT)
    command = [sys.executable, str(program), schedule, kind, tile, where, chosen]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
