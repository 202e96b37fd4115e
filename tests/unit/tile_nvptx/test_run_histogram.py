"""How often numbers stand in a tile: compiled, run and compared with NumPy."""

from __future__ import annotations

import re

import numpy as np
import pytest
import tile_sim
from support.removals import without
from support.tiles import DTYPES, Kernel, tile


def counting(shape: tuple[int, ...], element: str, bins: int, warps: int = 4) -> Kernel:
    kernel = Kernel(num_warps=warps)
    kernel.load("%x", shape, element)
    kernel.op(
        f'%y = "nv_tileaa.histogram"(%x) : ({tile(shape, element)}) -> {tile((bins,), "i32")}'
    )
    kernel.store("%y", (bins,), "i32")
    return kernel


def counted(values: np.ndarray, bins: int) -> np.ndarray:
    numbers = values.view(f"u{values.dtype.itemsize}").astype(np.uint64)
    return np.bincount(numbers[numbers < bins].astype(int), minlength=bins)


@pytest.mark.parametrize(("target", "level"), [("sm_80", 0), ("sm_90", 2), ("sm_100", 3)])
@pytest.mark.parametrize(
    ("shape", "element", "bins"),
    [((512,), "i32", 64), ((16, 32), "i8", 256), ((64, 64), "i64", 8), ((32,), "i16", 1)],
)
def test_counts(shape: tuple[int, ...], element: str, bins: int, target: str, level: int) -> None:
    """-1 is the largest number of its type; those past the last counter are not counted."""
    rng = np.random.default_rng(bins)
    most = min(bins + bins // 2 + 2, np.iinfo(DTYPES[element]).max)
    values = rng.integers(-2, most, np.prod(shape)).astype(DTYPES[element])
    out = np.full(bins, -1, np.int32)
    assert (
        not counting(shape, element, bins).run(values, out, target=target, opt_level=level).findings
    )
    np.testing.assert_array_equal(out, counted(values, bins))


def test_fewer_elements_than_threads() -> None:
    """Threads that hold copies do not count."""
    values, out = np.array([3, 3, 0, 1], np.int32), np.zeros(4, np.int32)
    counting((4,), "i32", 4, warps=8).run(values, out)
    np.testing.assert_array_equal(out, [1, 1, 0, 2])


def test_in_a_loop() -> None:
    """Counters are zero again in each iteration, and nobody counts in those that others read."""
    kernel, shape, bins = Kernel(), (256,), tile((32,), "i32")
    kernel.load("%x", shape, "i32")
    for at, value in enumerate((0, 1, 4)):
        kernel.op(f"%b{at} = arith.constant {value} : i32")
    kernel.op(f"%none = arith.constant dense<0> : {bins}")
    kernel.op(f"%y = scf.for %i = %b0 to %b2 step %b1 iter_args(%sum = %none) -> ({bins}) : i32 {{")
    type_ = tile(shape, "i32")
    kernel.op(f'%s = "nv_tileaa.splat"(%i) : (i32) -> {type_}')
    kernel.op(f"%n = arith.addi %x, %s : {type_}")
    kernel.op(f'%h = "nv_tileaa.histogram"(%n) : ({type_}) -> {bins}')
    kernel.op(f"%next = arith.addi %sum, %h : {bins}")
    kernel.op(f"scf.yield %next : {bins}")
    kernel.op("}")
    kernel.store("%y", (32,), "i32")
    values, out = np.random.default_rng(3).integers(0, 32, 256, np.int32), np.zeros(32, np.int32)
    kernel.run(values, out)
    wanted = sum(counted(values + step, 32) for step in range(4))
    np.testing.assert_array_equal(out, wanted)


def is_right(ptx: str, values: np.ndarray) -> bool:
    out = np.zeros(256, np.int32)
    report = tile_sim.Module(ptx).launch("kernel", (1, 1, 1), None, [values, out], check=True)
    return not report.findings and np.array_equal(out, counted(values, 256))


def test_every_meeting_is_needed() -> None:
    """Counters are zero before threads count, and all have counted before one reads."""
    values = np.random.default_rng(5).integers(0, 256, 1024).astype(np.int32)
    ptx = counting((1024,), "i32", 256).ptx()
    mutants = without(ptx, r"bar\.sync[^;]*;|barrier\.[^;]*;")
    assert is_right(ptx, values)
    assert len(mutants) == 2
    assert not any(is_right(mutant, values) for mutant in mutants)


def test_an_atomic_is_needed() -> None:
    """Threads that add to one counter by a load and a store lose counts, which is found."""
    values = np.random.default_rng(5).integers(0, 256, 1024).astype(np.int32)
    ptx = counting((1024,), "i32", 256).ptx()
    pattern = r"(@%\w+) red\.relaxed\.cta\.shared\.add\.u32 (\[[^\]]*\]), 1;"
    plain = (
        r"{ .reg .b32 seen; \1 ld.shared.u32 seen, \2; \1 add.u32 seen, seen, 1; "
        r"\1 st.shared.u32 \2, seen; }"
    )
    mutant, count = re.subn(pattern, plain, ptx)
    assert count
    assert not is_right(mutant, values)
