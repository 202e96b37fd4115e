// RUN: tilec opt -p tileas-plan-accesses{max-vector-bits=64} --gpu-name sm_90

// A pointer known to be aligned, and consecutive offsets: as wide as the option allows.
// CHECK: func.func @consecutive
// CHECK: "nv_tileas.load"
// CHECK-SAME: access = {checked = array<i32>, copy = "generic", order = array<i32: 0>, run = 128 : i32, vector = 2 : i32, whole_vectors, why = "nothing else may, or pays", why_not = {bulk = "it goes through pointers, and not through a view", cp.async = "no loop runs it, whose later iterations it could be loaded for", tma = "it goes through pointers, and not through a view"}}
// CHECK: "nv_tileas.store"
// CHECK-SAME: vector = 1 : i32
!ptr = !nv_tileaa.ptr<f32, 1 : i32>
!tile = tensor<128x!nv_tileaa.ptr<f32, 1 : i32>>
!tok = !nv_tileaa.mem_token
func.func @consecutive(%p: !ptr, %q: !ptr) {
  %a = "nv_tileaa.assume"(%p) {predicate = {kind = "div_by", divisor = 16 : i64}} : (!ptr) -> !ptr
  %i = "nv_tileaa.make_range"() : () -> tensor<128xi32>
  %b = "nv_tileaa.splat"(%a) : (!ptr) -> !tile
  %c = "nv_tileaa.addptr"(%b, %i) : (!tile, tensor<128xi32>) -> !tile
  %x:2 = "nv_tileas.load"(%c) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 0, 0, 0>} : (!tile) -> (tensor<128xf32>, !tok)
  %d = "nv_tileaa.splat"(%q) : (!ptr) -> !tile
  %e = "nv_tileaa.addptr"(%d, %i) : (!tile, tensor<128xi32>) -> !tile
  %t = "nv_tileas.store"(%e, %x#0) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 1, 0, 0>} : (!tile, tensor<128xf32>) -> !tok
  return
}
// -----
// A tiled view: the axis of step 1 comes first; sizes that are no multiple of the tile are checked.
// CHECK: func.func @tiled
// CHECK: "nv_tileas.tiled_load"
// CHECK-SAME: access = {checked = array<i32: 1>, copy = "generic", order = array<i32: 0, 1>, vector = 2 : i32, whole_vectors
!ptr = !nv_tileaa.ptr<f32, 1 : i32>
!mem = !nv_tileaa.memref<f32, array<i64: 64, 20>, array<i64: 1, 64>>
!view = !nv_tileaa.tiled_view<!mem, array<i32: 32, 8>, array<i32: 0, 1>, "zero">
func.func @tiled(%p: !ptr, %i: i32) {
  %a = "nv_tileaa.assume"(%p) {predicate = {kind = "div_by", divisor = 16 : i64}} : (!ptr) -> !ptr
  %m = "nv_tileaa.make_memref"(%a) {operandSegmentSizes = array<i32: 1, 0, 0>} : (!ptr) -> !mem
  %v = "nv_tileaa.block_tile"(%m) : (!mem) -> !view
  %x:2 = "nv_tileas.tiled_load"(%v, %i, %i) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 2, 0>} : (!view, i32, i32) -> (tensor<32x8xf32>, !nv_tileaa.mem_token)
  return
}
// -----
// Parts of a tile that reaches past the end may lie outside, though their own extent divides sizes.
// CHECK: func.func @parts
// CHECK: "nv_tileas.tiled_load"
// CHECK-SAME: access = {checked = array<i32: 0>,
!ptr = !nv_tileaa.ptr<f32, 1 : i32>
!mem = !nv_tileaa.memref<f32, array<i64: 96, 64>, array<i64: 64, 1>>
!view = !nv_tileaa.tiled_view<!mem, array<i32: 32, 64>, array<i32: 0, 1>, "zero">
func.func @parts(%p: !ptr, %i: i32) {
  %m = "nv_tileaa.make_memref"(%p) {operandSegmentSizes = array<i32: 1, 0, 0>} : (!ptr) -> !mem
  %v = "nv_tileaa.block_tile"(%m) {parts_of = array<i32: 64, 64>} : (!mem) -> !view
  %x:2 = "nv_tileas.tiled_load"(%v, %i, %i) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 2, 0>} : (!view, i32, i32) -> (tensor<32x64xf32>, !nv_tileaa.mem_token)
  return
}
// -----
// Of the second axis, tiles 0 to 1 end at 16 of 20; tile 2 would reach past the end. A loop's bounds
// say as much as an assumption.
// CHECK: func.func @inside
// CHECK: "nv_tileas.tiled_load"
// CHECK-SAME: access = {checked = array<i32>,
// CHECK: "nv_tileas.tiled_load"
// CHECK-SAME: access = {checked = array<i32: 1>,
!ptr = !nv_tileaa.ptr<f32, 1 : i32>
!mem = !nv_tileaa.memref<f32, array<i64: 64, 20>, array<i64: 1, 64>>
!view = !nv_tileaa.tiled_view<!mem, array<i32: 32, 8>, array<i32: 0, 1>, "zero">
func.func @inside(%p: !ptr, %i: i32) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %two = arith.constant 2 : i32
  %m = "nv_tileaa.make_memref"(%p) {operandSegmentSizes = array<i32: 1, 0, 0>} : (!ptr) -> !mem
  %v = "nv_tileaa.block_tile"(%m) : (!mem) -> !view
  scf.for %j = %zero to %two step %one : i32 {
    %x:2 = "nv_tileas.tiled_load"(%v, %i, %j) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 2, 0>} : (!view, i32, i32) -> (tensor<32x8xf32>, !nv_tileaa.mem_token)
  }
  %k = "nv_tileaa.assume"(%i) {predicate = {kind = "bounded", lb = 0 : i64, ub = 2 : i64}} : (i32) -> i32
  %y:2 = "nv_tileas.tiled_load"(%v, %i, %k) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 2, 0>} : (!view, i32, i32) -> (tensor<32x8xf32>, !nv_tileaa.mem_token)
  return
}
// -----
// A pointer that a loop moves on stays aligned.
// CHECK: func.func @carried
// CHECK: "nv_tileas.load"
// CHECK-SAME: vector = 2 : i32
!ptr = !nv_tileaa.ptr<f32, 1 : i32>
!tile = tensor<128x!nv_tileaa.ptr<f32, 1 : i32>>
func.func @carried(%p: !ptr, %n: i32) {
  %one = arith.constant 1 : i32
  %far = arith.constant dense<128> : tensor<128xi32>
  %a = "nv_tileaa.assume"(%p) {predicate = {kind = "div_by", divisor = 16 : i64}} : (!ptr) -> !ptr
  %i = "nv_tileaa.make_range"() : () -> tensor<128xi32>
  %b = "nv_tileaa.splat"(%a) : (!ptr) -> !tile
  %c = "nv_tileaa.addptr"(%b, %i) : (!tile, tensor<128xi32>) -> !tile
  %end = scf.for %j = %one to %n step %one iter_args(%d = %c) -> (!tile) : i32 {
    %x:2 = "nv_tileas.load"(%d) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 0, 0, 0>} : (!tile) -> (tensor<128xf32>, !nv_tileaa.mem_token)
    %e = "nv_tileaa.addptr"(%d, %far) : (!tile, tensor<128xi32>) -> !tile
    scf.yield %e : !tile
  }
  return
}
// -----
// Without accesses there is nothing to plan.
// CHECK: func.func @computes(%[[X:.*]]: tensor<16xf32>) -> tensor<16xf32> {
// CHECK-NEXT: %[[Y:.*]] = math.absf %[[X]] : tensor<16xf32>
// CHECK-NEXT: return %[[Y]]
func.func @computes(%x: tensor<16xf32>) -> tensor<16xf32> {
  %0 = math.absf %x : tensor<16xf32>
  return %0 : tensor<16xf32>
}
// -----
// CHECK: loc("tileas-plan-accesses.mlir":[[# @LINE + 4]]:10): error: 'nv_tileas.tiled_load' op tiled_load's tiled_view type must be produced by block_tile directly
!mem = !nv_tileaa.memref<f32, array<i64: 64>, array<i64: 1>>
!view = !nv_tileaa.tiled_view<!mem, array<i32: 32>, array<i32: 0>, "zero">
func.func @from_elsewhere(%v: !view, %i: i32) {
  %x:2 = "nv_tileas.tiled_load"(%v, %i) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 1, 0>} : (!view, i32) -> (tensor<32xf32>, !nv_tileaa.mem_token)
  return
}
// -----
// What the program promises to be inside is not checked.
// CHECK: func.func @promised
// CHECK: "nv_tileas.tiled_load"
// CHECK-SAME: access = {checked = array<i32: 0>,
!ptr = !nv_tileaa.ptr<f32, 1 : i32>
!mem = !nv_tileaa.memref<f32, array<i64: 60, 20>, array<i64: 1, 64>>
!view = !nv_tileaa.tiled_view<!mem, array<i32: 32, 8>, array<i32: 0, 1>, "zero">
func.func @promised(%p: !ptr, %i: i32) {
  %m = "nv_tileaa.make_memref"(%p) {operandSegmentSizes = array<i32: 1, 0, 0>} : (!ptr) -> !mem
  %v = "nv_tileaa.block_tile"(%m) : (!mem) -> !view
  %x:2 = "nv_tileas.tiled_load"(%v, %i, %i) {in_bounds = array<i1: false, true>, mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 2, 0>} : (!view, i32, i32) -> (tensor<32x8xf32>, !nv_tileaa.mem_token)
  return
}
// -----
// Copies that run ahead give zeros outside: what a view pads with otherwise is put in behind. Where
// tiles never leave the view that says nothing, and threads that load in passing pad by themselves.
// CHECK: func.func @padded
// CHECK: %[[LOW:.*]] = "nv_tileaa.block_tile"(%{{.*}} -> {{.*}}"neg_inf">
// CHECK: %[[INSIDE:.*]] = "nv_tileaa.block_tile"(%{{.*}} -> {{.*}}"zero">
// CHECK: %[[ZERO:.*]] = "nv_tileaa.block_tile"(%{{.*}} -> {{.*}}"zero">
// CHECK: scf.for
// CHECK: %[[X:.*]]:2 = "nv_tileas.tiled_load"(%[[ZERO]]
// CHECK-SAME: checked = array<i32: 0>, copy = "cp.async"
// CHECK: %[[P:.*]] = "nv_tileas.pad_outside"(%[[LOW]], %[[X]]#0, %{{.*}}) {access = {checked = array<i32: 0>
// CHECK: arith.addf %{{.*}}, %[[P]]
// CHECK: scf.for
// CHECK: "nv_tileas.tiled_load"(%[[INSIDE]]
// CHECK-SAME: checked = array<i32>, copy = "cp.async"
// CHECK-NOT: "nv_tileas.pad_outside"
// CHECK: "nv_tileas.tiled_load"(%[[LOW]]
// CHECK-SAME: copy = "generic"
// CHECK-NOT: "nv_tileas.pad_outside"
!ptr = !nv_tileaa.ptr<f32, 1 : i32>
!mem = !nv_tileaa.memref<f32, array<i64: 1000>, array<i64: 1>>
!view = !nv_tileaa.tiled_view<!mem, array<i32: 128>, array<i32: 0>, "neg_inf">
!tok = !nv_tileaa.mem_token
func.func @padded(%p: !ptr, %i: i32, %n: i32) -> tensor<128xf32> {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %seven = arith.constant 7 : i32
  %none = arith.constant dense<0.0> : tensor<128xf32>
  %a = "nv_tileaa.assume"(%p) {predicate = {kind = "div_by", divisor = 16 : i64}} : (!ptr) -> !ptr
  %m = "nv_tileaa.make_memref"(%a) {operandSegmentSizes = array<i32: 1, 0, 0>} : (!ptr) -> !mem
  %v = "nv_tileaa.block_tile"(%m) : (!mem) -> !view
  %r = scf.for %j = %zero to %n step %one iter_args(%s = %none) -> (tensor<128xf32>) : i32 {
    %x:2 = "nv_tileas.tiled_load"(%v, %j) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 1, 0>} : (!view, i32) -> (tensor<128xf32>, !tok)
    %t = arith.addf %s, %x#0 : tensor<128xf32>
    scf.yield %t : tensor<128xf32>
  }
  %q = scf.for %j = %zero to %seven step %one iter_args(%s = %r) -> (tensor<128xf32>) : i32 {
    %x:2 = "nv_tileas.tiled_load"(%v, %j) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 1, 0>} : (!view, i32) -> (tensor<128xf32>, !tok)
    %t = arith.addf %s, %x#0 : tensor<128xf32>
    scf.yield %t : tensor<128xf32>
  }
  %y:2 = "nv_tileas.tiled_load"(%v, %i) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 1, 0>} : (!view, i32) -> (tensor<128xf32>, !tok)
  %u = arith.addf %q, %y#0 : tensor<128xf32>
  return %u : tensor<128xf32>
}
// -----
// Sizes and places of 31 bits are near, those of a loop over the tiles of a view among them; of a
// size that may be negative, or of a place that may be anywhere, nothing is known.
// CHECK: func.func @near
// CHECK: "nv_tileas.tiled_load"
// CHECK-SAME: checked = array<i32: 0>, copy = "cp.async", near,
// CHECK: "nv_tileas.tiled_load"
// CHECK-SAME: checked = array<i32: 0>, copy = "cp.async", order
// CHECK: "nv_tileas.tiled_load"
// CHECK-SAME: checked = array<i32: 0>, copy = "cp.async", order
!ptr = !nv_tileaa.ptr<f32, 1 : i32>
!mem = !nv_tileaa.memref<f32, array<i64: -9223372036854775808>, array<i64: 1>>
!view = !nv_tileaa.tiled_view<!mem, array<i32: 1024>, array<i32: 0>, "zero">
!tile = tensor<1024xf32>
!tok = !nv_tileaa.mem_token
func.func @near(%p: !ptr, %n: i32, %i: i32) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %extent = arith.constant 1024 : i32
  %size = "nv_tileaa.assume"(%n) {predicate = {kind = "bounded", lb = 0 : i64}} : (i32) -> i32
  %m = "nv_tileaa.make_memref"(%p, %size) {operandSegmentSizes = array<i32: 1, 1, 0>} : (!ptr, i32) -> !mem
  %v = "nv_tileaa.block_tile"(%m) : (!mem) -> !view
  %m2 = "nv_tileaa.make_memref"(%p, %n) {operandSegmentSizes = array<i32: 1, 1, 0>} : (!ptr, i32) -> !mem
  %v2 = "nv_tileaa.block_tile"(%m2) : (!mem) -> !view
  %tiles = arith.ceildivsi %size, %extent : i32
  scf.for %j = %zero to %tiles step %one : i32 {
    %x:2 = "nv_tileas.tiled_load"(%v, %j) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 1, 0>} : (!view, i32) -> (!tile, !tok)
    %y:2 = "nv_tileas.tiled_load"(%v2, %j) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 1, 0>} : (!view, i32) -> (!tile, !tok)
    %z:2 = "nv_tileas.tiled_load"(%v, %i) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 1, 0>} : (!view, i32) -> (!tile, !tok)
  }
  return
}
// -----
// Rows of indices that a mask bounds: addresses follow from the first one's, if they are sign
// extended. Sums whose former values nobody asks for have vectors.
// CHECK: func.func @bounded
// CHECK: "nv_tileas.load"
// CHECK-SAME: run = 128 : i32, vector = 1 : i32
// CHECK: func.func @zero_extended
// CHECK: "nv_tileas.load"
// CHECK-NOT: run =
// CHECK: func.func @viewed
// CHECK: "nv_tileas.load"
// CHECK-NOT: run =
// CHECK: func.func @sums
// CHECK: "nv_tileas.atomic_rmw"
// CHECK-SAME: access = {checked = array<i32>, order = array<i32: 0>, vector = 2 : i32, whole_vectors}
// CHECK: "nv_tileas.atomic_rmw"
// CHECK-NOT: access =
!ptr = !nv_tileaa.ptr<f32, 1 : i32>
!tile = tensor<128x!nv_tileaa.ptr<f32, 1 : i32>>
!tok = !nv_tileaa.mem_token
func.func @bounded(%p: !ptr, %from: i32) {
  %n = arith.constant dense<1000> : tensor<128xi32>
  %zero = arith.constant dense<0.0> : tensor<128xf32>
  %r = "nv_tileaa.make_range"() : () -> tensor<128xi32>
  %s = "nv_tileaa.splat"(%from) : (i32) -> tensor<128xi32>
  %i = arith.addi %s, %r : tensor<128xi32>
  %m = arith.cmpi ugt, %n, %i : tensor<128xi32>
  %o = arith.extsi %i : tensor<128xi32> to tensor<128xi64>
  %b = "nv_tileaa.splat"(%p) : (!ptr) -> !tile
  %a = "nv_tileaa.addptr"(%b, %o) : (!tile, tensor<128xi64>) -> !tile
  %x:2 = "nv_tileas.load"(%a, %m, %zero) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (!tile, tensor<128xi1>, tensor<128xf32>) -> (tensor<128xf32>, !tok)
  return
}
func.func @zero_extended(%p: !ptr, %from: i32) {
  %n = arith.constant dense<1000> : tensor<128xi32>
  %zero = arith.constant dense<0.0> : tensor<128xf32>
  %r = "nv_tileaa.make_range"() : () -> tensor<128xi32>
  %s = "nv_tileaa.splat"(%from) : (i32) -> tensor<128xi32>
  %i = arith.addi %s, %r : tensor<128xi32>
  %m = arith.cmpi ult, %i, %n : tensor<128xi32>
  %o = arith.extui %i : tensor<128xi32> to tensor<128xi64>
  %b = "nv_tileaa.splat"(%p) : (!ptr) -> !tile
  %a = "nv_tileaa.addptr"(%b, %o) : (!tile, tensor<128xi64>) -> !tile
  %x:2 = "nv_tileas.load"(%a, %m, %zero) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (!tile, tensor<128xi1>, tensor<128xf32>) -> (tensor<128xf32>, !tok)
  return
}
func.func @viewed(%p: !ptr, %from: i32) {
  %n = arith.constant dense<1000> : tensor<128xi32>
  %zero = arith.constant dense<0.0> : tensor<1x128xf32>
  %r = "nv_tileaa.make_range"() : () -> tensor<128xi32>
  %s = "nv_tileaa.splat"(%from) : (i32) -> tensor<128xi32>
  %i = arith.addi %s, %r : tensor<128xi32>
  %m = arith.cmpi ult, %i, %n : tensor<128xi32>
  %o = arith.extsi %i : tensor<128xi32> to tensor<128xi64>
  %vm = "nv_tileaa.view"(%m) : (tensor<128xi1>) -> tensor<1x128xi1>
  %vo = "nv_tileaa.view"(%o) : (tensor<128xi64>) -> tensor<1x128xi64>
  %b = "nv_tileaa.splat"(%p) : (!ptr) -> tensor<1x128x!nv_tileaa.ptr<f32, 1 : i32>>
  %a = "nv_tileaa.addptr"(%b, %vo) : (tensor<1x128x!nv_tileaa.ptr<f32, 1 : i32>>, tensor<1x128xi64>) -> tensor<1x128x!nv_tileaa.ptr<f32, 1 : i32>>
  %x:2 = "nv_tileas.load"(%a, %vm, %zero) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (tensor<1x128x!nv_tileaa.ptr<f32, 1 : i32>>, tensor<1x128xi1>, tensor<1x128xf32>) -> (tensor<1x128xf32>, !tok)
  return
}
func.func @sums(%p: !ptr, %x: tensor<128xf32>) -> tensor<128xf32> {
  %q = "nv_tileaa.assume"(%p) {predicate = {divisor = 16 : i64, kind = "div_by"}} : (!ptr) -> !ptr
  %r = "nv_tileaa.make_range"() : () -> tensor<128xi32>
  %b = "nv_tileaa.splat"(%q) : (!ptr) -> !tile
  %a = "nv_tileaa.addptr"(%b, %r) : (!tile, tensor<128xi32>) -> !tile
  %v:2 = "nv_tileas.atomic_rmw"(%a, %x) {mem_scope = "gpu", mem_semantic = "relaxed", operandSegmentSizes = array<i32: 1, 1, 0, 0>, rmw_mode = "addf"} : (!tile, tensor<128xf32>) -> (tensor<128xf32>, !tok)
  %w:2 = "nv_tileas.atomic_rmw"(%a, %x) {mem_scope = "gpu", mem_semantic = "relaxed", operandSegmentSizes = array<i32: 1, 1, 0, 0>, rmw_mode = "addf"} : (!tile, tensor<128xf32>) -> (tensor<128xf32>, !tok)
  return %w#0 : tensor<128xf32>
}
