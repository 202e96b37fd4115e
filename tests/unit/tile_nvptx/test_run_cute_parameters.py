"""Kernels of cute read dynamic shared memory and parameters where they are."""

from __future__ import annotations

import numpy as np
import pytest
from support.cute_parameters import CONSTANTS, DYNAMIC
from support.cutlass_run import PASSES, ptx
from tile_nvptx.emit.large_shared import without_large_arrays
from tile_sim import Module, SimError, TensorMap

import tile_core
from tile_core.diagnostics import CompileError
from tile_core.opt import OptJob, Selection, optimize
from tile_core.registry import default_registry


def reversed_(text: str) -> None:
    x, y = np.arange(65, dtype=np.int32), np.full(65, -1, np.int32)
    report = Module(text).launch("reversed", (1, 1, 1), None, [x, y], shared_bytes=256, check=True)
    assert not report.findings, "\n".join(map(str, report.findings))
    np.testing.assert_array_equal(y, [*range(63, -1, -1), 256])


@pytest.mark.parametrize("target", ["sm_80", "sm_90", "sm_100", "sm_120"])
def test_dynamic_shared_memory(target: str) -> None:
    text = ptx(DYNAMIC, target)
    assert ".extern .shared .align 1024 .b8 __cute_dynamic_smem[]" in text
    reversed_(text)


def test_its_barrier_is_needed() -> None:
    lines = [line for line in ptx(DYNAMIC, "sm_80").split("\n") if "bar.sync" not in line]
    with pytest.raises((AssertionError, SimError)):
        reversed_("\n".join(lines))


def lowered(text: str, target: str) -> str:
    job = OptJob(default_registry(), Selection(passes=PASSES, target=target))
    return optimize(text, 0, job).text


@pytest.mark.parametrize("target", ["sm_80", "sm_90", "sm_120"])
def test_ptxas_takes_it(target: str) -> None:
    for text in (DYNAMIC, CONSTANTS):
        made = tile_core.compile(
            lowered(text, target).encode(), target, opt_level=1, start_at="llvm-dialect"
        )
        assert made.stage("cubin")


def test_it_cannot_stand_beside_a_large_array() -> None:
    large = DYNAMIC.replace("nvvm.barrier\n", """nvvm.barrier
    %big = "cute.memref_alloc_smem"() : () -> !big
    "cute.memref_store"(%v, %big, %t) : (i32, !big, i32) -> ()
    %again = "cute.memref_load"(%big, %last) : (!big, i32) -> i32
    "cute.memref_store"(%again, %to, %t) : (i32, !g, i32) -> ()
""").replace("!l =", '!big = !cute.memref<i32, "smem", "16384:1">\n!l =', 1)  # fmt: skip
    text = lowered(large, "sm_80").encode()
    with pytest.raises(CompileError, match="'reversed' has 65536 bytes of shared memory of fixed"):
        tile_core.compile(text, "sm_80", opt_level=1, start_at="llvm-dialect")
    text = ptx(DYNAMIC, "sm_80")
    assert without_large_arrays(text, 49152).ptx == text


def test_grid_constants() -> None:
    text = ptx(CONSTANTS, "sm_90")
    x, y = np.zeros((70, 64), np.float16), np.full(8, -1, np.int32)
    v = np.array([5, 6, 7, 8], np.int32)
    report = Module(text).launch(
        "constants", (1, 1, 1), None, [y, np.int32(3), v, TensorMap(x, (64, 8), swizzle="128B")],
        check=True,
    )  # fmt: skip
    assert not report.findings, "\n".join(map(str, report.findings))
    # Bit 256 on holds the extents, less one (tile_cute.tensor_map).
    np.testing.assert_array_equal(y, [3, 3, 6, 63, 63, 1, -1, -1])


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("(%a) : (i32) -> !pa", "(%0) : (i32) -> !pa", "expects an argument of the kernel"),
        ("nv_tileaa.kernel, ", "", "is for arguments of kernels"),
        ("(%y: !p, %a: i32, ", "(%y: !p, %a: !p, ", "expects a tensor map, number"),
        ('!cute.ptr<i32, "generic", 4', '!cute.ptr<i32, "smem", 4', "gives a pointer in generic"),
    ],
)
def test_what_is_no_grid_constant(old: str, new: str, words: str) -> None:
    text = CONSTANTS.replace(old, new)
    if "%a: !p" in new:
        text = text.replace("(%a) : (i32)", "(%a) : (!p)").replace('"(%a, %to', '"(%0, %to')
    if "smem" in new:
        text = text.replace('!a = !cute.memref<i32, "generic"', '!a = !cute.memref<i32, "smem"')
        text = text.replace("(%pv, %l) : (!pv, !l) -> !a", "(%pa, %l) : (!pa, !l) -> !a")
    with pytest.raises(CompileError, match=words):
        lowered(text, "sm_90")


def test_a_parameter_has_no_address_in_global_memory() -> None:
    text = CONSTANTS.replace(
        "%p = llvm.inttoptr %ia : i64 to !llvm.ptr",
        '%g = "cute_nvgpu.get_tma_desc_addr"(%map) : (!map) -> !p\n'
        "%p = llvm.inttoptr %ia : i64 to !llvm.ptr",
    )
    with pytest.raises(CompileError, match="is of a parameter, which has no address in global"):
        lowered(text, "sm_90")
