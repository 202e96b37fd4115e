"""Products on tcgen05: every type, order and shape through the pipeline, and nothing too many."""

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
    dot,
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
    ((128, 256, 32), F16, (True, False), 8),  # two warps to a quarter of the rows
    ((64, 128, 16), F16, (True, True), 8),  # side by side along N
    ((256, 128, 64), F16, (False, True), 8),  # two tiles along M
    ((64, 8, 16), F16, (False, False), 4),
    ((256, 32, 64), HALF, (False, False), 8),
    ((128, 64, 64), BF16, (True, False), 4),
    ((64, 128, 32), TF32, (False, True), 4),
    ((128, 32, 8), TF32, (False, True), 8),
    ((64, 64, 32), TF32, (True, True), 4),  # A lies along M
    ((128, 32, 8), TF32, (True, False), 8),  # .. and B along N
    ((256, 128, 16), TF32, (False, False), 8),
    ((128, 64, 128), BYTES, (False, False), 8),  # B lies along N
    ((64, 64, 64), BYTES, (True, True), 4),
    ((64, 32, 32), ("f8E5M2", "f8E4M3FN", "f16"), (False, True), 4),
    ((64, 128, 64), INT8, (False, True), 4),
    ((128, 16, 32), INT8, (True, False), 8),
]


@pytest.mark.parametrize(("size", "types", "turned", "warps"), CASES, ids=str)
def test_products(size: Size, types: Types, turned: tuple[bool, bool], warps: int) -> None:
    text = product_kernel(size, types, turned, warps).ptx("sm_100", 2)
    assert "tcgen05.mma" in text
    assert "mma.sync" not in text
    for schedule in ("late", "early"):
        check(text, size, types, turned, schedule)


def check(
    text: str, size: Size, types: Types, turned: tuple[bool, bool], schedule: str = "late"
) -> None:
    arrays = inputs(size, types, turned)
    launch(text, arrays, schedule)
    np.testing.assert_array_equal(arrays[3].astype(np.float64), wanted(arrays, turned))


def launch(text: str, arrays: list[np.ndarray], schedule: str = "late", blocks: int = 1) -> None:
    report = tile_sim.Module(text).launch(
        "kernel", (blocks, 1, 1), None, list(arrays), check=True, schedule=schedule
    )
    assert not report.findings


def test_columns_are_given_back_to_the_next_block() -> None:
    """More blocks than there are columns for at once: the last ones wait, and get theirs."""
    text = product_kernel((128, 256, 16), F16, warps=8).ptx("sm_100", 2)
    assert re.search(r"tcgen05\.alloc[^;]*, 256;", text)
    assert re.search(r"tcgen05\.dealloc[^;]*, 256;", text)
    arrays = inputs((128, 256, 16), F16, (False, False))
    launch(text, arrays, blocks=1)
    np.testing.assert_array_equal(arrays[3], wanted(arrays, (False, False)))


def test_products_that_follow_one_another_share_columns() -> None:
    text = chained_kernel().ptx("sm_100", 2)
    # Two of 64 side by side, and 32 for what threads make of the first.
    assert re.search(r"tcgen05\.alloc[^;]*, 256;", text)
    draw = np.random.default_rng(1)
    a, b, v = (draw.integers(-1, 2, (64, 64)).astype(np.float16) for _ in range(3))
    for schedule in ("late", "early", "random"):
        out = np.zeros((64, 64), np.float32)
        launch(text, [a, b, v, out], schedule)
        first = a.astype(np.float64) @ b.astype(np.float64)
        np.testing.assert_array_equal(out, first @ v.astype(np.float64) + first)


def test_a_loop_leaves_its_accumulator_where_it_is() -> None:
    text = loop_kernel().ptx("sm_100", 2)
    # Read once, behind the product and all branches.
    last = text.rindex("tcgen05.mma")
    assert "$L__BB0_" in text[last : text.index("tcgen05.ld")]
    assert text.count("tcgen05.ld") == 1
    assert "tcgen05.st" not in text
    a, b = (np.random.default_rng(s).integers(-3, 4, (64, 64)).astype(np.float16) for s in (1, 2))
    for schedule in ("late", "early", "random"):
        out = np.zeros((64, 64), np.float32)
        launch(text, [a, b, out], schedule)
        np.testing.assert_array_equal(out, 3 * (a.astype(np.float64) @ b.astype(np.float64)))


INSTRUCTIONS = [
    r"fence\.proxy\.async", r"mbarrier\.init", r"tcgen05\.commit", r"tcgen05\.wait::ld",
    r"tcgen05\.fence::before_thread_sync", r"tcgen05\.fence::after_thread_sync",
    r"\bbar(rier)?\.\w*\.?sync", r"tcgen05\.dealloc", r"tcgen05\.relinquish", r"tcgen05\.mma",
]  # fmt: skip


def test_nothing_of_it_can_go() -> None:
    """But for what nothing depends on in a kernel of one product: see `_SPARE`."""
    size, turned = (64, 64, 32), (False, False)
    text = product_kernel(size, F16, turned).ptx("sm_100", 2)
    for instruction in INSTRUCTIONS:
        broken = mutants(text, instruction)
        assert broken, instruction
        missed = [mutant for mutant in broken if not _seen(mutant, size, turned)]
        assert len(missed) == _SPARE.get(instruction, 0), instruction


#: Permission to allocate is given up for other blocks of the multiprocessor, not for this one: PTX
#: forbids to allocate after it and asks for deallocation before the end, but not for giving it up,
#: so that a kernel without it is right, and keeps others waiting until it ends.
#: Fences around the barriers behind the allocation and before the deallocation order nothing that
#: the simulator can see; that behind the wait for the product is the one that counts.
_SPARE = {
    r"tcgen05\.relinquish": 1,
    r"\bbar(rier)?\.\w*\.?sync": 1,  # behind the initialisation: another stands before the product
    r"tcgen05\.fence::before_thread_sync": 2,
    r"tcgen05\.fence::after_thread_sync": 2,
}


def _seen(text: str, size: Size, turned: tuple[bool, bool]) -> bool:
    for schedule in ("late", "early", "random"):
        try:
            check(text, size, F16, turned, schedule)
        except (AssertionError, SimError):
            return True
    return False


def turns_kernel() -> Kernel:
    """Three turns of total = total + 2 A B, each product read in registers."""
    kernel = Kernel(4)
    kernel.load("%a", (64, 64), "f16")
    kernel.load("%b", (64, 64), "f16")
    acc = tile((64, 64), "f32")
    kernel.op(f"%init = arith.constant dense<0.0> : {acc}")
    for name, value in (("one", 1), ("three", 3)):
        kernel.op(f"%{name} = arith.constant {value} : i32")
    kernel.op(
        f"%r = scf.for %i = %zero to %three step %one iter_args(%acc = %init) -> ({acc}) : i32 {{"
    )
    kernel.op(dot("%d", ("%a", "%b", "%init"), (64, 64, 64), F16))
    kernel.op(f"%s = arith.addf %d, %d : {acc}")
    kernel.op(f"%t = arith.addf %acc, %s : {acc}")
    kernel.op(f"scf.yield %t : {acc}")
    kernel.op("}")
    kernel.store("%r", (64, 64), "f32")
    return kernel


def turned(text: str, schedule: str = "late") -> None:
    a, b = (np.random.default_rng(s).integers(-3, 4, (64, 64)).astype(np.float16) for s in (1, 2))
    out = np.zeros((64, 64), np.float32)
    launch(text, [a, b, out], schedule)
    np.testing.assert_array_equal(out, 6 * (a.astype(np.float64) @ b.astype(np.float64)))


def test_threads_that_read_and_the_next_product_take_turns() -> None:
    text = turns_kernel().ptx("sm_100", 2)
    for schedule in ("late", "early", "random"):
        turned(text, schedule)
    for instruction, spare in _SPARE_IN_TURNS.items():
        broken = mutants(text, instruction)
        missed = [at for at, mutant in enumerate(broken) if not _turns_fail(mutant)]
        assert missed == spare, instruction


#: By their place in the text: what stands around allocation and deallocation, and of the meetings
#: before the loop those whose work that in the loop does, too.
_SPARE_IN_TURNS = {
    r"tcgen05\.fence::before_thread_sync": [0, 2],
    r"tcgen05\.fence::after_thread_sync": [0, 3],
    r"\bbar(rier)?\.\w*\.?sync": [0, 1],
    r"tcgen05\.commit": [],
    r"tcgen05\.wait::ld": [],
}


def _turns_fail(text: str) -> bool:
    for schedule in ("late", "early", "random"):
        try:
            turned(text, schedule)
        except (AssertionError, SimError):
            return True
    return False


def test_a_wait_that_is_dropped_is_seen() -> None:
    size, turned = (64, 64, 32), (False, False)
    text = product_kernel(size, F16, turned).ptx("sm_100", 2)
    wait = r"mbarrier\.try_wait\.parity\.shared\.b64 (%\w+), [^;]*;"
    (found,) = re.finditer(wait, text)
    dropped = text.replace(found[0], f"setp.eq.u32 {found[1]}, 0, 0;")
    assert not _passes(dropped, size, turned)
    other = re.sub(wait.replace("[^;]*", r"(\[[^\]]*\]), (%\w+)"), _OTHER_PHASE, text)
    assert other != text
    assert not _passes(other, size, turned)


_OTHER_PHASE = (
    r"{ .reg .b32 wrong; xor.b32 wrong, \3, 1; "
    r"mbarrier.try_wait.parity.shared.b64 \1, \2, wrong; }"
)


def _passes(text: str, size: Size, turned: tuple[bool, bool]) -> bool:
    return not _seen(text, size, turned)


@pytest.mark.parametrize("level", [0, 1])
def test_low_levels_stay_synchronous_on_warps(level: int) -> None:
    text = product_kernel((64, 64, 64), F16).ptx("sm_100", level)
    assert "tcgen05" not in text
    assert "mma.sync" in text


def test_what_lies_along_the_wrong_axis_is_left_to_warps() -> None:
    """Rows of 16 elements fill no swizzle of 128 bytes, the only one that there is for them."""
    size, turned = (64, 16, 32), (False, False)
    text = product_kernel(size, TF32, turned).ptx("sm_100", 2)
    assert "tcgen05" not in text
    check(text, size, TF32, turned)


@pytest.mark.parametrize("target", ["sm_100", "sm_103", "sm_110"])
def test_targets(target: str) -> None:
    assert "tcgen05.mma" in product_kernel((64, 64, 32), F16).ptx(target, 2)
    bytes_ = product_kernel((64, 64, 32), INT8, (False, True)).ptx(target, 2)
    assert ("tcgen05.mma" in bytes_) == (target != "sm_103")


def crowded_kernel() -> Kernel:
    """Two turns of D += T B and E += T C, of T = (Q K)^T. Q, B and C, of 64 KB each, are the same
    in both turns, and T takes as much.
    """
    kernel = Kernel(8)
    for name, shape in (("q", (256, 128)), ("k", (128, 128)), ("b", (256, 128)), ("c", (256, 128))):
        kernel.load(f"%{name}", shape, "f16")
    scores, sums = tile((256, 128), "f32"), tile((128, 128), "f32")
    kernel.op(f"%none = arith.constant dense<0.0> : {scores}")
    kernel.op(f"%init = arith.constant dense<0.0> : {sums}")
    for name, value in (("one", 1), ("two", 2)):
        kernel.op(f"%{name} = arith.constant {value} : i32")
    kernel.op(
        "%r:2 = scf.for %i = %zero to %two step %one iter_args(%d = %init, %e = %init) -> "
        f"({sums}, {sums}) : i32 {{"
    )
    kernel.op(dot("%s", ("%q", "%k", "%none"), (256, 128, 128), F16))
    narrow, turned = tile((256, 128), "f16"), tile((128, 256), "f16")
    kernel.op(f"%n = arith.truncf %s : {scores} to {narrow}")
    kernel.op(
        f'%t = "nv_tileaa.permute"(%n) {{permutation = array<i32: 1, 0>}} : ({narrow}) -> {turned}'
    )
    kernel.op(dot("%d1", ("%t", "%b", "%d"), (128, 128, 256), F16))
    kernel.op(f"%u = arith.negf %t : {turned}")
    kernel.op(dot("%e1", ("%u", "%c", "%e"), (128, 128, 256), F16))
    kernel.op(f"scf.yield %d1, %e1 : {sums}, {sums}")
    kernel.op("}")
    kernel.store("%r#0", (128, 128), "f32")
    kernel.store("%r#1", (128, 128), "f32")
    return kernel


@pytest.mark.parametrize("target", ["sm_90", "sm_100"])
def test_what_turns_store_counts_where_tiles_are_kept_for_all_of_them(target: str) -> None:
    """C was kept beside Q though B is stored in each turn beside T: 256 KB."""
    text = crowded_kernel().ptx(target, 2)
    draw = np.random.default_rng(3)
    q, k, b, c = (
        draw.integers(-1, 2, shape).astype(np.float16)
        for shape in ((256, 128), (128, 128), (256, 128), (256, 128))
    )
    found = [np.zeros((128, 128), np.float32) for _ in range(2)]
    launch(text, [q, k, b, c, *found], "random")
    turned = (q.astype(np.float64) @ k).T
    np.testing.assert_array_equal(found[0], 2 * turned @ b)
    np.testing.assert_array_equal(found[1], -2 * turned @ c)
