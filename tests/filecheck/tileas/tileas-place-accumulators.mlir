// RUN: tilec opt -p tileas-place-accumulators

// A product that is read where it stands: waited for, its accumulator added in registers.
// CHECK: func.func @alone
// CHECK: "nv_tileas.barrier_init"
// CHECK: %[[C:.*]] = "nv_tileas.alloc_tensor"() {{.*}}"tensor", 1 : i32>
// CHECK: %[[NO:.*]] = arith.constant false
// CHECK: "nv_tileas.umma"(%arg0, %arg1, %[[C]], %[[NO]])
// CHECK-NEXT: arith.constant 0
// CHECK-NEXT: "nv_tileas.barrier_arrive"({{.*}}kind = "tcgen05"
// CHECK-NEXT: arith.constant 0
// CHECK-NEXT: "nv_tileas.barrier_turn"
// CHECK-NEXT: "nv_tileas.barrier_wait"
// CHECK-NEXT: "nv_tileas.tmem_fence"() {side = "after"}
// CHECK-NEXT: %[[X:.*]] = "nv_tileas.copy"(%[[C]])
// CHECK-NEXT: %[[S:.*]] = arith.addf %[[X]], %arg2
// CHECK: return %[[S]]
#a = #nv_tileas.layout<"offset=[[0,1],[0,2],[0,4],[0,8],[1,0],[2,0],[4,8],[8,0],[16,0],[32,0]] : 64x16">
#b = #nv_tileas.layout<"offset=[[1,0],[2,0],[4,0],[8,0],[0,1],[0,2],[8,4]] : 16x8">
#c = #nv_tileas.layout<"register=[[0,1],[8,0]] lane=[[0,2],[0,4],[1,0],[2,0],[4,0]] warp=[[16,0],[32,0]] : 64x8">
!a = !nv_tileas.buffer<tensor<64x16xf16, #a>, "shared", 1 : i32>
!b = !nv_tileas.buffer<tensor<16x8xf16, #b>, "shared", 1 : i32>
!c = tensor<64x8xf32, #c>
func.func @alone(%a: !a, %b: !b, %c: !c) -> !c attributes {nv_tileaa.kernel, nv_tileaa.kernel_spec = {num_ctas = 1 : i32, num_warps = 4 : i32}} {
  %d = "nv_tileas.dot"(%a, %b, %c) {atom = "tcgen05.mma.cta_group::1.kind::f16.m64n8k16.f32.f16.f16", operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (!a, !b, !c) -> !c
  return %d : !c
}
// -----
// What a loop only adds to stays in tensor memory; the loop carries whether there is something.
// CHECK: func.func @carried
// CHECK: %[[C:.*]] = "nv_tileas.alloc_tensor"() {{.*}}"tensor", 1 : i32>
// CHECK: %[[NO:.*]] = arith.constant false
// CHECK: %[[R:.*]] = scf.for {{.*}} iter_args(%[[F:.*]] = %[[NO]]) -> (i1)
// CHECK: "nv_tileas.umma"(%arg0, %arg1, %[[C]], %[[F]])
// CHECK: "nv_tileas.barrier_wait"
// CHECK-NOT: "nv_tileas.copy"
// CHECK: scf.yield %{{.*}} : i1
// CHECK: %[[S:.*]] = scf.if %[[R]]
// CHECK-NEXT: "nv_tileas.copy"(%[[C]])
// CHECK-NEXT: scf.yield
// CHECK: return %[[S]]
#a = #nv_tileas.layout<"offset=[[0,1],[0,2],[0,4],[0,8],[1,0],[2,0],[4,8],[8,0],[16,0],[32,0]] : 64x16">
#b = #nv_tileas.layout<"offset=[[1,0],[2,0],[4,0],[8,0],[0,1],[0,2],[8,4]] : 16x8">
#c = #nv_tileas.layout<"register=[[0,1],[8,0]] lane=[[0,2],[0,4],[1,0],[2,0],[4,0]] warp=[[16,0],[32,0]] : 64x8">
!a = !nv_tileas.buffer<tensor<64x16xf16, #a>, "shared", 1 : i32>
!b = !nv_tileas.buffer<tensor<16x8xf16, #b>, "shared", 1 : i32>
!c = tensor<64x8xf32, #c>
func.func @carried(%a: !a, %b: !b, %n: i32) -> !c attributes {nv_tileaa.kernel, nv_tileaa.kernel_spec = {num_ctas = 1 : i32, num_warps = 4 : i32}} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : !c
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (!c) : i32 {
    %d = "nv_tileas.dot"(%a, %b, %acc) {atom = "tcgen05.mma.cta_group::1.kind::f16.m64n8k16.f32.f16.f16", operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (!a, !b, !c) -> !c
    scf.yield %d : !c
  }
  return %r : !c
}
// -----
// Read in the next iteration, whose product of this place waits for all threads by one of them: the
// others run ahead. What is there before the loop is nothing, which all meet behind.
// CHECK: func.func @later
// CHECK: "nv_tileas.barrier_init"({{.*}} -> !nv_tileas.barrier<128 : i32, 1 : i32>
// CHECK: "nv_tileas.barrier_init"({{.*}} -> !nv_tileas.barrier<1 : i32, 1 : i32>
// CHECK-NEXT: "nv_tileas.fence"
// CHECK-NEXT: "nv_tileas.sync"
// CHECK: %[[C:.*]] = "nv_tileas.alloc_tensor"() {{.*}}"tensor", 1 : i32>
// CHECK: "nv_tileas.copy"(%{{.*}}, %[[C]])
// CHECK-NEXT: "nv_tileas.sync"
// CHECK: "nv_tileas.barrier_arrive"({{.*}}kind = "tcgen05"
// CHECK: scf.for
// CHECK: "nv_tileas.barrier_wait"(%[[DONE:[^,]*]], %{{.*}}) : (!nv_tileas.barrier<1 : i32, 1 : i32>
// CHECK: "nv_tileas.tmem_fence"() {side = "before"}
// CHECK-NEXT: "nv_tileas.barrier_arrive"(%[[HERE:[^,]*]], %{{.*}}) {by = "thread", kind = "generic"}
// CHECK-NEXT: %[[TURN:.*]] = "nv_tileas.barrier_turn"(%[[HERE]])
// CHECK-NEXT: "nv_tileas.barrier_wait"(%[[HERE]], %{{.*}}, %[[TURN]]) {leader}
// CHECK-NEXT: "nv_tileas.tmem_fence"() {leader, side = "after"}
// CHECK: "nv_tileas.umma"(%arg0, %arg1, %[[C]]
// CHECK: "nv_tileas.barrier_arrive"({{.*}}kind = "tcgen05"
#a = #nv_tileas.layout<"offset=[[0,1],[0,2],[0,4],[0,8],[1,0],[2,0],[4,8],[8,0],[16,0],[32,0]] : 64x16">
#b = #nv_tileas.layout<"offset=[[1,0],[2,0],[4,0],[8,0],[0,1],[0,2],[8,4]] : 16x8">
#c = #nv_tileas.layout<"register=[[0,1],[8,0]] lane=[[0,2],[0,4],[1,0],[2,0],[4,0]] warp=[[16,0],[32,0]] : 64x8">
!a = !nv_tileas.buffer<tensor<64x16xf16, #a>, "shared", 1 : i32>
!b = !nv_tileas.buffer<tensor<16x8xf16, #b>, "shared", 1 : i32>
!c = tensor<64x8xf32, #c>
func.func @later(%a: !a, %b: !b, %n: i32) -> !c attributes {nv_tileaa.kernel, nv_tileaa.kernel_spec = {num_ctas = 1 : i32, num_warps = 4 : i32}} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : !c
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (!c) : i32 {
    %x = "nv_tileas.dot_wait"(%acc) : (!c) -> !c
    %y = arith.mulf %x, %x : !c
    %d = "nv_tileas.dot"(%a, %b, %y) {atom = "tcgen05.mma.cta_group::1.kind::f16.m64n8k16.f32.f16.f16", in_flight, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (!a, !b, !c) -> !c
    scf.yield %d : !c
  }
  %s = "nv_tileas.dot_wait"(%r) : (!c) -> !c
  return %s : !c
}
// -----
// A branch that changes what is awaited does so in tensor memory; all read it behind that, some
// registers at a time.
// CHECK: func.func @in_place
// CHECK: %[[C:.*]] = "nv_tileas.alloc_tensor"() {{.*}}"tensor", 1 : i32>
// CHECK: scf.for
// CHECK: "nv_tileas.barrier_wait"
// CHECK: scf.if %arg4 {
// CHECK-NEXT: %[[X:.*]] = "nv_tileas.copy"(%[[C]])
// CHECK-NEXT: %[[M:.*]] = arith.addf %[[X]], %arg3
// CHECK-NEXT: "nv_tileas.copy"(%[[M]], %[[C]])
// CHECK-NEXT: }
// CHECK-NEXT: %[[Y:.*]] = "nv_tileas.copy"(%[[C]]) {few = 2 : i32
// CHECK-NEXT: arith.addf %{{.*}}, %[[Y]]
// CHECK: "nv_tileas.umma"
#a = #nv_tileas.layout<"offset=[[0,1],[0,2],[0,4],[0,8],[1,0],[2,0],[4,8],[8,0],[16,0],[32,0]] : 64x16">
#b = #nv_tileas.layout<"offset=[[1,0],[2,0],[4,0],[8,0],[0,1],[0,2],[8,4]] : 16x8">
#c = #nv_tileas.layout<"register=[[0,1],[8,0]] lane=[[0,2],[0,4],[1,0],[2,0],[4,0]] warp=[[16,0],[32,0]] : 64x8">
!a = !nv_tileas.buffer<tensor<64x16xf16, #a>, "shared", 1 : i32>
!b = !nv_tileas.buffer<tensor<16x8xf16, #b>, "shared", 1 : i32>
!c = tensor<64x8xf32, #c>
func.func @in_place(%a: !a, %b: !b, %n: i32, %mask: !c, %flag: i1) -> !c attributes {nv_tileaa.kernel, nv_tileaa.kernel_spec = {num_ctas = 1 : i32, num_warps = 4 : i32}} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : !c
  %first = "nv_tileas.dot"(%a, %b, %zero) {atom = "tcgen05.mma.cta_group::1.kind::f16.m64n8k16.f32.f16.f16", in_flight, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (!a, !b, !c) -> !c
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%s = %first, %t = %zero) -> (!c, !c) : i32 {
    %x = "nv_tileas.dot_wait"(%s) {in_place, frees, few = 2 : i32} : (!c) -> !c
    %y = scf.if %flag -> (!c) {
      %m = arith.addf %x, %mask : !c
      scf.yield %m : !c
    } else {
      scf.yield %x : !c
    }
    %u = arith.addf %t, %y : !c
    %d = "nv_tileas.dot"(%a, %b, %zero) {atom = "tcgen05.mma.cta_group::1.kind::f16.m64n8k16.f32.f16.f16", in_flight, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (!a, !b, !c) -> !c
    scf.yield %d, %u : !c, !c
  }
  %z = "nv_tileas.dot_wait"(%r#0) : (!c) -> !c
  return %r#1 : !c
}
// -----
// The same of the other arm.
// CHECK: func.func @in_place_otherwise
// CHECK: %[[C:.*]] = "nv_tileas.alloc_tensor"() {{.*}}"tensor", 1 : i32>
// CHECK: scf.for
// CHECK: %[[NOT:.*]] = arith.xori %arg4
// CHECK-NEXT: scf.if %[[NOT]] {
// CHECK-NEXT: %[[X:.*]] = "nv_tileas.copy"(%[[C]])
// CHECK-NEXT: %[[M:.*]] = arith.addf %[[X]], %arg3
// CHECK-NEXT: "nv_tileas.copy"(%[[M]], %[[C]])
// CHECK-NEXT: }
// CHECK-NEXT: %[[Y:.*]] = "nv_tileas.copy"(%[[C]])
#a = #nv_tileas.layout<"offset=[[0,1],[0,2],[0,4],[0,8],[1,0],[2,0],[4,8],[8,0],[16,0],[32,0]] : 64x16">
#b = #nv_tileas.layout<"offset=[[1,0],[2,0],[4,0],[8,0],[0,1],[0,2],[8,4]] : 16x8">
#c = #nv_tileas.layout<"register=[[0,1],[8,0]] lane=[[0,2],[0,4],[1,0],[2,0],[4,0]] warp=[[16,0],[32,0]] : 64x8">
!a = !nv_tileas.buffer<tensor<64x16xf16, #a>, "shared", 1 : i32>
!b = !nv_tileas.buffer<tensor<16x8xf16, #b>, "shared", 1 : i32>
!c = tensor<64x8xf32, #c>
func.func @in_place_otherwise(%a: !a, %b: !b, %n: i32, %mask: !c, %flag: i1) -> !c attributes {nv_tileaa.kernel, nv_tileaa.kernel_spec = {num_ctas = 1 : i32, num_warps = 4 : i32}} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : !c
  %first = "nv_tileas.dot"(%a, %b, %zero) {atom = "tcgen05.mma.cta_group::1.kind::f16.m64n8k16.f32.f16.f16", in_flight, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (!a, !b, !c) -> !c
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%s = %first, %t = %zero) -> (!c, !c) : i32 {
    %x = "nv_tileas.dot_wait"(%s) {in_place, frees, few = 2 : i32} : (!c) -> !c
    %y = scf.if %flag -> (!c) {
      scf.yield %x : !c
    } else {
      %m = arith.addf %x, %mask : !c
      scf.yield %m : !c
    }
    %u = arith.addf %t, %y : !c
    %d = "nv_tileas.dot"(%a, %b, %zero) {atom = "tcgen05.mma.cta_group::1.kind::f16.m64n8k16.f32.f16.f16", in_flight, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (!a, !b, !c) -> !c
    scf.yield %d, %u : !c, !c
  }
  %z = "nv_tileas.dot_wait"(%r#0) : (!c) -> !c
  return %r#1 : !c
}
// -----
// A pass between may have made something else of the branch: then registers are changed.
// CHECK: func.func @not_in_place
// CHECK: %[[C:.*]] = "nv_tileas.alloc_tensor"() {{.*}}"tensor", 1 : i32>
// CHECK: scf.for
// CHECK: %[[X:.*]] = "nv_tileas.copy"(%[[C]])
// CHECK-NEXT: %[[Y:.*]] = scf.if %arg4
// CHECK-NOT: "nv_tileas.copy"
// CHECK: "nv_tileas.umma"
#a = #nv_tileas.layout<"offset=[[0,1],[0,2],[0,4],[0,8],[1,0],[2,0],[4,8],[8,0],[16,0],[32,0]] : 64x16">
#b = #nv_tileas.layout<"offset=[[1,0],[2,0],[4,0],[8,0],[0,1],[0,2],[8,4]] : 16x8">
#c = #nv_tileas.layout<"register=[[0,1],[8,0]] lane=[[0,2],[0,4],[1,0],[2,0],[4,0]] warp=[[16,0],[32,0]] : 64x8">
!a = !nv_tileas.buffer<tensor<64x16xf16, #a>, "shared", 1 : i32>
!b = !nv_tileas.buffer<tensor<16x8xf16, #b>, "shared", 1 : i32>
!c = tensor<64x8xf32, #c>
func.func @not_in_place(%a: !a, %b: !b, %n: i32, %mask: !c, %flag: i1) -> !c attributes {nv_tileaa.kernel, nv_tileaa.kernel_spec = {num_ctas = 1 : i32, num_warps = 4 : i32}} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : !c
  %first = "nv_tileas.dot"(%a, %b, %zero) {atom = "tcgen05.mma.cta_group::1.kind::f16.m64n8k16.f32.f16.f16", in_flight, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (!a, !b, !c) -> !c
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%s = %first, %t = %zero) -> (!c, !c) : i32 {
    %x = "nv_tileas.dot_wait"(%s) {in_place, frees, few = 2 : i32} : (!c) -> !c
    %y = scf.if %flag -> (!c) {
      %m = arith.addf %x, %mask : !c
      scf.yield %m : !c
    } else {
      scf.yield %mask : !c
    }
    %u = arith.addf %t, %y : !c
    %d = "nv_tileas.dot"(%a, %b, %zero) {atom = "tcgen05.mma.cta_group::1.kind::f16.m64n8k16.f32.f16.f16", in_flight, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (!a, !b, !c) -> !c
    scf.yield %d, %u : !c, !c
  }
  %z = "nv_tileas.dot_wait"(%r#0) : (!c) -> !c
  return %r#1 : !c
}
// -----
// Products of other tiers are left alone.
// CHECK: func.func @other
// CHECK-NOT: tensor",
// CHECK: "nv_tileas.dot"
#c = #nv_tileas.layout<"register=[[0,1],[8,0]] lane=[[0,2],[0,4],[1,0],[2,0],[4,0]] : 16x8">
func.func @other(%a: tensor<16x8xf32, #c>, %b: tensor<8x8xf32>, %c: tensor<16x8xf32, #c>) -> tensor<16x8xf32, #c> attributes {nv_tileaa.kernel_spec = {num_ctas = 1 : i32, num_warps = 1 : i32}} {
  %d = "nv_tileas.dot"(%a, %b, %c) {atom = "fma", operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (tensor<16x8xf32, #c>, tensor<8x8xf32>, tensor<16x8xf32, #c>) -> tensor<16x8xf32, #c>
  return %d : tensor<16x8xf32, #c>
}
// -----
// CHECK: error: {{.*}}kernel_spec
#a = #nv_tileas.layout<"offset=[[0,1],[0,2],[0,4],[0,8],[1,0],[2,0],[4,8],[8,0],[16,0],[32,0]] : 64x16">
#b = #nv_tileas.layout<"offset=[[1,0],[2,0],[4,0],[8,0],[0,1],[0,2],[8,4]] : 16x8">
!a = !nv_tileas.buffer<tensor<64x16xf16, #a>, "shared", 1 : i32>
!b = !nv_tileas.buffer<tensor<16x8xf16, #b>, "shared", 1 : i32>
func.func @nobody(%a: !a, %b: !b, %c: tensor<64x8xf32>) {
  %d = "nv_tileas.dot"(%a, %b, %c) {atom = "tcgen05.mma.cta_group::1.kind::f16.m64n8k16.f32.f16.f16", operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (!a, !b, tensor<64x8xf32>) -> tensor<64x8xf32>
  return
}
