"""Inputs, launch sizes and expected results of the examples. Needs NumPy alone, not cuTile.

A compiled kernel takes its arguments flat: for every array its address, then its shape, then its
strides in elements, as 32-bit integers; scalars as they are. Constants are compiled in.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

BYTECODE = Path(__file__).resolve().parent / "bytecode"

Arrays = dict[str, np.ndarray]

#: The largest error that the arithmetic of each type explains, relative and absolute.
TOLERANCES = {"float32": (2e-5, 1e-6), "float16": (2e-3, 1e-3)}


@dataclass(frozen=True)
class Case:
    """One launch of one example."""

    name: str  # of the kernel, and of its bytecode file
    grid: tuple[int, int, int]
    arguments: tuple[Any, ...]  # arrays, and NumPy scalars
    expected: tuple[np.ndarray | None, ...]  # one per argument; None where nothing is written

    @property
    def bytecode(self) -> bytes:
        """The TileIR bytecode of the kernel."""
        return (BYTECODE / f"{self.name}.tileirbc").read_bytes()

    @property
    def flat(self) -> list[Any]:
        """The arguments as the compiled kernel takes them."""
        return [value for argument in self.arguments for value in _flat(argument)]

    def errors(self) -> list[str]:
        """What is wrong in the arrays after a launch; empty when all is right."""
        found: list[str] = []
        for index, (got, wanted) in enumerate(zip(self.arguments, self.expected, strict=True)):
            if wanted is None:
                continue
            relative, absolute = TOLERANCES[wanted.dtype.name]
            close = np.isclose(got, wanted, rtol=relative, atol=absolute)
            if not close.all():
                at = tuple(int(i) for i in np.argwhere(~close)[0])
                found.append(
                    f"argument {index}: {np.count_nonzero(~close)} of {close.size} elements "
                    f"differ, first at {at}: {got[at]} instead of {wanted[at]}"
                )
        return found


def _flat(argument: Any) -> list[Any]:
    if not isinstance(argument, np.ndarray):
        return [argument]
    strides = [stride // argument.itemsize for stride in argument.strides]
    return [argument, *(np.int32(n) for n in (*argument.shape, *strides))]


def _random(rng: np.random.Generator, dtype: str, *shape: int) -> np.ndarray:
    return rng.standard_normal(shape).astype(dtype)


def vector_add(name: str, dtype: str, length: int) -> Case:
    """Tiles of 1024."""
    rng = np.random.default_rng(1)
    a, b = _random(rng, dtype, length), _random(rng, dtype, length)
    blocks = -(-length // 1024)
    return Case(name, (blocks, 1, 1), (a, b, np.zeros_like(a)), (None, None, a + b))


def saxpy_loop(name: str, dtype: str, length: int, blocks: int) -> Case:
    """Tiles of 1024, several for each block."""
    rng = np.random.default_rng(2)
    alpha = np.float32(0.75)
    x, y = _random(rng, dtype, length), _random(rng, dtype, length)
    total = (alpha * x.astype(np.float32) + y.astype(np.float32)).astype(dtype)
    return Case(name, (blocks, 1, 1), (alpha, x, y), (None, None, total))


def softmax(name: str, dtype: str, rows: int, columns: int) -> Case:
    """A block for each row."""
    rng = np.random.default_rng(3)
    x = _random(rng, dtype, rows, columns)
    powers = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True).astype(np.float64))
    result = (powers / powers.sum(axis=1, keepdims=True)).astype(dtype)
    return Case(name, (rows, 1, 1), (x, np.zeros_like(x)), (None, result))


def layer_norm(name: str, dtype: str, rows: int, columns: int) -> Case:
    """A block for each row, tiles of 1024 columns."""
    rng = np.random.default_rng(4)
    x = _random(rng, dtype, rows, columns)
    weight, bias = _random(rng, dtype, columns), _random(rng, dtype, columns)
    eps = np.float32(1e-5)
    wide = x.astype(np.float64)
    mean = wide.mean(axis=1)
    rstd = 1 / np.sqrt(wide.var(axis=1) + float(eps))
    y = (wide - mean[:, None]) * rstd[:, None] * weight.astype(np.float64) + bias
    statistics = [np.zeros(rows, np.float32), np.zeros(rows, np.float32)]
    return Case(
        name,
        (rows, 1, 1),
        (x, weight, bias, np.zeros_like(x), *statistics, eps),
        (None, None, None, y.astype(dtype), *(s.astype(np.float32) for s in (mean, rstd)), None),
    )


def rms_norm(name: str, dtype: str, rows: int, columns: int) -> Case:
    """A block for each row, tiles of 1024 columns."""
    rng = np.random.default_rng(6)
    x, weight = _random(rng, dtype, rows, columns), _random(rng, dtype, columns)
    eps = np.float32(1e-6)
    wide = x.astype(np.float64)
    scale = 1 / np.sqrt((wide * wide).mean(axis=1, keepdims=True) + float(eps))
    y = (wide * scale * weight.astype(np.float64)).astype(dtype)
    return Case(name, (rows, 1, 1), (x, weight, np.zeros_like(x), eps), (None, None, y, None))


def transpose(name: str, dtype: str, rows: int, columns: int) -> Case:
    """Tiles of 64 x 64 that reach past both edges."""
    x = _random(np.random.default_rng(7), dtype, rows, columns)
    blocks = (-(-rows // 64), -(-columns // 64), 1)
    return Case(name, blocks, (x, np.zeros((columns, rows), dtype)), (None, x.T.copy()))


def matmul(name: str, dtype: str, m: int, n: int, k: int, tile: tuple[int, int]) -> Case:
    """Tiles that reach past all edges; products are summed in float32."""
    rng = np.random.default_rng(5)
    a, b = _random(rng, dtype, m, k), _random(rng, dtype, k, n)
    total = (a.astype(np.float64) @ b.astype(np.float64)).astype(dtype)
    blocks = (-(-m // tile[0]), -(-n // tile[1]), 1)
    return Case(name, blocks, (a, b, np.zeros((m, n), dtype)), (None, None, total))


def batched_matmul(name: str, dtype: str, shape: tuple[int, int, int, int]) -> Case:
    """`shape` is (B, M, N, K); tiles of 128 x 64."""
    rng = np.random.default_rng(8)
    batch, m, n, k = shape
    a, b = _random(rng, dtype, batch, m, k), _random(rng, dtype, batch, k, n)
    total = (a.astype(np.float64) @ b.astype(np.float64)).astype(dtype)
    blocks = (batch, -(-m // 128), -(-n // 64))
    return Case(name, blocks, (a, b, np.zeros((batch, m, n), dtype)), (None, None, total))


def attention(name: str, dtype: str, shape: tuple[int, int, int], rows: int) -> Case:
    """`shape` is (heads, length, depth); a block for `rows` rows of a head."""
    rng = np.random.default_rng(9)
    q, k, v = (_random(rng, dtype, *shape) for _ in range(3))
    scale = np.float32(shape[2] ** -0.5)
    wide = [tensor.astype(np.float64) for tensor in (q, k, v)]
    scores = wide[0] @ wide[1].transpose(0, 2, 1) * float(scale)
    powers = np.exp(scores - scores.max(axis=2, keepdims=True))
    y = (powers / powers.sum(axis=2, keepdims=True) @ wide[2]).astype(dtype)
    blocks = (shape[0], -(-shape[1] // rows), 1)
    return Case(name, blocks, (q, k, v, np.zeros_like(q), scale), (None, None, None, y, None))


def layer_norm_backward(name: str, dtype: str, rows: int, columns: int) -> Case:
    """A block for each row; sums over rows in two groups."""
    rng = np.random.default_rng(10)
    dy, x = _random(rng, dtype, rows, columns), _random(rng, dtype, rows, columns)
    weight = _random(rng, dtype, columns)
    gradient, wide = dy.astype(np.float64), x.astype(np.float64)
    mean, rstd = wide.mean(axis=1), 1 / np.sqrt(wide.var(axis=1) + 1e-5)
    statistics = [each.astype(np.float32) for each in (mean, rstd)]
    normal = (wide - mean[:, None]) * rstd[:, None]
    pulled = gradient * weight.astype(np.float64)
    level = pulled.mean(axis=1, keepdims=True)
    slope = (pulled * normal).mean(axis=1, keepdims=True)
    dx = ((pulled - level - normal * slope) * rstd[:, None]).astype(dtype)
    sums = [np.zeros((2, columns), np.float32) for _ in range(2)]
    expected = [
        np.stack([each[g::2].sum(axis=0) for g in (0, 1)]) for each in (gradient * normal, gradient)
    ]
    return Case(
        name,
        (rows, 1, 1),
        (dy, x, weight, *statistics, np.zeros_like(x), *sums),
        (None, None, None, None, None, dx, *(each.astype(np.float32) for each in expected)),
    )


def fft(name: str, rows: int, n1: int, n2: int) -> Case:
    """Rows of n1 * n2 numbers; real and imaginary parts in arrays of their own."""
    rng = np.random.default_rng(11)
    # Sums of so many numbers near 1 would differ by more than what single ones may.
    x = [_random(rng, "float32", rows, n1, n2) / np.float32(64) for _ in range(2)]

    def roots(order: int, a: int, b: int) -> tuple[np.ndarray, np.ndarray]:
        angle = -2 * np.pi / order * np.outer(np.arange(a), np.arange(b))
        return np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)

    whole = x[0].astype(np.float64) + 1j * x[1].astype(np.float64)
    y = np.fft.fft(whole.reshape(rows, -1)).reshape(rows, n2, n1)
    tables = (*roots(n1, n1, n1), *roots(n1 * n2, n1, n2), *roots(n2, n2, n2))
    outputs = [np.zeros((rows, n2, n1), np.float32) for _ in range(2)]
    expected = [np.ascontiguousarray(part, np.float32) for part in (y.real, y.imag)]
    return Case(name, (rows, 1, 1), (*x, *tables, *outputs), ((None,) * 8 + tuple(expected)))


def _table() -> dict[str, Callable[[str], Case]]:
    f32, f16 = "float32", "float16"
    return {
        "vector_add_f32": lambda name: vector_add(name, f32, 4096 + 48),
        "vector_add_f16": lambda name: vector_add(name, f16, 4096 + 48),
        "vector_add_tail_f32": lambda name: vector_add(name, f32, 2 * 1024 + 7),
        "saxpy_loop_f32": lambda name: saxpy_loop(name, f32, 1024 * 7 + 16, blocks=3),
        "saxpy_loop_f16": lambda name: saxpy_loop(name, f16, 1024 * 7 + 16, blocks=3),
        "softmax_f32": lambda name: softmax(name, f32, 4, 1000),
        "softmax_f16": lambda name: softmax(name, f16, 4, 1000),
        "layer_norm_f32": lambda name: layer_norm(name, f32, 3, 1504),
        "layer_norm_f16": lambda name: layer_norm(name, f16, 3, 1504),
        "rms_norm_f32": lambda name: rms_norm(name, f32, 3, 1504),
        "rms_norm_f16": lambda name: rms_norm(name, f16, 3, 1504),
        "transpose_f32": lambda name: transpose(name, f32, 72, 136),
        "transpose_f16": lambda name: transpose(name, f16, 72, 136),
        "matmul_f16": lambda name: matmul(name, f16, 72, 88, 80, (64, 64)),
        "matmul_f32": lambda name: matmul(name, f32, 36, 68, 44, (32, 64)),
        "matmul_large_f16": lambda name: matmul(name, f16, 136, 152, 136, (128, 128)),
        "batched_matmul_f16": lambda name: batched_matmul(name, f16, (2, 136, 72, 72)),
        "attention_f16": lambda name: attention(name, f16, (2, 72, 64), 64),
        "attention_large_f16": lambda name: attention(name, f16, (1, 136, 128), 128),
        "layer_norm_backward_f16": lambda name: layer_norm_backward(name, f16, 3, 1504),
        "fft_f32": lambda name: fft(name, 2, 32, 32),
    }


_CASES = _table()

NAMES = tuple(_CASES)

#: Those that take longest: not every target and -O level is tried in tests.
LARGE = ("attention_f16", "attention_large_f16", "batched_matmul_f16", "fft_f32")


def case(name: str) -> Case:
    """A fresh set of arrays for example `name`, one of `NAMES`."""
    return _CASES[name](name)
