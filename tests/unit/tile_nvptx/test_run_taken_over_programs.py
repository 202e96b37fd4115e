"""cuTile programs with a loop of products whose blocks take over tile blocks: what is around it."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.cutile_programs import counts_of

pytest.importorskip("cuda.tile", reason="cuTile programs; `make test` installs it")

#: Each prints whether its blocks ask for others; one cluster at a time has all others to take.
_PROGRAM = """
cutile.settings.launch.update(wave_threads=1)
Int = ct.Constant[int]
TM, TN, TK, ROWS, COLUMNS, STEPS = 128, 128, 64, 3, 2, 4

def total(a, b, row, column, steps, tm, tn, tk):
    found = ct.full((tm, tn), 0, dtype=ct.float32)
    for k in range(steps):
        left = ct.load(a, (row, k), (tm, tk), padding_mode=ct.PaddingMode.ZERO)
        found = ct.mma(left, ct.load(b, (k, column), (tk, tn)), found)
    return found

@ct.kernel
def folded(a, b, c, s, steps: Int, tm: Int, tn: Int, tk: Int):
    row, column = ct.bid(0), ct.bid(1)
    found = total(a, b, row, column, steps, tm, tn, tk)
    ct.store(s, (row, column), ct.sum(found, axis=1, keepdims=True))
    ct.store(c, (row, column), found - ct.max(found, axis=1, keepdims=True))

@ct.kernel
def before(a, b, c, s, steps: Int, tm: Int, tn: Int, tk: Int):
    row, column = ct.bid(0), ct.bid(1)
    more = ct.load(s, (row, column), (tm, 1))
    ct.store(c, (row, column), total(a, b, row, column, steps, tm, tn, tk) + more)

@ct.kernel
def branch(a, b, c, s, steps: Int, tm: Int, tn: Int, tk: Int):
    row, column = ct.bid(0), ct.bid(1)
    if row >= column:
        ct.store(c, (row, column), total(a, b, row, column, steps, tm, tn, tk))

@ct.kernel
def triangle(a, b, c, s, steps: Int, tm: Int, tn: Int, tk: Int):
    row, column = ct.bid(0), ct.bid(1)
    ct.store(c, (row, column), total(a, b, row, column, row, tm, tn, tk))

@ct.kernel
def gathered(a, b, c, s, steps: Int, tm: Int, tn: Int, tk: Int):
    row, column = ct.bid(0), ct.bid(1)
    found = total(a, b, row, column, steps, tm, tn, tk)
    rows = row * tm + ct.arange(tm, dtype=ct.int32)[:, None]
    columns = column * tn + ct.arange(tn, dtype=ct.int32)[None, :]
    ct.scatter(c, (rows, columns), found + ct.gather(c, (rows, columns)))

@ct.kernel
def added(a, b, c, s, steps: Int, tm: Int, tn: Int, tk: Int):
    row, column = ct.bid(0), ct.bid(1)
    found = total(a, b, row, column, steps, tm, tn, tk)
    ct.store(c, (row, column), found)
    rows = row * tm + ct.arange(tm, dtype=ct.int32)
    ct.atomic_add(s, (rows, column), ct.sum(found, axis=1))

draw = np.random.default_rng(0)
m, n, k = ROWS * TM, COLUMNS * TN, STEPS * TK
a, b = draw.integers(-2, 3, (m, k)), draw.integers(-2, 3, (k, n))
whole = (a @ b).astype(np.float32)
parts = whole.reshape(m, COLUMNS, TN)
low = np.repeat(np.arange(ROWS), TM)
of_row = [(a[r * TM : (r + 1) * TM, : r * TK] @ b[: r * TK]) for r in range(ROWS)]
more = draw.integers(-5, 6, (m, COLUMNS)).astype(np.float32)
was = draw.integers(-3, 4, (m, n)).astype(np.float32)
seen = low[:, None] >= np.repeat(np.arange(COLUMNS), TN)[None, :]
wanted = {
    folded: (parts - parts.max(-1, keepdims=True)).reshape(m, n),
    before: (parts + more[:, :, None]).reshape(m, n),
    branch: np.where(seen, whole, was),
    triangle: np.concatenate(of_row),
    gathered: whole + was,
    added: whole,
}
names = ("folded", "before", "branch", "triangle", "gathered", "added")
for name, (kernel, meant) in zip(names, wanted.items(), strict=True):
    for ctas in (1, 2):
        c, s = was.copy(), more.copy()
        one = kernel.replace_hints(num_ctas=ctas) if ctas > 1 else kernel
        tile = (ctas * TM, ctas * TN) if name in ("folded", "before") else (TM, TN)
        if tile != (TM, TN):
            c, meant = c[: 2 * TM], meant[: 2 * TM]
            if name == "folded":
                meant = whole[: 2 * TM] - whole[: 2 * TM].max(-1, keepdims=True)
            if name == "before":
                meant, s = whole[: 2 * TM] + more[: 2 * TM, :1], s[: 2 * TM, :1].copy()
        grid = (c.shape[0] // tile[0], n // tile[1], 1)
        made.clear()
        halves = a.astype(np.float16), b.astype(np.float16)
        ct.launch(None, grid, one, (*halves, c, s, STEPS, *tile, TK))
        np.testing.assert_array_equal(c, meant)
        if name == "added":
            np.testing.assert_array_equal(s - more, parts.sum(-1))
        text = str(tile_core.compile(made[-1], arch, opt_level=3, emit="ptx").output)
        print(f"{name}{ctas}", int("try_cancel" in text))
"""


@pytest.mark.parametrize("schedule", ["late", "random"])
def test_around_the_loop(tmp_path: Path, schedule: str) -> None:
    asks = counts_of(_PROGRAM, tmp_path, "sm_100", schedule)
    once = ("folded", "before", "branch", "triangle", "gathered")
    assert {name: asks[f"{name}1"] for name in once} == dict.fromkeys(once, 1)
    assert asks["added1"] == asks["added2"] == 0, "other blocks may wait for atomics"
    assert asks["before2"] == 1
