"""What threads make for products by tcgen05 of tiles that tensor maps bring: held in tensor memory,
two of them in turn, and right.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from support.cutile_programs import counts_of

pytest.importorskip("cuda.tile", reason="cuTile programs; `make test` installs it")

#: Kernel -> whether products read what threads make in tensor memory.
_KERNELS = {
    "scaled": 1,
    "gated": 1,
    "summed": 1,
    "again": 1,
    "none": 1,
    "with_others": 1,
    "as_it_is": 0,
    "few_rows": 1,
    "large": 1,
}
_PROGRAM = """
M, N, K = 128, 64, 32
ZERO = ct.PaddingMode.ZERO

def start(rows=M):
    return ct.full((rows, N), 0, dtype=ct.float32)

def tiles(a, b, k, rows=M):
    left = ct.load(a, (0, k), (rows, K), padding_mode=ZERO)
    return left, ct.load(b, (k, 0), (K, N), padding_mode=ZERO)

@ct.kernel
def scaled(a, b, g, s, out):
    total = start()
    for k in range(ct.cdiv(a.shape[1], K)):
        left, right = tiles(a, b, k)
        made = left.astype(ct.float32) * ct.load(s, (k,), (K,), padding_mode=ZERO).reshape((1, K))
        total = ct.mma(made.astype(a.dtype), right, total)
    ct.store(out, (0, 0), total)

@ct.kernel
def gated(a, b, g, s, out):
    total = start()
    for k in range(ct.cdiv(a.shape[1], K)):
        left, right = tiles(a, b, k)
        gate = ct.load(g, (0, k), (M, K), padding_mode=ZERO)
        total = ct.mma(ct.maximum(left * gate, 0), right, total)
    ct.store(out, (0, 0), total)

@ct.kernel
def summed(a, b, g, s, out):
    total, rows = start(), ct.full((M, 1), 0, dtype=ct.float32)
    for k in range(ct.cdiv(a.shape[1], K)):
        left, right = tiles(a, b, k)
        rows += ct.sum(left.astype(ct.float32), axis=1, keepdims=True)
        total = ct.mma(left + 1, right, total)
    ct.store(out, (0, 0), total + rows)

@ct.kernel
def again(a, b, g, s, out):
    for time in range(3):
        total = start()
        for k in range(time, ct.cdiv(a.shape[1], K), 2):
            left, right = tiles(a, b, k)
            total = ct.mma(left * 2, right, total)
        ct.store(out, (time, 0), total)

@ct.kernel
def none(a, b, g, s, out):
    total = start() + 3
    for k in range(g.shape[1], ct.cdiv(a.shape[1], K)):
        left, right = tiles(a, b, k)
        total = ct.mma(left * 2, right, total)
    ct.store(out, (0, 0), total)

@ct.kernel
def with_others(a, b, g, s, out):
    total = start()
    for k in range(ct.cdiv(a.shape[1], K)):
        left, right = tiles(g, b, k)
        made = ct.load(out, (1, 0), (M, K)).astype(ct.float16) + left
        total = ct.mma(made, right, total)
    ct.store(out, (0, 0), total)

@ct.kernel
def as_it_is(a, b, g, s, out):
    total = start()
    for k in range(ct.cdiv(a.shape[1], K)):
        left, right = tiles(a, b, k)
        total = ct.mma(left, right, total)
    ct.store(out, (0, 0), total)

@ct.kernel
def few_rows(a, b, g, s, out):
    total = start(64)
    for k in range(ct.cdiv(a.shape[1], K)):
        left, right = tiles(a, b, k, 64)
        total = ct.mma(left * 2, right, total)
    ct.store(out, (0, 0), total)

@ct.kernel
def large(a, b, s, out):  # of which two blocks have three stages each
    total = ct.full((M, 128), 0, dtype=ct.float32)
    for k in range(ct.cdiv(a.shape[1], 64)):
        left = ct.load(a, (0, k), (M, 64), padding_mode=ZERO).astype(ct.float32)
        made = left * ct.load(s, (k,), (64,), padding_mode=ZERO).reshape((1, 64))
        right = ct.load(b, (k, 0), (64, 128), padding_mode=ZERO)
        total = ct.mma(made.astype(a.dtype), right, total)
    ct.store(out, (0, 0), total)

D = 304  # the last tile is partly outside
rng = np.random.default_rng(0)
draw = lambda *shape: rng.integers(-2, 3, shape)
a, g = draw(M, D).astype(np.float16), draw(M, D).astype(np.float16)
b, s = draw(D, N).astype(np.float16), draw(D).astype(np.float32)
wide, right = a.astype(np.float32), b.astype(np.float32)
steps = range(-(-D // K))
of = lambda left, k: left[:, K * k : K * k + K] @ right[K * k : K * k + K]
parts = lambda left, first=0, by=1: sum((of(left, k) for k in steps[first::by]), np.zeros((M, N)))
blank = np.full((3 * M, N), -1, np.float32)
first = lambda block, rows=M: np.concatenate([block[:rows], blank[rows:]])
filled = blank[M : 2 * M, :K]
wanted = {
    "scaled": first(parts(wide * s)),
    "gated": first(parts(np.maximum(wide * g.astype(np.float32), 0))),
    "summed": first(parts(wide + 1) + wide.sum(axis=1, keepdims=True)),
    "again": np.concatenate([parts(2 * wide, time, 2) for time in range(3)]),
    "none": first(np.full((M, N), 3)),
    "with_others": first(parts(g.astype(np.float32) - 1)),
    "as_it_is": first(parts(wide)),
    "few_rows": first(parts(2 * wide), 64),
}
def show(name):
    ptx = tile_core.compile(made[-1], arch, opt_level=3, emit="ptx").output
    text = ptx.decode() if isinstance(ptx, bytes) else str(ptx)
    print(name, int("tcgen05.st" in text))

for name, right_one in wanted.items():
    out = blank.copy()
    ct.launch(None, (1, 1, 1), globals()[name], (a, b, g, s, out))
    np.testing.assert_array_equal(out, right_one, err_msg=name)
    show(name)

a, b = draw(M, 624).astype(np.float16), draw(624, 128).astype(np.float16)
s, out = draw(624).astype(np.float32), np.full((M, 128), -1, np.float32)
ct.launch(None, (1, 1, 1), large, (a, b, s, out))
np.testing.assert_array_equal(out, (a.astype(np.float32) * s) @ b.astype(np.float32))
show("large")
"""


@pytest.mark.parametrize("schedule", ["late", "early", "random"])
def test_made(tmp_path: Path, schedule: str) -> None:
    assert counts_of(_PROGRAM, tmp_path, "sm_100", schedule) == _KERNELS
