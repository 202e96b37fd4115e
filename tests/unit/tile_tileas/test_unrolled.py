"""Loops unrolled by the factor that they ask for, compiled and run."""

from __future__ import annotations

import numpy as np
import pytest
from support.tiles import Kernel

TRIPS = 8


def product(factor: int) -> Kernel:
    """acc += a[:, i] @ b[i, :] over TRIPS tiles of 16."""
    deep = 16 * TRIPS
    kernel = Kernel()
    for name, shape, tile in (("a", (64, deep), (64, 16)), ("b", (deep, 64), (16, 64))):
        pointer = kernel.param("!nv_tileaa.ptr<f16, 1 : i32>")
        sizes = f"array<i64: {shape[0]}, {shape[1]}>, array<i64: {shape[1]}, 1>"
        memref = f"!nv_tileaa.memref<f16, {sizes}>"
        view = (
            f"!nv_tileaa.tiled_view<{memref}, array<i32: {tile[0]}, {tile[1]}>, array<i32: 0, 1>, "
            '"">'
        )
        kernel.op(
            f'%{name}m = "nv_tileaa.make_memref"({pointer}) {{operandSegmentSizes = '
            f"array<i32: 1, 0, 0>}} : (!nv_tileaa.ptr<f16, 1 : i32>) -> {memref}"
        )
        kernel.op(f'%{name}v = "nv_tileaa.block_tile"(%{name}m) : ({memref}) -> {view}')
        kernel.lines.append(f"// {view}")
    views = [line[3:] for line in kernel.lines if line.startswith("//")]
    kernel.lines = [line for line in kernel.lines if not line.startswith("//")]
    for name, value in (("zero", 0), ("one", 1), ("end", TRIPS)):
        kernel.op(f"%{name} = arith.constant {value} : i32")
    kernel.op("%none = arith.constant dense<0.0> : tensor<64x64xf32>")
    kernel.op(
        "%sum = scf.for %i = %zero to %end step %one iter_args(%acc = %none) -> "
        "(tensor<64x64xf32>) : i32 {"
    )
    for name, view, at, tile in zip(
        "ab", views, ("%zero, %i", "%i, %zero"), ("64x16", "16x64"), strict=True
    ):
        kernel.op(
            f'%{name}, %{name}t = "nv_tileaa.tiled_load"(%{name}v, {at}) {{mem_semantic = "weak", '
            f"operandSegmentSizes = array<i32: 1, 2, 0>}} : ({view}, i32, i32) -> "
            f"(tensor<{tile}xf16>, !nv_tileaa.mem_token)"
        )
    kernel.op(
        '%next = "nv_tileaa.dot"(%a, %b, %acc) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : '
        "(tensor<64x16xf16>, tensor<16x64xf16>, tensor<64x64xf32>) -> tensor<64x64xf32>"
    )
    kernel.op("scf.yield %next : tensor<64x64xf32>")
    kernel.op(f"}} {{tt.loop_unroll_factor = {factor} : i32}}")
    kernel.store("%sum", (64, 64), "f32")
    return kernel


@pytest.mark.parametrize(
    ("factor", "target"), [(2, "sm_80"), (3, "sm_90"), (4, "sm_100"), (16, "sm_90"), (1, "sm_80")]
)
def test_products(factor: int, target: str) -> None:
    """Loads of unrolled loops run ahead, too; what is left over comes before the loop."""
    rng = np.random.default_rng(factor)
    a, b = (rng.integers(-4, 5, 64 * 16 * TRIPS).astype(np.float16) for _ in range(2))
    out = np.zeros(64 * 64, np.float32)
    kernel = product(factor)
    kernel.run(a, b, out, target=target)
    wanted = a.reshape(64, -1).astype(np.float32) @ b.reshape(-1, 64).astype(np.float32)
    np.testing.assert_array_equal(out, wanted.ravel())


def test_the_factor_acts() -> None:
    counts = [product(factor).ptx("sm_80").count("mma.sync") for factor in (1, 2)]
    assert counts[1] == 2 * counts[0] > 0
