"""Products that two loops add up, one in the other: one loop, and the same sums."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.cutile_programs import counts_of

pytest.importorskip("cuda.tile", reason="cuTile programs; `make test` installs it")

#: Kernel -> how many of its nests become one loop.
_KERNELS = {
    "segments": 1,
    "every_other": 1,
    "as_many_as_there_are": 1,
    "none_inside": 1,
    "none_outside": 1,
    "two_sums": 1,
    "three_loops": 2,
    "sum_of_each": 0,
    "from_the_start": 0,
    "scaled": 0,
    "as_many_as_before": 0,
    "long": 0,
    "from_below": 0,
}
_PROGRAM = """
M, N, K = 64, 64, 32
ZERO = ct.PaddingMode.ZERO

def tiles(a, b, s, k):
    left = ct.load(a, (s, 0, k), (1, M, K), padding_mode=ZERO).reshape((M, K))
    return left, ct.load(b, (s, k, 0), (1, K, N), padding_mode=ZERO).reshape((K, N))

def gathered(a, b, s, k):
    row = ct.arange(M, dtype=ct.int32).reshape((M, 1))
    column = k * K + ct.arange(K, dtype=ct.int32).reshape((1, K))
    return ct.gather(a, (s, row, column), padding_value=0), tiles(a, b, s, k)[1]

@ct.kernel
def segments(a, b, out):
    total = ct.full((M, N), 0, dtype=ct.float32)
    for s in range(3):
        for k in range(ct.cdiv(a.shape[2], K)):
            left, right = gathered(a, b, s, k)
            total = ct.mma(left, right, total)
    ct.store(out, (0, 0), total)

@ct.kernel
def every_other(a, b, out):
    total = ct.full((M, N), 1, dtype=ct.float32)
    for s in range(1, 5, 2):
        for k in range(1, ct.cdiv(a.shape[2], K), 2):
            left, right = gathered(a, b, s - 1, k)
            total = ct.mma(left, right, total)
    ct.store(out, (0, 0), total)

@ct.kernel
def as_many_as_there_are(a, b, out):
    total = ct.full((M, N), 0, dtype=ct.float32)
    for s in range(a.shape[0]):
        for k in range(ct.cdiv(a.shape[2], K)):
            left, right = tiles(a, b, s, k)
            total = ct.mma(left, right, total)
    ct.store(out, (0, 0), total)

@ct.kernel
def none_inside(a, b, out):
    total = ct.full((M, N), 3, dtype=ct.float32)
    for s in range(4):
        for k in range(7, ct.cdiv(a.shape[2], K)):
            left, right = tiles(a, b, s, k)
            total = ct.mma(left, right, total)
    ct.store(out, (0, 0), total)

@ct.kernel
def none_outside(a, b, out):
    total = ct.full((M, N), 3, dtype=ct.float32)
    for s in range(9, a.shape[0]):
        for k in range(ct.cdiv(a.shape[2], K)):
            left, right = tiles(a, b, s, k)
            total = ct.mma(left, right, total)
    ct.store(out, (0, 0), total)

@ct.kernel
def two_sums(a, b, out):
    total = ct.full((M, N), 0, dtype=ct.float32)
    other = ct.full((M, N), 5, dtype=ct.float32)
    for s in range(2):
        for k in range(ct.cdiv(a.shape[2], K)):
            left, right = gathered(a, b, s + 1, k)
            total = ct.mma(left, right, total)
            other = ct.mma(right.transpose(), left.transpose(), other)
    ct.store(out, (0, 0), total - other.transpose())

@ct.kernel
def three_loops(a, b, out):
    total = ct.full((M, N), 2, dtype=ct.float32)
    for r in range(2):
        for s in range(1, 3):
            for k in range(ct.cdiv(a.shape[2], K)):
                left, right = gathered(a, b, 2 * r + s, k)
                total = ct.mma(left, right, total)
    ct.store(out, (0, 0), total)

@ct.kernel
def sum_of_each(a, b, out):
    most = ct.full((M, N), -1e9, dtype=ct.float32)
    for s in range(3):
        total = ct.full((M, N), 0, dtype=ct.float32)
        for k in range(ct.cdiv(a.shape[2], K)):
            left, right = tiles(a, b, s, k)
            total = ct.mma(left, right, total)
        most = ct.maximum(most, total)
    ct.store(out, (0, 0), most)

@ct.kernel
def from_the_start(a, b, out):
    total = ct.full((M, N), 1, dtype=ct.float32)
    for s in range(3):
        start = total
        for k in range(ct.cdiv(a.shape[2], K)):
            left, right = tiles(a, b, s, k)
            total = ct.mma(left, right, total) + start
    ct.store(out, (0, 0), total)

@ct.kernel
def scaled(a, b, out):
    total = ct.full((M, N), 0, dtype=ct.float32)
    for s in range(3):
        for k in range(ct.cdiv(a.shape[2], K)):
            left, right = tiles(a, b, s, k)
            total = ct.mma(left, right, total)
        total = total * 0.5
    ct.store(out, (0, 0), total)

@ct.kernel
def as_many_as_before(a, b, out):
    total = ct.full((M, N), 0, dtype=ct.float32)
    for s in range(3):
        for k in range(s):
            left, right = tiles(a, b, s, k)
            total = ct.mma(left, right, total)
    ct.store(out, (0, 0), total)

@ct.kernel
def long(a, b, out):
    total = ct.full((M, N), 0, dtype=ct.float32)
    for s in range(2):
        for k in range(64):
            left, right = tiles(a, b, s, k)
            total = ct.mma(left, right, total)
    ct.store(out, (0, 0), total)

@ct.kernel
def from_below(a, b, out):
    total = ct.full((M, N), 0, dtype=ct.float32)
    for s in range(-1, 3):
        for k in range(ct.cdiv(a.shape[2], K)):
            left, right = tiles(a, b, s + 1, k)
            total = ct.mma(left, right, total)
    ct.store(out, (0, 0), total)

S, D = 5, 80  # the last tile along K is half outside
rng = np.random.default_rng(0)
a, b = (rng.integers(-3, 4, shape).astype(np.float16) for shape in ((S, M, D), (S, D, N)))
steps = [slice(K * k, K * k + K) for k in range(3)]
of = lambda s, k: a[s][:, steps[k]].astype(np.float32) @ b[s][steps[k]].astype(np.float32)
whole = lambda s: sum(of(s, k) for k in range(3))
halves = 0
for s in range(3):
    halves = (halves + whole(s)) / 2
fourfold = 1
for s in range(3):
    fourfold = 4 * fourfold + whole(s)
wanted = {
    "segments": whole(0) + whole(1) + whole(2),
    "every_other": 1 + of(0, 1) + of(2, 1),
    "as_many_as_there_are": sum(map(whole, range(S))),
    "none_inside": np.full((M, N), 3),
    "none_outside": np.full((M, N), 3),
    "two_sums": np.full((M, N), -5),
    "three_loops": 2 + whole(1) + whole(2) + whole(3) + whole(4),
    "sum_of_each": np.maximum(np.maximum(whole(0), whole(1)), whole(2)),
    "from_the_start": fourfold,
    "scaled": halves,
    "as_many_as_before": of(1, 0) + of(2, 0) + of(2, 1),
    "long": whole(0) + whole(1),
    "from_below": sum(map(whole, range(4))),
}
for name, right in wanted.items():
    out = np.full((M, N), -1, np.float32)
    ct.launch(None, (1, 1, 1), globals()[name], (a, b, out))
    np.testing.assert_array_equal(out, right, err_msg=name)
    done = tile_core.compile(made[-1], arch, opt_level=3, emit="ptx")
    print(name, done.statistics.get(("tileas-flatten-loops", "loops"), 0))
"""


@pytest.mark.parametrize(("arch", "schedule"), [("sm_90", "early"), ("sm_100", "random")])
def test_flattened(tmp_path: Path, arch: str, schedule: str) -> None:
    counts = counts_of(_PROGRAM, tmp_path, arch, schedule)
    assert counts == _KERNELS
