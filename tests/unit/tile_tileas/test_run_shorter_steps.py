"""Products by tiles that are long along K take shorter steps, and are right where half of the last
tile lies outside of A and B.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

_PRODUCT = """
import sys
from tile_sim import cutile
arch, schedule, form, kind, depth = sys.argv[1:6]
cutile.settings.arch, cutile.settings.compiler, cutile.settings.opt_level = arch, "tilec", 3
cutile.settings.strict = True
cutile.settings.launch.update(schedule=schedule)
import cuda.tile as ct
import ml_dtypes
import numpy as np
import tile_core
made = []
cutile.compiler.watch = lambda done: made.append(done.bytecode)
Int = ct.Constant[int]
ZERO = ct.PaddingMode.ZERO

@ct.kernel
def product(a, b, c, tm: Int, tn: Int, tk: Int):
    kind = ct.tfloat32 if a.dtype == ct.float32 else a.dtype
    total = ct.full((tm, tn), 0, dtype=ct.float32)
    for k in range(ct.num_tiles(a, axis=1, shape=(tm, tk))):
        left = ct.load(a, index=(ct.bid(0), k), shape=(tm, tk), padding_mode=ZERO)
        right = ct.load(b, index=(k, ct.bid(1)), shape=(tk, tn), padding_mode=ZERO)
        total = ct.mma(left.astype(kind), right.astype(kind), total)
    ct.store(c, index=(ct.bid(0), ct.bid(1)), tile=total)

@ct.kernel
def turned(a, b, c, tm: Int, tn: Int, tk: Int):
    total = ct.full((tm, tn), 0, dtype=ct.float32)
    for k in range(ct.num_tiles(a, axis=1, shape=(tm, tk))):
        left = ct.load(a, index=(ct.bid(0), k), shape=(tm, tk), padding_mode=ZERO)
        right = ct.load(b, index=(ct.bid(1), k), shape=(tn, tk), padding_mode=ZERO)
        total = ct.mma(left, ct.permute(right, (1, 0)), total)
    ct.store(c, index=(ct.bid(0), ct.bid(1)), tile=total)

@ct.kernel
def batched(a, b, c, tm: Int, tn: Int, tk: Int):
    total = ct.full((tm, tn), 0, dtype=ct.float32)
    for k in range(ct.num_tiles(a, axis=2, shape=(1, tm, tk))):
        left = ct.load(a, index=(0, ct.bid(0), k), shape=(1, tm, tk), padding_mode=ZERO)
        right = ct.load(b, index=(0, k, ct.bid(1)), shape=(1, tk, tn), padding_mode=ZERO)
        total = ct.mma(left.reshape((tm, tk)), right.reshape((tk, tn)), total)
    ct.store(c, index=(0, ct.bid(0), ct.bid(1)), tile=total.reshape((1, tm, tn)))

type_ = np.dtype(getattr(ml_dtypes, kind, kind))
tm, tn, tk, depth = 128, 128, 256 // type_.itemsize, int(depth)
rng = np.random.default_rng(0)
m, n = tm + 24, 2 * tn - 16
a, b = (rng.integers(-4, 5, size).astype(type_) for size in ((m, depth), (depth, n)))
c = np.zeros((m, n), np.float32)
arrays = {
    "product": (a, b, c), "turned": (a, np.ascontiguousarray(b.T), c),
    "batched": (a[None], b[None], c[None]),
}[form]
ct.launch(None, (2, 2, 1), globals()[form], (*arrays, tm, tn, tk))
np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32))
found = [str(one) for one in tile_core.compile(made[-1], arch, opt_level=3, emit="ptx").remarks]
assert any("steps along K are shorter" in one for one in found), found
"""


@pytest.mark.parametrize("schedule", ["late", "early", "random"])
@pytest.mark.parametrize(
    ("arch", "form", "kind", "depth"),
    [
        ("sm_120", "product", "float16", 328),
        ("sm_120", "turned", "float8_e4m3fn", 656),
        ("sm_80", "product", "float32", 72),  # a tile and an eighth: half a tile outside
        ("sm_90", "batched", "bfloat16", 144),
        ("sm_100", "turned", "float16", 72),
    ],
)
def test_shorter_steps(
    tmp_path: Path, schedule: str, arch: str, form: str, kind: str, depth: int
) -> None:
    pytest.importorskip("cuda.tile", reason="cuTile programs; `make test` installs it")
    program = tmp_path / "program.py"  # in a file: cuTile reads its source
    program.write_text(_PRODUCT)
    command = [sys.executable, str(program), arch, schedule, form, kind, str(depth)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
