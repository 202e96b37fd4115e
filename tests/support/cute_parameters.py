"""Kernels written with cute that read parameters where they are, and dynamic shared memory."""

from __future__ import annotations

#: y[t] = x[63 - t] by way of dynamic shared memory, and y[64] its size in bytes.
DYNAMIC = """
!p = !cute.ptr<i32, "gmem", 16 : i64>
!s = !cute.ptr<i32, "smem", 1024 : i64>
!l = !cute.layout<"65:1">
!ls = !cute.layout<"64:1">
!g = !cute.memref<i32, "gmem", "65:1">
!m = !cute.memref<i32, "smem", "64:1">
gpu.module @m {
  func.func @reversed(%x: !p, %y: !p) attributes {
      nv_tileaa.kernel, nv_tileaa.kernel_spec = {num_ctas = 1 : i32, num_warps = 2 : i32}} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %last = arith.constant 63 : i32
    %one = arith.constant 64 : i32
    %l = "cute.static"() : () -> !l
    %ls = "cute.static"() : () -> !ls
    %from = "cute.make_view"(%x, %l) : (!p, !l) -> !g
    %to = "cute.make_view"(%y, %l) : (!p, !l) -> !g
    %s = "cute_nvgpu.arch_get_dyn_smem"() : () -> !s
    %m = "cute.make_view"(%s, %ls) : (!s, !ls) -> !m
    %v = "cute.memref_load"(%from, %t) : (!g, i32) -> i32
    "cute.memref_store"(%v, %m, %t) : (i32, !m, i32) -> ()
    nvvm.barrier
    %other = arith.subi %last, %t : i32
    %w = "cute.memref_load"(%m, %other) : (!m, i32) -> i32
    "cute.memref_store"(%w, %to, %t) : (i32, !g, i32) -> ()
    %size = "cute_nvgpu.arch_get_dyn_smem_size"() : () -> i32
    %zero = arith.constant 0 : i32
    %t0 = arith.cmpi eq, %t, %zero : i32
    scf.if %t0 {
      "cute.memref_store"(%size, %to, %one) : (i32, !g, i32) -> ()
    }
    return
  }
}
"""

#: y = [a by its address, a, v[1] by its address, words of the map by its address and as a pointer
#: of a generic grid constant, whether its addresses are equal].
CONSTANTS = """
!p = !cute.ptr<i32, "gmem", 16 : i64>
!map = !cute_nvgpu.tma_descriptor_tiled<"f16", "8x64", "128B">
!pa = !cute.ptr<i32, "generic", 4 : i64>
!pv = !cute.ptr<i32, "generic", 16 : i64>
!pm = !cute.ptr<i32, "generic", 64 : i64>
!l = !cute.layout<"8:1">
!lm = !cute.layout<"32:1">
!g = !cute.memref<i32, "gmem", "8:1">
!a = !cute.memref<i32, "generic", "8:1">
!w = !cute.memref<i32, "generic", "32:1">
gpu.module @m {
  func.func @constants(%y: !p, %a: i32, %v: vector<4xi32>, %map: !map) attributes {
      nv_tileaa.kernel, nv_tileaa.kernel_spec = {num_ctas = 1 : i32, num_warps = 1 : i32}} {
    %0 = arith.constant 0 : i32
    %1 = arith.constant 1 : i32
    %2 = arith.constant 2 : i32
    %3 = arith.constant 3 : i32
    %4 = arith.constant 4 : i32
    %5 = arith.constant 5 : i32
    %l = "cute.static"() : () -> !l
    %lm = "cute.static"() : () -> !lm
    %to = "cute.make_view"(%y, %l) : (!p, !l) -> !g
    %pa = "cute_nvgpu.get_grid_constant_pointer"(%a) : (i32) -> !pa
    %pv = "cute_nvgpu.get_grid_constant_pointer"(%v) : (vector<4xi32>) -> !pv
    %pm = "cute_nvgpu.get_grid_constant_pointer"(%map) : (!map) -> !pm
    %va = "cute.make_view"(%pa, %l) : (!pa, !l) -> !a
    %vv = "cute.make_view"(%pv, %l) : (!pv, !l) -> !a
    %vm = "cute.make_view"(%pm, %lm) : (!pm, !lm) -> !w
    %x0 = "cute.memref_load"(%va, %0) : (!a, i32) -> i32
    %x2 = "cute.memref_load"(%vv, %1) : (!a, i32) -> i32
    "cute.memref_store"(%x0, %to, %0) : (i32, !g, i32) -> ()
    "cute.memref_store"(%a, %to, %1) : (i32, !g, i32) -> ()
    "cute.memref_store"(%x2, %to, %2) : (i32, !g, i32) -> ()
    %ia = "cute_nvgpu.get_tma_desc_addr"(%map) : (!map) -> i64
    %ic = "cute_nvgpu.cast_tma_desc_to_integer"(%map) : (!map) -> i64
    %p = llvm.inttoptr %ia : i64 to !llvm.ptr
    %q = llvm.getelementptr %p[8] : (!llvm.ptr) -> !llvm.ptr, i32
    %x3 = llvm.load %q : !llvm.ptr -> i32
    "cute.memref_store"(%x3, %to, %3) : (i32, !g, i32) -> ()
    %at = arith.constant 8 : i32
    %x4 = "cute.memref_load"(%vm, %at) : (!w, i32) -> i32
    "cute.memref_store"(%x4, %to, %4) : (i32, !g, i32) -> ()
    %same = arith.cmpi eq, %ia, %ic : i64
    %x5 = arith.extui %same : i1 to i32
    "cute.memref_store"(%x5, %to, %5) : (i32, !g, i32) -> ()
    return
  }
}
"""
