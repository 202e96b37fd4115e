"""MLIR's own conversions of gpu and nvgpu, held to pages 046 and 083 of the specification.

`mlir:...` runs them in any pipeline. What MLIR does otherwise stands in `OTHERWISE`.
"""

from __future__ import annotations

import pytest

from tile_core.diagnostics import TileError
from tile_core.mlir import bindings_name
from tile_core.opt import OptJob, Selection, optimize
from tile_core.registry import default_registry

MAP = (
    "!nvgpu.tensormap.descriptor<tensor = memref<64x64xf16, 3>, swizzle = swizzle_128b, "
    "l2promo = none, oob = zero, interleave = none>"
)
BAR = "!nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>>"
SMEM = "memref<64x64xf16, 3>"
DESC = f"!nvgpu.warpgroup.descriptor<tensor = {SMEM}>"
ACC = "!nvgpu.warpgroup.accumulator<fragmented = vector<64x64xf32>>"
_ARGUMENTS = (
    f"%s: {SMEM}, %g: memref<64x64xf16>, %i: index, %d: {MAP}, %b: {BAR}, %p: i1, %mask: i16, "
    "%x: vector<4x2xf16>, %y: vector<2x2xf16>, %meta: vector<2xi16>, %f: vector<4xf32>, "
    f"%tok: !nvgpu.mbarrier.token, %da: {DESC}, %acc: {ACC}, %o: memref<64x64xf32, 3>"
)

#: Row of the page: (operation, what becomes of it).
NVGPU: dict[str, tuple[str, tuple[str, ...]]] = {
    "device_async_copy": (
        f"%t = nvgpu.device_async_copy %g[%i, %i], %s[%i, %i], 8 : memref<64x64xf16> to {SMEM}",
        ("nvvm.cp.async.shared.global", ", 16, cache = ca"),
    ),
    "device_async_copy bypassL1": (
        "%t = nvgpu.device_async_copy %g[%i, %i], %s[%i, %i], 8 {bypassL1} "
        f": memref<64x64xf16> to {SMEM}",
        (", 16, cache = cg",),
    ),
    "device_async_create_group": (
        "%t = nvgpu.device_async_create_group", ("nvvm.cp.async.commit.group",),
    ),
    "device_async_wait": (
        "%t = nvgpu.device_async_create_group\nnvgpu.device_async_wait %t",
        ("nvvm.cp.async.wait.group 0",),
    ),
    "device_async_wait numGroups": (
        "%t = nvgpu.device_async_create_group\nnvgpu.device_async_wait %t {numGroups = 2 : i32}",
        ("nvvm.cp.async.wait.group 2",),
    ),
    "mbarrier.create": (
        "%t = nvgpu.mbarrier.create -> "
        "!nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>, num_barriers = 3>",
        ('memref.global "private" @__mbarrier : memref<3xi64, 3>', "memref.get_global"),
    ),
    "mbarrier.init": (
        f"nvgpu.mbarrier.init %b[%i], %i : {BAR}", ("nvvm.mbarrier.init", "!llvm.ptr<3>, i32"),
    ),
    "mbarrier.arrive": (
        f"%t = nvgpu.mbarrier.arrive %b[%i] : {BAR} -> !nvgpu.mbarrier.token",
        ("nvvm.mbarrier.arrive %", "!llvm.ptr<3> -> i64"),
    ),
    "mbarrier.arrive.nocomplete": (
        f"%t = nvgpu.mbarrier.arrive.nocomplete %b[%i], %i : {BAR} -> !nvgpu.mbarrier.token",
        ("nvvm.mbarrier.arrive.nocomplete", "!llvm.ptr<3>, i32 -> i64"),
    ),
    "mbarrier.arrive.expect_tx": (
        f"nvgpu.mbarrier.arrive.expect_tx %b[%i], %i : {BAR}",
        ("nvvm.mbarrier.arrive.expect_tx", "!llvm.ptr<3>, i32"),
    ),
    "mbarrier.test.wait": (
        f"%t = nvgpu.mbarrier.test.wait %b[%i], %tok : {BAR}, !nvgpu.mbarrier.token",
        ("nvvm.mbarrier.test.wait", "!llvm.ptr<3>, i64 -> i1"),
    ),
    "mbarrier.try_wait.parity": (
        f"nvgpu.mbarrier.try_wait.parity %b[%i], %p, %i : {BAR}",
        ("nvvm.mbarrier.try_wait.parity", "!llvm.ptr<3>, i32, i32"),
    ),
    "tma.async.load": (
        f"nvgpu.tma.async.load %d[%i, %i], %b[%i] to %s : {MAP}, {BAR} -> {SMEM}",
        ("nvvm.cp.async.bulk.tensor.shared.cluster.global", "box[%"),
    ),
    "tma.async.load multicast": (
        "nvgpu.tma.async.load %d[%i, %i], %b[%i] to %s multicast_mask = %mask, predicate = %p "
        f": {MAP}, {BAR} -> {SMEM}",
        ("multicast_mask = %", "predicate = %"),
    ),
    "tma.async.store": (
        f"nvgpu.tma.async.store %s to %d[%i, %i] : {SMEM} -> {MAP}",
        ("nvvm.cp.async.bulk.tensor.global.shared.cta", "box[%"),
    ),
    "tma.prefetch.descriptor": (
        f"nvgpu.tma.prefetch.descriptor %d : {MAP}", ("nvvm.prefetch tensormap, %",),
    ),
    "tma.fence.descriptor": (
        f"nvgpu.tma.fence.descriptor %d : {MAP}", ("nvvm.fence.proxy.acquire", "(128 : i32)"),
    ),
    # Start address in units of 16 bytes, leading 8192 / 16, stride 1024 / 16, swizzle 128B = 1.
    "warpgroup.generate.descriptor": (
        f"%t = nvgpu.warpgroup.generate.descriptor %s, %d : {SMEM}, {MAP} -> {DESC}",
        ("constant(64 : i64)", "constant(512 : i64)", "constant(62 : i64)", "constant(46 : i64)",
         "constant(50 : i64)", "llvm.or"),
    ),
    "warpgroup.mma": (
        f"%t = nvgpu.warpgroup.mma %da, %da, %acc {{waitGroup = 2 : i64}} : "
        f"<tensor = {SMEM}>, <tensor = {SMEM}>, <fragmented = vector<64x64xf32>> -> "
        "<fragmented = vector<64x64xf32>>",
        ("nvvm.wgmma.fence.aligned", "<m = 64, n = 64, k = 16>",
         "nvvm.wgmma.commit.group.sync.aligned", "nvvm.wgmma.wait.group.sync.aligned 2"),
    ),
    "warpgroup.mma.store": (
        "nvgpu.warpgroup.mma.store %acc, %o : <fragmented = vector<64x64xf32>> to "
        "memref<64x64xf32, 3>",
        ("nvvm.read.ptx.sreg.tid.x", "memref.store"),
    ),
    "warpgroup.mma.init.accumulator": (
        f"%t = nvgpu.warpgroup.mma.init.accumulator -> {ACC}",
        ("constant(0.000000e+00 : f32)", "llvm.insertvalue"),
    ),
    "mma.sync": (
        "%t = nvgpu.mma.sync (%x, %y, %y) {mmaShape = [16, 8, 16]} : "
        "(vector<4x2xf16>, vector<2x2xf16>, vector<2x2xf16>) -> vector<2x2xf16>",
        ("nvvm.mma.sync", "#nvvm.shape<m = 16, n = 8, k = 16>"),
    ),
    "mma.sp.sync": (
        "%t = nvgpu.mma.sp.sync (%x, %x, %y) metadata(%meta) {mmaShape = [16, 8, 32]} : "
        "(vector<4x2xf16>, vector<4x2xf16>, vector<2x2xf16>) -> vector<2x2xf16>",
        ("llvm.inline_asm", "mma.sp.sync.aligned.m16n8k32.row.col.f16.f16.f16.f16", "$12,0x0;"),
    ),
    "ldmatrix": (
        f"%t = nvgpu.ldmatrix %s[%i, %i] {{transpose = false, numTiles = 4 : i32}} : {SMEM} -> "
        "vector<4x2xf16>",
        ("nvvm.ldmatrix", "layout = #nvvm.mma_layout<row>, num = 4"),
    ),
    "ldmatrix transpose": (
        f"%t = nvgpu.ldmatrix %s[%i, %i] {{transpose = true, numTiles = 2 : i32}} : {SMEM} -> "
        "vector<2x2xf16>",
        ("layout = #nvvm.mma_layout<col>, num = 2",),
    ),
    "rcp": (
        "%t = nvgpu.rcp %f {approx = true, ftz = true} : vector<4xf32>",
        ("nvvm.rcp.approx.ftz.f",),
    ),
}  # fmt: skip

#: gpu: (operation whose first result is %t, its type, what becomes of it).
GPU: dict[str, tuple[str, str, tuple[str, ...]]] = {
    **{
        f"{name} {axis}": (
            f"%t = gpu.{name} {axis}", "index", (f"nvvm.read.ptx.sreg.{register}.{axis}",)
        )
        for name, register in {
            "thread_id": "tid", "block_id": "ctaid", "block_dim": "ntid", "grid_dim": "nctaid",
            "cluster_id": "clusterid", "cluster_dim": "nclusterid",
            "cluster_block_id": "cluster.ctaid",
        }.items()
        for axis in "xyz"
    },
    "lane_id": ("%t = gpu.lane_id", "index", ("nvvm.read.ptx.sreg.laneid",)),
    "barrier": ("gpu.barrier", "", ("nvvm.barrier",)),
    "shuffle": (
        "%t, %ok = gpu.shuffle xor %i, %i, %i : i32", "i32", ("nvvm.shfl.sync bfly",),
    ),
    "assert": (
        'cf.assert %c, "no"', "",
        ("llvm.cond_br", "@__assertfail(!llvm.ptr, !llvm.ptr, i32, !llvm.ptr, i64)",
         'assert_message_0("no'),
    ),
    "printf": (
        'gpu.printf "%d", %i : i32', "",
        ("@vprintf(", "(!llvm.ptr, !llvm.ptr) -> i32", 'printfFormat_0("%d'),
    ),
    "dynamic_shared_memory": (
        "%m = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>\n"
        "%z = arith.constant 0 : index\n%v8 = memref.view %m[%z][] : "
        "memref<?xi8, #gpu.address_space<workgroup>> to memref<4xi32, "
        "#gpu.address_space<workgroup>>\n%t = memref.load %v8[%z] : memref<4xi32, "
        "#gpu.address_space<workgroup>>",
        "i32", ("@__dynamic_shmem__0() {addr_space = 3 : i32, alignment = 16",),
    ),
    "math of f32": ("%t = math.erf %x : f32", "f32", ("@__nv_erff(%",)),
    "math of f64": ("%t = math.erf %w : f64", "f64", ("@__nv_erf(%",)),
    "math of f16": ("%t = math.erf %h : f16", "f16", ("@__nv_erff(%", "llvm.fptrunc")),
    "math of vectors": ("%t = math.sin %v : vector<2xf32>", "vector<2xf32>", ("@__nv_sinf(%",)),
    "math in a hurry": ("%t = math.sin %x fastmath<afn> : f32", "f32", ("@__nv_fast_sinf(%",)),
}  # fmt: skip


def converted(text: str, passes: str) -> str:
    job = OptJob(default_registry(), Selection(pass_pipeline=passes, target="sm_90"))
    return str(optimize(text, 0, job).text)


@pytest.mark.parametrize("row", NVGPU)
def test_nvgpu(row: str) -> None:
    body, words = NVGPU[row]
    text = f"gpu.module @m {{ func.func @f({_ARGUMENTS}) {{\n{body}\nreturn }} }}"
    if row == "rcp" and "numba" in bindings_name():  # LLVM 22 spells it in another way
        text = text.replace("approx = true, ftz = true", "rounding = approx, ftz")
    found = converted(text, "builtin.module(gpu.module(mlir:convert-nvgpu-to-nvvm))")
    operations = [line for line in found.split("\n") if " = nvgpu." in line or " nvgpu." in line]
    assert not [line for line in operations if "unrealized" not in line and "func" not in line]
    for word in words:
        assert word in found, found


def test_descriptors_are_made_by_the_host() -> None:
    text = (
        f"func.func @f(%t: memref<*xf16>, %i: index) -> {MAP} {{\n"
        f"%d = nvgpu.tma.create.descriptor %t box[%i, %i] : memref<*xf16> -> {MAP}\n"
        f"return %d : {MAP}\n}}"
    )
    found = converted(text, "builtin.module(mlir:convert-nvgpu-to-nvvm)")
    assert "TensorMapEncodeTiled" in found
    assert "llvm.alloca" in found


def _gpu(body: str, type_: str) -> str:
    stored = {
        "": "",
        "index": "%k = arith.index_cast %t : index to i64\nllvm.store %k, %p : i64, !llvm.ptr",
    }.get(type_, f"llvm.store %t, %p : {type_}, !llvm.ptr")
    return (
        "gpu.module @m { gpu.func @f(%x: f32, %w: f64, %h: f16, %i: i32, %v: vector<2xf32>, "
        f"%c: i1, %p: !llvm.ptr) kernel {{\n{body}\n{stored}\ngpu.return }} }}"
    )


@pytest.mark.parametrize("row", GPU)
def test_gpu(row: str) -> None:
    body, type_, words = GPU[row]
    found = converted(_gpu(body, type_), "builtin.module(gpu.module(mlir:convert-gpu-to-nvvm))")
    left = [line for line in found.split("\n") if " gpu." in line and "gpu.module" not in line]
    assert not [line for line in left if "gpu.kernel" not in line], found
    for word in words:
        assert word in found, found


def test_vectors_are_taken_apart() -> None:
    found = converted(
        _gpu(*GPU["math of vectors"][:2]), "builtin.module(gpu.module(mlir:convert-gpu-to-nvvm))"
    )
    assert found.count("llvm.call @__nv_sinf") == 2


def test_products_in_flight() -> None:
    """Without `waitGroup` one product stays in flight, where the page has none: who stores the
    accumulator asks for 0 by another wait.
    """
    body = NVGPU["warpgroup.mma"][0].replace("{waitGroup = 2 : i64}", "")
    text = f"gpu.module @m {{ func.func @f({_ARGUMENTS}) {{\n{body}\nreturn }} }}"
    found = converted(text, "builtin.module(gpu.module(mlir:convert-nvgpu-to-nvvm))")
    assert "nvvm.wgmma.wait.group.sync.aligned 1" in found


#: The page has a form for these, MLIR none: its error names the operation.
OTHERWISE = {
    "subgroup_size": ("%t = gpu.subgroup_size : index", "index"),
    "subgroup_reduce": ("%t = gpu.subgroup_reduce add %i uniform : (i32) -> i32", "i32"),
}


@pytest.mark.parametrize("row", OTHERWISE)
def test_refused(row: str) -> None:
    with pytest.raises(TileError, match=f"failed to legalize operation 'gpu.{row}'"):
        converted(_gpu(*OTHERWISE[row]), "builtin.module(gpu.module(mlir:convert-gpu-to-nvvm))")


@pytest.mark.parametrize(
    "name", ["cvt_fpext", "cvt_fptrunc", "fma.packed.f32x2", "mul.packed.f32x2"]
)
def test_operations_that_only_the_original_has(name: str) -> None:
    text = f'func.func @f(%x: f32) {{ %y = "nvgpu.{name}"(%x) : (f32) -> f32 return }}'
    with pytest.raises(TileError, match=f"nvgpu.{name}"):
        converted(text, "builtin.module(mlir:convert-nvgpu-to-nvvm)")
