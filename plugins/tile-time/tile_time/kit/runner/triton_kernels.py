"""Two kernels in Triton, to stand beside ours. Imported only where Triton is found."""
# pyright: reportMissingImports=false, reportIndexIssue=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import triton
import triton.language as tl


@triton.jit
def _softmax(x, y, columns, width: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, width)
    values = tl.load(x + row * columns + at, mask=at < columns, other=-float("inf"))
    powers = tl.exp(values.to(tl.float32) - tl.max(values.to(tl.float32), axis=0))
    result = powers / tl.sum(powers, axis=0)
    tl.store(y + row * columns + at, result.to(y.dtype.element_ty), mask=at < columns)


def softmax(x: Any) -> Callable[[], Any]:
    y = torch.empty_like(x)
    rows, columns = x.shape
    width = triton.next_power_of_2(columns)
    return lambda: _softmax[(rows,)](x, y, columns, width=width)


@triton.jit
def _matmul(a, b, c, m, n, k, tm: tl.constexpr, tn: tl.constexpr, tk: tl.constexpr):
    """Sizes are multiples of the tile; groups of 8 rows of tiles, column by column."""
    number, down = tl.program_id(0), m // tm
    across = n // tn
    group = number // (8 * across)
    height = min(down - 8 * group, 8)
    row = (8 * group + number % (8 * across) % height) * tm + tl.arange(0, tm)
    column = number % (8 * across) // height * tn + tl.arange(0, tn)
    depth = tl.arange(0, tk)
    left, right = a + row[:, None] * k + depth, b + depth[:, None] * n + column
    total = tl.zeros((tm, tn), dtype=tl.float32)
    for _ in range(0, k, tk):
        total = tl.dot(tl.load(left), tl.load(right), total)
        left += tk
        right += tk * n
    tl.store(c + row[:, None] * n + column, total.to(c.dtype.element_ty))


def matmul(a: Any, b: Any) -> Callable[[], Any]:
    (m, k), n = a.shape, b.shape[1]
    c = torch.empty(m, n, dtype=a.dtype, device=a.device)
    tm, tn, tk = 128, 256, 64
    grid = (m // tm * (n // tn),)
    return lambda: _matmul[grid](
        a, b, c, m, n, k, tm=tm, tn=tn, tk=tk, num_warps=8, num_stages=3
    )  # fmt: skip
