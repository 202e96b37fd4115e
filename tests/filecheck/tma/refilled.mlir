// RUN: tilec opt -p tileas-unspecialized-pipeline --gpu-name sm_90

// Tiles of 64 KiB, of which three fit: K and V have them in turns. K of the next step is asked for
// while scores are made, into the stage that V of the last one had; V while the first part of the
// weights is multiplied, by the first 64 rows of V, and the other parts are made beside that.
// CHECK: func.func @in_turns
// CHECK: %[[EMPTY:.*]] = "nv_tileas.barrier_init"
// CHECK: %[[FULL:.*]] = "nv_tileas.barrier_init"
// CHECK: %[[RING:.*]] = "nv_tileas.alloc_tensor"() {{.*}}pipelined{{.*}}, "shared", 3 : i32>
// CHECK-NOT: pipelined
// CHECK: "nv_tileas.barrier_expect"(%[[FULL]]
// CHECK: "nv_tileas.barrier_expect"(%[[FULL]]
// CHECK-NOT: nv_tileas.barrier_expect
// CHECK: scf.for
// CHECK: "nv_tileas.barrier_wait"(%[[FULL]], %[[K:.*]], %{{.*}})
// CHECK-NEXT: %[[SCORES:.*]] = "nv_tileas.dot"({{.*}}in_flight
// CHECK: "nv_tileas.barrier_wait"(%[[EMPTY]]
// CHECK: "nv_tileas.barrier_expect"(%[[FULL]]
// CHECK: %[[S:.*]] = "nv_tileas.dot_wait"(%[[SCORES]])
// CHECK-NEXT: "nv_tileas.barrier_arrive"(%[[EMPTY]], %[[K]])
// CHECK: arith.maxnumf
// CHECK: "nv_tileas.extract_slice"(%[[S]]
// CHECK: %[[P0:.*]] = "nv_tileaa.fp_to_fp"
// CHECK: "nv_tileas.barrier_wait"(%[[FULL]], %[[V:.*]], %{{.*}})
// CHECK-NEXT: %[[O0:.*]] = "nv_tileas.dot"(%[[P0]], {{.*}}from_row = 0 : i32, in_flight
// CHECK: "nv_tileas.barrier_wait"(%[[EMPTY]]
// CHECK: "nv_tileas.barrier_expect"(%[[FULL]]
// CHECK: "nv_tileas.extract_slice"(%[[S]]
// CHECK: "nv_tileas.dot"(%{{.*}}, %[[O0]]) {{.*}}from_row = 64 : i32, in_flight
// CHECK: "nv_tileas.dot"({{.*}}from_row = 128 : i32, in_flight
// CHECK: %[[O:.*]] = "nv_tileas.dot"({{.*}}from_row = 192 : i32, in_flight
// CHECK: "nv_tileas.dot_wait"(%[[O]], %[[P0]]
// CHECK-NEXT: "nv_tileas.barrier_arrive"(%[[EMPTY]], %[[V]])
#s = #nv_tileas.layout<"register=[[0,1],[8,0],[0,8],[0,16],[0,32],[0,64],[0,128]] lane=[[0,2],[0,4],[1,0],[2,0],[4,0]] warp=[[16,0],[32,0]] : 64x256">
#o = #nv_tileas.layout<"register=[[0,1],[8,0],[0,8],[0,16],[0,32],[0,64]] lane=[[0,2],[0,4],[1,0],[2,0],[4,0]] warp=[[16,0],[32,0]] : 64x128">
#row = #nv_tileas.layout<"register=[[8]] lane=[[0],[0],[1],[2],[4]] warp=[[16],[32]] : 64">
#col = #nv_tileas.layout<"register=[[8,0]] lane=[[0,0],[0,0],[1,0],[2,0],[4,0]] warp=[[16,0],[32,0]] : 64x1">
#lk = #nv_tileas.layout<"register=[[1,0],[2,0],[4,0],[0,8],[0,16],[0,32],[0,64],[0,128]] lane=[[8,0],[16,0],[32,0],[64,0],[0,1]] warp=[[0,2],[0,4]] : 128x256">
#lv = #nv_tileas.layout<"register=[[0,1],[0,2],[0,4],[8,0],[16,0],[32,0],[64,0],[128,0]] lane=[[0,8],[0,16],[0,32],[0,64],[1,0]] warp=[[2,0],[4,0]] : 256x128">
#bq = #nv_tileas.layout<"offset=[[0,1],[0,2],[0,4],[0,8],[0,16],[0,32],[1,8],[2,16],[4,32],[8,0],[16,0],[32,0],[0,64]] : 64x128">
#bk = #nv_tileas.layout<"offset=[[1,0],[2,0],[4,0],[8,0],[16,0],[32,0],[8,1],[16,2],[32,4],[0,8],[0,16],[0,32],[0,64],[0,128],[64,0]] : 128x256">
#bv = #nv_tileas.layout<"offset=[[0,1],[0,2],[0,4],[0,8],[0,16],[0,32],[1,8],[2,16],[4,32],[8,0],[16,0],[32,0],[64,0],[128,0],[0,64]] : 256x128">
!tok = !nv_tileaa.mem_token
!ptr = !nv_tileaa.ptr<f16, 1 : i32>
!mk = !nv_tileaa.memref<f16, array<i64: 128, 1024>, array<i64: 1, 128>>
!mv = !nv_tileaa.memref<f16, array<i64: 1024, 128>, array<i64: 128, 1>>
!vk = !nv_tileaa.tiled_view<!mk, array<i32: 128, 256>, array<i32: 0, 1>, "">
!vv = !nv_tileaa.tiled_view<!mv, array<i32: 256, 128>, array<i32: 0, 1>, "">
!s = tensor<64x256xf32, #s>
!p = tensor<64x256xf16, #s>
!o = tensor<64x128xf32, #o>
!row = tensor<64xf32, #row>
!col = tensor<64x1xf32, #col>
!tk = tensor<128x256xf16, #lk>
!tv = tensor<256x128xf16, #lv>
!q = !nv_tileas.buffer<tensor<64x128xf16, #bq>, "shared", 1 : i32>
!bk = !nv_tileas.buffer<tensor<128x256xf16, #bk>, "shared", 1 : i32>
!bv = !nv_tileas.buffer<tensor<256x128xf16, #bv>, "shared", 1 : i32>
func.func @in_turns(%p: !ptr, %q: !q, %zero: !s, %none: !o, %start: !col, %n: i32) -> (!col, !o) attributes {nv_tileaa.kernel, nv_tileaa.kernel_spec = {num_ctas = 1 : i32, num_warps = 4 : i32}} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %t = "nv_tileaa.create_mem_token"() : () -> !tok
  %a = "nv_tileaa.assume"(%p) {predicate = {kind = "div_by", divisor = 16 : i64}} : (!ptr) -> !ptr
  %mk = "nv_tileaa.make_memref"(%a) {operandSegmentSizes = array<i32: 1, 0, 0>} : (!ptr) -> !mk
  %mv = "nv_tileaa.make_memref"(%a) {operandSegmentSizes = array<i32: 1, 0, 0>} : (!ptr) -> !mv
  %vk = "nv_tileaa.block_tile"(%mk) : (!mk) -> !vk
  %vv = "nv_tileaa.block_tile"(%mv) : (!mv) -> !vv
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%sums = %start, %total = %none) -> (!col, !o) : i32 {
    %k:2 = "nv_tileas.tiled_load"(%vk, %c0, %i, %t) {access = {checked = array<i32>, copy = "tma", near, order = array<i32: 0, 1>, vector = 8 : i32, whole_vectors, why = "so"}, mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 2, 1>} : (!vk, i32, i32, !tok) -> (!tk, !tok)
    %kb = "nv_tileas.alloc_tensor"() {alignment = 1024 : i32} : () -> !bk
    "nv_tileas.copy"(%k#0, %kb) {operandSegmentSizes = array<i32: 1, 1>, resultSegmentSizes = array<i32: 0>} : (!tk, !bk) -> ()
    %scores = "nv_tileas.dot"(%q, %kb, %zero) {atom = "wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16", operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>, warps = array<i32: 1, 4, 1>} : (!q, !bk, !s) -> !s
    %top = "nv_tileas.reduce"(%scores) ({
    ^bb0(%x: f32, %y: f32):
      %z = arith.maxnumf %x, %y : f32
      "nv_tileas.yield"(%z) : (f32) -> ()
    }) {axis = 1 : i32, identities = [0xFF800000 : f32]} : (!s) -> !row
    %most = "nv_tileas.view"(%top) : (!row) -> !col
    %spread = "nv_tileaa.broadcast"(%most) : (!col) -> !s
    %less = arith.subf %scores, %spread : !s
    %powers = "nv_tileaa.exp2"(%less) {ftz} : (!s) -> !s
    %sum = "nv_tileas.reduce"(%powers) ({
    ^bb0(%x: f32, %y: f32):
      %z = arith.addf %x, %y : f32
      "nv_tileas.yield"(%z) : (f32) -> ()
    }) {axis = 1 : i32, identities = [0.0 : f32]} : (!s) -> !row
    %new = "nv_tileas.view"(%sum) : (!row) -> !col
    %next = arith.addf %sums, %new : !col
    %weights = "nv_tileaa.fp_to_fp"(%powers) : (!s) -> !p
    %v:2 = "nv_tileas.tiled_load"(%vv, %i, %c0, %t) {access = {checked = array<i32>, copy = "tma", near, order = array<i32: 1, 0>, vector = 8 : i32, whole_vectors, why = "so"}, mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 2, 1>} : (!vv, i32, i32, !tok) -> (!tv, !tok)
    %by = "nv_tileaa.broadcast"(%most) : (!col) -> !o
    %scaled = arith.mulf %total, %by : !o
    %vb = "nv_tileas.alloc_tensor"() {alignment = 1024 : i32} : () -> !bv
    "nv_tileas.copy"(%v#0, %vb) {operandSegmentSizes = array<i32: 1, 1>, resultSegmentSizes = array<i32: 0>} : (!tv, !bv) -> ()
    %made = "nv_tileas.dot"(%weights, %vb, %scaled) {atom = "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16", operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>, warps = array<i32: 1, 4, 1>} : (!p, !bv, !o) -> !o
    scf.yield %next, %made : !col, !o
  }
  return %r#0, %r#1 : !col, !o
}
// -----
// What is multiplied needs the sum of all weights: no part of them is before the others.
// CHECK: func.func @divided
// CHECK: "nv_tileas.dot"({{.*}}in_flight
// CHECK-NOT: from_row
// CHECK: "nv_tileas.dot"({{.*}}in_flight
// CHECK-NOT: from_row
// CHECK: return
#s = #nv_tileas.layout<"register=[[0,1],[8,0],[0,8],[0,16],[0,32],[0,64],[0,128]] lane=[[0,2],[0,4],[1,0],[2,0],[4,0]] warp=[[16,0],[32,0]] : 64x256">
#o = #nv_tileas.layout<"register=[[0,1],[8,0],[0,8],[0,16],[0,32],[0,64]] lane=[[0,2],[0,4],[1,0],[2,0],[4,0]] warp=[[16,0],[32,0]] : 64x128">
#row = #nv_tileas.layout<"register=[[8]] lane=[[0],[0],[1],[2],[4]] warp=[[16],[32]] : 64">
#col = #nv_tileas.layout<"register=[[8,0]] lane=[[0,0],[0,0],[1,0],[2,0],[4,0]] warp=[[16,0],[32,0]] : 64x1">
#lk = #nv_tileas.layout<"register=[[1,0],[2,0],[4,0],[0,8],[0,16],[0,32],[0,64],[0,128]] lane=[[8,0],[16,0],[32,0],[64,0],[0,1]] warp=[[0,2],[0,4]] : 128x256">
#lv = #nv_tileas.layout<"register=[[0,1],[0,2],[0,4],[8,0],[16,0],[32,0],[64,0],[128,0]] lane=[[0,8],[0,16],[0,32],[0,64],[1,0]] warp=[[2,0],[4,0]] : 256x128">
#bq = #nv_tileas.layout<"offset=[[0,1],[0,2],[0,4],[0,8],[0,16],[0,32],[1,8],[2,16],[4,32],[8,0],[16,0],[32,0],[0,64]] : 64x128">
#bk = #nv_tileas.layout<"offset=[[1,0],[2,0],[4,0],[8,0],[16,0],[32,0],[8,1],[16,2],[32,4],[0,8],[0,16],[0,32],[0,64],[0,128],[64,0]] : 128x256">
#bv = #nv_tileas.layout<"offset=[[0,1],[0,2],[0,4],[0,8],[0,16],[0,32],[1,8],[2,16],[4,32],[8,0],[16,0],[32,0],[64,0],[128,0],[0,64]] : 256x128">
!tok = !nv_tileaa.mem_token
!ptr = !nv_tileaa.ptr<f16, 1 : i32>
!mk = !nv_tileaa.memref<f16, array<i64: 128, 1024>, array<i64: 1, 128>>
!mv = !nv_tileaa.memref<f16, array<i64: 1024, 128>, array<i64: 128, 1>>
!vk = !nv_tileaa.tiled_view<!mk, array<i32: 128, 256>, array<i32: 0, 1>, "">
!vv = !nv_tileaa.tiled_view<!mv, array<i32: 256, 128>, array<i32: 0, 1>, "">
!s = tensor<64x256xf32, #s>
!p = tensor<64x256xf16, #s>
!o = tensor<64x128xf32, #o>
!row = tensor<64xf32, #row>
!col = tensor<64x1xf32, #col>
!tk = tensor<128x256xf16, #lk>
!tv = tensor<256x128xf16, #lv>
!q = !nv_tileas.buffer<tensor<64x128xf16, #bq>, "shared", 1 : i32>
!bk = !nv_tileas.buffer<tensor<128x256xf16, #bk>, "shared", 1 : i32>
!bv = !nv_tileas.buffer<tensor<256x128xf16, #bv>, "shared", 1 : i32>
func.func @divided(%p: !ptr, %q: !q, %zero: !s, %none: !o, %start: !col, %n: i32) -> (!col, !o) attributes {nv_tileaa.kernel, nv_tileaa.kernel_spec = {num_ctas = 1 : i32, num_warps = 4 : i32}} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %t = "nv_tileaa.create_mem_token"() : () -> !tok
  %a = "nv_tileaa.assume"(%p) {predicate = {kind = "div_by", divisor = 16 : i64}} : (!ptr) -> !ptr
  %mk = "nv_tileaa.make_memref"(%a) {operandSegmentSizes = array<i32: 1, 0, 0>} : (!ptr) -> !mk
  %mv = "nv_tileaa.make_memref"(%a) {operandSegmentSizes = array<i32: 1, 0, 0>} : (!ptr) -> !mv
  %vk = "nv_tileaa.block_tile"(%mk) : (!mk) -> !vk
  %vv = "nv_tileaa.block_tile"(%mv) : (!mv) -> !vv
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%sums = %start, %total = %none) -> (!col, !o) : i32 {
    %k:2 = "nv_tileas.tiled_load"(%vk, %c0, %i, %t) {access = {checked = array<i32>, copy = "tma", near, order = array<i32: 0, 1>, vector = 8 : i32, whole_vectors, why = "so"}, mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 2, 1>} : (!vk, i32, i32, !tok) -> (!tk, !tok)
    %kb = "nv_tileas.alloc_tensor"() {alignment = 1024 : i32} : () -> !bk
    "nv_tileas.copy"(%k#0, %kb) {operandSegmentSizes = array<i32: 1, 1>, resultSegmentSizes = array<i32: 0>} : (!tk, !bk) -> ()
    %scores = "nv_tileas.dot"(%q, %kb, %zero) {atom = "wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16", operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>, warps = array<i32: 1, 4, 1>} : (!q, !bk, !s) -> !s
    %top = "nv_tileas.reduce"(%scores) ({
    ^bb0(%x: f32, %y: f32):
      %z = arith.maxnumf %x, %y : f32
      "nv_tileas.yield"(%z) : (f32) -> ()
    }) {axis = 1 : i32, identities = [0xFF800000 : f32]} : (!s) -> !row
    %most = "nv_tileas.view"(%top) : (!row) -> !col
    %spread = "nv_tileaa.broadcast"(%most) : (!col) -> !s
    %less = arith.subf %scores, %spread : !s
    %powers = "nv_tileaa.exp2"(%less) {ftz} : (!s) -> !s
    %sum = "nv_tileas.reduce"(%powers) ({
    ^bb0(%x: f32, %y: f32):
      %z = arith.addf %x, %y : f32
      "nv_tileas.yield"(%z) : (f32) -> ()
    }) {axis = 1 : i32, identities = [0.0 : f32]} : (!s) -> !row
    %new = "nv_tileas.view"(%sum) : (!row) -> !col
    %next = arith.addf %sums, %new : !col
    %weights = "nv_tileaa.fp_to_fp"(%powers) : (!s) -> !p
    %v:2 = "nv_tileas.tiled_load"(%vv, %i, %c0, %t) {access = {checked = array<i32>, copy = "tma", near, order = array<i32: 1, 0>, vector = 8 : i32, whole_vectors, why = "so"}, mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 2, 1>} : (!vv, i32, i32, !tok) -> (!tv, !tok)
    %by = "nv_tileaa.broadcast"(%next) : (!col) -> !o
    %scaled = arith.mulf %total, %by : !o
    %vb = "nv_tileas.alloc_tensor"() {alignment = 1024 : i32} : () -> !bv
    "nv_tileas.copy"(%v#0, %vb) {operandSegmentSizes = array<i32: 1, 1>, resultSegmentSizes = array<i32: 0>} : (!tv, !bv) -> ()
    %made = "nv_tileas.dot"(%weights, %vb, %scaled) {atom = "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16", operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>, warps = array<i32: 1, 4, 1>} : (!p, !bv, !o) -> !o
    scf.yield %next, %made : !col, !o
  }
  return %r#0, %r#1 : !col, !o
}
