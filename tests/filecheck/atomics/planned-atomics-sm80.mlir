// RUN: tilec opt -p convert-tileas-to-llvm --gpu-name sm_80

// Sums of neighbours at once are of sm_90 and later: before, a plan that asks for them has one each.
// CHECK: func.func @planned
// CHECK-COUNT-2: llvm.call @__tile_atom_relaxed_gpu_add_f32(
// CHECK-NOT: _v2(
// CHECK: return
#l = #nv_tileas.layout<"register=[[1]] lane=[[2],[4],[8],[16],[32]] warp=[[64],[128]] : 256">
!ptr = !nv_tileaa.ptr<f32, 1 : i32>
!p = tensor<256x!ptr, #l>
!f = tensor<256xf32, #l>
!i = tensor<256xi32, #l>
!tok = !nv_tileaa.mem_token
gpu.module @m {
  func.func @planned(%p: !ptr) attributes {nv_tileaa.kernel, nv_tileaa.kernel_spec = {num_warps = 4 : i32, num_ctas = 1 : i32}} {
    %i = "nv_tileaa.make_range"() : () -> !i
    %b = "nv_tileaa.splat"(%p) : (!ptr) -> !p
    %c = "nv_tileaa.addptr"(%b, %i) : (!p, !i) -> !p
    %x:2 = "nv_tileas.load"(%c) {access = {checked = array<i32>, order = array<i32: 0>, vector = 2 : i32, whole_vectors}, mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 0, 0, 0>} : (!p) -> (!f, !tok)
    %sums:2 = "nv_tileas.atomic_rmw"(%c, %x#0, %x#1) {access = {checked = array<i32>, order = array<i32: 0>, vector = 2 : i32, whole_vectors}, mem_scope = "gpu", mem_semantic = "relaxed", operandSegmentSizes = array<i32: 1, 1, 0, 1>, rmw_mode = "addf"} : (!p, !f, !tok) -> (!f, !tok)
    return
  }
}
