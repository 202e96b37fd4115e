// RUN: tilec opt -p tileas-place-accumulators,tileas-allocate-tensor-memory

// Blocks of a pair meet before the product that reads the memory of both, which says to both that it
// is done; columns are taken and given back by both.
// CHECK: func.func @alone
// CHECK: "nv_tileas.alloc_tmem"({{.*}}) {columns = 32 : i32, pair}
// CHECK: "nv_tileas.cluster_sync"
// CHECK-NEXT: "nv_tileas.tmem_address"
// CHECK-NEXT: "nv_tileas.tmem_buffer"
// CHECK-NEXT: "nv_tileas.umma"
// CHECK: "nv_tileas.barrier_arrive"({{.*}}kind = "tcgen05", pair
// CHECK: "nv_tileas.barrier_wait"
// CHECK: "nv_tileas.copy"
// CHECK: "nv_tileas.cluster_arrive"
// CHECK: "nv_tileas.cluster_wait"
// CHECK-NEXT: "nv_tileas.dealloc_tmem"({{.*}}) {columns = 32 : i32, met, pair}
#a = #nv_tileas.layout<"offset=[[0,1],[0,2],[0,4],[0,8],[1,0],[2,0],[4,8],[8,0],[16,0],[32,0],[64,0]] : 128x16">
#b = #nv_tileas.layout<"offset=[[1,0],[2,0],[4,0],[8,0],[0,1],[0,2],[8,4],[0,8]] : 16x16">
#c = #nv_tileas.layout<"register=[[0,1],[8,0],[0,8],[0,16],[16,0]] lane=[[0,2],[0,4],[1,0],[2,0],[4,0]] warp=[[32,0],[64,0]] : 128x32">
!a = !nv_tileas.buffer<tensor<128x16xf16, #a>, "shared", 1 : i32>
!b = !nv_tileas.buffer<tensor<16x16xf16, #b>, "shared", 1 : i32>
!c = tensor<128x32xf32, #c>
func.func @alone(%a: !a, %b: !b, %c: !c) -> !c attributes {nv_tileaa.kernel, nv_tileaa.kernel_spec = {num_ctas = 2 : i32, num_warps = 4 : i32}} {
  %d = "nv_tileas.dot"(%a, %b, %c) {atom = "tcgen05.mma.cta_group::2.kind::f16.m256n32k16.f32.f16.f16", blocks = 2 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (!a, !b, !c) -> !c
  return %d : !c
}
