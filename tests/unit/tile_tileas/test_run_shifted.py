"""Gathers that read what others do, a number of elements further on: what threads have already is
not loaded again, and everything that differs is (options `reuse-loads` and
`tileas-assign-layouts.reuse-loads`).
"""

from __future__ import annotations

from pathlib import Path

import pytest
from support.cutile_programs import counts_of

pytest.importorskip("cuda.tile", reason="cuTile programs; `make test` installs it")

#: Kernel -> the fewest accesses that one of its threads makes, and the most: where elements differ,
#: all of them are loaded.
_KERNELS = {
    "stencil": (0, 18),
    "stencil, each by itself": (144, 144),
    "narrow": (0, 32),
    "in_place": (15, 15),
    "other_padding": (32, 999),
    "other_mask": (32, 999),
    "stride_of_two": (0, 40),
    "through_indices": (0, 7),
    "taps": (0, 8),
    "nested_taps": (0, 18),
    "taps_that_write": (32, 999),
    "growing_taps": (0, 999),
    "volume": (0, 24),
    "turned": (0, 20),
    "permuted": (0, 16),
    "one_place": (0, 99),
}
_PROGRAM = """
Int = ct.Constant[int]
R, C = 16, 128  # of a tile

def places():
    i = ct.bid(0) * R + ct.arange(R, dtype=ct.int32).reshape((R, 1))
    j = ct.bid(1) * C + ct.arange(C, dtype=ct.int32).reshape((1, C))
    return i, j

@ct.kernel
def stencil(x, out):
    i, j = places()
    total = ct.full((R, C), 0, dtype=ct.float32)
    for di in ct.static_iter(range(-1, 2)):
        for dj in ct.static_iter(range(-1, 2)):
            near = ct.gather(x, (i + di, j + dj), padding_value=5)
            total += near.astype(ct.float32) * (3 * di + dj + 7)
    ct.store(out, (ct.bid(0), ct.bid(1)), total)

@ct.kernel
def narrow(x, out):
    i, j = places()
    total = ct.full((R, C), 0, dtype=ct.float32)
    for dj in ct.static_iter((0, 3, -5, 1)):
        total = total * 2 + ct.gather(x, (i, j + dj)).astype(ct.float32)
    ct.store(out, (ct.bid(0), ct.bid(1)), total)

@ct.kernel
def in_place(x, out):
    i, j = places()
    total = ct.full((R, C), 0, dtype=ct.float32)
    for di in ct.static_iter(range(-1, 2)):
        for dj in ct.static_iter(range(-1, 2)):
            total += ct.gather(x, (i, j + dj)).astype(ct.float32) * (dj + 2)
            ct.scatter(x, (i, j), ct.gather(x, (i, j)) + 1)
    ct.store(out, (ct.bid(0), ct.bid(1)), total)

@ct.kernel
def other_padding(x, out):
    i, j = places()
    left = ct.gather(x, (i, j - 1), padding_value=1).astype(ct.float32)
    right = ct.gather(x, (i, j + 1), padding_value=2).astype(ct.float32)
    ct.store(out, (ct.bid(0), ct.bid(1)), left + 3 * right)

@ct.kernel
def other_mask(x, out):
    i, j = places()
    left = ct.gather(x, (i, j - 1), mask=j % 3 > 0).astype(ct.float32)
    right = ct.gather(x, (i, j + 1), mask=j % 3 > 0).astype(ct.float32)
    ct.store(out, (ct.bid(0), ct.bid(1)), left + 3 * right)

@ct.kernel
def stride_of_two(x, out):
    i, j = places()
    total = ct.full((R, C), 0, dtype=ct.float32)
    for dj in ct.static_iter(range(4)):
        total = total * 2 + ct.gather(x, (i, 2 * j + dj)).astype(ct.float32)
    ct.store(out, (ct.bid(0), ct.bid(1)), total)

@ct.kernel
def through_indices(x, rows, out):
    i, j = places()
    row = ct.gather(rows, i)
    total = ct.full((R, C), 0, dtype=ct.float32)
    for dj in ct.static_iter(range(-1, 2)):
        total = total * 2 + ct.gather(x, (row, j + dj)).astype(ct.float32)
    ct.store(out, (ct.bid(0), ct.bid(1)), total)

@ct.kernel
def taps(x, out):
    i, j = places()
    total = ct.full((R, C), 0, dtype=ct.float32)
    for tap in range(4):
        total = total * 2 + ct.gather(x, (i, j - 3 + tap)).astype(ct.float32) * (tap + 1)
    ct.store(out, (ct.bid(0), ct.bid(1)), total)

@ct.kernel
def nested_taps(x, out):
    i, j = places()
    total = ct.full((R, C), 0, dtype=ct.float32)
    for di in range(3):
        for dj in range(3):
            near = ct.gather(x, (i + di - 1, j - dj)).astype(ct.float32)
            total += near * (3 * di + dj + 1)
    ct.store(out, (ct.bid(0), ct.bid(1)), total)

@ct.kernel
def taps_that_write(x, out):
    i, j = places()
    total = ct.full((R, C), 0, dtype=ct.float32)
    for tap in range(2):
        total = total * 2 + ct.gather(x, (i, j - tap)).astype(ct.float32)
        ct.scatter(x, (i, j), (total + 1).astype(x.dtype), mask=j % 2 == 0)
    ct.store(out, (ct.bid(0), ct.bid(1)), total)

@ct.kernel
def growing_taps(x, out):
    i, j = places()
    total = ct.full((R, C), 0, dtype=ct.float32)
    for tap in range(1, 8, 3):
        total = total * 2 + ct.gather(x, (i, j * tap)).astype(ct.float32) * tap
    ct.store(out, (ct.bid(0), ct.bid(1)), total)

@ct.kernel
def volume(x, out):
    k = ct.arange(4, dtype=ct.int32).reshape((4, 1, 1))
    i = ct.arange(8, dtype=ct.int32).reshape((1, 8, 1))
    j = ct.arange(32, dtype=ct.int32).reshape((1, 1, 32))
    total = ct.full((4, 8, 32), 0, dtype=ct.float32)
    for dk in ct.static_iter(range(-1, 2)):
        total += ct.gather(x, (k + dk, i - dk, j)).astype(ct.float32) * (dk + 2)
        total += ct.gather(x, (k, i + dk, j + dk)).astype(ct.float32) * (dk + 5)
    ct.store(out, (0, 0, 0), total)

@ct.kernel
def turned(x, out):
    i, j = places()
    total = ct.full((R, C), 0, dtype=ct.float32)
    for dj in ct.static_iter(range(-1, 2)):
        total = total * 2 + ct.gather(x, (j + dj, i)).astype(ct.float32)
    ct.store(out, (ct.bid(0), ct.bid(1)), total)

@ct.kernel
def permuted(x, out):
    j = ct.arange(32, dtype=ct.int32).reshape((32, 1, 1))
    k = ct.arange(4, dtype=ct.int32).reshape((1, 4, 1))
    i = ct.arange(8, dtype=ct.int32).reshape((1, 1, 8))
    place = ct.permute(100 * k + 10 * i + j, (1, 2, 0))
    near = ct.gather(x, place).astype(ct.float32)
    ct.store(out, (0, 0, 0), 2 * near + ct.gather(x, place + 1).astype(ct.float32))

@ct.kernel
def one_place(x, out):
    place = ct.arange(1, dtype=ct.int32) + 0 * ct.arange(C, dtype=ct.int32)
    near = ct.gather(x, place).astype(ct.float32)
    ct.store(out, (0,), 2 * near + ct.gather(x, place + 1).astype(ct.float32))

def at(x, *indices, padding=0):
    '''x at indices, and the padding where they are outside.'''
    inside = np.all([(k >= 0) & (k < n) for k, n in zip(indices, x.shape)], axis=0)
    near = tuple(np.clip(k, 0, n - 1) for k, n in zip(indices, x.shape))
    return np.where(inside, x[near], padding).astype(np.float32)

def polynomial(parts):
    total = 0
    for part in parts:
        total = total * 2 + part
    return total

rng = np.random.default_rng(0)
M, N = 24, 208
i, j = np.mgrid[:M, :N]

def numbers(type_, *shape):
    return rng.integers(0, 9, shape).astype(type_)

def accesses(**options):
    '''Loads from global memory that a thread of the last kernel has.'''
    ptx = tile_core.compile(made[-1], arch, opt_level=3, emit="ptx", options=options).output
    return ptx.count("ld.global")

def check(name, wanted, *arrays):
    out = np.full(wanted.shape, -1, np.float32)
    grid = (-(-M // R), -(-N // C), 1) if out.shape == (M, N) else (1, 1, 1)
    ct.launch(None, grid, globals()[name], (*arrays, out))
    np.testing.assert_array_equal(out, wanted, err_msg=name)
    print(name, accesses())

x = numbers(np.float16, M, N)
near = lambda di, dj, **how: at(x, i + di, j + dj, **how)
square = [(di, dj) for di in (-1, 0, 1) for dj in (-1, 0, 1)]
check("stencil", sum(near(*d, padding=5) * (3 * d[0] + d[1] + 7) for d in square), x)
print("stencil, each by itself", accesses(**{"reuse-loads": False}))
x = numbers(np.int8, M, N)
check("narrow", polynomial(near(0, d) for d in (0, 3, -5, 1)), x)
x = numbers(np.float16, M, N)
check("other_padding", near(0, -1, padding=1) + 3 * near(0, 1, padding=2), x)
check("other_mask", (near(0, -1) + 3 * near(0, 1)) * (j % 3 > 0), x)
check("stride_of_two", polynomial(at(x, i, 2 * j + d) for d in range(4)), x)
rows = rng.integers(-1, M + 1, M).astype(np.int32)
row = np.broadcast_to(rows[:, None], (M, N))
check("through_indices", polynomial(at(x, row, j + d) for d in (-1, 0, 1)), x, rows)
check("taps", polynomial(near(0, d - 3) * (d + 1) for d in range(4)), x)
check("nested_taps", sum(near(a - 1, -b) * (3 * a + b + 1) for a in range(3) for b in range(3)), x)
check("growing_taps", polynomial(at(x, i, j * d) * d for d in (1, 4, 7)), x)
cube = numbers(np.float16, 4, 8, 32)
a, b, c = np.mgrid[:4, :8, :32]
wanted = sum(at(cube, a + d, b - d, c) * (d + 2) for d in (-1, 0, 1))
wanted = wanted + sum(at(cube, a, b + d, c + d) * (d + 5) for d in (-1, 0, 1))
check("volume", wanted, cube)
x = numbers(np.float16, 512)
place = 100 * a + 10 * b + c
check("permuted", 2 * at(x, place) + at(x, place + 1), x)
x = np.arange(3, 200, dtype=np.float16)
check("one_place", np.full(C, 2 * 3 + 4, np.float32), x)
x = numbers(np.float16, N, M)
check("turned", polynomial(at(x, j + d, i) for d in (-1, 0, 1)), x)
# What one block writes, no other one may read.
M, N = 16, 128
i, j = np.mgrid[:M, :N]
x = numbers(np.float16, M, N)
wanted = sum((near(0, d) + at(np.full((M, N), k), i, j + d)) * (d + 2)
             for k, (_, d) in enumerate(square))
check("in_place", wanted, x)
x = numbers(np.float16, M, N)
first = near(0, 0)
after = np.where(j % 2 == 0, first + 1, first)
check("taps_that_write", first * 2 + at(after, i, j - 1), x.copy())
"""


@pytest.mark.parametrize(("arch", "schedule"), [("sm_80", "late"), ("sm_100", "random")])
def test_shifted(tmp_path: Path, arch: str, schedule: str) -> None:
    counts = counts_of(_PROGRAM, tmp_path, arch, schedule)
    wrong = {
        name: counts[name]
        for name, (fewest, most) in _KERNELS.items()
        if not fewest <= counts[name] <= most
    }
    assert not wrong, (wrong, counts)
