"""Loads of few registers beside chained products by tcgen05: a step ahead, and right."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.cutile_programs import counts_of

pytest.importorskip("cuda.tile", reason="cuTile programs; `make test` installs it")

#: Kernel -> how many of its loads are carried.
_KERNELS = {
    "of_each_key": 1,
    "two_of_them": 2,
    "padded": 1,
    "from_inside": 1,
    "unchecked": 1,
    "none": 1,
    "many": 0,
    "by_numbers": 0,
    "by_carried": 0,
    "written": 0,
}
_PROGRAM = """
M, N, K, D = 128, 64, 64, 64

def step(q, k, v, j, bias, total):
    key = ct.load(k, (j, 0), (N, K), padding_mode=ct.PaddingMode.ZERO)
    scores = ct.mma(q, key.transpose(), ct.full((M, N), 0, dtype=ct.float32)) + bias
    value = ct.load(v, (j, 0), (N, D), padding_mode=ct.PaddingMode.ZERO)
    return ct.mma(ct.exp2(scores).astype(ct.float16), value, total)

def start(q):
    return ct.load(q, (0, 0), (M, K)), ct.full((M, D), 0, dtype=ct.float32)

@ct.kernel
def of_each_key(q, k, v, bias, wide, order, out):
    query, total = start(q)
    for j in range(ct.cdiv(k.shape[0], N)):
        total = step(query, k, v, j, ct.load(bias, (j,), (N,)).reshape((1, N)), total)
    ct.store(out, (0, 0), total)

@ct.kernel
def two_of_them(q, k, v, bias, wide, order, out):
    query, total = start(q)
    for j in range(ct.cdiv(k.shape[0], N)):
        both = ct.load(bias, (j,), (N,)) + ct.load(order, (j,), (N,)).astype(ct.float32)
        total = step(query, k, v, j, both.reshape((1, N)), total)
    ct.store(out, (0, 0), total)

@ct.kernel
def padded(q, k, v, bias, wide, order, out):
    query, total = start(q)
    for j in range(ct.cdiv(k.shape[0], N)):
        one = ct.load(bias, (j,), (N,), padding_mode=ct.PaddingMode.NEG_INF)
        total = step(query, k, v, j, one.reshape((1, N)), total)
    ct.store(out, (0, 0), total)

@ct.kernel
def from_inside(q, k, v, bias, wide, order, out):
    query, total = start(q)
    for j in range(1, ct.cdiv(k.shape[0], N), 2):
        total = step(query, k, v, j, ct.load(bias, (j,), (N,)).reshape((1, N)), total)
    ct.store(out, (0, 0), total)

@ct.kernel
def unchecked(q, k, v, bias, wide, order, out):  # any row that there is has a whole tile
    query, total = start(q)
    for j in range(wide.shape[0]):
        total = step(query, k, v, j, ct.load(wide, (j, 0), (1, N)), total)
    ct.store(out, (0, 0), total)

@ct.kernel
def none(q, k, v, bias, wide, order, out):
    query, total = start(q)
    for j in range(order.shape[0], wide.shape[0]):
        total = step(query, k, v, j, ct.load(wide, (j, 0), (1, N)), total)
    ct.store(out, (0, 0), total)

@ct.kernel
def many(q, k, v, bias, wide, order, out):
    query, total = start(q)
    for j in range(ct.cdiv(k.shape[0], N)):
        total = step(query, k, v, j, ct.load(v, (0, j), (M, N)).astype(ct.float32), total)
    ct.store(out, (0, 0), total)

@ct.kernel
def by_numbers(q, k, v, bias, wide, order, out):
    query, total = start(q)
    for j in range(ct.cdiv(k.shape[0], N)):
        row = ct.load(bias, (ct.gather(order, j),), (N,)).reshape((1, N))
        total = step(query, k, v, j, row, total)
    ct.store(out, (0, 0), total)

@ct.kernel
def by_carried(q, k, v, bias, wide, order, out):
    query, total = start(q)
    row = 0
    for j in range(wide.shape[0]):
        total = step(query, k, v, j, ct.load(wide, (row, 0), (1, N)), total)
        row = (row + 3) % 7
    ct.store(out, (0, 0), total)

@ct.kernel
def written(q, k, v, bias, wide, order, out):
    query, total = start(q)
    for j in range(wide.shape[0] - 1):
        row = ct.load(wide, (j, 0), (1, N))
        total = step(query, k, v, j, row, total)
        ct.store(wide, (j + 1, 0), row - 0.5)
    ct.store(out, (0, 0), total)

L = 400  # the last tile is partly outside
rng = np.random.default_rng(0)
draw = lambda *shape: rng.integers(-2, 3, shape)
q, k = (draw(size, K).astype(np.float16) * np.float16(0.25) for size in (M, L))
v, bias = draw(L, D).astype(np.float16), draw(L).astype(np.float32)
order = draw(L).astype(np.int32) + 2
steps = range(-(-L // N))
pad = lambda x, rows: np.pad(x, ((0, rows - x.shape[0]),) + ((0, 0),) * (x.ndim - 1))
whole = len(steps) * N
wide = draw(len(steps), N).astype(np.float32)
keys, values, single = (pad(x.astype(np.float64), whole) for x in (k, v, bias))
places = pad(order, whole)

def summed(which, biases):
    total = np.zeros((M, D))
    for j in which:
        at = slice(j * N, j * N + N)
        powers = np.exp2(q.astype(np.float64) @ keys[at].T + biases(j, at))
        total += powers.astype(np.float16).astype(np.float64) @ values[at]
    return total

infinite = np.concatenate([bias, np.full(whole - L, -np.inf)])
wanted = {
    "of_each_key": summed(steps, lambda j, at: single[at]),
    "two_of_them": summed(steps, lambda j, at: single[at] + places[at]),
    "padded": summed(steps, lambda j, at: infinite[at]),
    "from_inside": summed(steps[1::2], lambda j, at: single[at]),
    "unchecked": summed(steps, lambda j, at: wide[j]),
    "none": np.zeros((M, D)),
    "many": summed(steps, lambda j, at: v[:M].astype(np.float64) * (j == 0)),
    "by_carried": summed(steps, lambda j, at: wide[3 * j % 7]),
    "written": summed(steps[:-1], lambda j, at, first=wide[0].copy(): first - 0.5 * j),
    "by_numbers": summed(steps, lambda j, at: single[N * order[j] : N * order[j] + N]),
}
for name in sorted(wanted):  # the last one writes what others read
    right = wanted[name]
    out = np.full((M, D), -1, np.float32)
    ct.launch(None, (1, 1, 1), globals()[name], (q, k, v, bias, wide, order, out))
    np.testing.assert_allclose(out, right, rtol=1e-3, atol=1e-3, err_msg=name)
    done = tile_core.compile(made[-1], arch, opt_level=3, emit="ptx")
    print(name, done.statistics.get(("tileas-unspecialized-pipeline", "carried"), 0))
"""


@pytest.mark.parametrize("schedule", ["late", "early", "random"])
def test_carried(tmp_path: Path, schedule: str) -> None:
    assert counts_of(_PROGRAM, tmp_path, "sm_100", schedule) == _KERNELS
