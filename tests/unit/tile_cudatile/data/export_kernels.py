"""Writes the sample programs of this folder with cuTile Python.

Needs the `cuda-tile` package (no GPU): `python export_kernels.py [folder]`. The path of this file
ends up in the debug information, so run a copy of it at `/samples/export_kernels.py`.
Every file is `<kernel>.<bytecode version>.tileirbc`.
"""

from __future__ import annotations

import sys
from pathlib import Path

import cuda.tile as ct
from cuda.tile import _compile
from cuda.tile._bytecode.version import BytecodeVersion
from cuda.tile.compilation import (
    ArrayConstraint,
    CallingConvention,
    ConstantConstraint,
    KernelSignature,
    ScalarConstraint,
    export_kernel,
)


@ct.kernel
def vector_add(a, b, c, tile: ct.Constant[int]):
    pid = ct.bid(0)
    x = ct.load(a, index=(pid,), shape=(tile,), padding_mode=ct.PaddingMode.ZERO)
    y = ct.load(b, index=(pid,), shape=(tile,), padding_mode=ct.PaddingMode.ZERO)
    ct.store(c, index=(pid,), tile=x + y)


@ct.kernel
def softmax(x, out, cols: ct.Constant[int]):
    row = ct.bid(0)
    t = ct.load(x, index=(row, 0), shape=(1, cols), padding_mode=ct.PaddingMode.NEG_INF)
    t = t.astype(ct.float32)
    e = ct.exp(t - ct.max(t, 1, keepdims=True))
    ct.store(out, index=(row, 0), tile=(e / ct.sum(e, 1, keepdims=True)).astype(out.dtype))


@ct.kernel
def matmul(a, b, c, tm: ct.Constant[int], tn: ct.Constant[int], tk: ct.Constant[int]):
    i, j = ct.bid(0), ct.bid(1)
    acc = ct.full((tm, tn), 0, dtype=ct.float32)
    for k in range(ct.num_tiles(a, axis=1, shape=(tm, tk))):
        x = ct.load(a, index=(i, k), shape=(tm, tk), padding_mode=ct.PaddingMode.ZERO)
        y = ct.load(b, index=(k, j), shape=(tk, tn), padding_mode=ct.PaddingMode.ZERO)
        acc = ct.mma(x, y, acc)
    ct.store(c, index=(i, j), tile=acc.astype(c.dtype))


@ct.kernel
def gather_rows(table, rows, out, tile: ct.Constant[int]):
    pid = ct.bid(0)
    r = ct.load(rows, index=(pid,), shape=(tile,))
    cols = ct.arange(tile, dtype=ct.int32)
    picked = ct.gather(table, (r[:, None], cols[None, :]), padding_value=-1.0)
    ct.scatter(out, (pid * tile + ct.arange(tile, dtype=ct.int32)[:, None], cols[None, :]), picked)


@ct.kernel
def histogram(data, bins, tile: ct.Constant[int]):
    pid = ct.bid(0)
    values = ct.load(data, index=(pid,), shape=(tile,))
    ct.atomic_add(bins, values, 1)
    ct.atomic_max(bins, values, pid)


@ct.kernel
def collatz(data, out, limit: int):
    pid = ct.bid(0)
    n = ct.load(data, index=(pid,), shape=(1,)).item()
    steps = 0
    while n != 1:
        if steps >= limit:
            break
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    ct.store(out, index=(pid,), tile=steps)


@ct.kernel
def scan_rows(x, out, low, tile: ct.Constant[int]):
    pid = ct.bid(0)
    t = ct.load(x, index=(pid, 0), shape=(4, tile))
    s = ct.cumsum(t, axis=1)
    p = ct.cumprod(t, axis=0, reverse=True)
    ct.store(out, index=(pid, 0), tile=ct.where(s > p, s, p))
    ct.store(low, index=(pid,), tile=ct.argmin(t, axis=1))


@ct.kernel
def transpose(x, y, tm: ct.Constant[int], tn: ct.Constant[int]):
    i, j = ct.bid(0), ct.bid(1)
    t = ct.transpose(ct.load(x, index=(i, j), shape=(tm, tn)))
    ct.store(y, index=(j, i), tile=t)
    if i == 0:
        ct.printf("block %d %d\n", i, j)
    ct.assert_(t == t, "nan")  # noqa: PT009


@ct.kernel
def batch_matmul(a, b, c, t: ct.Constant[int]):
    i, j, k = ct.bid(0), ct.bid(1), ct.bid(2)
    x = ct.load(a, index=(i, j, 0), shape=(1, t, t))
    y = ct.load(b, index=(i, 0, k), shape=(1, t, t))
    acc = ct.mma(x, y, ct.full((1, t, t), 0, dtype=ct.int32))
    ct.store(c, index=(i, j, k), tile=acc)


@ct.kernel
def casts(x, y, z, tile: ct.Constant[int]):
    pid = ct.bid(0)
    t = ct.load(x, index=(pid,), shape=(tile,))
    ct.store(y, index=(pid,), tile=t.astype(ct.float8_e4m3fn))
    u = ct.bitcast(t, ct.uint32)
    v = (u >> 3) ^ (u << 5) & 0x7F
    ct.store(z, index=(pid,), tile=((v >> 1) + v % 7).astype(ct.int64))


def array(dtype, ndim: int) -> ArrayConstraint:
    """A row-major array whose last stride is one, as a framework passes it."""
    return ArrayConstraint(
        dtype,
        ndim,
        index_dtype=ct.int32,
        stride_lower_bound_incl=0,
        alias_groups=(),
        may_alias_internally=False,
        stride_constant=[None] * (ndim - 1) + [1],
        stride_divisible_by=[16] * (ndim - 1) + [1],
        shape_divisible_by=16,
        base_addr_divisible_by=16,
    )


def const(value) -> ConstantConstraint:
    return ConstantConstraint(value)


f16, f32, i32 = ct.float16, ct.float32, ct.int32
KERNELS = {
    "vector_add": (vector_add, [array(f32, 1)] * 3 + [const(64)]),
    "softmax": (softmax, [array(f16, 2)] * 2 + [const(128)]),
    "matmul": (matmul, [array(f16, 2)] * 3 + [const(64), const(64), const(32)]),
    "gather_rows": (gather_rows, [array(f32, 2), array(i32, 1), array(f32, 2), const(16)]),
    "histogram": (histogram, [array(i32, 1)] * 2 + [const(32)]),
    "collatz": (collatz, [array(i32, 1)] * 2 + [ScalarConstraint(i32)]),
    "scan_rows": (scan_rows, [array(f32, 2)] * 2 + [array(i32, 1), const(32)]),
    "transpose": (transpose, [array(f32, 2)] * 2 + [const(32), const(16)]),
    "batch_matmul": (batch_matmul, [array(ct.int8, 3)] * 2 + [array(i32, 3), const(32)]),
    "casts": (casts, [array(f32, 1), array(ct.float8_e4m3fn, 1), array(ct.int64, 1), const(64)]),
}
VERSIONS = {f"13.{minor}": BytecodeVersion(130000 + 100 * minor) for minor in range(1, 6)}

# cuTile Python 1.7 can write 13.5, but does not offer it.
_compile.parse_bytecode_version = VERSIONS.__getitem__


def main(folder: Path) -> None:
    convention = CallingConvention.cutile_python_v1()
    for name, (kernel, parameters) in KERNELS.items():
        for version in tuple(VERSIONS) if name == "matmul" else ("13.1", "13.3", "13.5"):
            signature = KernelSignature(parameters, convention, symbol=name)
            try:
                export_kernel(
                    kernel,
                    [signature],
                    str(folder / f"{name}.{version}.tileirbc"),
                    gpu_code="sm_90",
                    output_format="tileir_bytecode",
                    bytecode_version=version,
                )
            except ct.TileError as error:
                print(f"{name} {version}: {error}", file=sys.stderr)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
