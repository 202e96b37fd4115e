"""Shared memory above 48 KiB: what the PTX says, what the cubin says, that it runs."""

import struct

import numpy as np
import pytest
from support.tiles import Kernel, registry
from tile_nvptx.emit.large_shared import with_shared_sizes, without_large_arrays

import tile_core
from tile_core.diagnostics import CompileError

SHAPES = (128, 128), (128, 128), (128, 128)
ELEMENTS = "f16", "f16", "f32"
BYTES = 2 * 128 * 128 * 2  # both operands


def product() -> Kernel:
    """A product whose operands take 64 KiB."""
    kernel = Kernel(8)
    for name, shape, element in zip("abc", SHAPES, ELEMENTS, strict=True):
        kernel.load(f"%{name}", shape, element)
    kernel.op(
        '%d = "nv_tileaa.dot"(%a, %b, %c) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : '
        "(tensor<128x128xf16>, tensor<128x128xf16>, tensor<128x128xf32>) -> tensor<128x128xf32>"
    )
    kernel.store("%d", SHAPES[2], ELEMENTS[2])
    return kernel


def shared_sections(cubin: bytes) -> dict[str, int]:
    """Kernel -> bytes of its section of shared memory."""
    (table,) = struct.unpack_from("<Q", cubin, 0x28)
    size, count, names = struct.unpack_from("<HHH", cubin, 0x3A)
    rows = [struct.unpack_from("<IIQQQQ", cubin, table + i * size) for i in range(count)]
    found = {}
    for row in rows:
        start = rows[names][4] + row[0]
        name = cubin[start : cubin.index(0, start)].decode()
        if name.startswith(".nv.shared."):
            found[name.removeprefix(".nv.shared.")] = row[5]
    return found


@pytest.mark.parametrize("target", ["sm_80", "sm_89", "sm_90", "sm_120"])
def test_the_cubin_asks_for_it(target):
    made = tile_core.compile(
        product().text(), target, start_at="convert-tileaa-to-tileas", registry=registry()
    )
    assert f".b8 global_smem[{BYTES}]" in str(made.stage("ptx"))
    # From sm_90 on the system keeps the first KiB for itself.
    assert shared_sections(made.cubin)["kernel"] in (BYTES, BYTES + 1024)
    (kernel,) = made.metadata["cubin"]["kernels"]
    assert kernel.static_shared == BYTES
    assert not kernel.uses_local_memory


@pytest.mark.parametrize("target", ["sm_80", "sm_90"])
def test_it_runs(target):
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-4, 5, s).astype(np.float16) for s in SHAPES[:2])
    c = rng.integers(-9, 10, SHAPES[2]).astype(np.float32)
    out = np.zeros_like(c)
    report = product().run(a, b, c, out, target=target)
    assert not report.findings
    np.testing.assert_array_equal(out, a.astype(np.float32) @ b.astype(np.float32) + c)


PTX = """.version 9.0
.target sm_80
.shared .align 16 .b8 both[100];
.shared .align 128 .b8 one[70000];
.visible .entry f(
)
{
	mov.b64 %rd1, one;
}
.visible .entry g(
)
{
	// demoted variable
	.shared .align 128 .b8 two[60000];
	mov.b64 %rd1, one;
	mov.b64 %rd2, two;
	mov.b64 %rd3, both;
}
"""


def test_arrays_above_the_limit_lose_their_size():
    large = without_large_arrays(PTX, 48 * 1024)
    assert large.sizes == {"f": 70000, "g": 130000}
    assert ".shared .align 16 .b8 both[100];" in large.ptx
    head, _, rest = large.ptx.partition(".visible")
    assert head.count(".extern .shared") == 2
    assert ".shared" not in rest
    assert "demoted" not in rest


def test_small_arrays_stay():
    assert without_large_arrays(PTX, 70000).ptx == PTX
    assert without_large_arrays(PTX, 70000).sizes == {}


def test_a_kernel_without_shared_memory_is_an_error():
    made = tile_core.compile(
        product().text(), "sm_90", start_at="convert-tileaa-to-tileas", registry=registry()
    )
    with pytest.raises(CompileError, match="ptxas made no shared memory for kernel 'other'"):
        with_shared_sizes(made.cubin, {"other": 4})
