// RUN: tilec opt -p tileas-pair-iterations --gpu-name sm_100

// Two iterations are one; a branch behind the loop has the one that is left over.
// CHECK-LABEL: func.func @read
// CHECK: %[[M:.*]] = arith.trunci
// CHECK: %[[C2:.*]] = arith.constant 2 : i32
// CHECK: %[[R:.*]] = scf.for %[[I:.*]] = %{{.*}} to %[[M]] step %[[C2]]
// CHECK: "nv_tileas.dot"
// CHECK: %[[FIRST:.*]] = "nv_tileaa.addf"
// CHECK: %[[J:.*]] = arith.addi %[[I]]
// CHECK: "nv_tileas.tiled_load"(%{{.*}}, %{{.*}}, %[[J]]
// CHECK: "nv_tileas.dot"
// CHECK: "nv_tileaa.addf"(%[[FIRST]]
// CHECK: scf.if
// CHECK: "nv_tileas.tiled_load"(%{{.*}}, %{{.*}}, %[[M]]
// CHECK: "nv_tileas.dot"
// CHECK: "nv_tileaa.addf"(%[[R]]
// CHECK: scf.yield %[[R]]
!a = !nv_tileaa.memref<f16, array<i64: 64, 4096>, array<i64: 4096, 1>>
!v = !nv_tileaa.tiled_view<!a, array<i32: 64, 64>, array<i32: 0, 1>, "zero">
!h = tensor<64x64xf16>
!x = tensor<64x64xf32>
!t = !nv_tileaa.mem_token
func.func @read(%p: !nv_tileaa.ptr<f16, 1 : i32>, %n: i32) -> !x attributes {nv_tileaa.kernel, nv_tileaa.kernel_spec = {num_ctas = 1 : i32, num_warps = 4 : i32}} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c8 = arith.constant 8 : i32
  %c3 = arith.constant 3 : i32
  %zero = arith.constant dense<0.0> : !x
  %t = "nv_tileaa.create_mem_token"() : () -> !t
  %m = "nv_tileaa.make_memref"(%p) {operandSegmentSizes = array<i32: 1, 0, 0>} : (!nv_tileaa.ptr<f16, 1 : i32>) -> !a
  %v = "nv_tileaa.block_tile"(%m) : (!a) -> !v
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero) -> (!x) : i32 {
    %a:2 = "nv_tileas.tiled_load"(%v, %c0, %i, %t) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 2, 1>} : (!v, i32, i32, !t) -> (!h, !t)
    %d = "nv_tileas.dot"(%a#0, %a#0, %zero) {atom = "tcgen05.mma.cta_group::1.kind::f16.m64n64k16.f32.f16.f16", operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (!h, !h, !x) -> !x
    %next = "nv_tileaa.addf"(%sum, %d) : (!x, !x) -> !x
    scf.yield %next : !x
  }
  return %r : !x
}
// -----
// Of eight none is left over.
// CHECK-LABEL: func.func @even
// CHECK: scf.for
// CHECK-COUNT-2: "nv_tileas.dot"
// CHECK-NOT: scf.if
!a = !nv_tileaa.memref<f16, array<i64: 64, 4096>, array<i64: 4096, 1>>
!v = !nv_tileaa.tiled_view<!a, array<i32: 64, 64>, array<i32: 0, 1>, "zero">
!h = tensor<64x64xf16>
!x = tensor<64x64xf32>
!t = !nv_tileaa.mem_token
func.func @even(%p: !nv_tileaa.ptr<f16, 1 : i32>, %n: i32) -> !x attributes {nv_tileaa.kernel, nv_tileaa.kernel_spec = {num_ctas = 1 : i32, num_warps = 4 : i32}} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c8 = arith.constant 8 : i32
  %c3 = arith.constant 3 : i32
  %zero = arith.constant dense<0.0> : !x
  %t = "nv_tileaa.create_mem_token"() : () -> !t
  %m = "nv_tileaa.make_memref"(%p) {operandSegmentSizes = array<i32: 1, 0, 0>} : (!nv_tileaa.ptr<f16, 1 : i32>) -> !a
  %v = "nv_tileaa.block_tile"(%m) : (!a) -> !v
  %r = scf.for %i = %c0 to %c8 step %c1 iter_args(%sum = %zero) -> (!x) : i32 {
    %a:2 = "nv_tileas.tiled_load"(%v, %c0, %i, %t) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 2, 1>} : (!v, i32, i32, !t) -> (!h, !t)
    %d = "nv_tileas.dot"(%a#0, %a#0, %zero) {atom = "tcgen05.mma.cta_group::1.kind::f16.m64n64k16.f32.f16.f16", operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (!h, !h, !x) -> !x
    %next = "nv_tileaa.addf"(%sum, %d) : (!x, !x) -> !x
    scf.yield %next : !x
  }
  return %r : !x
}
// -----
// What the loop itself adds to is read behind it.
// CHECK-LABEL: func.func @added
// CHECK-COUNT-1: "nv_tileas.dot"
// CHECK-NOT: "nv_tileas.dot"
!a = !nv_tileaa.memref<f16, array<i64: 64, 4096>, array<i64: 4096, 1>>
!v = !nv_tileaa.tiled_view<!a, array<i32: 64, 64>, array<i32: 0, 1>, "zero">
!h = tensor<64x64xf16>
!x = tensor<64x64xf32>
!t = !nv_tileaa.mem_token
func.func @added(%p: !nv_tileaa.ptr<f16, 1 : i32>, %n: i32) -> !x attributes {nv_tileaa.kernel, nv_tileaa.kernel_spec = {num_ctas = 1 : i32, num_warps = 4 : i32}} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c8 = arith.constant 8 : i32
  %c3 = arith.constant 3 : i32
  %zero = arith.constant dense<0.0> : !x
  %t = "nv_tileaa.create_mem_token"() : () -> !t
  %m = "nv_tileaa.make_memref"(%p) {operandSegmentSizes = array<i32: 1, 0, 0>} : (!nv_tileaa.ptr<f16, 1 : i32>) -> !a
  %v = "nv_tileaa.block_tile"(%m) : (!a) -> !v
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero) -> (!x) : i32 {
    %a:2 = "nv_tileas.tiled_load"(%v, %c0, %i, %t) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 2, 1>} : (!v, i32, i32, !t) -> (!h, !t)
    %d = "nv_tileas.dot"(%a#0, %a#0, %sum) {atom = "tcgen05.mma.cta_group::1.kind::f16.m64n64k16.f32.f16.f16", operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (!h, !h, !x) -> !x
    scf.yield %d : !x
  }
  return %r : !x
}
// -----
// Of three iterations no pair runs ahead.
// CHECK-LABEL: func.func @few
// CHECK-COUNT-1: "nv_tileas.dot"
// CHECK-NOT: "nv_tileas.dot"
!a = !nv_tileaa.memref<f16, array<i64: 64, 4096>, array<i64: 4096, 1>>
!v = !nv_tileaa.tiled_view<!a, array<i32: 64, 64>, array<i32: 0, 1>, "zero">
!h = tensor<64x64xf16>
!x = tensor<64x64xf32>
!t = !nv_tileaa.mem_token
func.func @few(%p: !nv_tileaa.ptr<f16, 1 : i32>, %n: i32) -> !x attributes {nv_tileaa.kernel, nv_tileaa.kernel_spec = {num_ctas = 1 : i32, num_warps = 4 : i32}} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c8 = arith.constant 8 : i32
  %c3 = arith.constant 3 : i32
  %zero = arith.constant dense<0.0> : !x
  %t = "nv_tileaa.create_mem_token"() : () -> !t
  %m = "nv_tileaa.make_memref"(%p) {operandSegmentSizes = array<i32: 1, 0, 0>} : (!nv_tileaa.ptr<f16, 1 : i32>) -> !a
  %v = "nv_tileaa.block_tile"(%m) : (!a) -> !v
  %r = scf.for %i = %c0 to %c3 step %c1 iter_args(%sum = %zero) -> (!x) : i32 {
    %a:2 = "nv_tileas.tiled_load"(%v, %c0, %i, %t) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 2, 1>} : (!v, i32, i32, !t) -> (!h, !t)
    %d = "nv_tileas.dot"(%a#0, %a#0, %zero) {atom = "tcgen05.mma.cta_group::1.kind::f16.m64n64k16.f32.f16.f16", operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (!h, !h, !x) -> !x
    %next = "nv_tileaa.addf"(%sum, %d) : (!x, !x) -> !x
    scf.yield %next : !x
  }
  return %r : !x
}
// -----
// CHECK: error: 'func.func' op has no kernel_spec; run 'convert-tileaa-to-tileas' before
!a = !nv_tileaa.memref<f16, array<i64: 64, 4096>, array<i64: 4096, 1>>
!v = !nv_tileaa.tiled_view<!a, array<i32: 64, 64>, array<i32: 0, 1>, "zero">
!h = tensor<64x64xf16>
!x = tensor<64x64xf32>
!t = !nv_tileaa.mem_token
func.func @invalid(%p: !nv_tileaa.ptr<f16, 1 : i32>, %n: i32) -> !x attributes {nv_tileaa.kernel} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c8 = arith.constant 8 : i32
  %c3 = arith.constant 3 : i32
  %zero = arith.constant dense<0.0> : !x
  %t = "nv_tileaa.create_mem_token"() : () -> !t
  %m = "nv_tileaa.make_memref"(%p) {operandSegmentSizes = array<i32: 1, 0, 0>} : (!nv_tileaa.ptr<f16, 1 : i32>) -> !a
  %v = "nv_tileaa.block_tile"(%m) : (!a) -> !v
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero) -> (!x) : i32 {
    %a:2 = "nv_tileas.tiled_load"(%v, %c0, %i, %t) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 2, 1>} : (!v, i32, i32, !t) -> (!h, !t)
    %d = "nv_tileas.dot"(%a#0, %a#0, %zero) {atom = "tcgen05.mma.cta_group::1.kind::f16.m64n64k16.f32.f16.f16", operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (!h, !h, !x) -> !x
    %next = "nv_tileaa.addf"(%sum, %d) : (!x, !x) -> !x
    scf.yield %next : !x
  }
  return %r : !x
}
