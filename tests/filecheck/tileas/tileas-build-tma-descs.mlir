// RUN: tilec opt -p tileas-build-tma-descs --gpu-name sm_90

// Two views with equal numbers share a map, which is made as soon as those are known; the place is
// given back at the end. An extent is at least 1.
// CHECK: func.func @views
// CHECK-SAME: "nv_tileas.num-device-tmas" = 1 : i32
// CHECK: %[[P:.*]] = "nv_tileas.claim_tma_descs"({{.*}}) {count = 1 : i32}
// CHECK: %[[N:.*]] = "nv_tileaa.get_program_id"
// CHECK: %[[E:.*]] = arith.maxui %[[N]]
// CHECK: %[[S:.*]] = arith.muli
// CHECK: %[[D:.*]] = "nv_tileas.fill_tma_desc"(%[[P]], {{.*}}, %arg0, %[[E]], {{.*}}, %[[S]]) {count = 1 : i32, element = "f16", index = 0 : i32
// CHECK-NEXT: "nv_tileas.acquire_tma_desc"(%[[D]])
// CHECK-NOT: make_tiled_tma_desc
// CHECK: "nv_tileas.prefetch_tma_desc"(%[[D]])
// CHECK: scf.for
// CHECK: "nv_tileas.prefetch_tma_desc"(%[[D]])
// CHECK: "nv_tileas.sync"
// CHECK-NEXT: "nv_tileas.release_tma_descs"(%[[P]]) {count = 1 : i32}
// CHECK-NEXT: return
!ptr = !nv_tileaa.ptr<f16, 1 : i32>
!mem = !nv_tileaa.memref<f16, array<i64: -9223372036854775808, 512>, array<i64: -9223372036854775808, 1>>
!view = !nv_tileaa.tiled_view<!mem, array<i32: 128, 64>, array<i32: 0, 1>, "zero">
!desc = !nv_tileas.tma_desc<tensor<128x64xf16>, "128B">
func.func @views(%p: !ptr, %s: i32, %i: i32) attributes {nv_tileaa.kernel, "nv_tileas.num-device-tmas" = 0 : i32} {
  %n = "nv_tileaa.get_program_id"() {axis = 0 : i32} : () -> i32
  %m = "nv_tileaa.make_memref"(%p, %n, %s) {operandSegmentSizes = array<i32: 1, 1, 1>} : (!ptr, i32, i32) -> !mem
  %v = "nv_tileaa.block_tile"(%m) : (!mem) -> !view
  %d = "nv_tileas.make_tiled_tma_desc"(%v) {oob_mode = "zero"} : (!view) -> !desc
  "nv_tileas.prefetch_tma_desc"(%d) : (!desc) -> ()
  scf.for %j = %i to %n step %s : i32 {
    %w = "nv_tileaa.block_tile"(%m) : (!mem) -> !view
    %e = "nv_tileas.make_tiled_tma_desc"(%w) {oob_mode = "zero"} : (!view) -> !desc
    "nv_tileas.prefetch_tma_desc"(%e) : (!desc) -> ()
  }
  return
}
// -----
// No maps: nothing is claimed.
// CHECK: func.func @none
// CHECK-NEXT: return
func.func @none() attributes {nv_tileaa.kernel} {
  return
}
// -----
// CHECK: error: 'nv_tileas.make_tiled_tma_desc' op cannot be made by the kernel: its view changes in a loop or a branch
!ptr = !nv_tileaa.ptr<f16, 1 : i32>
!mem = !nv_tileaa.memref<f16, array<i64: -9223372036854775808>, array<i64: 1>>
!view = !nv_tileaa.tiled_view<!mem, array<i32: 64>, array<i32: 0>, "zero">
!desc = !nv_tileas.tma_desc<tensor<64xf16>, "none">
func.func @changes(%p: !ptr, %i: i32, %n: i32) attributes {nv_tileaa.kernel} {
  scf.for %j = %i to %n step %n : i32 {
    %m = "nv_tileaa.make_memref"(%p, %j) {operandSegmentSizes = array<i32: 1, 1, 0>} : (!ptr, i32) -> !mem
    %v = "nv_tileaa.block_tile"(%m) : (!mem) -> !view
    %d = "nv_tileas.make_tiled_tma_desc"(%v) {oob_mode = "zero"} : (!view) -> !desc
    "nv_tileas.prefetch_tma_desc"(%d) : (!desc) -> ()
  }
  return
}
