"""A product written with cute for sm_100: tensor maps, tensor memory, `tcgen05.mma`."""

from __future__ import annotations

from tile_cute.atoms.descriptors import InstructionDescriptor

UMMA = "tcgen05.mma.cta_group::1.kind::f16"
LOAD = "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
#: Bytes of a stage: 128 x 64 of A and 64 x 64 of B.
STAGE = (128 + 64) * 64 * 2

#: C = A B^T for A (M, K) and B (N, K) f16, C (M, N) f32, in tiles of 128 x 64 x 64: a thread of
#: warp 1 fills two stages, one of warp 0 multiplies, and all four warps write the sums.
_GEMM = """
!map_a = !cute_nvgpu.tma_descriptor_tiled<"f16", "128x64", "128B">
!map_b = !cute_nvgpu.tma_descriptor_tiled<"f16", "64x64", "128B">
!p32 = !cute.ptr<f32, "gmem", 16 : i64>
!ps = !cute.ptr<f16, "smem", 128 : i64>
!bar = !cute.ptr<i64, "smem", 8 : i64>
!bars = !cute.memref<i64, "smem", "5:1">
!slot = !cute.memref<i32, "smem", "1:1">
!pslot = !cute.ptr<i32, "smem", 4 : i64>
!sum = !cute.memref<f32, "tmem", "(128,64):(64,1)">
!all_a = !cute.memref<f16, "smem", "S<3,3,3> o 0 o (128,64,2):(64,1,8192)">
!all_b = !cute.memref<f16, "smem", "S<3,3,3> o 0 o (64,64,2):(64,1,4096)">
!sa = !cute.memref<f16, "smem", "S<3,3,3> o 0 o (128,64):(64,1)">
!sb = !cute.memref<f16, "smem", "S<3,3,3> o 0 o (64,64):(64,1)">
!stage = !cute.coord<"(_,_,?)">
!one = !cute.layout<"1:0">
!ia = !cute_nvgpu.smem_desc_view<!sa, !one>
!ib = !cute_nvgpu.smem_desc_view<!sb, !one>
!desc = !cute_nvgpu.smem_desc<"sm100", "K", "128B">
!shape = !cute.shape<"(?,?{div=64})">
!stride = !cute.stride<"(?{div=64},1)">
!lc = !cute.layout<"(?,?{div=64}):(?{div=64},1)">
!gc = !cute.memref<f32, "gmem", "(?,?{div=64}):(?{div=64},1)">
!tile = !cute.tile<"<128:1,64:1>">
!at = !cute.coord<"(?,?)">
!own_c = !cute.memref<f32, "gmem", "(128,64):(?{div=64},1)">
!rows = !cute.layout<"(128,1):(1,0)">
!row = !cute.memref<f32, "gmem", "(1,64):(0,1)">
gpu.module @m {
  func.func @gemm(%ma: !map_a, %mb: !map_b, %c: !p32, %m: i32, %n: i32, %k: i32) attributes {
      nv_tileaa.kernel, nv_tileaa.kernel_spec = {num_ctas = 1 : i32, num_warps = 4 : i32}} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %bm = nvvm.read.ptx.sreg.ctaid.x : i32
    %bn = nvvm.read.ptx.sreg.ctaid.y : i32
    %i0 = arith.constant 0 : i32
    %i1 = arith.constant 1 : i32
    %i2 = arith.constant 2 : i32
    %i4 = arith.constant 4 : i32
    %i32 = arith.constant 32 : i32
    %i64 = arith.constant 64 : i32
    %i128 = arith.constant 128 : i32
    %bytes = arith.constant BYTES : i32
    %kind = arith.constant KIND : i32
    %high = arith.constant 65536 : i32
    %ticks = arith.constant 10000000 : i32
    %yes = arith.constant true
    %warp = arith.divui %t, %i32 : i32
    %tile = "cute.static"() : () -> !tile
    %rows = "cute.static"() : () -> !rows
    %sa = "cute.memref_alloc_smem"() : () -> !all_a
    %sb = "cute.memref_alloc_smem"() : () -> !all_b
    %bars = "cute.memref_alloc_smem"() : () -> !bars
    %slot = "cute.memref_alloc_smem"() : () -> !slot
    %pslot = "cute.get_iter"(%slot) : (!slot) -> !pslot
    %full = "cute.get_iter"(%bars) : (!bars) -> !bar
    %empty = "cute.add_offset"(%full, %i2) : (!bar, i32) -> !bar
    %done = "cute.add_offset"(%full, %i4) : (!bar, i32) -> !bar
    %end = builtin.unrealized_conversion_cast %done : !bar to !llvm.ptr<3>
    %w0 = arith.cmpi eq, %warp, %i0 : i32
    %w1 = arith.cmpi eq, %warp, %i1 : i32
    %t0 = arith.cmpi eq, %t, %i0 : i32
    %five = arith.constant 5 : i32
    scf.if %t0 {
      scf.for %i = %i0 to %five step %i1 : i32 {
        %b = "cute.add_offset"(%full, %i) : (!bar, i32) -> !bar
        %p = builtin.unrealized_conversion_cast %b : !bar to !llvm.ptr<3>
        nvvm.mbarrier.init %p, %i1 : !llvm.ptr<3>, i32
      }
      nvvm.fence.mbarrier.init
    }
    scf.if %w0 {
      "cute_nvgpu.arch_sm100_alloc_tmem"(%pslot, %i64) : (!pslot, i32) -> ()
      "cute_nvgpu.arch_sm100_relinquish_tmem_alloc_permit"() : () -> ()
    }
    nvvm.barrier
    %sum = "cute_nvgpu.arch_sm100_retrieve_tmem_ptr"(%pslot) : (!pslot) -> !sum
    %steps = arith.divui %k, %i64 : i32
    scf.if %w1 {
      %lead = nvvm.elect.sync -> i1
      scf.if %lead {
        %row_a = arith.muli %bm, %i128 : i32
        %row_b = arith.muli %bn, %i64 : i32
        scf.for %i = %i0 to %steps step %i1 : i32 {
          %st = arith.remui %i, %i2 : i32
          %turn = arith.divui %i, %i2 : i32
          %odd = arith.remui %turn, %i2 : i32
          %parity = arith.xori %odd, %i1 : i32
          %e = "cute.add_offset"(%empty, %st) : (!bar, i32) -> !bar
          %f = "cute.add_offset"(%full, %st) : (!bar, i32) -> !bar
          %pe = builtin.unrealized_conversion_cast %e : !bar to !llvm.ptr<3>
          %pf = builtin.unrealized_conversion_cast %f : !bar to !llvm.ptr<3>
          nvvm.mbarrier.try_wait.parity %pe, %parity, %ticks : !llvm.ptr<3>, i32, i32
          nvvm.mbarrier.arrive.expect_tx %pf, %bytes : !llvm.ptr<3>, i32
          %at = "cute.make_coord"(%st) : (i32) -> !stage
          %da = "cute.slice"(%sa, %at) : (!all_a, !stage) -> !sa
          %db = "cute.slice"(%sb, %at) : (!all_b, !stage) -> !sb
          %col = arith.muli %i, %i64 : i32
          "cute_nvgpu.arch_copy_sm100_tma_load"(%da, %ma, %f, %col, %row_a)
            {atom = "LOAD"} : (!sa, !map_a, !bar, i32, i32) -> ()
          "cute_nvgpu.arch_copy_sm100_tma_load"(%db, %mb, %f, %col, %row_b)
            {atom = "LOAD"} : (!sb, !map_b, !bar, i32, i32) -> ()
        }
      }
    }
    scf.if %w0 {
      %lead = nvvm.elect.sync -> i1
      scf.if %lead {
        scf.for %i = %i0 to %steps step %i1 : i32 {
          %st = arith.remui %i, %i2 : i32
          %turn = arith.divui %i, %i2 : i32
          %parity = arith.remui %turn, %i2 : i32
          %e = "cute.add_offset"(%empty, %st) : (!bar, i32) -> !bar
          %f = "cute.add_offset"(%full, %st) : (!bar, i32) -> !bar
          %pe = builtin.unrealized_conversion_cast %e : !bar to !llvm.ptr<3>
          %pf = builtin.unrealized_conversion_cast %f : !bar to !llvm.ptr<3>
          %at = "cute.make_coord"(%st) : (i32) -> !stage
          %da = "cute.slice"(%sa, %at) : (!all_a, !stage) -> !sa
          %db = "cute.slice"(%sb, %at) : (!all_b, !stage) -> !sb
          %ia = "cute.make_desc_iter"(%da) : (!sa) -> !ia
          %ib = "cute.make_desc_iter"(%db) : (!sb) -> !ib
          %more = arith.cmpi ne, %i, %i0 : i32
          nvvm.mbarrier.try_wait.parity %pf, %parity, %ticks : !llvm.ptr<3>, i32, i32
          STEPS
          nvvm.tcgen05.commit %pe : !llvm.ptr<3>
        }
        nvvm.tcgen05.commit %end : !llvm.ptr<3>
      }
    }
    nvvm.mbarrier.try_wait.parity %end, %i0, %ticks : !llvm.ptr<3>, i32, i32
    nvvm.tcgen05.fence #nvvm.tcgen05_fence<after>
    %first = arith.muli %warp, %i32 : i32
    %quarter = arith.muli %first, %high : i32
    %base = builtin.unrealized_conversion_cast %sum : !sum to i32
    %own = arith.addi %base, %quarter : i32
    %sums = "cute_nvgpu.arch_copy_sm100_tmem_load"(%own)
      {atom = "tcgen05.ld.sync.aligned.32x32b.x64.b32"} : (i32) -> vector<64xf32>
    %shape = "cute.make_shape"(%m, %n) : (i32, i32) -> !shape
    %stride = "cute.make_stride"(%n) : (i32) -> !stride
    %lc = "cute.make_layout"(%shape, %stride) : (!shape, !stride) -> !lc
    %vc = "cute.make_view"(%c, %lc) : (!p32, !lc) -> !gc
    %place = "cute.make_coord"(%bm, %bn) : (i32, i32) -> !at
    %own_c = "cute.local_tile"(%vc, %tile, %place) : (!gc, !tile, !at) -> !own_c
    %row = "cute.local_partition"(%own_c, %rows, %t) : (!own_c, !rows, i32) -> !row
    "cute.memref_store_vec"(%sums, %row) : (vector<64xf32>, !row) -> ()
    nvvm.barrier
    scf.if %w0 {
      "cute_nvgpu.arch_sm100_dealloc_tmem"(%sum, %i64) : (!sum, i32) -> ()
    }
    return
  }
}
"""
_STEP = """%a{at} = "cute.deref_desc_iter"(%ia) {{k = {k}}} : (!ia) -> !desc
          %b{at} = "cute.deref_desc_iter"(%ib) {{k = {k}}} : (!ib) -> !desc
          "cute_nvgpu.arch_mma_sm100_umma"(%sum, %a{at}, %b{at}, %kind, {flag})
            {{atom = "UMMA"}} : (!sum, !desc, !desc, i32, i1) -> ()
          """
_KIND = InstructionDescriptor("f16", "f16", "f16", "f32", 128, 64).encode()


def blackwell_gemm() -> str:
    """The kernel; the first product of a tile begins at zero."""
    steps = "".join(
        _STEP.format(at=at, k=16 * at, flag="%yes" if at else "%more") for at in range(4)
    )
    text = _GEMM.replace("STEPS", steps).replace("BYTES", str(STAGE)).replace("KIND", str(_KIND))
    return text.replace("UMMA", UMMA).replace("LOAD", LOAD)


#: y[t] = what thread t had put into its row of tensor memory, 8 words; z[t] = 4 words of its row of
#: shared memory, by way of tensor memory.
MOVES = """
!bar = !cute.ptr<i64, "smem", 8 : i64>
!bars = !cute.memref<i64, "smem", "1:1">
!slot = !cute.memref<i32, "smem", "1:1">
!pslot = !cute.ptr<i32, "smem", 4 : i64>
!s = !cute.memref<i32, "smem", "(128,4):(4,1)">
!one = !cute.layout<"1:0">
!is = !cute_nvgpu.smem_desc_view<!s, !one>
!desc = !cute_nvgpu.smem_desc<"sm100", "K", "none">
gpu.module @m {
  func.func @moves(%y: !llvm.ptr<1>, %z: !llvm.ptr<1>) attributes {
      nv_tileaa.kernel, nv_tileaa.kernel_spec = {num_ctas = 1 : i32, num_warps = 4 : i32}} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %i0 = arith.constant 0 : i32
    %i1 = arith.constant 1 : i32
    %i4 = arith.constant 4 : i32
    %i8 = arith.constant 8 : i32
    %i32 = arith.constant 32 : i32
    %high = arith.constant 65536 : i32
    %ticks = arith.constant 10000000 : i32
    %numbers = arith.constant dense<[0, 1, 2, 3, 4, 5, 6, 7]> : vector<8xi32>
    %s = "cute.memref_alloc_smem"() : () -> !s
    %bars = "cute.memref_alloc_smem"() : () -> !bars
    %slot = "cute.memref_alloc_smem"() : () -> !slot
    %pslot = "cute.get_iter"(%slot) : (!slot) -> !pslot
    %bar = "cute.get_iter"(%bars) : (!bars) -> !bar
    %end = builtin.unrealized_conversion_cast %bar : !bar to !llvm.ptr<3>
    %warp = arith.divui %t, %i32 : i32
    %w0 = arith.cmpi eq, %warp, %i0 : i32
    %t0 = arith.cmpi eq, %t, %i0 : i32
    scf.if %t0 {
      nvvm.mbarrier.init %end, %i1 : !llvm.ptr<3>, i32
    }
    scf.if %w0 {
      "cute_nvgpu.arch_sm100_alloc_tmem"(%pslot, %i32) : (!pslot, i32) -> ()
      "cute_nvgpu.arch_sm100_relinquish_tmem_alloc_permit"() : () -> ()
    }
    scf.for %i = %i0 to %i4 step %i1 : i32 {
      %w = arith.muli %t, %i4 : i32
      %v = arith.addi %w, %i : i32
      "cute.memref_store"(%v, %s, %t, %i) : (i32, !s, i32, i32) -> ()
    }
    nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
    nvvm.barrier
    %base = "cute_nvgpu.arch_sm100_retrieve_tmem_ptr"(%pslot) : (!pslot) -> i32
    %first = arith.muli %warp, %i32 : i32
    %quarter = arith.muli %first, %high : i32
    %own = arith.addi %base, %quarter : i32
    %scaled = arith.muli %t, %i8 : i32
    %all = vector.broadcast %scaled : i32 to vector<8xi32>
    %words = arith.addi %all, %numbers : vector<8xi32>
    "cute_nvgpu.arch_copy_sm100_tmem_store"(%words, %own)
      {atom = "tcgen05.st.sync.aligned.32x32b.x8.b32"} : (vector<8xi32>, i32) -> ()
    %back = "cute_nvgpu.arch_copy_sm100_tmem_load"(%own)
      {atom = "tcgen05.ld.sync.aligned.32x32b.x8.b32"} : (i32) -> vector<8xi32>
    %py = llvm.getelementptr %y[%scaled] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    llvm.store %back, %py {alignment = 16 : i64} : vector<8xi32>, !llvm.ptr<1>
    %copied = arith.addi %base, %i8 : i32
    scf.if %t0 {
      %is = "cute.make_desc_iter"(%s) : (!s) -> !is
      %d = "cute.deref_desc_iter"(%is) : (!is) -> !desc
      "cute_nvgpu.arch_copy_sm100_copy_s2t"(%copied, %d) {atom = "tcgen05.cp.cta_group::1.128x128b"}
        : (i32, !desc) -> ()
      nvvm.tcgen05.commit %end : !llvm.ptr<3>
    }
    nvvm.mbarrier.try_wait.parity %end, %i0, %ticks : !llvm.ptr<3>, i32, i32
    nvvm.tcgen05.fence #nvvm.tcgen05_fence<after>
    %from = arith.addi %own, %i8 : i32
    %four = "cute_nvgpu.arch_copy_sm100_tmem_load"(%from)
      {atom = "tcgen05.ld.sync.aligned.32x32b.x4.b32"} : (i32) -> vector<4xi32>
    %place = arith.muli %t, %i4 : i32
    %pz = llvm.getelementptr %z[%place] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    llvm.store %four, %pz {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<1>
    nvvm.barrier
    scf.if %w0 {
      "cute_nvgpu.arch_sm100_dealloc_tmem"(%base, %i32) : (i32, i32) -> ()
    }
    return
  }
}
"""


#: Two blocks of a cluster load half of x each, for both, and each writes all of it.
MULTICAST = """
!map = !cute_nvgpu.tma_descriptor_tiled<"f16", "32x64", "none">
!p = !cute.ptr<f16, "gmem", 16 : i64>
!ps = !cute.ptr<f16, "smem", 128 : i64>
!bar = !cute.ptr<i64, "smem", 8 : i64>
!bars = !cute.memref<i64, "smem", "1:1">
!s = !cute.memref<f16, "smem", "(64,64):(64,1)">
!l = !cute.layout<"(64,64):(64,1)">
!g = !cute.memref<f16, "gmem", "(64,64):(64,1)">
!rows = !cute.layout<"(64,1):(1,0)">
!row_s = !cute.memref<f16, "smem", "(1,64):(0,1)">
!row_g = !cute.memref<f16, "gmem", "(1,64):(0,1)">
gpu.module @m {
  func.func @multicast(%x: !map, %y: !p) attributes {
      nv_tileaa.kernel, nv_tileaa.kernel_spec = {num_ctas = 2 : i32, num_warps = 2 : i32}} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %rank = nvvm.read.ptx.sreg.cluster.ctarank : i32
    %i0 = arith.constant 0 : i32
    %i1 = arith.constant 1 : i32
    %i32 = arith.constant 32 : i32
    %half = arith.constant 2048 : i32
    %whole = arith.constant 4096 : i32
    %bytes = arith.constant 8192 : i32
    %ticks = arith.constant 10000000 : i32
    %mask = arith.constant 3 : i32
    %l = "cute.static"() : () -> !l
    %rows = "cute.static"() : () -> !rows
    %s = "cute.memref_alloc_smem"() : () -> !s
    %bars = "cute.memref_alloc_smem"() : () -> !bars
    %bar = "cute.get_iter"(%bars) : (!bars) -> !bar
    %pb = builtin.unrealized_conversion_cast %bar : !bar to !llvm.ptr<3>
    %t0 = arith.cmpi eq, %t, %i0 : i32
    scf.if %t0 {
      nvvm.mbarrier.init %pb, %i1 : !llvm.ptr<3>, i32
      nvvm.fence.mbarrier.init
      nvvm.mbarrier.arrive.expect_tx %pb, %bytes : !llvm.ptr<3>, i32
    }
    nvvm.cluster.arrive {aligned}
    nvvm.cluster.wait {aligned}
    scf.if %t0 {
      %q = "cute.get_iter"(%s) : (!s) -> !ps
      %far = arith.muli %rank, %half : i32
      %to = "cute.add_offset"(%q, %far) : (!ps, i32) -> !ps
      %row = arith.muli %rank, %i32 : i32
      "cute_nvgpu.arch_copy_sm100_tma_load"(%to, %x, %bar, %i0, %row, %mask)
        {atom = "LOAD.multicast::cluster"} : (!ps, !map, !bar, i32, i32, i32) -> ()
    }
    nvvm.mbarrier.try_wait.parity %pb, %i0, %ticks : !llvm.ptr<3>, i32, i32
    %away = arith.muli %rank, %whole : i32
    %own = "cute.add_offset"(%y, %away) : (!p, i32) -> !p
    %g = "cute.make_view"(%own, %l) : (!p, !l) -> !g
    %from = "cute.local_partition"(%s, %rows, %t) : (!s, !rows, i32) -> !row_s
    %into = "cute.local_partition"(%g, %rows, %t) : (!g, !rows, i32) -> !row_g
    %v = "cute.memref_load_vec"(%from) : (!row_s) -> vector<64xf16>
    "cute.memref_store_vec"(%v, %into) : (vector<64xf16>, !row_g) -> ()
    nvvm.cluster.arrive {aligned}
    nvvm.cluster.wait {aligned}
    return
  }
}
""".replace("LOAD", LOAD)
