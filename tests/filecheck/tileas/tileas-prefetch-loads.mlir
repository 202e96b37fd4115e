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
// A hint says that there is little traffic to wait for.
// CHECK: func.func @little
// CHECK-NOT: async
// CHECK: "nv_tileas.tiled_load"
#l = #nv_tileas.layout<"register=[[1],[2]] lane=[[4],[8],[16],[32],[64]] warp=[[128],[256]] : 512">
!tok = !nv_tileaa.mem_token
!ptr = !nv_tileaa.ptr<f32, 1 : i32>
!memref = !nv_tileaa.memref<f32, array<i64: 4096>, array<i64: 1>>
!view = !nv_tileaa.tiled_view<!memref, array<i32: 512>, array<i32: 0>, "zero">
func.func @little(%x: !ptr, %n: i32) -> tensor<512xf32, #l> attributes {nv_tileaa.kernel, nv_tileaa.kernel_spec = {num_ctas = 1 : i32, num_warps = 4 : i32}} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<512xf32, #l>
  %m = "nv_tileaa.make_memref"(%x) {operandSegmentSizes = array<i32: 1, 0, 0>} : (!ptr) -> !memref
  %v = "nv_tileaa.block_tile"(%m) : (!memref) -> !view
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<512xf32, #l>) : i32 {
    %t:2 = "nv_tileas.tiled_load"(%v, %i) {access = {checked = array<i32>, order = array<i32: 0>, vector = 4 : i32, whole_vectors}, hints = {latency = 1 : i32}, mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 1, 0>} : (!view, i32) -> (tensor<512xf32, #l>, !tok)
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
// Loads in a chain of tokens do not wait for one another; a store behind the loop waits for all of
// them, which all threads have to have made.
// CHECK: func.func @chained
// CHECK: %[[FIRST:.*]] = "nv_tileaa.create_mem_token"
// CHECK: "nv_tileas.async_tiled_load"({{.*}}, %[[FIRST]])
// CHECK: scf.for
// CHECK-NOT: "nv_tileas.tiled_load"
// CHECK: scf.yield
// CHECK: "nv_tileas.sync"
// CHECK-NEXT: "nv_tileas.tiled_store"
#l = #nv_tileas.layout<"register=[[1],[2]] lane=[[4],[8],[16],[32],[64]] warp=[[128],[256]] : 512">
!tok = !nv_tileaa.mem_token
!ptr = !nv_tileaa.ptr<f32, 1 : i32>
!memref = !nv_tileaa.memref<f32, array<i64: 4096>, array<i64: 1>>
!view = !nv_tileaa.tiled_view<!memref, array<i32: 512>, array<i32: 0>, "zero">
func.func @chained(%x: !ptr, %n: i32) -> tensor<512xf32, #l> attributes {nv_tileaa.kernel, nv_tileaa.kernel_spec = {num_ctas = 1 : i32, num_warps = 4 : i32}} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<512xf32, #l>
  %m = "nv_tileaa.make_memref"(%x) {operandSegmentSizes = array<i32: 1, 0, 0>} : (!ptr) -> !memref
  %v = "nv_tileaa.block_tile"(%m) : (!memref) -> !view
  %first = "nv_tileaa.create_mem_token"() : () -> !tok
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero, %t = %first) -> (tensor<512xf32, #l>, !tok) : i32 {
    %a:2 = "nv_tileas.tiled_load"(%v, %i, %t) {access = {checked = array<i32>, order = array<i32: 0>, vector = 4 : i32, whole_vectors}, mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 1, 1>} : (!view, i32, !tok) -> (tensor<512xf32, #l>, !tok)
    %s = "nv_tileaa.addf"(%acc, %a#0) : (tensor<512xf32, #l>, tensor<512xf32, #l>) -> tensor<512xf32, #l>
    scf.yield %s, %a#1 : tensor<512xf32, #l>, !tok
  }
  %w = "nv_tileas.tiled_store"(%v, %r#0, %c0, %r#1) {access = {checked = array<i32>, order = array<i32: 0>, vector = 4 : i32, whole_vectors}, mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 1, 1, 1>} : (!view, tensor<512xf32, #l>, i32, !tok) -> !tok
  return %r#0 : tensor<512xf32, #l>
}
// -----
// A store of the loop waits for the load of its step, and the next one for nothing: it stays there.
// CHECK: func.func @inside
// CHECK-NOT: async
// CHECK: "nv_tileas.tiled_load"
#l = #nv_tileas.layout<"register=[[1],[2]] lane=[[4],[8],[16],[32],[64]] warp=[[128],[256]] : 512">
!tok = !nv_tileaa.mem_token
!ptr = !nv_tileaa.ptr<f32, 1 : i32>
!memref = !nv_tileaa.memref<f32, array<i64: 4096>, array<i64: 1>>
!view = !nv_tileaa.tiled_view<!memref, array<i32: 512>, array<i32: 0>, "zero">
func.func @inside(%x: !ptr, %n: i32) -> tensor<512xf32, #l> attributes {nv_tileaa.kernel, nv_tileaa.kernel_spec = {num_ctas = 1 : i32, num_warps = 4 : i32}} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<512xf32, #l>
  %m = "nv_tileaa.make_memref"(%x) {operandSegmentSizes = array<i32: 1, 0, 0>} : (!ptr) -> !memref
  %v = "nv_tileaa.block_tile"(%m) : (!memref) -> !view
  %first = "nv_tileaa.create_mem_token"() : () -> !tok
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero, %t = %first) -> (tensor<512xf32, #l>, !tok) : i32 {
    %a:2 = "nv_tileas.tiled_load"(%v, %i, %t) {access = {checked = array<i32>, order = array<i32: 0>, vector = 4 : i32, whole_vectors}, mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 1, 1>} : (!view, i32, !tok) -> (tensor<512xf32, #l>, !tok)
    %s = "nv_tileaa.addf"(%acc, %a#0) : (tensor<512xf32, #l>, tensor<512xf32, #l>) -> tensor<512xf32, #l>
    %w = "nv_tileas.tiled_store"(%v, %s, %c0, %a#1) {access = {checked = array<i32>, order = array<i32: 0>, vector = 4 : i32, whole_vectors}, mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 1, 1, 1>} : (!view, tensor<512xf32, #l>, i32, !tok) -> !tok
    scf.yield %s, %t : tensor<512xf32, #l>, !tok
  }
  return %r#0 : tensor<512xf32, #l>
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
