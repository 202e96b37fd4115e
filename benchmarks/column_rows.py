"""Arguments of column_kernels.py: `speed.py --rows column_rows:ROWS`, and what NumPy makes."""

from __future__ import annotations

from functools import partial
from math import ceil

import numpy as np
from speed_rows import Row
from user_rows import Array, Case, Fill, Sized, f32


def column_softmax(fill: Fill, rows: int, columns: int) -> Case:
    x, out = fill("f16", rows, columns), fill("f16", rows, columns)

    def expected() -> Array:
        powers = np.exp(f32(x) - f32(x).max(axis=0))
        return powers / powers.sum(axis=0)

    return Case((columns // 64,), (x, out, rows, 64), ((out, expected),), 5.0 * x.size, bits=0)


def column_bytes(fill: Fill, rows: int, columns: int) -> Case:
    x, out, scales = fill("bf16", rows, columns), fill("i8", rows, columns), fill("f32", columns)

    def scale() -> Array:
        return np.maximum(abs(f32(x)).max(axis=0), 1e-8) / 127

    written = ((out, lambda: np.floor(f32(x) / scale() + 0.5)), (scales, scale))
    return Case((columns // 64,), (x, out, scales, 128, 64), written, 4.0 * x.size, bits=0)


def running_columns(fill: Fill, rows: int, columns: int) -> Case:
    x, out = fill("f32", rows, columns), fill("f32", rows, columns)
    return Case((columns // 64,), (x, out, 64, 64), ((out, lambda: x.cumsum(axis=0)),),
                2.0 * x.size, bits=0)  # fmt: skip


def largest_rows(fill: Fill, rows: int, columns: int) -> Case:
    x, places = fill("f16", rows, columns), fill("i32", columns)

    def prepare() -> None:
        for column in range(columns):
            x[column * 7 % rows, column] = 9

    return Case((columns // 64,), (x, places, 128, 64),
                ((places, lambda: f32(x.argmax(axis=0))),), 1.0 * x.size, bits=0,
                prepare=prepare)  # fmt: skip


def batch_norm(fill: Fill, rows: int, columns: int) -> Case:
    x, out = fill("f16", rows, columns), fill("f16", rows, columns)
    gain, bias = fill("f32", columns), fill("f32", columns)

    def expected() -> Array:
        wide = f32(x)
        scaled = (wide - wide.mean(axis=0)) / np.sqrt(wide.var(axis=0) + 1e-5)
        return np.maximum(scaled * gain + bias, 0)

    return Case((columns // 64,), (x, gain, bias, out, 1e-5, 128, 64), ((out, expected),),
                6.0 * x.size, bits=0)  # fmt: skip


def pooled(fill: Fill, batch: int, length: int, channels: int) -> Case:
    x, out = fill("bf16", batch, length, channels), fill("bf16", batch, channels)
    return Case((batch, channels // 128), (x, out, 64, 128),
                ((out, lambda: f32(x).mean(axis=1)),), 1.0 * x.size, bits=0)  # fmt: skip


def middle_softmax(fill: Fill, batch: int, choices: int, columns: int) -> Case:
    x, out = fill("f32", batch, choices, columns), fill("f32", batch, choices, columns)

    def expected() -> Array:
        powers = np.exp(x - x.max(axis=1, keepdims=True))
        return powers / powers.sum(axis=1, keepdims=True)

    return Case((batch, columns // 128), (x, out, choices, 128), ((out, expected),),
                5.0 * x.size, bits=0)  # fmt: skip


def power_iteration(fill: Fill, rows: int, columns: int) -> Case:
    x, vector, out = fill("f16", rows, columns), fill("f32", columns), fill("f32", columns)

    def prepare() -> None:
        out[...] = 0

    return Case((ceil(rows / 32),), (x, vector, out, 32, columns),
                ((out, lambda: f32(x).T @ (f32(x) @ vector)),), 4.0 * x.size, bits=0,
                prepare=prepare)  # fmt: skip


_sized = partial(Sized, module="column_kernels")
CASES = (
    _sized(column_softmax, (512, 65536), (512, 128)),
    _sized(column_bytes, (16384, 16384), (200, 128)),
    _sized(running_columns, (8192, 16384), (200, 128)),
    _sized(largest_rows, (16384, 16384), (200, 128), prepared=True),
    _sized(batch_norm, (16384, 16384), (200, 128)),
    _sized(pooled, (64, 4096, 1024), (2, 200, 128)),
    _sized(middle_softmax, (4096, 32, 1024), (2, 32, 128)),
    _sized(power_iteration, (65536, 1024), (100, 256), prepared=True),
)
ROWS: tuple[Row, ...] = tuple(one.row() for one in CASES)
