"""Kernels written with cute's tiled copies and products, as MLIR text: one text for every size."""

from __future__ import annotations

MMA = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
LDSM = "ldmatrix.sync.aligned.m8n8.x4.shared.b16"

#: C = A B^T for A (M, K) and B (N, K) f16, C (M, N) f32, whose sizes the kernel is given, in tiles
#: of 64 x 32 x 32: 2 x 2 warps, `cp.async` into two swizzled stages, `ldmatrix`, `mma.sync`.
_GEMM = """
!p16 = !cute.ptr<f16, "gmem", 16 : i64>
!p32 = !cute.ptr<f32, "gmem", 16 : i64>
!shape = !cute.shape<"(?,?{div=32})">
!stride = !cute.stride<"(?{div=32},1)">
!lab = !cute.layout<"(?,?{div=32}):(?{div=32},1)">
!lc = !cute.layout<"(?,?{div=32}):(?{div=32},1)">
!gab = !cute.memref<f16, "gmem", "(?,?{div=32}):(?{div=32},1)">
!gc = !cute.memref<f32, "gmem", "(?,?{div=32}):(?{div=32},1)">
!tile_a = !cute.tile<"<64:1,32:1>">
!tile_b = !cute.tile<"<32:1,32:1>">
!tile_c = !cute.tile<"<64:1,32:1>">
!row = !cute.coord<"(?,_)">
!step = !cute.coord<"(_,_,?)">
!both = !cute.coord<"(?,?)">
!rows_a = !cute.memref<f16, "gmem", "(64,32,?):(?{div=32},1,32)">
!rows_b = !cute.memref<f16, "gmem", "(32,32,?):(?{div=32},1,32)">
!own_c = !cute.memref<f32, "gmem", "(64,32):(?{div=32},1)">
!step_a = !cute.memref<f16, "gmem", "(64,32):(?{div=32},1)">
!step_b = !cute.memref<f16, "gmem", "(32,32):(?{div=32},1)">
!sa = !cute.memref<f16, "smem", "S<2,3,3> o 0 o (64,32,2):(32,1,2048)">
!sb = !cute.memref<f16, "smem", "S<2,3,3> o 0 o (32,32,2):(32,1,1024)">
!stage_a = !cute.memref<f16, "smem", "S<2,3,3> o 0 o (64,32):(32,1)">
!stage_b = !cute.memref<f16, "smem", "S<2,3,3> o 0 o (32,32):(32,1)">
!cp = !cute_nvgpu.atom<"cp.async.cg.shared.global">
!ld = !cute_nvgpu.atom<"LDSM">
!mm = !cute_nvgpu.atom<"MMA">
!tv = !cute.layout<"((4,32),8):((256,1),32)">
!tva = !cute.layout<"((4,8,2,2),(2,2,2)):((64,1,16,0),(32,8,256))">
!tvb = !cute.layout<"((4,8,2,2),((2,2),2)):((64,1,0,8),((32,256),16))">
!copy = !cute.tiled_copy<"cp.async.cg.shared.global", "((4,32),8):((256,1),32)", "(32,32)">
!load_a = !cute.tiled_copy<"LDSM", "((4,8,2,2),(2,2,2)):((64,1,16,0),(32,8,256))", "(32,16)">
!load_b = !cute.tiled_copy<"LDSM", "((4,8,2,2),((2,2),2)):((64,1,0,8),((32,256),16))", "(32,16)">
!mma = !cute.tiled_mma<"MMA", "(2,2,1):(1,2,4)", "(32,16,16)">
!from_a = !cute.memref<f16, "gmem", "(8,2,1):(1,?{div=1024},0)">
!from_b = !cute.memref<f16, "gmem", "(8,1,1):(1,0,0)">
!to_a = !cute.memref<f16, "smem", "S<2,3,3> o 0 o (8,2,1):(1,1024,0)">
!to_b = !cute.memref<f16, "smem", "S<2,3,3> o 0 o (8,1,1):(1,0,0)">
!part_a = !cute.memref<f16, "smem", "S<2,3,3> o 0 o ((2,2,2),2,2):((1,256,8),1024,16)">
!part_b = !cute.memref<f16, "smem", "S<2,3,3> o 0 o ((2,2),2,2):((1,8),512,16)">
!part_c = !cute.memref<f32, "gmem", "((2,2),2,2):((1,?{div=256}),?{div=1024},16)">
!frag_a = !cute.memref<f16, "rmem", "((2,2,2),2,2):((1,8,2),16,4)">
!frag_b = !cute.memref<f16, "rmem", "((2,2),2,2):((1,2),8,4)">
!frag_c = !cute.memref<f32, "rmem", "((2,2),2,2):((1,2),4,8)">
!rows_of_a = !cute.memref<f16, "smem", "S<2,3,3> o 0 o (8,2,2):(1,1024,16)">
!rows_of_b = !cute.memref<f16, "smem", "S<2,3,3> o 0 o (8,1,2):(1,0,16)">
!copied_b = !cute.memref<f16, "rmem", "((4,2),1,2):((1,8),0,4)">
gpu.module @m {
  func.func @gemm(%a: !p16, %b: !p16, %c: !p32, %m: i32, %n: i32, %k: i32) attributes {
      nv_tileaa.kernel, nv_tileaa.kernel_spec = {num_ctas = 1 : i32, num_warps = 4 : i32}} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %bm = nvvm.read.ptx.sreg.ctaid.x : i32
    %bn = nvvm.read.ptx.sreg.ctaid.y : i32
    %i0 = arith.constant 0 : i32
    %i1 = arith.constant 1 : i32
    %i2 = arith.constant 2 : i32
    %none = arith.constant dense<0.0> : vector<16xf32>
    %tile_a = "cute.static"() : () -> !tile_a
    %tile_b = "cute.static"() : () -> !tile_b
    %ld = "cute.make_atom"() : () -> !ld
    %cp = "cute.make_atom"() : () -> !cp
    %mm = "cute.make_atom"() : () -> !mm
    %tv = "cute.static"() : () -> !tv
    %tva = "cute.static"() : () -> !tva
    %tvb = "cute.static"() : () -> !tvb
    %copy = "cute.make_tiled_copy"(%cp, %tv) : (!cp, !tv) -> !copy
    %load_a = "cute.make_tiled_copy"(%ld, %tva) : (!ld, !tva) -> !load_a
    %load_b = "cute.make_tiled_copy"(%ld, %tvb) : (!ld, !tvb) -> !load_b
    %mma = "cute.make_tiled_mma"(%mm) : (!mm) -> !mma

    %shape_a = "cute.make_shape"(%m, %k) : (i32, i32) -> !shape
    %shape_b = "cute.make_shape"(%n, %k) : (i32, i32) -> !shape
    %shape_c = "cute.make_shape"(%m, %n) : (i32, i32) -> !shape
    %stride_k = "cute.make_stride"(%k) : (i32) -> !stride
    %stride_n = "cute.make_stride"(%n) : (i32) -> !stride
    %la = "cute.make_layout"(%shape_a, %stride_k) : (!shape, !stride) -> !lab
    %lb = "cute.make_layout"(%shape_b, %stride_k) : (!shape, !stride) -> !lab
    %lc = "cute.make_layout"(%shape_c, %stride_n) : (!shape, !stride) -> !lc
    %va = "cute.make_view"(%a, %la) : (!p16, !lab) -> !gab
    %vb = "cute.make_view"(%b, %lb) : (!p16, !lab) -> !gab
    %vc = "cute.make_view"(%c, %lc) : (!p32, !lc) -> !gc
    %at_a = "cute.make_coord"(%bm) : (i32) -> !row
    %at_b = "cute.make_coord"(%bn) : (i32) -> !row
    %at_c = "cute.make_coord"(%bm, %bn) : (i32, i32) -> !both
    %rows_a = "cute.local_tile"(%va, %tile_a, %at_a) : (!gab, !tile_a, !row) -> !rows_a
    %rows_b = "cute.local_tile"(%vb, %tile_b, %at_b) : (!gab, !tile_b, !row) -> !rows_b
    %own_c = "cute.local_tile"(%vc, %tile_a, %at_c) : (!gc, !tile_a, !both) -> !own_c
    %steps = "cute.size"(%rows_a) {mode = array<i32: 2>} : (!rows_a) -> i32

    %sa = "cute.memref_alloc_smem"() : () -> !sa
    %sb = "cute.memref_alloc_smem"() : () -> !sb
    %sum = "cute_nvgpu.arch_alloc_rmem"() : () -> !frag_c
    "cute.memref_store_vec"(%none, %sum) : (vector<16xf32>, !frag_c) -> ()
    %before = arith.subi %i0, %i1 : i32
    scf.for %i = %before to %steps step %i1 : i32 {
      %next = arith.addi %i, %i1 : i32
      %more = arith.cmpi slt, %next, %steps : i32
      scf.if %more {
        %st = arith.remui %next, %i2 : i32
        %from = "cute.make_coord"(%next) : (i32) -> !step
        %to = "cute.make_coord"(%st) : (i32) -> !step
        %ga = "cute.slice"(%rows_a, %from) : (!rows_a, !step) -> !step_a
        %gb = "cute.slice"(%rows_b, %from) : (!rows_b, !step) -> !step_b
        %da = "cute.slice"(%sa, %to) : (!sa, !step) -> !stage_a
        %db = "cute.slice"(%sb, %to) : (!sb, !step) -> !stage_b
        %fa = "cute.tiled_copy_partition_s"(%copy, %ga, %t) : (!copy, !step_a, i32) -> !from_a
        %fb = "cute.tiled_copy_partition_s"(%copy, %gb, %t) : (!copy, !step_b, i32) -> !from_b
        %ta = "cute.tiled_copy_partition_d"(%copy, %da, %t) : (!copy, !stage_a, i32) -> !to_a
        %tb = "cute.tiled_copy_partition_d"(%copy, %db, %t) : (!copy, !stage_b, i32) -> !to_b
        "cute.copy"(%copy, %fa, %ta) : (!copy, !from_a, !to_a) -> ()
        "cute.copy"(%copy, %fb, %tb) : (!copy, !from_b, !to_b) -> ()
      }
      nvvm.cp.async.commit.group
      %some = arith.cmpi sge, %i, %i0 : i32
      scf.if %some {
        nvvm.cp.async.wait.group 1
        nvvm.barrier
        %st = arith.remui %i, %i2 : i32
        %of = "cute.make_coord"(%st) : (i32) -> !step
        %da = "cute.slice"(%sa, %of) : (!sa, !step) -> !stage_a
        %db = "cute.slice"(%sb, %of) : (!sb, !step) -> !stage_b
        %pa = "cute.tiled_mma_partition"(%mma, %da, %t) {operand = "A"} : (!mma, !stage_a, i32) -> !part_a
        %pb = "cute.tiled_mma_partition"(%mma, %db, %t) {operand = "B"} : (!mma, !stage_b, i32) -> !part_b
        %ra = "cute.make_fragment_like"(%pa) : (!part_a) -> !frag_a
        %rb = "cute.make_fragment_like"(%pb) : (!part_b) -> !frag_b
        %xa = "cute.tiled_copy_partition_s"(%load_a, %da, %t) : (!load_a, !stage_a, i32) -> !rows_of_a
        %xb = "cute.tiled_copy_partition_s"(%load_b, %db, %t) : (!load_b, !stage_b, i32) -> !rows_of_b
        %ya = "cute.tiled_copy_retile"(%load_a, %ra) : (!load_a, !frag_a) -> !frag_a
        %yb = "cute.tiled_copy_retile"(%load_b, %rb) : (!load_b, !frag_b) -> !copied_b
        "cute.copy"(%load_a, %xa, %ya) : (!load_a, !rows_of_a, !frag_a) -> ()
        "cute.copy"(%load_b, %xb, %yb) : (!load_b, !rows_of_b, !copied_b) -> ()
        "cute.gemm"(%mma, %sum, %ra, %rb, %sum) : (!mma, !frag_c, !frag_a, !frag_b, !frag_c) -> ()
        nvvm.barrier
      }
    }
    %pc = "cute.tiled_mma_partition"(%mma, %own_c, %t) {operand = "C"} : (!mma, !own_c, i32) -> !part_c
    %done = "cute.memref_load_vec"(%sum) : (!frag_c) -> vector<16xf32>
    "cute.memref_store_vec"(%done, %pc) : (vector<16xf32>, !part_c) -> ()
    return
  }
}
"""  # noqa: E501

GEMM = _GEMM.replace("MMA", MMA).replace("LDSM", LDSM)


#: One warp. y[i] = x[i] for i < n, a multiple of 8, by vectors under a predicate; w[t] = 1.5 by a
#: pointer made of an integer; q[t] = (t / 3 * 3, n); z = the product of ones of one instruction.
_PIECES = """
!p32 = !cute.ptr<f32, "gmem", 16 : i64>
!pw = !cute.ptr<i32, "gmem", 4 : i64>
!pwf = !cute.ptr<f32, "gmem", 4 : i64>
!all = !cute.memref<f32, "gmem", "1024:1">
!lall = !cute.layout<"1024:1">
!tv = !cute.layout<"(32,8):(8,1)">
!ldg = !cute_nvgpu.atom<"ld.global.v4.b32">
!stg = !cute_nvgpu.atom<"st.global.v4.b32">
!in = !cute.tiled_copy<"ld.global.v4.b32", "(32,8):(8,1)", "(256)">
!out = !cute.tiled_copy<"st.global.v4.b32", "(32,8):(8,1)", "(256)">
!part = !cute.memref<f32, "gmem", "((4,2),4):((1,4),256)">
!regs = !cute.memref<f32, "rmem", "((4,2),4):((1,4),8)">
!four = !cute.memref<f32, "gmem", "4:1">
!four_r = !cute.memref<f32, "rmem", "4:1">
!lfour = !cute.layout<"4:1">
!yes = !cute.memref<i1, "rmem", "4:1">
!pair = !cute.tuple<"i32,i32">
!div = !cute.fast_divmod_divisor<32 : i32>
!mm = !cute_nvgpu.atom<"MMA">
!mma = !cute.tiled_mma<"MMA", "(1,1,1):(1,1,1)", "(16,8,16)">
!fa = !cute.memref<f16, "rmem", "((2,2,2),1,1):((1,2,4),0,0)">
!fb = !cute.memref<f16, "rmem", "((2,2),1,1):((1,2),0,0)">
!fc = !cute.memref<f32, "rmem", "((2,2),1,1):((1,2),0,0)">
!lz = !cute.layout<"(16,8):(8,1)">
!vz = !cute.memref<f32, "gmem", "(16,8):(8,1)">
!pz = !cute.memref<f32, "gmem", "((2,2),1,1):((1,64),0,0)">
!shape_c = !cute.shape<"(16,8)">
!shape_f = !cute.shape<"((2,2),1,1)">
gpu.module @m {
  func.func @pieces(%x: !p32, %y: !p32, %n: i32, %w: !pw, %q: !llvm.ptr<1>, %z: !p32)
      attributes {nv_tileaa.kernel,
      nv_tileaa.kernel_spec = {num_ctas = 1 : i32, num_warps = 1 : i32}} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %c3 = arith.constant 3 : i32
    %c8 = arith.constant 8 : i32
    %c256 = arith.constant 256 : i32
    %i0 = arith.constant 0 : i32
    %i1 = arith.constant 1 : i32
    %i4 = arith.constant 4 : i32
    %lall = "cute.static"() : () -> !lall
    %tv = "cute.static"() : () -> !tv
    %ldg = "cute.make_atom"() : () -> !ldg
    %stg = "cute.make_atom"() : () -> !stg
    %in = "cute.make_tiled_copy"(%ldg, %tv) : (!ldg, !tv) -> !in
    %out = "cute.make_tiled_copy"(%stg, %tv) : (!stg, !tv) -> !out
    %vx = "cute.make_view"(%x, %lall) : (!p32, !lall) -> !all
    %vy = "cute.make_view"(%y, %lall) : (!p32, !lall) -> !all
    %from = "cute.tiled_copy_partition_s"(%in, %vx, %t) : (!in, !all, i32) -> !part
    %to = "cute.tiled_copy_partition_d"(%out, %vy, %t) : (!out, !all, i32) -> !part
    %regs = "cute.make_fragment_like"(%from) : (!part) -> !regs
    %yes = "cute.memref_alloca"() : () -> !yes
    %first = arith.muli %t, %c8 : i32
    scf.for %r = %i0 to %i4 step %i1 : i32 {
      %far = arith.muli %r, %c256 : i32
      %at = arith.addi %far, %first : i32
      %inside = arith.cmpi slt, %at, %n : i32
      "cute.memref_store"(%inside, %yes, %r) : (i1, !yes, i32) -> ()
    }
    "cute.prefetch"(%ldg, %from) : (!ldg, !part) -> ()
    "cute.copy"(%in, %from, %regs, %yes) : (!in, !part, !regs, !yes) -> ()
    "cute.copy"(%out, %regs, %to, %yes) : (!out, !regs, !part, !yes) -> ()

    %address = "cute.ptrtoint"(%w) : (!pw) -> i64
    %words = arith.muli %t, %i4 : i32
    %bytes = arith.extsi %words : i32 to i64
    %place = arith.addi %address, %bytes : i64
    %own = "cute.inttoptr"(%place) : (i64) -> !pw
    %real = "cute.recast_iter"(%own) : (!pw) -> !pwf
    %value = arith.constant 1.5 : f32
    "cute.ptr_store"(%value, %real) : (f32, !pwf) -> ()

    %by = "cute.fast_divmod_create_divisor"(%c3) : (i32) -> !div
    %third = "cute.fast_divmod_divide"(%t, %by) : (i32, !div) -> i32
    %three = "cute.fast_divmod_get_divisor"(%by) : (!div) -> i32
    %whole = arith.muli %third, %three : i32
    %pair = "cute.make_tuple"(%whole, %n) : (i32, i32) -> !pair
    %p0, %p1 = "cute.unpack_tuple"(%pair) : (!pair) -> (i32, i32)
    %both = vector.from_elements %p0, %p1 : vector<2xi32>
    %twice = arith.addi %t, %t : i32
    %pq = llvm.getelementptr %q[%twice] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    llvm.store %both, %pq {alignment = 8 : i64} : vector<2xi32>, !llvm.ptr<1>

    %mm = "cute.make_atom"() : () -> !mm
    %mma = "cute.make_tiled_mma"(%mm) : (!mm) -> !mma
    %ones_a = arith.constant dense<1.0> : vector<8xf16>
    %ones_b = arith.constant dense<1.0> : vector<4xf16>
    %two = arith.constant dense<2.0> : vector<4xf32>
    %fa = "cute.memref_alloca"() : () -> !fa
    %fb = "cute.memref_alloca"() : () -> !fb
    %fc = "cute.memref_alloca"() : () -> !fc
    "cute.memref_store_vec"(%ones_a, %fa) : (vector<8xf16>, !fa) -> ()
    "cute.memref_store_vec"(%ones_b, %fb) : (vector<4xf16>, !fb) -> ()
    "cute.memref_store_vec"(%two, %fc) : (vector<4xf32>, !fc) -> ()
    "cute.mma_atom_call"(%mm, %fc, %fa, %fb, %fc) : (!mm, !fc, !fa, !fb, !fc) -> ()
    %lz = "cute.static"() : () -> !lz
    %sc = "cute.static"() : () -> !shape_c
    %sf = "cute.tiled_mma_partition_shape"(%mma, %sc) {operand = "C"} : (!mma, !shape_c) -> !shape_f
    %vz = "cute.make_view"(%z, %lz) : (!p32, !lz) -> !vz
    %pz = "cute.tiled_mma_partition"(%mma, %vz, %t) {operand = "C"} : (!mma, !vz, i32) -> !pz
    %product = "cute.memref_load_vec"(%fc) : (!fc) -> vector<4xf32>
    "cute.memref_store_vec"(%product, %pz) : (vector<4xf32>, !pz) -> ()

    %lfour = "cute.static"() : () -> !lfour
    %last = "cute.add_offset"(%x, %n) : (!p32, i32) -> !p32
    %behind = "cute.add_offset"(%y, %n) : (!p32, i32) -> !p32
    %v4 = "cute.make_view"(%last, %lfour) : (!p32, !lfour) -> !four
    %w4 = "cute.make_view"(%behind, %lfour) : (!p32, !lfour) -> !four
    %r4 = "cute.memref_alloca"() : () -> !four_r
    %leads = arith.cmpi eq, %t, %i0 : i32
    scf.if %leads {
      "cute.prefetch_atom_call"(%ldg, %v4) : (!ldg, !four) -> ()
      "cute.copy_atom_call"(%ldg, %v4, %r4) : (!ldg, !four, !four_r) -> ()
      "cute.copy_atom_call"(%stg, %r4, %w4) : (!stg, !four_r, !four) -> ()
    }
    return
  }
}
"""

PIECES = _PIECES.replace("MMA", MMA)
