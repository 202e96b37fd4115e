"""Kernels of cute that partition, load and print by its less common operations, as MLIR text."""

# ruff: noqa: E501

from __future__ import annotations

from support.cute_tiled import MMA

#: One warp. y = x + x by parts of a tiled copy; z = A B of ones, with fragments made for the
#: product; w[t] = x[(t + 1) * 3 + 2 * 5]; v = what lies at (1, 2) of each tile of 2 x 4 of x;
#: u = numbers that forgot that they are known; r = row 1 of x by a projected partition.
_PARTS = """
!p = !cute.ptr<f32, "gmem", 16 : i64>
!l = !cute.layout<"256:1">
!x = !cute.memref<f32, "gmem", "256:1">
!ldg = !cute_nvgpu.atom<"ld.global.v4.b32">
!stg = !cute_nvgpu.atom<"st.global.v4.b32">
!tv = !cute.layout<"(32,8):(8,1)">
!in = !cute.tiled_copy<"ld.global.v4.b32", "(32,8):(8,1)", "(256)">
!out = !cute.tiled_copy<"st.global.v4.b32", "(32,8):(8,1)", "(256)">
!part = !cute.memref<f32, "gmem", "((4,2),1):((1,4),0)">
!regs = !cute.memref<f32, "rmem", "((4,2),1):((1,4),0)">
!mm = !cute_nvgpu.atom<"MMA">
!mma = !cute.tiled_mma<"MMA", "(1,1,1):(1,1,1)", "(16,8,16)">
!sa = !cute.shape<"((2,2,2),1,1)">
!sb = !cute.shape<"((2,2),1,1)">
!fa = !cute.memref<f16, "rmem", "((2,2,2),1,1):((1,2,4),8,8)">
!fb = !cute.memref<f16, "rmem", "((2,2),1,1):((1,2),4,4)">
!fc = !cute.memref<f32, "rmem", "((2,2),1,1):((1,2),0,0)">
!lz = !cute.layout<"(16,8):(8,1)">
!vz = !cute.memref<f32, "gmem", "(16,8):(8,1)">
!pz = !cute.memref<f32, "gmem", "((2,2),1,1):((1,64),0,0)">
!at = !cute.coord<"(?,2)">
!by = !cute.int_tuple<"(3,5)">
!square = !cute.memref<f32, "gmem", "(8,32):(32,1)">
!lsquare = !cute.layout<"(8,32):(32,1)">
!tile = !cute.tile<"<2:1,4:1>">
!one = !cute.coord<"(?,2)">
!corner = !cute.memref<f32, "gmem", "(4,8):(64,4)">
!known = !cute.shape<"(4,(6,?))">
!open = !cute.shape<"(?,(?{div=2},?))">
!threads = !cute.layout<"(4,8):(8,1)">
!l1 = !cute.layout<"4:1">
!proj1 = !cute.coord<"(0,_)">
!half = !cute.memref<f32, "gmem", "(2,32):(128,1)">
gpu.module @m {
  func.func @parts(%x: !p, %y: !p, %z: !p, %w: !p, %v: !p, %u: !llvm.ptr<1>, %r: !p, %n: i32)
      attributes {nv_tileaa.kernel,
      nv_tileaa.kernel_spec = {num_ctas = 1 : i32, num_warps = 1 : i32}} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %i0 = arith.constant 0 : i32
    %i1 = arith.constant 1 : i32
    %l = "cute.static"() : () -> !l
    %tv = "cute.static"() : () -> !tv
    %ldg = "cute.make_atom"() : () -> !ldg
    %stg = "cute.make_atom"() : () -> !stg
    %in = "cute.make_tiled_copy"(%ldg, %tv) : (!ldg, !tv) -> !in
    %out = "cute.make_tiled_copy"(%stg, %tv) : (!stg, !tv) -> !out
    %vx = "cute.make_tensor"(%x, %l) : (!p, !l) -> !x
    %vy = "cute.make_tensor"(%y, %l) : (!p, !l) -> !x
    %from = "cute.tiled_partition"(%in, %vx, %t) {operand = "S"} : (!in, !x, i32) -> !part
    %to = "cute.tiled_partition"(%out, %vy, %t) {operand = "D"} : (!out, !x, i32) -> !part
    %regs = "cute.make_fragment_like"(%from) : (!part) -> !regs
    "cute.copy"(%in, %from, %regs) : (!in, !part, !regs) -> ()
    %some = "cute.memref_load_vec"(%regs) : (!regs) -> vector<8xf32>
    %more = arith.addf %some, %some : vector<8xf32>
    "cute.memref_store_vec"(%more, %regs) : (vector<8xf32>, !regs) -> ()
    "cute.copy"(%out, %regs, %to) : (!out, !regs, !part) -> ()

    %mm = "cute.make_atom"() : () -> !mm
    %mma = "cute.make_tiled_mma"(%mm) : (!mm) -> !mma
    %sa = "cute.static"() : () -> !sa
    %sb = "cute.static"() : () -> !sb
    %fa = "cute.mma_make_fragment"(%mm, %sa) {operand = "A"} : (!mm, !sa) -> !fa
    %fb = "cute.mma_make_fragment"(%mm, %sb) {operand = "B"} : (!mm, !sb) -> !fb
    %lz = "cute.static"() : () -> !lz
    %vz = "cute.make_tensor"(%z, %lz) : (!p, !lz) -> !vz
    %pz = "cute.tiled_partition"(%mma, %vz, %t) {operand = "C"} : (!mma, !vz, i32) -> !pz
    %fc = "cute.mma_make_fragment"(%mm, %pz) {operand = "C"} : (!mm, !pz) -> !fc
    %ones_a = arith.constant dense<1.0> : vector<8xf16>
    %ones_b = arith.constant dense<1.0> : vector<4xf16>
    %none = arith.constant dense<0.0> : vector<4xf32>
    "cute.memref_store_vec"(%ones_a, %fa) : (vector<8xf16>, !fa) -> ()
    "cute.memref_store_vec"(%ones_b, %fb) : (vector<4xf16>, !fb) -> ()
    "cute.memref_store_vec"(%none, %fc) : (vector<4xf32>, !fc) -> ()
    "cute.gemm"(%mm, %fc, %fa, %fb, %fc) : (!mm, !fc, !fa, !fb, !fc) -> ()
    %product = "cute.memref_load_vec"(%fc) : (!fc) -> vector<4xf32>
    "cute.memref_store_vec"(%product, %pz) : (vector<4xf32>, !pz) -> ()

    %next = arith.addi %t, %i1 : i32
    %at = "cute.make_coord"(%next) : (i32) -> !at
    %by = "cute.static"() : () -> !by
    %far = "cute.load_scaled_index"(%x, %at, %by) : (!p, !at, !by) -> f32
    %pw = "cute.add_offset"(%w, %t) : (!p, i32) -> !p
    "cute.ptr_store"(%far, %pw) : (f32, !p) -> ()

    %ls = "cute.static"() : () -> !lsquare
    %tile = "cute.make_tile"() : () -> !tile
    %square = "cute.make_tensor"(%x, %ls) : (!p, !lsquare) -> !square
    %one = "cute.make_coord"(%n) : (i32) -> !one
    %corner = "cute.partition"(%square, %tile, %one) : (!square, !tile, !one) -> !corner
    %corners = "cute.memref_load_vec"(%corner) : (!corner) -> vector<32xf32>
    %l32 = "cute.static"() : () -> !cute.layout<"32:1">
    %vv = "cute.make_tensor"(%v, %l32) : (!p, !cute.layout<"32:1">) -> !cute.memref<f32, "gmem", "32:1">
    %tr = "cute.get_layouts_from_tile"(%tile) {mode = 1 : i32} : (!tile) -> !l1
    %whole = "cute.size"(%tr) : (!l1) -> i32

    %known = "cute.make_shape"(%n) : (i32) -> !known
    %open = "cute.derefine"(%known) : (!known) -> !open
    %m0 = "cute.size"(%open) {mode = array<i32: 0>} : (!open) -> i32
    %m1 = "cute.size"(%open) {mode = array<i32: 1>} : (!open) -> i32

    %threads = "cute.static"() : () -> !threads
    %proj = "cute.static"() : () -> !proj1
    %own = "cute.local_partition"(%square, %threads, %t, %proj) : (!square, !threads, i32, !proj1) -> !half
    %mine = "cute.memref_load_vec"(%own) : (!half) -> vector<64xf32>
    %first = vector.extract %mine[32] : f32 from vector<64xf32>
    %pr = "cute.add_offset"(%r, %t) : (!p, i32) -> !p
    "cute.ptr_store"(%first, %pr) : (f32, !p) -> ()
    %leads = arith.cmpi eq, %t, %i0 : i32
    scf.if %leads {
      "cute.memref_store_vec"(%corners, %vv) : (vector<32xf32>, !cute.memref<f32, "gmem", "32:1">) -> ()
      %numbers = vector.from_elements %m0, %m1, %whole, %n : vector<4xi32>
      llvm.store %numbers, %u {alignment = 4 : i64} : vector<4xi32>, !llvm.ptr<1>
    }
    return
  }
}
"""

PARTS = _PARTS.replace("MMA", MMA)

#: Thread 0 prints the map that it is given, and numbers.
PRINT_MAP = """
!map = !cute_nvgpu.tma_descriptor_tiled<"f32", "32x8", "none">
gpu.module @m {
  func.func @show(%m: !map) attributes {nv_tileaa.kernel,
      nv_tileaa.kernel_spec = {num_ctas = 1 : i32, num_warps = 1 : i32}} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %i0 = arith.constant 0 : i32
    %leads = arith.cmpi eq, %t, %i0 : i32
    scf.if %leads {
      "cute.print_tma_desc_tiled"(%m) : (!map) -> ()
      %half = arith.constant -1.5 : f16
      %whole = arith.constant -7 : i32
      %yes = arith.constant true
      "cute.print"(%half) : (f16) -> ()
      "cute.print"(%whole, %t) : (i32, i32) -> ()
      "cute.print"(%yes) : (i1) -> ()
    }
    return
  }
}
"""

#: out[t] = (row * column, size) of element (t % n, t / n) of the coordinates of (n, ?).
COORDINATES = """
!s = !cute.shape<"(?,8)">
!t = !cute.coord_tensor<"(?,8):(1@0,1@1)">
!l = !cute.layout<"(?,8):(1@0,1@1)">
!c = !cute.coord<"(?,?)">
!e = !cute.int_tuple<"(?,?)">
gpu.module @m {
  func.func @coordinates(%out: !llvm.ptr<1>, %n: i32) attributes {nv_tileaa.kernel,
      nv_tileaa.kernel_spec = {num_ctas = 1 : i32, num_warps = 1 : i32}} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %i2 = arith.constant 2 : i32
    %row = arith.remui %t, %n : i32
    %column = arith.divui %t, %n : i32
    %s = "cute.make_shape"(%n) : (i32) -> !s
    %x = "cute.make_identity_tensor"(%s) : (!s) -> !t
    %l = "cute.get_layout"(%x) : (!t) -> !l
    %c = "cute.make_coord"(%row, %column) : (i32, i32) -> !c
    %e = "cute.crd2idx"(%c, %l) : (!c, !l) -> !e
    %both = "cute.size"(%e) : (!e) -> i32
    %numbers = vector.from_elements %both, %t : vector<2xi32>
    %twice = arith.muli %t, %i2 : i32
    %p = llvm.getelementptr %out[%twice] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    llvm.store %numbers, %p {alignment = 8 : i64} : vector<2xi32>, !llvm.ptr<1>
    return
  }
}
"""
