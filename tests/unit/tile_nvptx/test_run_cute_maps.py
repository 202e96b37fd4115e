"""Kernels of cute make, copy and change tensor maps, and copies by them are right."""

from __future__ import annotations

import numpy as np
import pytest
from support.cute_maps import MADE, map_kernel
from support.cutlass_run import PASSES, ptx
from tile_cute.tensor_map import FIELDS
from tile_sim import Module, SimError, TensorMap

import tile_core
from tile_core.diagnostics import CompileError
from tile_core.opt import OptJob, Selection, optimize
from tile_core.registry import default_registry

TARGETS = ("sm_90", "sm_100", "sm_120")


def run(text: str, schedule: str = "late") -> None:
    """More rows than the map's template has, and fewer than the blocks copy: zeros come then."""
    rows, blocks = 37, 5
    x = np.random.default_rng(1).standard_normal((rows, 72)).astype(np.float16)
    y = np.full((8 * blocks, 64), -1, np.float16)
    other = np.zeros((3, 64), np.float16)
    arguments = [x, y, np.zeros(128 * blocks, np.uint8), TensorMap(other, (64, 8), swizzle="128B"),
                 np.int32(rows), np.int32(72)]  # fmt: skip
    report = Module(text).launch(
        "copied", (blocks, 1, 1), None, arguments, check=True, schedule=schedule
    )
    assert not report.findings, "\n".join(map(str, report.findings))
    np.testing.assert_array_equal(y[:rows], x[:, :64])
    np.testing.assert_array_equal(y[rows:], 0)


@pytest.mark.parametrize("schedule", ["late", "early", "random"])
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("made", MADE)
def test_maps(made: str, target: str, schedule: str) -> None:
    text = ptx(map_kernel(made), target)
    assert text.count("tensormap.cp_fenceproxy") == (4 if made == "copy" else 1)
    run(text, schedule)


def without(lines: list[str], mark: str) -> list[str]:
    kept = []
    for line in lines:
        if mark not in line:
            kept.append(line)
        elif "try_wait" in mark:
            kept.append("setp.eq.b32 P1, 0, 0;")
        elif "{" in line:  # one statement of several instructions
            kept.append(";".join(part for part in line.split(";") if mark not in part))
    return kept


@pytest.mark.parametrize(
    "mark", ["bar.sync", "fence.proxy.tensormap::generic.acquire", "mbarrier.try_wait"]
)
@pytest.mark.parametrize("made", MADE)
def test_nothing_that_orders_can_go(made: str, mark: str) -> None:
    lines = ptx(map_kernel(made), "sm_90").split("\n")
    kept = without(lines, mark)
    assert kept != lines
    with pytest.raises((AssertionError, SimError)):
        run("\n".join(kept))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("made", MADE)
def test_ptxas_takes_it(made: str, target: str) -> None:
    text = lowered(map_kernel(made), target).encode()
    assert tile_core.compile(text, target, opt_level=1, start_at="llvm-dialect").stage("cubin")


def lowered(text: str, target: str) -> str:
    job = OptJob(default_registry(), Selection(passes=PASSES, target=target))
    return optimize(text, 0, job).text


@pytest.mark.parametrize(
    ("made", "old", "new", "target", "words"),
    [
        ("own", "", "", "sm_80", "is tensormap.replace, which sm_80 does not have"),
        ("own", "?{div=8}", "?{div=4}", "sm_90", "needs strides that are multiples of 16 bytes"),
        ("own", '"8x64"', '"8x16x4"', "sm_90", "expects 3 modes of one stride each"),
        ("own", '"8x64"', '"8x512"', "sm_90", "a box of 512, at most 256"),
        ("own", '"8x64", "128B"', '"8x64", "64B"', "sm_90", "rows of 128 bytes in a swizzle of 64"),
        ("own", "\n    %map =", "\n    scf.if %w0 {\n%unused =", "sm_90", "stands in 'scf.if'"),
        ("copy", "(%template, %there)", "(%there, %template)", "sm_90", "is, or may be, a param"),
        ("copy", "%there, %n)", "%template, %n)", "sm_90", "is, or may be, a parameter"),
    ],
)
def test_what_cannot_be(made: str, old: str, new: str, target: str, words: str) -> None:
    text = map_kernel(made)
    if "%unused" in new:
        text = text.replace(
            '%map = "cute_nvgpu.make_tma_desc_tiled"(%vx) : (!x) -> !map',
            "%map = builtin.unrealized_conversion_cast %generic : !llvm.ptr to !map\n"
            'scf.if %w0 {\n%u = "cute_nvgpu.make_tma_desc_tiled"(%vx) : (!x) -> !map\n}',
        )
    else:
        text = text.replace(old, new)
    with pytest.raises(CompileError, match=words):
        lowered(text, target)


@pytest.mark.parametrize("made", ["make_tma_desc_im2col", "make_tma_desc_im2col_at"])
def test_no_kernel_makes_maps_of_im2col(made: str) -> None:
    kind = '!cute_nvgpu.tma_descriptor_im2col<"f16", "8x64", "128B">'
    use = f'"cute_nvgpu.{made}"(%vx'
    use += ", %at) : (!x, i64) -> ()" if made.endswith("at") else f") : (!x) -> {kind}"
    result = "" if made.endswith("at") else "%im2col = "
    text = map_kernel("own").replace("    %used", f"    {result}{use}\n    %used")
    with pytest.raises(CompileError, match="has no fields of im2col"):
        lowered(text, "sm_90")


PRINTS = """
!map = !cute_nvgpu.tma_descriptor_im2col<"f16", "8x64", "128B">
gpu.module @m {
  func.func @prints(%m: !map) attributes {
      nv_tileaa.kernel, nv_tileaa.kernel_spec = {num_ctas = 1 : i32, num_warps = 1 : i32}} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %0 = arith.constant 0 : i32
    %first = arith.cmpi eq, %t, %0 : i32
    scf.if %first {
      "cute.print_tma_desc_im2col"(%m) : (!map) -> ()
    }
    return
  }
}
"""


def test_print_of_an_im2col_map() -> None:
    x = np.zeros((2, 6, 5, 64), np.float16)
    map_ = TensorMap(x, (), channels=64, pixels=8, lower=(-1, -1), upper=(-1, -1), swizzle="128B")
    report = Module(ptx(PRINTS, "sm_90")).launch("prints", (1, 1, 1), None, [map_], check=True)
    assert not report.findings
    (line,) = "".join(map(str, report.output)).splitlines()
    kind, *words = line.split()
    assert (kind, len(words)) == ("tma_descriptor_im2col", 16)
    bits = sum(int(word, 16) << 64 * at for at, word in enumerate(words))
    assert FIELDS["im2col"].load(bits) == 1
    assert FIELDS["pixels"].load(bits) == 8
    assert [FIELDS["global_dim"].load(bits, at) for at in range(4)] == [64, 5, 6, 2]
