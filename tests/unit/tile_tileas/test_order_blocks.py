"""Blocks that are numbered anew: each tile is made, once; the longest of them come first."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from tile_sim import Module

import tile_core

#: Along x, loops of 1 to that many turns; of y, two whole groups of eight and a part of one.
MOST_X, MOST_Y, SIDE = 5, 19, 16

KERNEL = """
!tok = !nv_tileaa.mem_token
!p = !nv_tileaa.ptr<f32, 1 : i32>
!m = !nv_tileaa.memref<f32, array<i64: {rows}, {columns}>, array<i64: {columns}, 1>>
!v = !nv_tileaa.tiled_view<!m, array<i32: {side}, {side}>, array<i32: 0, 1>, "">
!half = tensor<{side}x{side}xf16>
!sums = tensor<{side}x{side}xf32>
gpu.module @m attributes {{nv_tileaa.compute_capability = 90 : i32, tt.num_warps = 0 : i32,
                          tt.num_ctas = 1 : i32}} {{
  func.func @k(%p: !p) attributes {{nv_tileaa.kernel}} {{
    %m = "nv_tileaa.make_memref"(%p) {{operandSegmentSizes = array<i32: 1, 0, 0>}} : (!p) -> !m
    %v = "nv_tileaa.block_tile"(%m) : (!m) -> !v
    %x = "nv_tileaa.get_program_id"() {{axis = 0 : i32}} : () -> i32
    %y = "nv_tileaa.get_program_id"() {{axis = 1 : i32}} : () -> i32
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %ones = arith.constant dense<1.0> : !half
    %thousand = arith.constant 1000 : i32
    %end = arith.addi %{along}, %one : i32
    %scaled = arith.muli %y, %thousand : i32
    %float = arith.sitofp %scaled : i32 to f32
    %start = "nv_tileaa.splat"(%float) : (f32) -> !sums
    %total = scf.for %j = %zero to %end step %one iter_args(%sum = %start) -> (!sums) : i32 {{
      %next = "nv_tileaa.dot"(%ones, %ones, %sum)
        {{operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>}} : (!half, !half, !sums) -> !sums
      scf.yield %next : !sums
    }}
    %t = "nv_tileaa.tiled_store"(%v, %total, %y, %x) {{mem_semantic = "weak",
      operandSegmentSizes = array<i32: 1, 1, 2, 0>}} : (!v, !sums, i32, i32) -> !tok
    return
  }}
}}
"""


@cache
def ptx(along: str) -> str:
    sizes = {"rows": MOST_Y * SIDE, "columns": MOST_X * SIDE, "side": SIDE, "along": along}
    made = tile_core.compile(
        KERNEL.format(**sizes), "sm_90", opt_level=2, start_at="tileas-order-blocks", emit="ptx"
    )
    assert "%nctaid" in str(made.stage("ptx")), "numbered anew"
    return str(made.stage("ptx"))


@pytest.mark.parametrize("along", ["x", "y"])
@pytest.mark.parametrize("grid", [(MOST_X, MOST_Y), (3, 8), (1, 1), (MOST_X, 7), (1, MOST_Y)])
def test_each_tile_is_made(along: str, grid: tuple[int, int]) -> None:
    out = np.full((MOST_Y * SIDE, MOST_X * SIDE), -1, np.float32)
    report = Module(ptx(along)).launch("k", (*grid, 1), None, [out], check=True)
    assert not report.findings
    found = out.reshape(MOST_Y, SIDE, MOST_X, SIDE)[:, 0, :, 0]
    y, x = np.mgrid[:MOST_Y, :MOST_X]
    wanted = 1000 * y + SIDE * ((x if along == "x" else y) + 1)
    wanted[(x >= grid[0]) | (y >= grid[1])] = -1
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(out, found.repeat(SIDE, 0).repeat(SIDE, 1))
