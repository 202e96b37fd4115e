"""Products that each iteration reads, two iterations as one, and numbers loaded an iteration ahead:
right, whatever the number of iterations, and nothing is read that no iteration reads.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from support.cutile_programs import counts_of

pytest.importorskip("cuda.tile", reason="cuTile programs; `make test` installs it")

#: Kernel -> how many places of its code begin products.
_PRODUCTS = {
    "scaled": 5,  # of the first pair, two in the loop, and the one that is left over
    "one by one": 1,  # as the strategy of no pipeline asks for
    "of_eight": 4,
    "of_five": 2,  # too few pairs: one before the loop, and one in it
    "added": 2,
    "two_sums": 4,  # of which one is made while the other one is read
}
_BLOCKS = """
M = N = K = 128
ZERO = ct.PaddingMode.ZERO

def start():
    return ct.full((M, N), 0, dtype=ct.float32)

def scales(sa, sb, k):
    rows = ct.gather(sa, (ct.arange(M, dtype=ct.int32), k), padding_value=0.0)
    return rows.reshape((M, 1)) * ct.gather(sb, (0, k), padding_value=0.0)

def part(a, b, k):
    left, right = ct.load(a, (0, k), (M, K)), ct.load(b, (0, k), (N, K))
    return ct.mma(left, right.transpose(), start())

@ct.kernel
def scaled(a, b, sa, sb, out):
    total = start()
    for k in range(ct.cdiv(a.shape[1], K)):
        total = total + part(a, b, k) * scales(sa, sb, k)
    ct.store(out, (0, 0), total)

@ct.kernel
def of_eight(a, b, sa, sb, out):
    total = start()
    for k in range(8):
        total = total + part(a, b, k) * scales(sa, sb, k)
    ct.store(out, (0, 0), total)

@ct.kernel
def of_five(a, b, sa, sb, out):
    total = start()
    for k in range(5):
        total = total + part(a, b, k) * scales(sa, sb, k)
    ct.store(out, (0, 0), total)

@ct.kernel
def added(a, b, sa, sb, out):  # to what the loop carries: nobody reads it there
    total = start()
    for k in range(ct.cdiv(a.shape[1], K)):
        left, right = ct.load(a, (0, k), (M, K)), ct.load(b, (0, k), (N, K))
        total = ct.mma(left, right.transpose(), total)
    ct.store(out, (0, 0), total)

@ct.kernel
def two_sums(a, b, sa, sb, out):
    total = start()
    for k in range(ct.cdiv(a.shape[1], K)):
        one, other = part(a, b, k), part(b, a, k)
        total = total + one * scales(sa, sb, k) - other
    ct.store(out, (0, 0), total)

import ml_dtypes
rng = np.random.default_rng(0)
draw = lambda *shape: rng.integers(-2, 3, shape).astype(np.float32)

def check(name, steps, code=True):
    a, b = draw(M, max(1, steps) * K), draw(N, max(1, steps) * K)
    sa, sb = draw(M, max(1, steps)), draw(1, max(1, steps))
    narrow = [one.astype(ml_dtypes.float8_e4m3fn)[:, : steps * K] for one in (a, b)]
    out = np.full((M, N), -1, np.float32)
    ct.launch(None, (1, 1, 1), globals()[name], (*narrow, sa[:, :steps], sb[:, :steps], out))
    right = np.zeros((M, N), np.float32)
    for k in range(steps):
        at = slice(k * K, k * K + K)
        one, other = a[:, at] @ b[:, at].T, b[:, at] @ a[:, at].T
        scale = sa[:, k : k + 1] * sb[:, k]
        if name == "added":
            right += one
        elif name == "two_sums":
            right += one * scale - other
        else:
            right += one * scale
    np.testing.assert_array_equal(out, right, err_msg=f"{name} {steps}")
    if code:
        ptx = tile_core.compile(made[-1], arch, opt_level=3, emit="ptx").output
        text = ptx.decode() if isinstance(ptx, bytes) else str(ptx)
        print(name, text.count("setp.ne.b32 begin") or text.count("tcgen05.mma"))

check("scaled", 8)
one_by_one = {"pipeline-strategy": "none"}
ptx = tile_core.compile(made[-1], arch, opt_level=3, options=one_by_one, emit="ptx").output
print("one by one", str(ptx).count("setp.ne.b32 begin"))
for steps in (1, 2, 3, 4, 5, 7):
    check("scaled", steps, code=False)
check("of_eight", 8)
check("of_five", 5)
check("added", 4)
check("two_sums", 3)
"""


@pytest.mark.parametrize("schedule", ["late", "early", "random"])
def test_products_that_each_iteration_reads(tmp_path: Path, schedule: str) -> None:
    assert counts_of(_BLOCKS, tmp_path, "sm_100", schedule) == _PRODUCTS


#: Loops that read a number in each iteration. Strict checks find what is read outside of arrays,
#: and who reads and writes in no order.
_NUMBERS = """
@ct.kernel
def sizes(n, x, out):  # of groups of rows that follow one another
    first = 0
    for group in range(n.shape[0]):
        count = ct.load(n, (group,), (1,)).item()
        total = ct.full((16,), 0, dtype=ct.float32)
        for row in range(count):
            total = total + ct.load(x, (first + row, 0), (1, 16)).reshape((16,))
        ct.store(out, (group, 0), total.reshape((1, 16)))
        first = first + count

@ct.kernel
def some(n, x, out, lower: int, upper: int):  # which may be none
    total = ct.full((16,), 0, dtype=ct.float32)
    for k in range(lower, upper):
        scale = ct.gather(n, k, check_bounds=False).astype(ct.float32)
        total = total + ct.load(x, (k, 0), (1, 16)).reshape((16,)) * scale
    ct.store(out, (0, 0), total.reshape((1, 16)))

@ct.kernel
def changed(n, x, out):  # what an iteration reads, the one before it wrote
    for k in range(n.shape[0] - 1):
        here = ct.load(n, (k,), (1,))
        ct.store(n, (k + 1,), here * 2)

@ct.kernel
def found(n, x, out):  # where an iteration reads, the one before it says
    at = 0
    for k in range(4):
        at = ct.gather(n, at).item()
    ct.store(out, (0, 0), ct.load(x, (at, 0), (1, 16)))

@ct.kernel
def placed(n, x, out):  # tiles that lie where numbers say
    total = ct.full((16,), 0, dtype=ct.float32)
    for k in range(n.shape[0]):
        row = ct.load(n, (k,), (1,)).item()
        total = total + ct.load(x, (row, 0), (1, 16)).reshape((16,)) * row
    ct.store(out, (0, 0), total.reshape((1, 16)))

rng = np.random.default_rng(0)
x = rng.integers(-3, 4, (24, 16)).astype(np.float32)
launch = lambda kernel, *rest: ct.launch(None, (1, 1, 1), kernel, rest)

n, out = np.array([3, 0, 5, 1, 0, 7], np.int32), np.full((6, 16), -1, np.float32)
launch(sizes, n, x, out)
ends = np.cumsum(n)
np.testing.assert_array_equal(out, [x[e - c : e].sum(axis=0) for e, c in zip(ends, n)])
for lower, upper in ((0, 6), (2, 3), (3, 3), (9, 2), (5, 6)):
    out[:] = -1
    launch(some, n, x, out, lower, upper)
    wanted = (x[lower:upper] * n[lower:upper, None]).sum(axis=0)
    np.testing.assert_array_equal(out[0], wanted, err_msg=f"{lower} {upper}")
n = np.array([3, 0, 0, 0, 0, 0], np.int32)
launch(changed, n, x, out)
np.testing.assert_array_equal(n, 3 << np.arange(6))
n = np.array([3, 0, 9, 5, 1, 2], np.int32)
launch(found, n, x, out)
np.testing.assert_array_equal(out[0], x[9])
launch(placed, n, x, out)
np.testing.assert_array_equal(out[0], (x[n] * n[:, None]).sum(axis=0))
print("done", 1)
"""


@pytest.mark.parametrize("arch", ["sm_80", "sm_90", "sm_100", "sm_120"])
@pytest.mark.parametrize("schedule", ["late", "early"])
def test_numbers_an_iteration_ahead(tmp_path: Path, arch: str, schedule: str) -> None:
    assert counts_of(_NUMBERS, tmp_path, arch, schedule) == {"done": 1}
