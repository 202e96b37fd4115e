"""Elementwise work on long tiles, a slice after the other (`tileas-slice-and-fuse`): results are
NumPy's, whatever is cut, and what may not be cut is not.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from support.cutile_programs import counts_of

pytest.importorskip("cuda.tile", reason="cuTile programs; `make test` installs it")

#: Kernel -> whether its tiles are cut.
_KERNELS = {
    "gated": True,
    "gradient": True,
    "bytes": True,
    "in_loop": False,  # loads are an iteration ahead there
    "in_place": False,  # what it stores is read again, and tokens say so
    "folded": False,
    "short": False,
    "also_folded": False,
}
_PROGRAM = """
Int = ct.Constant[int]
N, USED = 8192, 5003

def columns(n=N):
    return ct.arange(n, dtype=ct.int32)

def gate(a, b):
    return a / (1 + ct.exp(-a)) * b

@ct.kernel
def gated(x, out):
    row, j = ct.bid(0), columns()
    a = ct.gather(x, (row, j)).astype(ct.float32)
    b = ct.gather(x, (row, j + USED)).astype(ct.float32)
    ct.scatter(out, (row, j), gate(a, b).astype(out.dtype))

@ct.kernel
def gradient(x, g, out, more):
    row, j = ct.bid(0), columns()
    a = ct.gather(x, (row, j), padding_value=3).astype(ct.float32)
    b = ct.gather(x, (row, j + USED)).astype(ct.float32)
    d = ct.gather(g, (row, j)).astype(ct.float32)
    ct.scatter(out, (row, j), (d * a).astype(out.dtype))
    ct.scatter(more, (row, j), (d * b + j.astype(ct.float32)).astype(more.dtype))

@ct.kernel
def in_loop(x, out):
    for row in range(ct.bid(0), x.shape[0], 2):
        j = columns()
        a = ct.gather(x, (row, j)).astype(ct.float32)
        b = ct.gather(x, (row, USED + j)).astype(ct.float32)
        ct.scatter(out, (row, j), gate(a, b).astype(out.dtype))

@ct.kernel
def bytes(x, out):
    row, j = ct.bid(0), columns(16384)
    ct.scatter(out, (row, j), ct.gather(x, (row, j)).astype(ct.float32) * 2)

@ct.kernel
def in_place(x, out):
    row, j = ct.bid(0), columns()
    a = ct.gather(x, (row, j))
    b = ct.gather(x, (row, N - 1 - j))
    ct.scatter(x, (row, j), a + b)
    c = ct.gather(x, (row, N - 1 - j))
    ct.scatter(out, (row, j), c + 1)

@ct.kernel
def folded(x, out):
    row, j = ct.bid(0), columns()
    a = ct.gather(x, (row, j), padding_value=0)
    b = ct.gather(x, (row, USED + j), padding_value=0)
    ct.scatter(out, (row, j), a - ct.max(b, 0, keepdims=True))

@ct.kernel
def short(x, out):
    row, j = ct.bid(0), columns(1024)
    ct.scatter(out, (row, j), ct.gather(x, (row, j)) + 1)

@ct.kernel
def also_folded(x, out, total):
    row, j = ct.bid(0), columns()
    a = ct.gather(x, (row, j), padding_value=0).astype(ct.float32)
    b = ct.gather(x, (row, USED + j), padding_value=0).astype(ct.float32)
    ct.scatter(out, (row, j), (a + b).astype(out.dtype))
    ct.store(total, (row,), ct.max(a, 0, keepdims=True))

rng = np.random.default_rng(3)
ROWS = 3

def some(columns, dtype=np.float32):
    return rng.integers(-9, 9, (ROWS, columns)).astype(dtype)

def sliced():
    made_of = tile_core.compile(made[-1], arch, opt_level=3, emit="mlir:tileas-slice-and-fuse")
    return 'sliced' in str(made_of.output)

def near(got, wanted):  # exp and the division are approximate, all else is exact
    return np.allclose(got, wanted, rtol=1e-5, atol=1e-5)

def cases():
    def gated_of(x):
        a, b = x[:, :USED], x[:, USED:]
        return a / (1 + np.exp(-a)) * b
    x, out = some(2 * USED), some(USED)
    yield gated, (x, out), lambda: near(out, gated_of(x)), ROWS
    x, g, out1, more = some(2 * USED), some(USED), some(USED), some(USED)
    yield (gradient, (x, g, out1, more), lambda: near(out1, g * x[:, :USED])
           and near(more, g * x[:, USED:] + np.arange(USED)), ROWS)
    x1, out2 = some(2 * USED), some(USED)
    yield in_loop, (x1, out2), lambda: near(out2, gated_of(x1)), 2
    x2, out3 = some(16000, np.int8), some(16000)
    yield bytes, (x2, out3), lambda: near(out3, 2.0 * x2), ROWS
    x3, out4 = some(N), some(N)
    before = x3.copy()
    after = before + before[:, ::-1]
    yield in_place, (x3, out4), lambda: near(x3, after) and near(out4, after[:, ::-1] + 1), ROWS
    x4, out5 = some(2 * USED), some(USED)
    yield (folded, (x4, out5),
           lambda: near(out5, x4[:, :USED] - np.maximum(x4[:, USED:].max(1), 0)[:, None]), ROWS)
    x5, out6 = some(1000), some(1000)
    yield short, (x5, out6), lambda: near(out6, x5 + 1), ROWS
    x6, out7, total = some(2 * USED), some(USED), some(1)[:, 0].copy()
    yield (also_folded, (x6, out7, total), lambda: near(out7, x6[:, :USED] + x6[:, USED:])
           and near(total, x6[:, :N].max(1)), ROWS)

for kernel, arguments, is_right, grid in cases():
    ct.launch(None, (grid, 1, 1), kernel, arguments)
    name = kernel._pyfunc.__name__
    assert is_right(), name
    print(name, int(sliced()))
"""


@pytest.mark.parametrize("arch", ["sm_80", "sm_100"])
def test_results_of_slices_are_those_of_the_whole(arch: str, tmp_path: Path) -> None:
    found = counts_of(_PROGRAM, tmp_path, arch, "random")
    assert {name: bool(cut) for name, cut in found.items()} == _KERNELS
