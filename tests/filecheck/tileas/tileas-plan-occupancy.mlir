// RUN: tilec opt -p tileas-plan-occupancy --gpu-name sm_90

// 64 elements of f16 for each of two tiles are 64 registers, whatever is computed of them piece by
// piece: 80 with those for addresses, and 65536 / (256 * 80) blocks.
// CHECK: nv_tileaa.kernel_spec = {num_ctas = 1 : i32, num_warps = 8 : i32, occupancy = 3 : i32}
#l = #nv_tileas.layout<"register=[[1],[2],[4],[2048],[4096],[8192]] lane=[[8],[16],[32],[64],[128]] warp=[[256],[512],[1024]] : 16384">
!tok = !nv_tileaa.mem_token
!ptr = !nv_tileaa.ptr<f16, 1 : i32>
!memref = !nv_tileaa.memref<f16, array<i64: -9223372036854775808>, array<i64: 1>>
!view = !nv_tileaa.tiled_view<!memref, array<i32: 16384>, array<i32: 0>, "">
!half = tensor<16384xf16, #l>
!wide = tensor<16384xf32, #l>
func.func @pieces(%x: !ptr, %y: !ptr, %z: !ptr, %n: i32) attributes {nv_tileaa.kernel, nv_tileaa.kernel_spec = {num_ctas = 1 : i32, num_warps = 8 : i32}} {
  %c0 = arith.constant 0 : i32
  %mx = "nv_tileaa.make_memref"(%x, %n) {operandSegmentSizes = array<i32: 1, 1, 0>} : (!ptr, i32) -> !memref
  %my = "nv_tileaa.make_memref"(%y, %n) {operandSegmentSizes = array<i32: 1, 1, 0>} : (!ptr, i32) -> !memref
  %mz = "nv_tileaa.make_memref"(%z, %n) {operandSegmentSizes = array<i32: 1, 1, 0>} : (!ptr, i32) -> !memref
  %vx = "nv_tileaa.block_tile"(%mx) : (!memref) -> !view
  %vy = "nv_tileaa.block_tile"(%my) : (!memref) -> !view
  %vz = "nv_tileaa.block_tile"(%mz) : (!memref) -> !view
  %a:2 = "nv_tileas.tiled_load"(%vx, %c0) {access = {checked = array<i32: 0>, order = array<i32: 0>, vector = 8 : i32, whole_vectors}, mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 1, 0>} : (!view, i32) -> (!half, !tok)
  %b:2 = "nv_tileas.tiled_load"(%vy, %c0) {access = {checked = array<i32: 0>, order = array<i32: 0>, vector = 8 : i32, whole_vectors}, mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 1, 0>} : (!view, i32) -> (!half, !tok)
  %c = "nv_tileaa.fp_to_fp"(%a#0) : (!half) -> !wide
  %d = "nv_tileaa.fp_to_fp"(%b#0) : (!half) -> !wide
  %e = "nv_tileaa.exp2"(%c) : (!wide) -> !wide
  %f = "nv_tileaa.mulf"(%e, %d) : (!wide, !wide) -> !wide
  %g = "nv_tileaa.fp_to_fp"(%f) : (!wide) -> !half
  %t = "nv_tileas.tiled_store"(%vz, %g, %c0) {access = {checked = array<i32: 0>, order = array<i32: 0>, vector = 8 : i32, whole_vectors}, mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (!view, !half, i32) -> !tok
  return
}
// -----
// What is used before and behind a sum is held as it is: 64 registers of f32, and as many blocks;
// a hint says how many at least.
// CHECK: func.func @whole{{.*}}occupancy = 3 : i32
// CHECK: func.func @fewer{{.*}}occupancy = 3 : i32
// CHECK: func.func @more{{.*}}occupancy = 4 : i32
#l = #nv_tileas.layout<"register=[[1],[2],[4],[2048],[4096],[8192]] lane=[[8],[16],[32],[64],[128]] warp=[[256],[512],[1024]] : 16384">
!half = tensor<16384xf16, #l>
!wide = tensor<16384xf32, #l>
!tok = !nv_tileaa.mem_token
!ptr = !nv_tileaa.ptr<f16, 1 : i32>
!memref = !nv_tileaa.memref<f16, array<i64: 65536>, array<i64: 1>>
!view = !nv_tileaa.tiled_view<!memref, array<i32: 16384>, array<i32: 0>, "">
func.func @whole(%x: !ptr) -> (f32, !wide) attributes {nv_tileaa.kernel, nv_tileaa.kernel_spec = {num_ctas = 1 : i32, num_warps = 8 : i32}} {
  %m = "nv_tileaa.make_memref"(%x) {operandSegmentSizes = array<i32: 1, 0, 0>} : (!ptr) -> !memref
  %v = "nv_tileaa.block_tile"(%m) : (!memref) -> !view
  %c0 = arith.constant 0 : i32
  %a:2 = "nv_tileas.tiled_load"(%v, %c0) {access = {checked = array<i32>, order = array<i32: 0>, vector = 8 : i32, whole_vectors}, mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 1, 0>} : (!view, i32) -> (!half, !tok)
  %c = "nv_tileaa.fp_to_fp"(%a#0) : (!half) -> !wide
  %s = "nv_tileas.reduce"(%c) ({
  ^bb0(%one: f32, %other: f32):
    %t = "nv_tileaa.addf"(%one, %other) : (f32, f32) -> f32
    "nv_tileas.yield"(%t) : (f32) -> ()
  }) {axis = 0 : i32, identities = [0.0 : f32]} : (!wide) -> f32
  return %s, %c : f32, !wide
}
func.func @fewer(%x: !ptr) -> (f32, !wide) attributes {nv_tileaa.kernel, nv_tileaa.kernel_spec = {num_ctas = 1 : i32, num_warps = 8 : i32, occupancy = 1 : i32}} {
  %m = "nv_tileaa.make_memref"(%x) {operandSegmentSizes = array<i32: 1, 0, 0>} : (!ptr) -> !memref
  %v = "nv_tileaa.block_tile"(%m) : (!memref) -> !view
  %c0 = arith.constant 0 : i32
  %a:2 = "nv_tileas.tiled_load"(%v, %c0) {access = {checked = array<i32>, order = array<i32: 0>, vector = 8 : i32, whole_vectors}, mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 1, 0>} : (!view, i32) -> (!half, !tok)
  %c = "nv_tileaa.fp_to_fp"(%a#0) : (!half) -> !wide
  %s = "nv_tileas.reduce"(%c) ({
  ^bb0(%one: f32, %other: f32):
    %t = "nv_tileaa.addf"(%one, %other) : (f32, f32) -> f32
    "nv_tileas.yield"(%t) : (f32) -> ()
  }) {axis = 0 : i32, identities = [0.0 : f32]} : (!wide) -> f32
  return %s, %c : f32, !wide
}
func.func @more(%x: !ptr) -> (f32, !wide) attributes {nv_tileaa.kernel, nv_tileaa.kernel_spec = {num_ctas = 1 : i32, num_warps = 8 : i32, occupancy = 4 : i32}} {
  %m = "nv_tileaa.make_memref"(%x) {operandSegmentSizes = array<i32: 1, 0, 0>} : (!ptr) -> !memref
  %v = "nv_tileaa.block_tile"(%m) : (!memref) -> !view
  %c0 = arith.constant 0 : i32
  %a:2 = "nv_tileas.tiled_load"(%v, %c0) {access = {checked = array<i32>, order = array<i32: 0>, vector = 8 : i32, whole_vectors}, mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 1, 0>} : (!view, i32) -> (!half, !tok)
  %c = "nv_tileaa.fp_to_fp"(%a#0) : (!half) -> !wide
  %s = "nv_tileas.reduce"(%c) ({
  ^bb0(%one: f32, %other: f32):
    %t = "nv_tileaa.addf"(%one, %other) : (f32, f32) -> f32
    "nv_tileas.yield"(%t) : (f32) -> ()
  }) {axis = 0 : i32, identities = [0.0 : f32]} : (!wide) -> f32
  return %s, %c : f32, !wide
}
// -----
// Blocks that ask how many they are stay, elements of two bytes have a register each, and a tile that
// is only moved is under way as a whole: none of these kernels is asked for more.
// CHECK: func.func @stays
// CHECK-NOT: occupancy
// CHECK: func.func @narrow
// CHECK-NOT: occupancy
// CHECK: func.func @moved
// CHECK-NOT: occupancy
#l = #nv_tileas.layout<"register=[[1],[2],[4]] lane=[[8],[16],[32],[64],[128]] warp=[[256],[512]] : 1024">
!tok = !nv_tileaa.mem_token
!ptr = !nv_tileaa.ptr<f16, 1 : i32>
!memref = !nv_tileaa.memref<f16, array<i64: 4096>, array<i64: 2>>
!view = !nv_tileaa.tiled_view<!memref, array<i32: 1024>, array<i32: 0>, "zero">
func.func @stays() -> i32 attributes {nv_tileaa.kernel, nv_tileaa.kernel_spec = {num_ctas = 1 : i32, num_warps = 4 : i32}} {
  %n = "nv_tileaa.get_num_programs"() {axis = 0 : i32} : () -> i32
  return %n : i32
}
func.func @narrow(%x: !ptr) -> tensor<1024xf16, #l> attributes {nv_tileaa.kernel, nv_tileaa.kernel_spec = {num_ctas = 1 : i32, num_warps = 4 : i32}} {
  %c0 = arith.constant 0 : i32
  %m = "nv_tileaa.make_memref"(%x) {operandSegmentSizes = array<i32: 1, 0, 0>} : (!ptr) -> !memref
  %v = "nv_tileaa.block_tile"(%m) : (!memref) -> !view
  %a:2 = "nv_tileas.tiled_load"(%v, %c0) {access = {checked = array<i32>, order = array<i32: 0>, vector = 1 : i32, whole_vectors}, mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 1, 0>} : (!view, i32) -> (tensor<1024xf16, #l>, !tok)
  %b = "nv_tileaa.exp2"(%a#0) : (tensor<1024xf16, #l>) -> tensor<1024xf16, #l>
  return %b : tensor<1024xf16, #l>
}
func.func @moved(%x: tensor<1024xf16, #l>) -> tensor<1024xf16, #l> attributes {nv_tileaa.kernel, nv_tileaa.kernel_spec = {num_ctas = 1 : i32, num_warps = 4 : i32}} {
  return %x : tensor<1024xf16, #l>
}
// -----
// Functions that branch compute in registers of their own: 8 for roots, 32 for angles, beside the 16
// of two tiles and the 16 for addresses. Approximations do not branch.
// CHECK: func.func @approximate{{.*}}occupancy = 16 : i32
// CHECK: func.func @roots{{.*}}occupancy = 12 : i32
// CHECK: func.func @angles{{.*}}occupancy = 8 : i32
// Who loads nothing computes all the time, and has as many registers as ptxas likes.
// CHECK: func.func @computes
// CHECK-NOT: occupancy
#l = #nv_tileas.layout<"register=[[1],[2],[4]] lane=[[8],[16],[32],[64],[128]] warp=[[256],[512]] : 1024">
!tile = tensor<1024xf32, #l>
!tok = !nv_tileaa.mem_token
!ptr = !nv_tileaa.ptr<f32, 1 : i32>
!memref = !nv_tileaa.memref<f32, array<i64: 4096>, array<i64: 1>>
!view = !nv_tileaa.tiled_view<!memref, array<i32: 1024>, array<i32: 0>, "">
func.func @approximate(%x: !ptr, %i: i32) -> !tile attributes {nv_tileaa.kernel, nv_tileaa.kernel_spec = {num_ctas = 1 : i32, num_warps = 4 : i32}} {
  %m = "nv_tileaa.make_memref"(%x) {operandSegmentSizes = array<i32: 1, 0, 0>} : (!ptr) -> !memref
  %v = "nv_tileaa.block_tile"(%m) : (!memref) -> !view
  %c0 = arith.constant 0 : i32
  %a:2 = "nv_tileas.tiled_load"(%v, %c0) {access = {checked = array<i32>, order = array<i32: 0>, vector = 4 : i32, whole_vectors}, mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 1, 0>} : (!view, i32) -> (!tile, !tok)
  %b:2 = "nv_tileas.tiled_load"(%v, %i) {access = {checked = array<i32>, order = array<i32: 0>, vector = 4 : i32, whole_vectors}, mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 1, 0>} : (!view, i32) -> (!tile, !tok)
  %c = "nv_tileaa.sqrt"(%a#0) {rounding_mode = "approx"} : (!tile) -> !tile
  %d = "nv_tileaa.mulf"(%c, %b#0) : (!tile, !tile) -> !tile
  return %d : !tile
}
func.func @roots(%x: !ptr, %i: i32) -> !tile attributes {nv_tileaa.kernel, nv_tileaa.kernel_spec = {num_ctas = 1 : i32, num_warps = 4 : i32}} {
  %m = "nv_tileaa.make_memref"(%x) {operandSegmentSizes = array<i32: 1, 0, 0>} : (!ptr) -> !memref
  %v = "nv_tileaa.block_tile"(%m) : (!memref) -> !view
  %c0 = arith.constant 0 : i32
  %a:2 = "nv_tileas.tiled_load"(%v, %c0) {access = {checked = array<i32>, order = array<i32: 0>, vector = 4 : i32, whole_vectors}, mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 1, 0>} : (!view, i32) -> (!tile, !tok)
  %b:2 = "nv_tileas.tiled_load"(%v, %i) {access = {checked = array<i32>, order = array<i32: 0>, vector = 4 : i32, whole_vectors}, mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 1, 0>} : (!view, i32) -> (!tile, !tok)
  %c = "nv_tileaa.sqrt"(%a#0) : (!tile) -> !tile
  %d = "nv_tileaa.mulf"(%c, %b#0) : (!tile, !tile) -> !tile
  return %d : !tile
}
func.func @angles(%x: !ptr, %i: i32) -> !tile attributes {nv_tileaa.kernel, nv_tileaa.kernel_spec = {num_ctas = 1 : i32, num_warps = 4 : i32}} {
  %m = "nv_tileaa.make_memref"(%x) {operandSegmentSizes = array<i32: 1, 0, 0>} : (!ptr) -> !memref
  %v = "nv_tileaa.block_tile"(%m) : (!memref) -> !view
  %c0 = arith.constant 0 : i32
  %a:2 = "nv_tileas.tiled_load"(%v, %c0) {access = {checked = array<i32>, order = array<i32: 0>, vector = 4 : i32, whole_vectors}, mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 1, 0>} : (!view, i32) -> (!tile, !tok)
  %b:2 = "nv_tileas.tiled_load"(%v, %i) {access = {checked = array<i32>, order = array<i32: 0>, vector = 4 : i32, whole_vectors}, mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 1, 0>} : (!view, i32) -> (!tile, !tok)
  %c = "nv_tileaa.cos"(%a#0) : (!tile) -> !tile
  %d = "nv_tileaa.mulf"(%c, %b#0) : (!tile, !tile) -> !tile
  return %d : !tile
}
func.func @computes() -> !tile attributes {nv_tileaa.kernel, nv_tileaa.kernel_spec = {num_ctas = 1 : i32, num_warps = 4 : i32}} {
  %i = "nv_tileaa.make_range"() : () -> tensor<1024xi32, #l>
  %c = "nv_tileaa.int_to_fp"(%i) {signedness = "signed"} : (tensor<1024xi32, #l>) -> !tile
  %d = "nv_tileaa.mulf"(%c, %c) : (!tile, !tile) -> !tile
  return %d : !tile
}
// -----
// Where tiles live is not clear without structure.
// CHECK: loc("tileas-plan-occupancy.mlir":[[# @LINE + 1]]:1): error: 'func.func' op has branches; control flow must be structured (scf) here
func.func @branches() attributes {nv_tileaa.kernel, nv_tileaa.kernel_spec = {num_ctas = 1 : i32, num_warps = 4 : i32}} {
  cf.br ^next
^next:
  return
}
