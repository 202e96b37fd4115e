// RUN: tilec opt -p tileas-slice-and-fuse

// Threads of four warps would hold 64 elements: four slices of 16, each loaded before the one in
// front of it is stored.
// CHECK-LABEL: func.func @twice
// CHECK: "nv_tileas.load"{{.*}}tensor<2048xf32>
// CHECK: dense<2048>
// CHECK: "nv_tileas.load"
// CHECK: arith.addf
// CHECK: "nv_tileas.store"{{.*}}sliced
// CHECK: dense<4096>
// CHECK: "nv_tileas.load"
// CHECK: "nv_tileas.store"
// CHECK: dense<6144>
// CHECK: "nv_tileas.load"
// CHECK: "nv_tileas.store"
// CHECK-NOT: "nv_tileas.load"
// CHECK: "nv_tileas.store"
// CHECK-NOT: tensor<8192
!p = !nv_tileaa.ptr<f32, 1 : i32>
!ps = tensor<8192x!p>
!is = tensor<8192xi32>
!x = tensor<8192xf32>
!t = !nv_tileaa.mem_token
func.func @twice(%p: !p, %q: !p) attributes {nv_tileaa.kernel_spec = {num_warps = 4 : i32, num_ctas = 1 : i32}} {
  %t = "nv_tileaa.create_mem_token"() : () -> !t
  %r = "nv_tileaa.make_range"() : () -> !is
  %ps = "nv_tileaa.splat"(%p) : (!p) -> !ps
  %qs = "nv_tileaa.splat"(%q) : (!p) -> !ps
  %from = "nv_tileaa.addptr"(%ps, %r) : (!ps, !is) -> !ps
  %x:2 = "nv_tileas.load"(%from, %t) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 0, 0, 1>} : (!ps, !t) -> (!x, !t)
  %y = arith.addf %x#0, %x#0 : !x
  %to = "nv_tileaa.addptr"(%qs, %r) : (!ps, !is) -> !ps
  %s = "nv_tileas.store"(%to, %y, %t) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 1, 0, 1>} : (!ps, !x, !t) -> !t
  return
}
// -----
// A store that waits for the load, a tile that is read elsewhere, an access that others may see: as
// they were.
// CHECK-LABEL: func.func @ordered
// CHECK-COUNT-1: "nv_tileas.load"
// CHECK-NOT: "nv_tileas.load"
// CHECK-LABEL: func.func @read
// CHECK-COUNT-1: "nv_tileas.load"
// CHECK-NOT: "nv_tileas.load"
// CHECK-LABEL: func.func @relaxed
// CHECK-COUNT-1: "nv_tileas.load"
// CHECK-NOT: "nv_tileas.load"
!p = !nv_tileaa.ptr<f32, 1 : i32>
!ps = tensor<8192x!p>
!is = tensor<8192xi32>
!x = tensor<8192xf32>
!t = !nv_tileaa.mem_token
func.func @ordered(%p: !p) attributes {nv_tileaa.kernel_spec = {num_warps = 4 : i32, num_ctas = 1 : i32}} {
  %t = "nv_tileaa.create_mem_token"() : () -> !t
  %r = "nv_tileaa.make_range"() : () -> !is
  %ps = "nv_tileaa.splat"(%p) : (!p) -> !ps
  %at = "nv_tileaa.addptr"(%ps, %r) : (!ps, !is) -> !ps
  %x:2 = "nv_tileas.load"(%at, %t) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 0, 0, 1>} : (!ps, !t) -> (!x, !t)
  %s = "nv_tileas.store"(%at, %x#0, %x#1) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 1, 0, 1>} : (!ps, !x, !t) -> !t
  return
}
func.func @read(%p: !p) -> !x attributes {nv_tileaa.kernel_spec = {num_warps = 4 : i32, num_ctas = 1 : i32}} {
  %t = "nv_tileaa.create_mem_token"() : () -> !t
  %r = "nv_tileaa.make_range"() : () -> !is
  %ps = "nv_tileaa.splat"(%p) : (!p) -> !ps
  %at = "nv_tileaa.addptr"(%ps, %r) : (!ps, !is) -> !ps
  %x:2 = "nv_tileas.load"(%at, %t) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 0, 0, 1>} : (!ps, !t) -> (!x, !t)
  %s = "nv_tileas.store"(%at, %x#0, %t) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 1, 0, 1>} : (!ps, !x, !t) -> !t
  return %x#0 : !x
}
func.func @relaxed(%p: !p) attributes {nv_tileaa.kernel_spec = {num_warps = 4 : i32, num_ctas = 1 : i32}} {
  %t = "nv_tileaa.create_mem_token"() : () -> !t
  %r = "nv_tileaa.make_range"() : () -> !is
  %ps = "nv_tileaa.splat"(%p) : (!p) -> !ps
  %at = "nv_tileaa.addptr"(%ps, %r) : (!ps, !is) -> !ps
  %x:2 = "nv_tileas.load"(%at, %t) {mem_semantic = "relaxed", mem_scope = "gpu", operandSegmentSizes = array<i32: 1, 0, 0, 1>} : (!ps, !t) -> (!x, !t)
  %s = "nv_tileas.store"(%at, %x#0, %t) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 1, 0, 1>} : (!ps, !x, !t) -> !t
  return
}
// -----
// CHECK: error: 'nv_tileas.load' op {{.*}}
func.func @invalid(%p: tensor<8192x!nv_tileaa.ptr<f32, 1 : i32>>) attributes {nv_tileaa.kernel_spec = {num_warps = 4 : i32, num_ctas = 1 : i32}} {
  %x:2 = "nv_tileas.load"(%p) {mem_semantic = "relaxed", mem_scope = "device", operandSegmentSizes = array<i32: 1, 0, 0, 0>} : (tensor<8192x!nv_tileaa.ptr<f32, 1 : i32>>) -> (tensor<8192xf32>, !nv_tileaa.mem_token)
  return
}
