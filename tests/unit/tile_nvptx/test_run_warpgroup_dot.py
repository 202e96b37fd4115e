"""Products on wgmma: every type, order and swizzle through the pipeline, and what may not go."""

from __future__ import annotations

import re

import numpy as np
import pytest
import tile_sim
from support.products import (
    BF16,
    BYTES,
    F16,
    HALF,
    INT8,
    TF32,
    Size,
    Types,
    chained_kernel,
    inputs,
    loop_kernel,
    mutants,
    product_kernel,
    wanted,
)
from support.tiles import Kernel, tile
from tile_sim import SimError

CASES = [
    ((64, 64, 64), F16, (False, False), 4),
    ((128, 128, 64), F16, (False, True), 4),
    ((128, 256, 32), F16, (True, False), 8),  # two warpgroups of 128 registers
    ((64, 128, 16), F16, (True, True), 8),  # side by side along N
    ((128, 64, 128), F16, (False, True), 8),  # K in two columns of the swizzle
    ((64, 8, 16), F16, (False, False), 4),
    ((256, 32, 64), HALF, (False, False), 8),
    ((64, 64, 64), HALF, (True, True), 4),
    ((128, 64, 64), BF16, (True, False), 4),
    ((64, 128, 32), TF32, (False, True), 4),
    ((128, 32, 8), TF32, (False, True), 8),
    ((128, 64, 32), TF32, (True, True), 4),  # A lies along M, and is read by threads
    ((256, 32, 16), TF32, (True, True), 8),
    ((128, 64, 64), BYTES, (True, True), 4),  # so do bytes, put together in registers
    ((256, 32, 32), INT8, (True, True), 8),
    ((64, 64, 64), BYTES, (False, True), 4),
    ((128, 256, 64), BYTES, (False, True), 8),  # sums inside and outside, half the columns at once
    ((128, 64, 128), BYTES, (False, True), 8),
    ((64, 32, 32), ("f8E5M2", "f8E4M3FN", "f16"), (False, True), 4),
    ((64, 128, 64), INT8, (False, True), 4),
    ((128, 16, 32), INT8, (False, True), 8),
]


@pytest.mark.parametrize(("size", "types", "turned", "warps"), CASES, ids=str)
def test_products(size: Size, types: Types, turned: tuple[bool, bool], warps: int) -> None:
    kernel = product_kernel(size, types, turned, warps)
    text = kernel.ptx("sm_90", 2)
    assert "wgmma.mma_async" in text
    assert "mma.sync" not in text
    assert ".target sm_90a" in text
    for schedule in ("late", "early"):
        arrays = inputs(size, types, turned)
        launch(text, arrays, schedule)
        np.testing.assert_array_equal(arrays[3].astype(np.float64), wanted(arrays, turned))


def launch(text: str, arrays: list[np.ndarray], schedule: str = "late") -> None:
    report = tile_sim.Module(text).launch(
        "kernel", (1, 1, 1), None, list(arrays), check=True, schedule=schedule
    )
    assert not report.findings


@pytest.mark.parametrize("flags", ["", ", fast_acc"])
def test_sums_of_bytes_are_kept_outside_unless_fast(flags: str) -> None:
    """Tensor cores of sm_90 add products of 8-bit floats with fewer bits than f32 has."""
    size, turned = (64, 64, 64), (False, True)
    text = product_kernel(size, BYTES, turned, flags=flags).ptx("sm_90", 3)
    assert (text.count("add.rn.f32") >= 32) == (not flags)
    arrays = inputs(size, BYTES, turned)
    launch(text, arrays)
    np.testing.assert_array_equal(arrays[3].astype(np.float64), wanted(arrays, turned))


def test_a_product_that_is_an_operand_stays_in_registers() -> None:
    text = chained_kernel().ptx("sm_90", 2)
    assert "movmatrix" not in text
    # The second product's A: four registers before a single descriptor.
    assert len(re.findall(r"wgmma\.mma_async[^;]*\}, \{[^}]*\}, ", text)) == 4
    draw = np.random.default_rng(1)
    a, b, v = (draw.integers(-1, 2, (64, 64)).astype(np.float16) for _ in range(3))
    out = np.zeros((64, 64), np.float32)
    launch(text, [a, b, v, out])
    first = a.astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_array_equal(out, first @ v.astype(np.float64) + first)


def test_operands_that_stay_the_same_are_stored_once() -> None:
    text = loop_kernel().ptx("sm_90", 2)
    before, _, loop = text.partition("$L__BB0_1:")
    assert "st.shared" in before or "stmatrix" in before
    body = loop[: loop.index("bra")]
    assert "wgmma" in body
    assert not re.search(r"st\.shared|stmatrix|bar\.sync|barrier\.sync", body)
    a, b = (np.random.default_rng(s).integers(-3, 4, (64, 64)).astype(np.float16) for s in (1, 2))
    out = np.zeros((64, 64), np.float32)
    launch(text, [a, b, out])
    np.testing.assert_array_equal(out, 3 * (a.astype(np.float64) @ b.astype(np.float64)))


@pytest.mark.parametrize(
    "instruction",
    [
        r"fence\.proxy\.async", r"wgmma\.wait_group", r"wgmma\.commit_group",
        r"\bbar(rier)?\.\w*\.?sync",
        r"wgmma\.fence",
    ],
)  # fmt: skip
def test_nothing_of_it_can_go(instruction: str) -> None:
    size, turned = (64, 64, 32), (False, False)
    text = product_kernel(size, F16, turned).ptx("sm_90", 2)
    broken = mutants(text, instruction)
    assert broken
    for mutant in broken:
        with pytest.raises((AssertionError, SimError)):
            check(mutant, size, F16, turned)


@pytest.mark.parametrize(
    "instruction",
    [r"fence\.proxy\.async", r"wgmma\.wait_group", r"wgmma\.commit_group",
     r"wgmma\.fence", r"\bbar(rier)?\.\w*\.?sync", r"\bprmt"],
)  # fmt: skip
def test_nothing_of_sums_in_parts_can_go(instruction: str) -> None:
    """Bytes along M, whose sums are added outside, one atom after the other. (The second atom's
    fence orders nothing that the first one's has not: all of A is there before.)
    """
    size, turned = (128, 64, 32), (True, True)
    text = product_kernel(size, BYTES, turned).ptx("sm_90", 3)
    assert text.count("wgmma.wait_group") == 2
    broken = mutants(text, instruction)
    assert broken
    for mutant in broken[: 1 if "fence" in instruction else 8]:
        with pytest.raises((AssertionError, SimError)):
            check(mutant, size, BYTES, turned)


def check(text: str, size: Size, types: Types, turned: tuple[bool, bool]) -> None:
    arrays = inputs(size, types, turned)
    launch(text, arrays)
    np.testing.assert_array_equal(arrays[3].astype(np.float64), wanted(arrays, turned))


@pytest.mark.parametrize("level", [0, 1])
def test_low_levels_stay_synchronous_on_warps(level: int) -> None:
    text = product_kernel((64, 64, 64), F16).ptx("sm_90", level)
    assert "wgmma" not in text
    assert "mma.sync" in text


def test_a_product_of_zeros_and_more_reads_no_accumulator() -> None:
    """Nothing sets the registers to zero: the first step of K does not add."""
    text = chained_kernel().ptx("sm_90", 2)
    assert len(re.findall(r"setp\.ne\.b32 begin, 0, 0", text)) == 1
    assert not re.search(r"mov\.b32 \t%r\d+, 0f00000000", text)


def test_a_batch_of_one_is_a_product_of_matrices() -> None:
    kernel = Kernel(4)
    shapes = (1, 64, 32), (1, 32, 64), (1, 64, 64)
    for name, shape, element in zip("abc", shapes, F16, strict=True):
        kernel.load(f"%{name}", shape, element)
    kinds = [tile(shape, element) for shape, element in zip(shapes, F16, strict=True)]
    kernel.op(
        '%d = "nv_tileaa.dot"(%a, %b, %c) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : '
        f"({', '.join(kinds)}) -> {kinds[2]}"
    )
    kernel.store("%d", shapes[2], "f32")
    text = kernel.ptx("sm_90", 2)
    assert "wgmma.mma_async" in text
    arrays = inputs((64, 64, 32), F16, (False, False))
    launch(text, arrays)
    np.testing.assert_array_equal(arrays[3], wanted(arrays, (False, False)))


@pytest.mark.parametrize("types", [TF32, BYTES, INT8], ids=str)
def test_what_would_be_turned_element_by_element_is_left_to_warps(types: Types) -> None:
    """wgmma reads B of these along K alone; moving it there costs more than it gives."""
    size, turned = (64, 64, 32), (False, False)
    text = product_kernel(size, types, turned).ptx("sm_90", 2)
    assert "wgmma" not in text
    check(text, size, types, turned)
