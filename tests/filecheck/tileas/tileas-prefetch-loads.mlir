// RUN: tilec opt -p tileas-prefetch-loads{num-stages=3} --gpu-name sm_80

// Each thread copies what it reads two iterations later: no barrier.
// CHECK: func.func @sum
// CHECK: %[[A:.*]] = "nv_tileas.alloc_tensor"() {{.*}}pipelined{{.*}}, "shared", 3 : i32>
// CHECK: "nv_tileas.async_tiled_load"
// CHECK: scf.for
// CHECK: "nv_tileas.async_wait"() {group = "cp.async", pending = 1 : i32}
// CHECK-NOT: "nv_tileas.sync"
// CHECK: "nv_tileas.buffer_view"(%[[A]]
// CHECK: "nv_tileas.copy"
// CHECK-NOT: "nv_tileas.tiled_load"
// CHECK: "nv_tileaa.addf"
#l = #nv_tileas.layout<"register=[[1],[2]] lane=[[4],[8],[16],[32],[64]] warp=[[128],[256]] : 512">
!tok = !nv_tileaa.mem_token
!ptr = !nv_tileaa.ptr<f32, 1 : i32>
!memref = !nv_tileaa.memref<f32, array<i64: 4096>, array<i64: 1>>
!view = !nv_tileaa.tiled_view<!memref, array<i32: 512>, array<i32: 0>, "zero">
func.func @sum(%x: !ptr, %n: i32) -> tensor<512xf32, #l> attributes {nv_tileaa.kernel, nv_tileaa.kernel_spec = {num_ctas = 1 : i32, num_warps = 4 : i32}} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<512xf32, #l>
  %m = "nv_tileaa.make_memref"(%x) {operandSegmentSizes = array<i32: 1, 0, 0>} : (!ptr) -> !memref
  %v = "nv_tileaa.block_tile"(%m) : (!memref) -> !view
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<512xf32, #l>) : i32 {
    %t:2 = "nv_tileas.tiled_load"(%v, %i) {access = {checked = array<i32>, order = array<i32: 0>, vector = 4 : i32, whole_vectors}, mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 1, 0>} : (!view, i32) -> (tensor<512xf32, #l>, !tok)
    %s = "nv_tileaa.addf"(%acc, %t#0) : (tensor<512xf32, #l>, tensor<512xf32, #l>) -> tensor<512xf32, #l>
    scf.yield %s : tensor<512xf32, #l>
  }
  return %r : tensor<512xf32, #l>
}
// -----
// Runs of two bytes are too short for cp.async: the loop stays as it is.
// CHECK: func.func @short
// CHECK-NOT: async
// CHECK: "nv_tileas.tiled_load"
#l = #nv_tileas.layout<"lane=[[1],[2],[4],[8],[16]] warp=[[32],[64]] : 128">
!tok = !nv_tileaa.mem_token
!ptr = !nv_tileaa.ptr<f16, 1 : i32>
!memref = !nv_tileaa.memref<f16, array<i64: 4096>, array<i64: 1>>
!view = !nv_tileaa.tiled_view<!memref, array<i32: 128>, array<i32: 0>, "zero">
func.func @short(%x: !ptr, %n: i32) -> tensor<128xf16, #l> attributes {nv_tileaa.kernel, nv_tileaa.kernel_spec = {num_ctas = 1 : i32, num_warps = 4 : i32}} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<128xf16, #l>
  %m = "nv_tileaa.make_memref"(%x) {operandSegmentSizes = array<i32: 1, 0, 0>} : (!ptr) -> !memref
  %v = "nv_tileaa.block_tile"(%m) : (!memref) -> !view
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<128xf16, #l>) : i32 {
    %t:2 = "nv_tileas.tiled_load"(%v, %i) {access = {checked = array<i32>, order = array<i32: 0>, vector = 1 : i32, whole_vectors}, mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 1, 0>} : (!view, i32) -> (tensor<128xf16, #l>, !tok)
    %s = "nv_tileaa.addf"(%acc, %t#0) : (tensor<128xf16, #l>, tensor<128xf16, #l>) -> tensor<128xf16, #l>
    scf.yield %s : tensor<128xf16, #l>
  }
  return %r : tensor<128xf16, #l>
}
// -----
// CHECK: error: {{.*}}kernel_spec
#l = #nv_tileas.layout<"register=[[1],[2]] lane=[[4],[8],[16],[32],[64]] warp=[[128],[256]] : 512">
!tok = !nv_tileaa.mem_token
!ptr = !nv_tileaa.ptr<f32, 1 : i32>
!memref = !nv_tileaa.memref<f32, array<i64: 4096>, array<i64: 1>>
!view = !nv_tileaa.tiled_view<!memref, array<i32: 512>, array<i32: 0>, "zero">
func.func @unknown(%x: !ptr, %n: i32, %zero: tensor<512xf32, #l>) -> tensor<512xf32, #l> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %m = "nv_tileaa.make_memref"(%x) {operandSegmentSizes = array<i32: 1, 0, 0>} : (!ptr) -> !memref
  %v = "nv_tileaa.block_tile"(%m) : (!memref) -> !view
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<512xf32, #l>) : i32 {
    %t:2 = "nv_tileas.tiled_load"(%v, %i) {access = {checked = array<i32>, order = array<i32: 0>, vector = 4 : i32, whole_vectors}, mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 1, 0>} : (!view, i32) -> (tensor<512xf32, #l>, !tok)
    scf.yield %t#0 : tensor<512xf32, #l>
  }
  return %r : tensor<512xf32, #l>
}
