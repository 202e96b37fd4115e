// RUN: tilec opt -p convert-tileas-to-llvm --gpu-name sm_90

// A plan asks for two neighbours at once: sums have it whose former values nobody asks for. Other
// operations are made element by element, whoever wrote their plan.
// CHECK: func.func @planned
// CHECK-COUNT-1: llvm.call @__tile_add_relaxed_gpu_f32_v2(
// CHECK-COUNT-2: llvm.call @__tile_atom_relaxed_gpu_max_s32(
// CHECK-COUNT-2: llvm.call @__tile_atom_relaxed_gpu_exch_b32(
// CHECK-COUNT-2: llvm.call @__tile_atom_relaxed_gpu_add_f32(
// CHECK-NOT: llvm.call @__tile_{{add|atom}}
// CHECK: return
#l = #nv_tileas.layout<"register=[[1]] lane=[[2],[4],[8],[16],[32]] warp=[[64],[128]] : 256">
!ptr = !nv_tileaa.ptr<f32, 1 : i32>
!p = tensor<256x!ptr, #l>
!whole = !nv_tileaa.ptr<i32, 1 : i32>
!w = tensor<256x!whole, #l>
!f = tensor<256xf32, #l>
!i = tensor<256xi32, #l>
!tok = !nv_tileaa.mem_token
gpu.module @m {
  func.func @planned(%p: !ptr, %q: !whole) attributes {nv_tileaa.kernel, nv_tileaa.kernel_spec = {num_warps = 4 : i32, num_ctas = 1 : i32}} {
    %i = "nv_tileaa.make_range"() : () -> !i
    %b = "nv_tileaa.splat"(%p) : (!ptr) -> !p
    %c = "nv_tileaa.addptr"(%b, %i) : (!p, !i) -> !p
    %d = "nv_tileaa.splat"(%q) : (!whole) -> !w
    %e = "nv_tileaa.addptr"(%d, %i) : (!w, !i) -> !w
    %x:2 = "nv_tileas.load"(%c) {access = {checked = array<i32>, order = array<i32: 0>, vector = 2 : i32, whole_vectors}, mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 0, 0, 0>} : (!p) -> (!f, !tok)
    %sums:2 = "nv_tileas.atomic_rmw"(%c, %x#0, %x#1) {access = {checked = array<i32>, order = array<i32: 0>, vector = 2 : i32, whole_vectors}, mem_scope = "gpu", mem_semantic = "relaxed", operandSegmentSizes = array<i32: 1, 1, 0, 1>, rmw_mode = "addf"} : (!p, !f, !tok) -> (!f, !tok)
    %max:2 = "nv_tileas.atomic_rmw"(%e, %i) {access = {checked = array<i32>, order = array<i32: 0>, vector = 2 : i32, whole_vectors}, mem_scope = "gpu", mem_semantic = "relaxed", operandSegmentSizes = array<i32: 1, 1, 0, 0>, rmw_mode = "max"} : (!w, !i) -> (!i, !tok)
    %new:2 = "nv_tileas.atomic_rmw"(%c, %x#0, %sums#1) {access = {checked = array<i32>, order = array<i32: 0>, vector = 2 : i32, whole_vectors}, mem_scope = "gpu", mem_semantic = "relaxed", operandSegmentSizes = array<i32: 1, 1, 0, 1>, rmw_mode = "xchg"} : (!p, !f, !tok) -> (!f, !tok)
    %old:2 = "nv_tileas.atomic_rmw"(%c, %x#0, %new#1) {access = {checked = array<i32>, order = array<i32: 0>, vector = 2 : i32, whole_vectors}, mem_scope = "gpu", mem_semantic = "relaxed", operandSegmentSizes = array<i32: 1, 1, 0, 1>, rmw_mode = "addf"} : (!p, !f, !tok) -> (!f, !tok)
    %t = "nv_tileas.store"(%c, %old#0, %old#1) {access = {checked = array<i32>, order = array<i32: 0>, vector = 2 : i32, whole_vectors}, mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 1, 0, 1>} : (!p, !f, !tok) -> !tok
    return
  }
}
