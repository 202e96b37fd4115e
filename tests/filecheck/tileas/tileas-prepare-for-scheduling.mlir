// RUN: tilec opt -p tileas-prepare-for-scheduling

// A view of memory from outside of the loop moves to that memory; the same view again goes.
// CHECK: func.func @views
// CHECK: nv_tileaa.make_memref
// CHECK-NEXT: %[[VIEW:.*]] = "nv_tileaa.block_tile"
// CHECK: scf.for
// CHECK-NOT: nv_tileaa.block_tile
// CHECK: "nv_tileas.tiled_load"(%[[VIEW]],
// CHECK: "nv_tileas.tiled_store"(%[[VIEW]],
#l = #nv_tileas.layout<"register=[[1]] lane=[[2],[4],[8],[16],[32]] warp=[[0],[0]] : 64">
!mem = !nv_tileaa.memref<f32, array<i64: 1024>, array<i64: 1>>
!view = !nv_tileaa.tiled_view<!mem, array<i32: 64>, array<i32: 0>, "">
func.func @views(%p: !nv_tileaa.ptr<f32, 1 : i32>, %n: i32) attributes {nv_tileaa.kernel_spec = {num_warps = 4 : i32}} {
  %0 = arith.constant 0 : i32
  %1 = arith.constant 1 : i32
  %m = "nv_tileaa.make_memref"(%p) {operandSegmentSizes = array<i32: 1, 0, 0>} : (!nv_tileaa.ptr<f32, 1 : i32>) -> !mem
  scf.for %i = %0 to %n step %1 : i32 {
    %v = "nv_tileaa.block_tile"(%m) : (!mem) -> !view
    %x:2 = "nv_tileas.tiled_load"(%v, %i) {access = {checked = array<i32>, order = array<i32: 0>, vector = 4 : i32, whole_vectors}, mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 1, 0>} : (!view, i32) -> (tensor<64xf32, #l>, !nv_tileaa.mem_token)
    %w = "nv_tileaa.block_tile"(%m) : (!mem) -> !view
    %t = "nv_tileas.tiled_store"(%w, %x#0, %i) {access = {checked = array<i32>, order = array<i32: 0>, vector = 2 : i32, whole_vectors}, mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (!view, tensor<64xf32, #l>, i32) -> !nv_tileaa.mem_token
  }
  return
}
// -----
// Threads hold two neighbours: four in one access is more than they make; two stay. What is cheap
// in a loop may be made again; outside of loops nothing is marked.
// CHECK: func.func @vectors
// CHECK: arith.addi %{{.*}}, %{{.*}} : i32
// CHECK: scf.for
// CHECK: arith.muli {{.*}} {tileas.recomputable} : i32
// CHECK: "nv_tileas.tiled_load"
// CHECK-SAME: vector = 2 : i32
// CHECK: arith.negf %{{.*}} : tensor
// CHECK: "nv_tileas.tiled_store"
// CHECK-SAME: vector = 2 : i32
#l = #nv_tileas.layout<"register=[[1]] lane=[[2],[4],[8],[16],[32]] warp=[[0],[0]] : 64">
!mem = !nv_tileaa.memref<f32, array<i64: 1024>, array<i64: 1>>
!view = !nv_tileaa.tiled_view<!mem, array<i32: 64>, array<i32: 0>, "">
func.func @vectors(%p: !nv_tileaa.ptr<f32, 1 : i32>, %n: i32) attributes {nv_tileaa.kernel_spec = {num_warps = 4 : i32}} {
  %0 = arith.constant 0 : i32
  %1 = arith.constant 1 : i32
  %2 = arith.addi %n, %1 : i32
  %m = "nv_tileaa.make_memref"(%p) {operandSegmentSizes = array<i32: 1, 0, 0>} : (!nv_tileaa.ptr<f32, 1 : i32>) -> !mem
  %v = "nv_tileaa.block_tile"(%m) : (!mem) -> !view
  scf.for %i = %0 to %2 step %1 : i32 {
    %j = arith.muli %i, %n : i32
    %x:2 = "nv_tileas.tiled_load"(%v, %j) {access = {checked = array<i32>, order = array<i32: 0>, vector = 4 : i32, whole_vectors}, mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 1, 0>} : (!view, i32) -> (tensor<64xf32, #l>, !nv_tileaa.mem_token)
    %y = arith.negf %x#0 : tensor<64xf32, #l>
    %t = "nv_tileas.tiled_store"(%v, %y, %i) {access = {checked = array<i32>, order = array<i32: 0>, vector = 2 : i32, whole_vectors}, mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (!view, tensor<64xf32, #l>, i32) -> !nv_tileaa.mem_token
  }
  return
}
// -----
// Hints of operations are put on their loop: the largest atom, the smallest number of slices.
// CHECK: func.func @hints
// CHECK: } {tileas.max_num_slices_for_non_reduce_axis = 2 : i32, tileas.preferred_atom_size = 16 : i32}
func.func @hints(%n: i32, %x: tensor<64x64xf32>) attributes {nv_tileaa.kernel_spec = {num_warps = 4 : i32}} {
  %0 = arith.constant 0 : i32
  %1 = arith.constant 1 : i32
  %r = scf.for %i = %0 to %n step %1 iter_args(%a = %x) -> (tensor<64x64xf32>) : i32 {
    %2 = math.exp2 %a {tileas.preferred_atom_size = 8 : i32, tileas.max_num_slices_for_non_reduce_axis = 2 : i32} : tensor<64x64xf32>
    %3 = arith.negf %2 {tileas.preferred_atom_size = 16 : i32, tileas.max_num_slices_for_non_reduce_axis = 4 : i32} : tensor<64x64xf32>
    scf.yield %3 : tensor<64x64xf32>
  }
  return
}
// -----
// Three iterations are written out, values handed on in turn; ten are not.
// CHECK: func.func @unrolled
// CHECK-NOT: scf.for
// CHECK-COUNT-3: math.absf
// CHECK-NOT: math.absf
// CHECK: scf.for
// CHECK: math.exp2
func.func @unrolled(%x: f32, %y: f32) -> f32 attributes {nv_tileaa.kernel_spec = {num_warps = 4 : i32}} {
  %0 = arith.constant 0 : i32
  %2 = arith.constant 2 : i32
  %6 = arith.constant 6 : i32
  %20 = arith.constant 20 : i32
  %r:2 = scf.for %i = %0 to %6 step %2 iter_args(%a = %x, %b = %y) -> (f32, f32) : i32 {
    %3 = math.absf %a : f32
    %4 = arith.addf %3, %b : f32
    scf.yield %b, %4 : f32, f32
  }
  %s = scf.for %i = %0 to %20 step %2 iter_args(%a = %r#1) -> (f32) : i32 {
    %3 = math.exp2 %a : f32
    scf.yield %3 : f32
  }
  return %s : f32
}
// -----
// By the factor that a loop asks for: of eleven iterations two come before it, it goes on in threes.
// With 1 a tiny loop stays.
// CHECK: func.func @asked
// CHECK-COUNT-2: math.absf
// CHECK: %[[FIRST:.*]] = arith.constant 4 : i32
// CHECK: %[[STEP:.*]] = arith.constant 6 : i32
// CHECK: scf.for %{{.*}} = %[[FIRST]] to %{{.*}} step %[[STEP]]
// CHECK-COUNT-3: math.absf
// CHECK-NOT: math.absf
// CHECK-NOT: tt.loop_unroll_factor = 3
// CHECK: scf.for
// CHECK: math.exp2
// CHECK: tt.loop_unroll_factor = 1
func.func @asked(%x: f32, %y: f32) -> f32 attributes {nv_tileaa.kernel_spec = {num_warps = 4 : i32}} {
  %0 = arith.constant 0 : i32
  %2 = arith.constant 2 : i32
  %22 = arith.constant 22 : i32
  %r:2 = scf.for %i = %0 to %22 step %2 iter_args(%a = %x, %b = %y) -> (f32, f32) : i32 {
    %3 = math.absf %a : f32
    %4 = arith.addf %3, %b : f32
    scf.yield %b, %4 : f32, f32
  } {tt.loop_unroll_factor = 3 : i32}
  %s = scf.for %i = %0 to %2 step %2 iter_args(%a = %r#1) -> (f32) : i32 {
    %3 = math.exp2 %a : f32
    scf.yield %3 : f32
  } {tt.loop_unroll_factor = 1 : i32}
  return %s : f32
}
// -----
// CHECK: error: 'scf.for' op expects tt.loop_unroll_factor to be an integer of at least 1, but got 0 : i32
func.func @by_nothing(%n: i32) {
  %0 = arith.constant 0 : i32
  %1 = arith.constant 1 : i32
  scf.for %i = %0 to %n step %1 : i32 {
  } {tt.loop_unroll_factor = 0 : i32}
  return
}
// -----
// Loops whose loads threads make in passing are written out; what the first one has read the second
// one does not read again.
// CHECK: func.func @loads_once
// CHECK-NOT: scf.for
// CHECK-COUNT-2: "nv_tileas.load"
// CHECK-NOT: "nv_tileas.load"
// CHECK-COUNT-2: "nv_tileas.store"
#l = #nv_tileas.layout<"register=[[1]] lane=[[2],[4],[8],[16],[32]] warp=[[0],[0]] : 64">
!tok = !nv_tileaa.mem_token
!t = tensor<64xf32, #l>
!i = tensor<64xi32, #l>
!q = tensor<64x!nv_tileaa.ptr<f32, 1 : i32>, #l>
func.func @loads_once(%p: !q, %o: !q, %r: !i, %x: !t, %k: !tok) attributes {nv_tileaa.kernel_spec = {num_warps = 4 : i32}} {
  %0 = arith.constant 0 : i32
  %1 = arith.constant 1 : i32
  %2 = arith.constant 2 : i32
  %s = scf.for %i = %0 to %2 step %1 iter_args(%a = %x) -> (!t) : i32 {
    %j = "nv_tileaa.splat"(%i) : (i32) -> !i
    %at = "nv_tileaa.addptr"(%p, %j) : (!q, !i) -> !q
    %v:2 = "nv_tileas.load"(%at, %k) {access = {checked = array<i32>, copy = "generic", order = array<i32: 0>, vector = 2 : i32, whole_vectors}, mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 0, 0, 1>} : (!q, !tok) -> (!t, !tok)
    %b = arith.addf %a, %v#0 : !t
    scf.yield %b : !t
  }
  %e = scf.for %i = %0 to %2 step %1 iter_args(%w = %k) -> (!tok) : i32 {
    %j = "nv_tileaa.splat"(%i) : (i32) -> !i
    %at = "nv_tileaa.addptr"(%p, %j) : (!q, !i) -> !q
    %v:2 = "nv_tileas.load"(%at, %k) {access = {checked = array<i32>, copy = "generic", order = array<i32: 0>, vector = 2 : i32, whole_vectors}, mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 0, 0, 1>} : (!q, !tok) -> (!t, !tok)
    %to = "nv_tileaa.addptr"(%o, %j) : (!q, !i) -> !q
    %b = arith.mulf %s, %v#0 : !t
    %u = "nv_tileas.store"(%to, %b, %w) {access = {checked = array<i32>, copy = "generic", order = array<i32: 0>, vector = 2 : i32, whole_vectors}, mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 1, 0, 1>} : (!q, !t, !tok) -> !tok
    scf.yield %u : !tok
  }
  return
}
// -----
// Loads that wait for the stores before them stay behind those, and are made again.
// CHECK: func.func @loads_in_order
// CHECK-COUNT-2: "nv_tileas.load"
// CHECK: "nv_tileas.store"
// CHECK: "nv_tileas.load"
// CHECK: "nv_tileas.store"
#l = #nv_tileas.layout<"register=[[1]] lane=[[2],[4],[8],[16],[32]] warp=[[0],[0]] : 64">
!tok = !nv_tileaa.mem_token
!t = tensor<64xf32, #l>
!i = tensor<64xi32, #l>
!q = tensor<64x!nv_tileaa.ptr<f32, 1 : i32>, #l>
func.func @loads_in_order(%p: !q, %o: !q, %r: !i, %x: !t, %k: !tok) attributes {nv_tileaa.kernel_spec = {num_warps = 4 : i32}} {
  %0 = arith.constant 0 : i32
  %1 = arith.constant 1 : i32
  %2 = arith.constant 2 : i32
  %s = scf.for %i = %0 to %2 step %1 iter_args(%a = %x) -> (!t) : i32 {
    %j = "nv_tileaa.splat"(%i) : (i32) -> !i
    %at = "nv_tileaa.addptr"(%p, %j) : (!q, !i) -> !q
    %v:2 = "nv_tileas.load"(%at, %k) {access = {checked = array<i32>, copy = "generic", order = array<i32: 0>, vector = 2 : i32, whole_vectors}, mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 0, 0, 1>} : (!q, !tok) -> (!t, !tok)
    %b = arith.addf %a, %v#0 : !t
    scf.yield %b : !t
  }
  %e = scf.for %i = %0 to %2 step %1 iter_args(%w = %k) -> (!tok) : i32 {
    %j = "nv_tileaa.splat"(%i) : (i32) -> !i
    %at = "nv_tileaa.addptr"(%p, %j) : (!q, !i) -> !q
    %v:2 = "nv_tileas.load"(%at, %w) {access = {checked = array<i32>, copy = "generic", order = array<i32: 0>, vector = 2 : i32, whole_vectors}, mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 0, 0, 1>} : (!q, !tok) -> (!t, !tok)
    %to = "nv_tileaa.addptr"(%o, %j) : (!q, !i) -> !q
    %b = arith.mulf %s, %v#0 : !t
    %u = "nv_tileas.store"(%to, %b, %w) {access = {checked = array<i32>, copy = "generic", order = array<i32: 0>, vector = 2 : i32, whole_vectors}, mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 1, 0, 1>} : (!q, !t, !tok) -> !tok
    scf.yield %u : !tok
  }
  return
}
// -----
// Loads that run ahead of their loops need these.
// CHECK: func.func @loads_ahead
// CHECK-COUNT-2: scf.for
#l = #nv_tileas.layout<"register=[[1]] lane=[[2],[4],[8],[16],[32]] warp=[[0],[0]] : 64">
!tok = !nv_tileaa.mem_token
!t = tensor<64xf32, #l>
!i = tensor<64xi32, #l>
!q = tensor<64x!nv_tileaa.ptr<f32, 1 : i32>, #l>
func.func @loads_ahead(%p: !q, %o: !q, %r: !i, %x: !t, %k: !tok) attributes {nv_tileaa.kernel_spec = {num_warps = 4 : i32}} {
  %0 = arith.constant 0 : i32
  %1 = arith.constant 1 : i32
  %2 = arith.constant 2 : i32
  %s = scf.for %i = %0 to %2 step %1 iter_args(%a = %x) -> (!t) : i32 {
    %j = "nv_tileaa.splat"(%i) : (i32) -> !i
    %at = "nv_tileaa.addptr"(%p, %j) : (!q, !i) -> !q
    %v:2 = "nv_tileas.load"(%at, %k) {access = {checked = array<i32>, copy = "cp.async", order = array<i32: 0>, vector = 2 : i32, whole_vectors}, mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 0, 0, 1>} : (!q, !tok) -> (!t, !tok)
    %b = arith.addf %a, %v#0 : !t
    scf.yield %b : !t
  }
  %e = scf.for %i = %0 to %2 step %1 iter_args(%w = %k) -> (!tok) : i32 {
    %j = "nv_tileaa.splat"(%i) : (i32) -> !i
    %at = "nv_tileaa.addptr"(%p, %j) : (!q, !i) -> !q
    %v:2 = "nv_tileas.load"(%at, %k) {access = {checked = array<i32>, copy = "cp.async", order = array<i32: 0>, vector = 2 : i32, whole_vectors}, mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 0, 0, 1>} : (!q, !tok) -> (!t, !tok)
    %to = "nv_tileaa.addptr"(%o, %j) : (!q, !i) -> !q
    %b = arith.mulf %s, %v#0 : !t
    %u = "nv_tileas.store"(%to, %b, %w) {access = {checked = array<i32>, copy = "generic", order = array<i32: 0>, vector = 2 : i32, whole_vectors}, mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 1, 0, 1>} : (!q, !t, !tok) -> !tok
    scf.yield %u : !tok
  }
  return
}
// -----
// Both loads of the loop come before its first store, with what they are computed from.
// CHECK: func.func @loads_first
// CHECK-COUNT-2: "nv_tileas.load"
// CHECK-NOT: "nv_tileas.load"
// CHECK-COUNT-2: "nv_tileas.store"
#l = #nv_tileas.layout<"register=[[1]] lane=[[2],[4],[8],[16],[32]] warp=[[0],[0]] : 64">
!tok = !nv_tileaa.mem_token
!t = tensor<64xf32, #l>
!i = tensor<64xi32, #l>
!q = tensor<64x!nv_tileaa.ptr<f32, 1 : i32>, #l>
func.func @loads_first(%p: !q, %o: !q, %k: !tok) attributes {nv_tileaa.kernel_spec = {num_warps = 4 : i32}} {
  %0 = arith.constant 0 : i32
  %1 = arith.constant 1 : i32
  %2 = arith.constant 2 : i32
  %e = scf.for %i = %0 to %2 step %1 iter_args(%w = %k) -> (!tok) : i32 {
    %j = "nv_tileaa.splat"(%i) : (i32) -> !i
    %at = "nv_tileaa.addptr"(%p, %j) : (!q, !i) -> !q
    %v:2 = "nv_tileas.load"(%at, %k) {access = {checked = array<i32>, copy = "generic", order = array<i32: 0>, vector = 2 : i32, whole_vectors}, mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 0, 0, 1>} : (!q, !tok) -> (!t, !tok)
    %to = "nv_tileaa.addptr"(%o, %j) : (!q, !i) -> !q
    %u = "nv_tileas.store"(%to, %v#0, %w) {access = {checked = array<i32>, copy = "generic", order = array<i32: 0>, vector = 2 : i32, whole_vectors}, mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 1, 0, 1>} : (!q, !t, !tok) -> !tok
    scf.yield %u : !tok
  }
  return
}
// -----
// A branch around one sum becomes a choice; one around a division stays, as it may be there to
// avoid it, and so does one with effects.
// CHECK: func.func @wrapped
// CHECK: %[[SUM:.*]] = arith.addi
// CHECK: arith.select %{{.*}}, %[[SUM]], %{{.*}} : i32
// CHECK: scf.if
// CHECK-NEXT: arith.divsi
// CHECK: scf.if
// CHECK-NEXT: "nv_tileaa.message"
func.func @wrapped(%c: i1, %a: i32, %b: i32, %x: f32) -> (i32, i32) attributes {nv_tileaa.kernel_spec = {num_warps = 4 : i32}} {
  %0 = scf.if %c -> (i32) {
    %1 = arith.addi %a, %b : i32
    scf.yield %1 : i32
  } else {
    scf.yield %a : i32
  }
  %2 = scf.if %c -> (i32) {
    %3 = arith.divsi %a, %b : i32
    scf.yield %3 : i32
  } else {
    scf.yield %b : i32
  }
  scf.if %c {
    "nv_tileaa.message"(%x) {text = "x"} : (f32) -> ()
  }
  return %0, %2 : i32, i32
}
// -----
// Buffers that never hold something at once share bytes; a view of a view becomes one.
// CHECK: func.func @buffers
// CHECK: "nv_tileas.alloc_tensor"() {{.*}}shared_offset = 0 : i32
// CHECK: "nv_tileas.alloc_tensor"() {{.*}}shared_offset = 0 : i32
#l = #nv_tileas.layout<"lane=[[1],[2],[4],[8],[16]] warp=[[32],[64]] : 128">
#m = #nv_tileas.layout<"offset=[[1],[2],[4],[8],[16],[32],[64]] : 128">
!buf = !nv_tileas.buffer<tensor<128xf32, #m>, "shared", 1>
func.func @buffers(%x: tensor<128xf32, #l>) attributes {nv_tileaa.kernel_spec = {num_warps = 4 : i32}} {
  %a = "nv_tileas.alloc_tensor"() {alignment = 128 : i32} : () -> !buf
  "nv_tileas.copy"(%x, %a) {operandSegmentSizes = array<i32: 1, 1>, resultSegmentSizes = array<i32: 0>} : (tensor<128xf32, #l>, !buf) -> ()
  %b = "nv_tileas.alloc_tensor"() {alignment = 128 : i32} : () -> !buf
  "nv_tileas.copy"(%x, %b) {operandSegmentSizes = array<i32: 1, 1>, resultSegmentSizes = array<i32: 0>} : (tensor<128xf32, #l>, !buf) -> ()
  return
}
// -----
// More than an SM has.
// CHECK: error: 'nv_tileas.alloc_tensor' op fails to assign smem buffer
// CHECK: hint: 1048576 bytes at 0, of
#m = #nv_tileas.layout<"offset=[[1],[2],[4],[8],[16],[32],[64],[128],[256],[512],[1024],[2048],[4096],[8192],[16384],[32768],[65536],[131072]] : 262144">
!buf = !nv_tileas.buffer<tensor<262144xf32, #m>, "shared", 1>
func.func @too_large() attributes {nv_tileaa.kernel_spec = {num_warps = 4 : i32}} {
  %a = "nv_tileas.alloc_tensor"() {alignment = 128 : i32} : () -> !buf
  return
}
