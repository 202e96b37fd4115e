"""Tiles made of an index by a region: compiled and run, or refused at the operation."""

from __future__ import annotations

import numpy as np
import pytest
from support.tiles import Kernel, tile

from tile_core.diagnostics import CompileError

SHAPE = (8, 64)


def generated(
    body: str, kernel: Kernel, element: str = "i32", shape: tuple[int, ...] = SHAPE
) -> Kernel:
    """Stores a tile whose region has the indices %i0, %i1, .. and ends in %e."""
    indices = ", ".join(f"%i{at}: index" for at in range(len(shape)))
    kernel.op(f'%y = "nv_tileaa.generate"() ({{\n^bb0({indices}):\n{body}')
    kernel.op(f'"nv_tileaa.yield"(%e) : ({element}) -> ()')
    kernel.op(f"}}) : () -> {tile(shape, element)}")
    kernel.store("%y", shape, element)
    return kernel


@pytest.mark.parametrize(("target", "level"), [("sm_80", 0), ("sm_90", 2), ("sm_100", 3)])
def test_arithmetic(target: str, level: int) -> None:
    """On indices, on numbers from outside, and on constants."""
    kernel = Kernel()
    n = kernel.param("i32")
    body = f"""
    %big = arith.constant 4294967296 : index
    %far = arith.muli %i0, %big : index
    %back = arith.divui %far, %big : index
    %at = arith.index_cast %back : index to i32
    %column = arith.index_castui %i1 : index to i32
    %scaled = arith.muli %at, {n} : i32
    %two = arith.constant 2 : i32
    %twice = arith.muli {n}, %two : i32
    %sum = arith.addi %scaled, %column : i32
    %less = arith.cmpi ult, %i0, %i1 : index
    %e = arith.select %less, %sum, %twice : i32"""
    out = np.zeros(512, np.int32)
    assert (
        not generated(body, kernel)
        .run(np.int32(1000), out, target=target, opt_level=level)
        .findings
    )
    row, column = np.indices(SHAPE, np.int32)
    wanted = np.where(row < column, row * 1000 + column, 2000)
    np.testing.assert_array_equal(out, wanted.ravel())


@pytest.mark.parametrize("target", ["sm_80", "sm_100"])
def test_loads(target: str) -> None:
    """Each element from its own address: a transposed table."""
    kernel, pointer = Kernel(), "!nv_tileaa.ptr<f32, 1 : i32>"
    base = kernel.param(pointer)
    body = f"""
    %rows = arith.constant 8 : index
    %row = arith.muli %i1, %rows : index
    %place = arith.addi %row, %i0 : index
    %offset = arith.index_cast %place : index to i64
    %p = "nv_tileaa.addptr"({base}, %offset) : ({pointer}, i64) -> {pointer}
    %x:2 = "nv_tileaa.load"(%p) {{mem_semantic = "weak",
      operandSegmentSizes = array<i32: 1, 0, 0, 0>}} : ({pointer}) -> (f32, !nv_tileaa.mem_token)
    %one = arith.constant 1.0 : f32
    %e = "nv_tileaa.addf"(%x#0, %one) : (f32, f32) -> f32"""
    table, out = np.arange(512, dtype=np.float32), np.zeros(512, np.float32)
    generated(body, kernel, "f32").run(table, out, target=target)
    np.testing.assert_array_equal(out, table.reshape(64, 8).T.ravel() + 1)


def test_the_same_everywhere() -> None:
    out = np.zeros(512, np.float32)
    generated("%e = arith.constant 3.0 : f32", Kernel(), "f32").run(out)
    np.testing.assert_array_equal(out, 3)


def test_of_one_element_and_of_three_axes() -> None:
    body = "%s = arith.addi %i0, %i2 : index\n%e = arith.index_cast %s : index to i64"
    out = np.zeros(64, np.int64)
    generated(body, Kernel(), "i64", (4, 1, 16)).run(out)
    np.testing.assert_array_equal(out, np.add.outer(np.arange(4), np.arange(16)).ravel())


REFUSED = {
    "control flow": (
        "%c = arith.constant true\n%e = scf.if %c -> i32 {\n%a = arith.constant 1 : i32\n"
        "scf.yield %a : i32\n} else {\n%a = arith.constant 2 : i32\nscf.yield %a : i32\n}",
        "'scf.if' op cannot be computed for all elements of nv_tileaa.generate at once",
    ),
    "an ordered load": (
        '%x:2 = "nv_tileaa.load"(%arg0) {mem_semantic = "relaxed", mem_scope = "gpu", '
        "operandSegmentSizes = array<i32: 1, 0, 0, 0>} : (!nv_tileaa.ptr<i32, 1 : i32>) -> "
        "(i32, !nv_tileaa.mem_token)\n%e = arith.addi %x#0, %x#0 : i32",
        "'nv_tileaa.load' op has an order, which loads of many elements at once do not keep",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    body, message = REFUSED[name]
    kernel = Kernel()
    kernel.param("!nv_tileaa.ptr<i32, 1 : i32>")
    with pytest.raises(CompileError) as caught:
        generated(body, kernel).ptx()
    assert message in str(caught.value)
    assert caught.value.where is not None
