"""Kernels written with cute that make, copy and change tensor maps."""

from __future__ import annotations

from support.cute_blackwell import LOAD

#: y[8 b : 8 b + 8] = x[8 b : 8 b + 8] for block b, x of n rows of 64 that lie `ld` apart: thread 0
#: copies them by the map that MAKE makes, and both warps write them.
_COPY = """
!map = !cute_nvgpu.tma_descriptor_tiled<"f16", "8x64", "128B">
!p = !cute.ptr<f16, "gmem", 16 : i64>
!bar = !cute.ptr<i64, "smem", 8 : i64>
!bars = !cute.memref<i64, "smem", "1:1">
!s = !cute.memref<f16, "smem", "S<3,3,3> o 0 o (8,64):(64,1)">
!shape = !cute.shape<"(?,64)">
!stride = !cute.stride<"(?{div=8},1)">
!lx = !cute.layout<"(?,64):(?{div=8},1)">
!x = !cute.memref<f16, "gmem", "(?,64):(?{div=8},1)">
!ly = !cute.layout<"(8,64):(64,1)">
!y = !cute.memref<f16, "gmem", "(8,64):(64,1)">
gpu.module @m {
  func.func @copied(%px: !p, %py: !p, %ws: !llvm.ptr<1>, %template: !map, %n: i32, %ld: i32)
      attributes {
        nv_tileaa.kernel, nv_tileaa.kernel_spec = {num_ctas = 1 : i32, num_warps = 2 : i32}} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %b = nvvm.read.ptx.sreg.ctaid.x : i32
    %i0 = arith.constant 0 : i32
    %i1 = arith.constant 1 : i32
    %i8 = arith.constant 8 : i32
    %i32 = arith.constant 32 : i32
    %i64 = arith.constant 64 : i32
    %size = arith.constant 128 : i32
    %row = arith.constant 512 : i32
    %bytes = arith.constant 1024 : i32
    %ticks = arith.constant 10000000 : i32
    %s = "cute.memref_alloc_smem"() : () -> !s
    %bars = "cute.memref_alloc_smem"() : () -> !bars
    %bar = "cute.get_iter"(%bars) : (!bars) -> !bar
    %pb = builtin.unrealized_conversion_cast %bar : !bar to !llvm.ptr<3>
    %t0 = arith.cmpi eq, %t, %i0 : i32
    %w0 = arith.cmpi ult, %t, %i32 : i32
    %shape = "cute.make_shape"(%n) : (i32) -> !shape
    %stride = "cute.make_stride"(%ld) : (i32) -> !stride
    %lx = "cute.make_layout"(%shape, %stride) : (!shape, !stride) -> !lx
    %vx = "cute.make_view"(%px, %lx) : (!p, !lx) -> !x
    %far = arith.muli %b, %size : i32
    %place = llvm.getelementptr %ws[%far] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i8
    %at = llvm.ptrtoint %place : !llvm.ptr<1> to i64
    %generic = llvm.addrspacecast %place : !llvm.ptr<1> to !llvm.ptr
    %there = builtin.unrealized_conversion_cast %generic : !llvm.ptr to !map
    MAKE
    %used = builtin.unrealized_conversion_cast %map : !map to !llvm.ptr
    scf.if %t0 {
      nvvm.mbarrier.init %pb, %i1 : !llvm.ptr<3>, i32
      nvvm.fence.mbarrier.init
    }
    nvvm.barrier
    %first = arith.muli %b, %i8 : i32
    scf.if WHO {
      nvvm.fence.proxy.acquire #nvvm.mem_scope<gpu> %used, %size
      nvvm.mbarrier.arrive.expect_tx %pb, %bytes : !llvm.ptr<3>, i32
      "cute_nvgpu.arch_copy_sm100_tma_load"(%s, %map, %bar, %i0, %first) {atom = "LOAD"}
        : (!s, !map, !bar, i32, i32) -> ()
    }
    nvvm.mbarrier.try_wait.parity %pb, %i0, %ticks : !llvm.ptr<3>, i32, i32
    %ly = "cute.static"() : () -> !ly
    %skip = arith.muli %b, %row : i32
    %own = "cute.add_offset"(%py, %skip) : (!p, i32) -> !p
    %vy = "cute.make_view"(%own, %ly) : (!p, !ly) -> !y
    scf.for %i = %i0 to %i8 step %i1 : i32 {
      %v = "cute.memref_load"(%s, %i, %t) : (!s, i32, i32) -> f16
      "cute.memref_store"(%v, %vy, %i, %t) : (f16, !y, i32, i32) -> ()
    }
    return
  }
}
"""

#: How the map comes to be: in the block's own place; at an address; as a copy of a parameter of
#: which base, extent and stride change.
_MAKE = {
    "own": """%map = "cute_nvgpu.make_tma_desc_tiled"(%vx) : (!x) -> !map
    %address = "cute_nvgpu.get_tma_desc_addr"(%map) : (!map) -> !p""",
    "at": """scf.if %w0 {
      "cute_nvgpu.make_tma_desc_tiled_at"(%vx, %at) {map = !map} : (!x, i64) -> ()
    }
    %map = builtin.unrealized_conversion_cast %generic : !llvm.ptr to !map""",
    "copy": """scf.if %w0 {
      "cute_nvgpu.copy_tma_desc"(%template, %there) : (!map, !map) -> ()
      %base = "cute.ptrtoint"(%px) : (!p) -> i64
      "cute_nvgpu.update_tma_desc"(%there, %base) {field = "base"} : (!map, i64) -> ()
      "cute_nvgpu.update_tma_desc"(%there, %n) {field = "dim", axis = 1 : i32} : (!map, i32) -> ()
      %wide = arith.extui %ld : i32 to i64
      %two = arith.constant 2 : i64
      %step = arith.muli %wide, %two : i64
      "cute_nvgpu.update_tma_desc"(%there, %step) {field = "stride", axis = 1 : i32}
        : (!map, i64) -> ()
    }
    %map = builtin.unrealized_conversion_cast %generic : !llvm.ptr to !map""",
}
MADE = tuple(_MAKE)


def map_kernel(made: str) -> str:
    """The kernel; a thread of the second warp copies, which did not write the map."""
    text = _COPY.replace("MAKE", _MAKE[made]).replace("LOAD", LOAD)
    return text.replace("scf.if WHO", "%who = arith.cmpi eq, %t, %i32 : i32\n    scf.if %who")
