// RUN: tilec opt -p tileas-numbers-ahead

// Threads meet in each iteration, which finds its number loaded: the first one by a branch around
// that of no iteration, the others by the iteration before, the last one's once more.
// CHECK-LABEL: func.func @scaled
// CHECK: %[[FIRST:.*]] = scf.if
// CHECK: "nv_tileas.load"
// CHECK: scf.for %[[I:.*]] = %{{.*}} to %{{.*}} step %{{.*}} iter_args(%[[SUM:[^ ]*]] = %{{.*}}, %[[X:[^ ]*]] = %[[FIRST]])
// CHECK: %[[NEXT:.*]] = arith.select %{{.*}}, %{{.*}}, %[[I]]
// CHECK: "nv_tileaa.addptr"(%{{.*}}, %[[NEXT]])
// CHECK: %[[N:.*]]:2 = "nv_tileas.load"
// CHECK: "nv_tileas.sync"
// CHECK: arith.addf %[[SUM]], %[[X]]
// CHECK: scf.yield %{{.*}}, %[[N]]#0
!p = !nv_tileaa.ptr<f32, 1 : i32>
!t = !nv_tileaa.mem_token
func.func @scaled(%p: !p, %n: i32) -> f32 attributes {nv_tileaa.kernel, nv_tileaa.kernel_spec = {num_ctas = 1 : i32, num_warps = 4 : i32}} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  %t = "nv_tileaa.create_mem_token"() : () -> !t
  %s = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero) -> (f32) : i32 {
    %q = "nv_tileaa.addptr"(%p, %i) : (!p, i32) -> !p
    %x:2 = "nv_tileas.load"(%q, %t) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 0, 0, 1>} : (!p, !t) -> (f32, !t)
    "nv_tileas.sync"() : () -> ()
    %next = arith.addf %sum, %x#0 : f32
    scf.yield %next : f32
  }
  return %s : f32
}
// -----
// Bounds compare as the loop's do, and what is left of it as a number without sign.
// CHECK-LABEL: func.func @unsigned
// CHECK: arith.cmpi ult
// CHECK: scf.if
// CHECK: scf.for
// CHECK: %[[LEFT:.*]] = arith.subi
// CHECK: arith.cmpi ult, %{{.*}}, %[[LEFT]]
!p = !nv_tileaa.ptr<f32, 1 : i32>
!t = !nv_tileaa.mem_token
func.func @unsigned(%p: !p, %n: i32) -> f32 attributes {nv_tileaa.kernel, nv_tileaa.kernel_spec = {num_ctas = 1 : i32, num_warps = 4 : i32}} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  %t = "nv_tileaa.create_mem_token"() : () -> !t
  %s = scf.for unsigned %i = %c0 to %n step %c1 iter_args(%sum = %zero) -> (f32) : i32 {
    %q = "nv_tileaa.addptr"(%p, %i) : (!p, i32) -> !p
    %x:2 = "nv_tileas.load"(%q, %t) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 0, 0, 1>} : (!p, !t) -> (f32, !t)
    "nv_tileas.sync"() : () -> ()
    %next = arith.addf %sum, %x#0 : f32
    scf.yield %next : f32
  }
  return %s : f32
}
// -----
// Nobody waits in these iterations, of which several load at once; or the hint says that it is not
// worth it; or one says where the next one's is.
// CHECK-LABEL: func.func @loops
// CHECK-NOT: scf.if
// CHECK-COUNT-3: scf.for
// CHECK-NOT: scf.if
!p = !nv_tileaa.ptr<i32, 1 : i32>
!t = !nv_tileaa.mem_token
func.func @loops(%p: !p, %n: i32) -> (i32, i32, i32) attributes {nv_tileaa.kernel, nv_tileaa.kernel_spec = {num_ctas = 1 : i32, num_warps = 4 : i32}} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %t = "nv_tileaa.create_mem_token"() : () -> !t
  %a = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %c0) -> (i32) : i32 {
    %q = "nv_tileaa.addptr"(%p, %i) : (!p, i32) -> !p
    %x:2 = "nv_tileas.load"(%q, %t) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 0, 0, 1>} : (!p, !t) -> (i32, !t)
    %next = arith.addi %sum, %x#0 : i32
    scf.yield %next : i32
  }
  %b = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %c0) -> (i32) : i32 {
    %q = "nv_tileaa.addptr"(%p, %i) : (!p, i32) -> !p
    %x:2 = "nv_tileas.load"(%q, %t) {hints = {latency = 1 : i32}, mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 0, 0, 1>} : (!p, !t) -> (i32, !t)
    "nv_tileas.sync"() : () -> ()
    %next = arith.addi %sum, %x#0 : i32
    scf.yield %next : i32
  }
  %c = scf.for %i = %c0 to %n step %c1 iter_args(%at = %c0) -> (i32) : i32 {
    %q = "nv_tileaa.addptr"(%p, %at) : (!p, i32) -> !p
    %x:2 = "nv_tileas.load"(%q, %t) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 0, 0, 1>} : (!p, !t) -> (i32, !t)
    "nv_tileas.sync"() : () -> ()
    scf.yield %x#0 : i32
  }
  return %a, %b, %c : i32, i32, i32
}
// -----
// CHECK: error: 'func.func' op has no kernel_spec; run 'convert-tileaa-to-tileas' before
func.func @invalid(%n: i32) {
  return
}
