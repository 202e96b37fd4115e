"""Kernels whose sums leave no tensor memory to the second block that a hint asks for: they have the
stages and registers of both.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from support.cutile_programs import counts_of

pytest.importorskip("cuda.tile", reason="cuTile programs; `make test` installs it")

_PROGRAM = """
import re
D, M, N, STEPS = 128, 64, 64, 5

def products(Q, K, V, G, DK, DV, steps):
    n = ct.bid(0)
    k, v = ct.load(K, (n, 0), (N, D)), ct.load(V, (n, 0), (N, D))
    dk = dv = ct.zeros((N, D), ct.float32)
    for m in range(steps):
        q, g = ct.load(Q, (m, 0), (M, D)), ct.load(G, (m, 0), (M, D))
        s = ct.mma(k, q.permute((1, 0)), ct.zeros((N, M), ct.float32))
        p = ct.minimum(ct.maximum(s, -3.0), 3.0)
        dv = ct.mma(p.astype(ct.float16), g, dv)
        t = ct.mma(v, g.permute((1, 0)), ct.zeros((N, M), ct.float32))
        d = ct.minimum(ct.maximum(p * t, -5.0), 5.0)
        dk = ct.mma(d.astype(ct.float16), q, dk)
    ct.store(DK, (n, 0), dk)
    ct.store(DV, (n, 0), dv)

@ct.kernel(occupancy=2)
def gradients(Q, K, V, G, DK, DV, steps):
    products(Q, K, V, G, DK, DV, steps)

rng = np.random.default_rng(7)
q, g = (rng.integers(-2, 3, (STEPS * M, D)).astype(np.float16) for _ in range(2))
k, v = (rng.integers(-2, 3, (2 * N, D)).astype(np.float16) for _ in range(2))
wide = [one.astype(np.float64) for one in (q, k, v, g)]
for steps in (0, 1, 2, STEPS):
    dk, dv = np.ones((2 * N, D), np.float32), np.ones((2 * N, D), np.float32)
    ct.launch(None, (2, 1, 1), gradients, (q, k, v, g, dk, dv, steps))
    Q, K, V, G = wide[0][:steps * M], wide[1], wide[2], wide[3][:steps * M]
    p = np.clip(K @ Q.T, -3, 3)
    d = np.clip(p * (V @ G.T), -5, 5)
    np.testing.assert_array_equal(dv, p @ G, err_msg=str(steps))
    np.testing.assert_array_equal(dk, d @ Q, err_msg=str(steps))
done = tile_core.compile(made[-1], arch, opt_level=3, emit="ptx")
print("blocks", re.search(r"minnctapersm (\\d+)", done.output).group(1))
print("given up", sum("occupancy is 1, not 2: sums of products take 320" in remark.message
                      for remark in done.remarks))
print("stages", max(int(value) for remark in done.remarks for name, value in remark.facts
                    if name == "Stages"))
"""


@pytest.mark.parametrize("schedule", ["late", "early", "random"])
def test_sums_of_320_columns_are_alone(schedule: str, tmp_path: Path) -> None:
    found = counts_of(_PROGRAM, tmp_path, "sm_100", schedule)
    assert found["blocks"] == 1
    assert found["given up"] == 1
    assert found["stages"] > 2
