// RUN: tilec opt -p tileas-remark-choices --gpu-name sm_90 --remarks -

// A load of 16 bytes a thread, although the layout has more in a row; a store that the layout makes
// narrower than the plan; a loop around both.
// CHECK: in function: f:
// CHECK: remark[analysis]: Resources of a block
// CHECK: = note: Warps = 4
// CHECK: category: Pipeline
// CHECK: remark[missed]: Loop runs one iteration at a time
// CHECK: = note: Contains = loads, stores
// CHECK: category: Memory
// CHECK: remark[passed]: Load instruction selected
// CHECK: = name: RemarkMemoryLoadInstructionSelected
// CHECK-NEXT: = note: Instruction = ld.global
// CHECK-NEXT: = note: Shape = [1024]
// CHECK-NEXT: = note: Element = f32
// CHECK-NEXT: = note: Bytes per thread = 16
// CHECK-NEXT: = note: Bounds checks = axes 0
// CHECK: remark[passed]: Store instruction selected
// CHECK: = note: Bytes per thread = 4
// CHECK-NEXT: = note: Bounds checks = none
#wide = #nv_tileas.layout<"register=[[1],[2],[4]] lane=[[8],[16],[32],[64],[128]] warp=[[256],[512]] : 1024">
#narrow = #nv_tileas.layout<"register=[[128],[256],[512]] lane=[[1],[2],[4],[8],[16]] warp=[[32],[64]] : 1024">
!mem = !nv_tileaa.memref<f32, array<i64: 4096>, array<i64: 1>>
!view = !nv_tileaa.tiled_view<!mem, array<i32: 1024>, array<i32: 0>, "zero">
func.func @f(%p: !nv_tileaa.ptr<f32, 1 : i32>, %i: i32, %n: i32) attributes {nv_tileaa.kernel_spec = {num_ctas = 1 : i32, num_warps = 4 : i32}} {
  %m = "nv_tileaa.make_memref"(%p) {operandSegmentSizes = array<i32: 1, 0, 0>} : (!nv_tileaa.ptr<f32, 1 : i32>) -> !mem
  %v = "nv_tileaa.block_tile"(%m) : (!mem) -> !view
  scf.for %k = %i to %n step %i : i32 {
    %x:2 = "nv_tileas.tiled_load"(%v, %i) {access = {checked = array<i32: 0>, order = array<i32: 0>, vector = 4 : i32}, mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 1, 0>} : (!view, i32) -> (tensor<1024xf32, #wide>, !nv_tileaa.mem_token)
    %y = "nv_tileas.convert_layout"(%x#0) : (tensor<1024xf32, #wide>) -> tensor<1024xf32, #narrow>
    %t = "nv_tileas.tiled_store"(%v, %y, %i) {access = {checked = array<i32>, order = array<i32: 0>, vector = 4 : i32}, mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (!view, tensor<1024xf32, #narrow>, i32) -> !nv_tileaa.mem_token
  }
  return
}
// -----
// Nothing to say of arithmetic.
// CHECK-NOT: remark
// CHECK: func.func @arithmetic
func.func @arithmetic(%a: i32) -> i32 {
  %0 = arith.addi %a, %a : i32
  return %0 : i32
}
// -----
// CHECK: error: 'nv_tileas.tiled_load' op has no access plan; run 'tileas-plan-accesses' before
!mem = !nv_tileaa.memref<f32, array<i64: 4096>, array<i64: 1>>
!view = !nv_tileaa.tiled_view<!mem, array<i32: 1024>, array<i32: 0>, "zero">
func.func @unplanned(%p: !nv_tileaa.ptr<f32, 1 : i32>, %i: i32) {
  %m = "nv_tileaa.make_memref"(%p) {operandSegmentSizes = array<i32: 1, 0, 0>} : (!nv_tileaa.ptr<f32, 1 : i32>) -> !mem
  %v = "nv_tileaa.block_tile"(%m) : (!mem) -> !view
  %x:2 = "nv_tileas.tiled_load"(%v, %i) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 1, 0>} : (!view, i32) -> (tensor<1024xf32>, !nv_tileaa.mem_token)
  return
}
