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
// A map whose numbers are known in a loop alone is made there, each time again.
// CHECK: func.func @changes
// CHECK: %[[P:.*]] = "nv_tileas.claim_tma_descs"
// CHECK: scf.for %[[J:.*]] =
// CHECK: arith.maxui %[[J]]
// CHECK: %[[D:.*]] = "nv_tileas.fill_tma_desc"(%[[P]],
// CHECK-NEXT: "nv_tileas.acquire_tma_desc"(%[[D]])
// CHECK: scf.for
// CHECK-NOT: fill_tma_desc
// CHECK: "nv_tileas.prefetch_tma_desc"(%[[D]])
!ptr = !nv_tileaa.ptr<f16, 1 : i32>
!mem = !nv_tileaa.memref<f16, array<i64: -9223372036854775808>, array<i64: 1>>
!view = !nv_tileaa.tiled_view<!mem, array<i32: 64>, array<i32: 0>, "zero">
!desc = !nv_tileas.tma_desc<tensor<64xf16>, "none">
func.func @changes(%p: !ptr, %i: i32, %n: i32) attributes {nv_tileaa.kernel} {
  scf.for %j = %i to %n step %n : i32 {
    scf.for %k = %i to %n step %n : i32 {
      %m = "nv_tileaa.make_memref"(%p, %j) {operandSegmentSizes = array<i32: 1, 1, 0>} : (!ptr, i32) -> !mem
      %v = "nv_tileaa.block_tile"(%m) : (!mem) -> !view
      %d = "nv_tileas.make_tiled_tma_desc"(%v) {oob_mode = "zero"} : (!view) -> !desc
      "nv_tileas.prefetch_tma_desc"(%d) : (!desc) -> ()
    }
  }
  return
}
// -----
// Two of one loop are made together, behind the last number of both.
// CHECK: func.func @together
// CHECK: scf.for
// CHECK: %[[N:.*]] = "nv_tileaa.get_program_id"
// CHECK: %[[D:.*]] = "nv_tileas.fill_tma_desc"({{.*}}) {count = 2 : i32, element = "f16", index = 0
// CHECK: arith.maxui %[[N]]
// CHECK: %[[E:.*]] = "nv_tileas.fill_tma_desc"({{.*}}) {count = 2 : i32, element = "f16", index = 1
// CHECK-NEXT: "nv_tileas.acquire_tma_desc"(%[[D]])
// CHECK-NEXT: "nv_tileas.acquire_tma_desc"(%[[E]])
// CHECK: "nv_tileas.prefetch_tma_desc"(%[[E]])
// CHECK: "nv_tileas.prefetch_tma_desc"(%[[D]])
!ptr = !nv_tileaa.ptr<f16, 1 : i32>
!mem = !nv_tileaa.memref<f16, array<i64: -9223372036854775808>, array<i64: 1>>
!view = !nv_tileaa.tiled_view<!mem, array<i32: 64>, array<i32: 0>, "zero">
!desc = !nv_tileas.tma_desc<tensor<64xf16>, "none">
func.func @together(%p: !ptr, %i: i32, %n: i32) attributes {nv_tileaa.kernel} {
  scf.for %j = %i to %n step %n : i32 {
    %l = "nv_tileaa.get_program_id"() {axis = 0 : i32} : () -> i32
    %m = "nv_tileaa.make_memref"(%p, %l) {operandSegmentSizes = array<i32: 1, 1, 0>} : (!ptr, i32) -> !mem
    %v = "nv_tileaa.block_tile"(%m) : (!mem) -> !view
    %d = "nv_tileas.make_tiled_tma_desc"(%v) {oob_mode = "zero"} : (!view) -> !desc
    "nv_tileas.prefetch_tma_desc"(%d) : (!desc) -> ()
    %o = "nv_tileaa.make_memref"(%p, %j) {operandSegmentSizes = array<i32: 1, 1, 0>} : (!ptr, i32) -> !mem
    %w = "nv_tileaa.block_tile"(%o) : (!mem) -> !view
    %e = "nv_tileas.make_tiled_tma_desc"(%w) {oob_mode = "zero"} : (!view) -> !desc
    "nv_tileas.prefetch_tma_desc"(%e) : (!desc) -> ()
  }
  return
}
// -----
// CHECK: error: 'nv_tileas.make_tiled_tma_desc' op cannot be made by the kernel: its view changes inside of an agent
!ptr = !nv_tileaa.ptr<f16, 1 : i32>
!mem = !nv_tileaa.memref<f16, array<i64: -9223372036854775808>, array<i64: 1>>
!view = !nv_tileaa.tiled_view<!mem, array<i32: 64>, array<i32: 0>, "zero">
!desc = !nv_tileas.tma_desc<tensor<64xf16>, "none">
func.func @agent(%p: !ptr, %i: i32, %n: i32) attributes {nv_tileaa.kernel} {
  "nv_tileas.async_pipeline_agent_switch"() ({
    "nv_tileas.agent"() ({
      scf.for %j = %i to %n step %n : i32 {
        %m = "nv_tileaa.make_memref"(%p, %j) {operandSegmentSizes = array<i32: 1, 1, 0>} : (!ptr, i32) -> !mem
        %v = "nv_tileaa.block_tile"(%m) : (!mem) -> !view
        %d = "nv_tileas.make_tiled_tma_desc"(%v) {oob_mode = "zero"} : (!view) -> !desc
        "nv_tileas.prefetch_tma_desc"(%d) : (!desc) -> ()
      }
      "nv_tileas.async_pipeline_yield"() {operandSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : () -> ()
    }) {num_warps = 4 : i32, max_regs = 0 : i32} : () -> ()
  }) {num_agents_per_group = array<i32: 1>, isolated = false} : () -> ()
  return
}
