"""CUDA C++ compiled by nvcc, run in the simulator, against NumPy."""

from __future__ import annotations

import struct
from collections.abc import Callable

import numpy as np
import pytest
from tile_sim import Module

Cuda = Callable[[str], Module]


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(1)


@pytest.mark.parametrize("n", [1, 31, 1000, 20000])
def test_saxpy(cuda: Cuda, rng: np.random.Generator, n: int) -> None:
    x, y = rng.random(n, np.float32), rng.random(n, np.float32)
    expected = (np.float64(2.5) * x + y).astype(np.float32)
    report = cuda("saxpy").launch("saxpy", (4, 1, 1), (96, 1, 1), [n, 2.5, x, y])
    np.testing.assert_array_equal(y, expected)
    assert report.thread_instructions > 6 * n


@pytest.mark.parametrize(("m", "n", "k"), [(16, 16, 16), (33, 50, 17), (64, 48, 80)])
def test_matmul_in_shared_memory(
    cuda: Cuda, rng: np.random.Generator, m: int, n: int, k: int
) -> None:
    a, b = rng.random((m, k), np.float32), rng.random((k, n), np.float32)
    c = np.full((m, n), np.nan, np.float32)
    grid = (-(-n // 16), -(-m // 16), 1)
    cuda("matmul").launch("matmul", grid, (16, 16, 1), [a, b, c, m, n, k])
    np.testing.assert_allclose(c, a @ b, rtol=1e-5)


@pytest.mark.parametrize("wave_threads", [64, 16384])
def test_block_reduction(cuda: Cuda, rng: np.random.Generator, wave_threads: int) -> None:
    x, out = rng.random(5000, np.float32), np.zeros(1, np.float32)
    cuda("reduce").launch(
        "reduce_sum", (5, 1, 1), (192, 1, 1), [x, 5000, out], wave_threads=wave_threads
    )
    np.testing.assert_allclose(out[0], x.sum(dtype=np.float64), rtol=1e-5)


def test_reduction_of_a_warp_in_hardware(cuda: Cuda, rng: np.random.Generator) -> None:
    x = rng.integers(-(2**31), 2**31, 3000).astype(np.int32)
    out = np.array([-(2**31)], np.int32)
    cuda("reduce").launch("reduce_max", (3, 1, 1), (128, 1, 1), [x, 3000, out])
    assert out[0] == x.max()


def test_histogram(cuda: Cuda, rng: np.random.Generator) -> None:
    x = rng.integers(0, 256, 10007).astype(np.uint8)
    bins = np.zeros(256, np.uint32)
    cuda("histogram").launch("histogram", (7, 1, 1), (160, 1, 1), [x, len(x), bins])
    np.testing.assert_array_equal(bins, np.bincount(x, minlength=256))


def test_atomics_return_distinct_old_values(cuda: Cuda) -> None:
    counter, taken = np.zeros(1, np.uint32), np.zeros(640, np.uint32)
    cuda("histogram").launch("tickets", (5, 1, 1), (128, 1, 1), [counter, taken])
    assert counter[0] == 640
    np.testing.assert_array_equal(np.sort(taken), np.arange(640))


def test_lock_between_threads_of_a_warp(cuda: Cuda) -> None:
    lock, total = np.zeros(1, np.int32), np.zeros(1, np.int32)
    cuda("histogram").launch("locked", (2, 1, 1), (64, 1, 1), [lock, total])
    assert total[0] == 128


def test_scan_with_look_back(cuda: Cuda, rng: np.random.Generator) -> None:
    n, block = 1000, 128
    x = rng.integers(-100, 100, n).astype(np.int32)
    y, blocks = np.zeros(n, np.int32), -(-n // block)
    state, ticket = np.zeros(2 * blocks, np.int32), np.zeros(1, np.int32)
    cuda("scan").launch(
        "scan", (blocks, 1, 1), (block, 1, 1), [x, y, n, state, ticket], shared_bytes=4 * block
    )
    np.testing.assert_array_equal(y, np.cumsum(x))


def test_bitonic_sort(cuda: Cuda, rng: np.random.Generator) -> None:
    keys = rng.integers(0, 2**32, (3, 256), np.uint32)
    expected = np.sort(keys, axis=1)
    cuda("sort").launch("bitonic", (3, 1, 1), (128, 1, 1), [keys], shared_bytes=1024)
    np.testing.assert_array_equal(keys, expected)


def test_softmax(cuda: Cuda, rng: np.random.Generator) -> None:
    x = rng.normal(0, 4, (6, 300)).astype(np.float32)
    y = np.zeros_like(x)
    cuda("softmax").launch("softmax", (6, 1, 1), (128, 1, 1), [x, y, 300])
    e = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    np.testing.assert_allclose(y, e / e.sum(axis=1, keepdims=True), rtol=2e-6)


def test_stencil(cuda: Cuda, rng: np.random.Generator) -> None:
    x = rng.random((37, 45))
    y = np.zeros_like(x)
    cuda("stencil").launch("stencil", (6, 5, 1), (8, 8, 1), [x, y, 45, 37])
    p = np.pad(x, 1)
    expected = p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:] - 4 * x
    np.testing.assert_allclose(y, expected, rtol=1e-12, atol=1e-14)


def test_loops_of_different_length(cuda: Cuda, rng: np.random.Generator) -> None:
    x = rng.integers(1, 5000, 300).astype(np.uint32)
    steps = np.zeros(300, np.uint32)
    cuda("diverge").launch("collatz", (3, 1, 1), (128, 1, 1), [x, steps, 300])

    def length(v: int) -> int:
        count = 0
        while v != 1:
            v, count = (3 * v + 1 if v & 1 else v // 2), count + 1
        return count

    np.testing.assert_array_equal(steps, [length(int(v)) for v in x])


def _wrap(v: int) -> int:
    return (v + 2**31) % 2**32 - 2**31


def _rem(a: int, b: int) -> int:
    return abs(a) % b * (1 if a >= 0 else -1)


def _helper(a: int, b: int) -> int:
    if a % 3 == 0:
        return _wrap(a * b)
    for i in range(b):
        if a > 1000:
            break
        a = _wrap(a + (a ^ i))
    return _wrap(a - b)


def _switches(v: int) -> int:
    r = 0
    for k in range(v & 7):
        case = _rem(_wrap(v + k), 9)
        if case == 4:
            r = _helper(_wrap(r + 1), v & 15)
        else:
            table = {0: r + 1, 1: r ^ 55, 2: r * 3, 3: r - v, 5: r + v * k, 6: r | 4, 7: r & 0x7FFF}
            r = _wrap(table.get(case, ~r))
        if r == 12345:
            continue
        r = _wrap(r + _helper(k, r & 3))
    return r


def test_switch_call_break_continue(cuda: Cuda, rng: np.random.Generator) -> None:
    x = rng.integers(-(2**31), 2**31, 200).astype(np.int32)
    y = np.zeros_like(x)
    cuda("diverge").launch("switches", (2, 1, 1), (128, 1, 1), [x, y, 200])
    np.testing.assert_array_equal(y, [_switches(int(v)) for v in x])


def test_function_pointers(cuda: Cuda, rng: np.random.Generator) -> None:
    x = rng.integers(-1000, 1000, 64).astype(np.int32)
    y, i = np.zeros_like(x), np.arange(64)
    cuda("diverge").launch("pointers", (1, 1, 1), (64, 1, 1), [x, y])
    np.testing.assert_array_equal(y, np.choose(i % 3, [x + i, x - i, x * i]))


def test_printf(cuda: Cuda) -> None:
    report = cuda("diverge").launch("hello", (1, 1, 1), (32, 1, 1), [3])
    assert report.text == "".join(
        f"thread {t} of block: {t * 0.5:5.2f} {t << 40} {chr(97 + t)}%\n" for t in range(3)
    )


def test_struct_by_value_and_local_array(cuda: Cuda) -> None:
    big = struct.pack("<5i4xdc7x", 1, 12, 3, 4, 5, 100.9, b"\x07")
    out = np.zeros(40, np.int32)
    cuda("diverge").launch("by_value", (1, 1, 1), (40, 1, 1), [big, out])
    local = [i * [2, 3, 5, 7][i & 3] for i in range(8)]
    expected = [local[(1, 12, 3, 4, 5)[t % 5] & 7] + 107 for t in range(40)]
    np.testing.assert_array_equal(out, expected)


def _int_cases(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    edge = np.array([0, 1, -1, 2, 31, 32, 2**31 - 1, -(2**31), 255, -256])
    a, b = (x.reshape(-1) for x in np.meshgrid(edge, edge))
    more = rng.integers(-(2**31), 2**31, (2, n - len(a)))
    return np.append(a, more[0]).astype(np.int32), np.append(b, more[1]).astype(np.int32)


def _u(v: int, bits: int = 32) -> int:
    return v % (1 << bits)


def _s(v: int, bits: int = 64) -> int:
    return (v + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))


def _quotient(a: int, b: int) -> tuple[int, int]:
    q = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    return q, a - q * b


def _funnel(high: int, low: int, n: int, left: bool) -> int:
    both, n = (high << 32) | low, n % 32
    return (both << n >> 32) & 0xFFFFFFFF if left else both >> n & 0xFFFFFFFF


def _integer_results(x: int, y: int) -> list[int]:
    """What each line of the kernel `integers` means, in exact integers."""
    u, v = _u(x), _u(y)
    lx, ly = _s((x << 20) ^ y), _s(y * 77777 + x)
    ulx = _u(lx, 64)
    q, r = _quotient(x, y) if y else (0, 0)
    lq, lr = _quotient(lx, ly) if ly else (0, 0)
    both = (v << 32) | u
    picked = [both >> (8 * k) & 0xFF for k in (1, 4, 2, 5)]
    short = lambda t: _s(t, 16)  # noqa: E731
    bytes_ = lambda t: [_s(t >> (8 * k), 8) for k in range(4)]  # noqa: E731
    dot = sum(p * q for p, q in zip(bytes_(x), bytes_(y), strict=True))
    halves = [((u >> k & 0xFFFF) + (v >> k & 0xFFFF)) & 0xFFFF for k in (0, 16)]
    return [
        _s(q, 32), r, u // v if v else 0, u % v if v else 0,
        x * y >> 32, u * v >> 32, lx * ly >> 64, ulx * _u(ly, 64) >> 64,
        _s(lq), lr, u.bit_count(), 32 - u.bit_length(),
        (u & -u).bit_length(), int(f"{u:032b}"[::-1], 2), ulx.bit_count(), 64 - ulx.bit_length(),
        int(f"{ulx:064b}"[::-1], 2), sum(b << (8 * k) for k, b in enumerate(picked)),
        _funnel(v, u, y & 63, True), _funnel(v, u, y & 63, False),
        x >> (y & 31), u >> (y & 31), lx << (y & 63), _u(min(x, y)) ^ max(u, v),
        _s(abs(x), 32), _u(abs(x - y) + v), short(x) * short(y), _s(x, 8) + (y & 0xFF),
        _s(dot + 5, 32), (x > y) + 2 * (u > v) + 4 * (x == y),
        (u * v & 0xFFFF) % 1000, halves[0] | halves[1] << 16,
    ]  # fmt: skip


def test_integer_instructions(cuda: Cuda, rng: np.random.Generator) -> None:
    n = 400
    a, b = _int_cases(rng, n)
    out = np.zeros((n, 32), np.int64)
    cuda("arithmetic").launch("integers", (4, 1, 1), (128, 1, 1), [a, b, out, n])
    for i in range(n):
        expected = [_s(e) for e in _integer_results(int(a[i]), int(b[i]))]
        assert out[i].tolist() == expected, (int(a[i]), int(b[i]))
