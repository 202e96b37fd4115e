// RUN: tilec opt -p convert-tileas-to-llvm --gpu-name sm_90

// A tile becomes one vector per thread, its pointers one vector of addresses.
// CHECK: func.func @vectors(%[[P:.*]]: !llvm.ptr<1>
// CHECK: llvm.getelementptr {{.*}} vector<2x!llvm.ptr<1>>
// CHECK: %[[X:.*]] = llvm.load %{{.*}} {alignment = 8 : i64} : !llvm.ptr<1> -> vector<2xf32>
// CHECK: %[[Y:.*]] = arith.addf %[[X]], %[[X]] : vector<2xf32>
// CHECK: llvm.store %[[Y]], %{{.*}} {alignment = 8 : i64} : vector<2xf32>, !llvm.ptr<1>
// CHECK-NOT: nv_tileas.{{load|store}}
#l = #nv_tileas.layout<"register=[[1]] lane=[[2],[4],[8],[16],[32]] warp=[[64],[128]] : 256">
!ptr = !nv_tileaa.ptr<f32, 1 : i32>
!p = tensor<256x!ptr, #l>
!f = tensor<256xf32, #l>
!tok = !nv_tileaa.mem_token
gpu.module @m {
  func.func @vectors(%p: !ptr) attributes {nv_tileaa.kernel, nv_tileaa.kernel_spec = {num_warps = 4 : i32, num_ctas = 1 : i32}} {
    %i = "nv_tileaa.make_range"() : () -> tensor<256xi32, #l>
    %b = "nv_tileaa.splat"(%p) : (!ptr) -> !p
    %c = "nv_tileaa.addptr"(%b, %i) : (!p, tensor<256xi32, #l>) -> !p
    %x:2 = "nv_tileas.load"(%c) {access = {checked = array<i32>, order = array<i32: 0>, vector = 2 : i32, whole_vectors}, mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 0, 0, 0>} : (!p) -> (!f, !tok)
    %y = "nv_tileaa.addf"(%x#0, %x#0) : (!f, !f) -> !f
    %t = "nv_tileas.store"(%c, %y, %x#1) {access = {checked = array<i32>, order = array<i32: 0>, vector = 2 : i32, whole_vectors}, mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 1, 0, 1>} : (!p, !f, !tok) -> !tok
    return
  }
}
// -----
// Lanes that swap: shuffles, no memory. Warps that swap: a round trip behind a barrier.
// CHECK: llvm.mlir.global internal @global_smem() {addr_space = 3 : i32, alignment = 128 : i64} : !llvm.array<2048 x i8>
// CHECK: func.func @converts
// CHECK: llvm.call @__tile_shuffle
// CHECK: nvvm.barrier
// CHECK: llvm.store {{.*}} !llvm.ptr<3>
// CHECK: nvvm.barrier
// CHECK: llvm.load {{.*}} !llvm.ptr<3>
#a = #nv_tileas.layout<"register=[[1],[2]] lane=[[4],[8],[16],[32],[64]] warp=[[128],[256]] : 512">
#b = #nv_tileas.layout<"register=[[1],[2]] lane=[[8],[4],[16],[32],[64]] warp=[[128],[256]] : 512">
#c = #nv_tileas.layout<"register=[[1],[2]] warp=[[4],[8]] lane=[[16],[32],[64],[128],[256]] : 512">
#m = #nv_tileas.layout<"offset=[[1],[2],[4],[8],[16],[32],[64],[128],[256]] : 512">
!buffer = !nv_tileas.buffer<tensor<512xi32, #m>, "shared", 1 : i32>
gpu.module @m {
  func.func @converts() attributes {nv_tileaa.kernel_spec = {num_warps = 4 : i32, num_ctas = 1 : i32}} {
    %i = "nv_tileaa.make_range"() : () -> tensor<512xi32, #a>
    %0 = "nv_tileas.convert_layout"(%i) : (tensor<512xi32, #a>) -> tensor<512xi32, #b>
    %buffer = "nv_tileas.alloc_tensor"() {alignment = 128 : i32, shared_offset = 0 : i32} : () -> !buffer
    "nv_tileas.sync"() : () -> ()
    "nv_tileas.copy"(%0, %buffer) {operandSegmentSizes = array<i32: 1, 1>, resultSegmentSizes = array<i32: 0>} : (tensor<512xi32, #b>, !buffer) -> ()
    "nv_tileas.sync"() : () -> ()
    %1 = "nv_tileas.copy"(%buffer) {operandSegmentSizes = array<i32: 1, 0>, resultSegmentSizes = array<i32: 1>} : (!buffer) -> tensor<512xi32, #c>
    return
  }
}
// -----
// Scalars are what they were.
// CHECK: func.func @scalars(%[[X:.*]]: f32, %[[N:.*]]: i32)
// CHECK-NEXT: math.absf %[[X]] : f32
// CHECK-NEXT: arith.addi %[[N]], %[[N]] : i32
// CHECK-NEXT: return
gpu.module @m {
  func.func @scalars(%x: f32, %n: i32) attributes {nv_tileaa.kernel_spec = {num_warps = 4 : i32, num_ctas = 1 : i32}} {
    %0 = math.absf %x : f32
    %1 = arith.addi %n, %n : i32
    return
  }
}
// -----
// CHECK: loc("convert-tileas-to-llvm.mlir":[[# @LINE + 3]]:10): error: 'nv_tileaa.make_range' op works on a tile without a layout; run 'tileas-assign-layouts' before
gpu.module @m {
  func.func @no_layout() attributes {nv_tileaa.kernel_spec = {num_warps = 4 : i32, num_ctas = 1 : i32}} {
    %0 = "nv_tileaa.make_range"() : () -> tensor<512xi32>
    return
  }
}
// -----
// CHECK: loc("convert-tileas-to-llvm.mlir":[[# @LINE + 5]]:10): error: 'nv_tileas.convert_layout' op passes through shared memory; run 'tileas-materialize-convert-layout' before
#a = #nv_tileas.layout<"register=[[1],[2]] lane=[[4],[8],[16],[32],[64]] warp=[[128],[256]] : 512">
#c = #nv_tileas.layout<"register=[[1],[2]] warp=[[4],[8]] lane=[[16],[32],[64],[128],[256]] : 512">
gpu.module @m {
  func.func @no_place(%x: tensor<512xi32, #a>) attributes {nv_tileaa.kernel_spec = {num_warps = 4 : i32, num_ctas = 1 : i32}} {
    %0 = "nv_tileas.convert_layout"(%x) : (tensor<512xi32, #a>) -> tensor<512xi32, #c>
    return
  }
}
// -----
// CHECK: loc("convert-tileas-to-llvm.mlir":[[# @LINE + 3]]:10): error: 'nv_tileaa.expand_dims' op is not supported by 'convert-tileas-to-llvm': no rule converts it
gpu.module @m {
  func.func @left_over(%x: tensor<32xi32, #nv_tileas.layout<"lane=[[1],[2],[4],[8],[16]] : 32">>) attributes {nv_tileaa.kernel_spec = {num_warps = 1 : i32, num_ctas = 1 : i32}} {
    %0 = "nv_tileaa.expand_dims"(%x) {axis = 0 : i32} : (tensor<32xi32, #nv_tileas.layout<"lane=[[1],[2],[4],[8],[16]] : 32">>) -> tensor<1x32xi32, #nv_tileas.layout<"lane=[[0,1],[0,2],[0,4],[0,8],[0,16]] : 1x32">>
    return
  }
}
// -----
// An amount that is not known freezes the result; a known one never does.
// CHECK: func.func @shifts
// CHECK: %[[S:.*]] = arith.shli %arg0, %arg1 : i32
// CHECK: llvm.freeze %[[S]] : i32
// CHECK: arith.shrui
// CHECK-NOT: llvm.freeze
// CHECK: arith.shrsi %arg0, %c31
gpu.module @m {
  func.func @shifts(%a: i32, %b: i32) attributes {nv_tileaa.kernel_spec = {num_warps = 4 : i32, num_ctas = 1 : i32}} {
    %two = arith.constant 2 : i32
    %many = arith.constant 40 : i32
    %x = arith.shli %a, %b : i32
    %y = arith.shrui %a, %two : i32
    %z = arith.shrsi %a, %many : i32
    return
  }
}
// -----
// Columns are a multiple of eight, so that eight of them from one on are inside or not together: one
// answer of a thread serves both of its pairs, and not those of the next eight.
// CHECK: func.func @alike
// CHECK: %[[F:.*]] = arith.cmpi slt, %{{.*}}, %{{.*}} : vector<16xi32>
// CHECK: llvm.shufflevector %[[F]], %[[F]] [0, 0, 0, 0, 0, 0, 0, 0, 8, 8, 8, 8, 8, 8, 8, 8]
// CHECK: %[[G:.*]] = arith.cmpi slt, %{{.*}}, %{{.*}} : vector<16xi32>
// CHECK-NOT: llvm.shufflevector %[[G]]
// CHECK: return
#l = #nv_tileas.layout<"register=[[1],[2],[4],[1024]] lane=[[8],[16],[32],[64],[128]] warp=[[256],[512]] : 2048">
gpu.module @m {
  func.func @alike(%n: i32, %k: i32) attributes {nv_tileaa.kernel, nv_tileaa.kernel_spec = {num_warps = 4 : i32, num_ctas = 1 : i32}} {
    %i = "nv_tileaa.make_range"() : () -> tensor<2048xi32, #l>
    %m = "nv_tileaa.assume"(%n) {predicate = {kind = "div_by", divisor = 8 : i64}} : (i32) -> i32
    %b = "nv_tileaa.splat"(%m) : (i32) -> tensor<2048xi32, #l>
    %f = arith.cmpi slt, %i, %b : tensor<2048xi32, #l>
    %c = "nv_tileaa.splat"(%k) : (i32) -> tensor<2048xi32, #l>
    %g = arith.cmpi slt, %i, %c : tensor<2048xi32, #l>
    return
  }
}
// -----
// bf16 as f32: of each word the lower half moved up, and the upper one as it stands.
// CHECK: func.func @halves
// CHECK: %[[W:.*]] = llvm.bitcast %{{.*}} : vector<2xbf16> to vector<1xi32>
// CHECK: arith.shli %[[W]]
// CHECK: arith.andi %[[W]]
// CHECK-NOT: arith.extf
// CHECK: return
#l = #nv_tileas.layout<"register=[[1]] lane=[[2],[4],[8],[16],[32]] warp=[[64],[128]] : 256">
gpu.module @m {
  func.func @halves(%x: tensor<256xbf16, #l>) attributes {nv_tileaa.kernel_spec = {num_warps = 4 : i32, num_ctas = 1 : i32}} {
    %y = "nv_tileaa.fp_to_fp"(%x) : (tensor<256xbf16, #l>) -> tensor<256xf32, #l>
    return
  }
}
// -----
// What is left of a view is a difference of 32 bits where places and sizes are near.
// CHECK: func.func @near(%{{.*}}, %[[N:arg[0-9]]]: i32, %[[I:arg[0-9]]]: i32, %{{.*}}: i8)
// CHECK: %[[S:.*]] = arith.muli %[[I]], %{{.*}} : i32
// CHECK: %[[L:.*]] = arith.subi %[[N]], %[[S]] : i32
// CHECK: arith.cmpi slt, %{{.*}}, %[[L]] : i32
// CHECK: arith.extui %[[J:arg[0-9]]] : i8 to i32
// CHECK-NOT: arith.maxsi
// CHECK: return
#l = #nv_tileas.layout<"register=[[1]] lane=[[2],[4],[8],[16],[32]] warp=[[64],[128]] : 256">
!ptr = !nv_tileaa.ptr<f32, 1 : i32>
!mem = !nv_tileaa.memref<f32, array<i64: -9223372036854775808>, array<i64: 1>>
!view = !nv_tileaa.tiled_view<!mem, array<i32: 256>, array<i32: 0>, "zero">
gpu.module @m {
  func.func @near(%p: !ptr, %n: i32, %i: i32, %j: i8) attributes {nv_tileaa.kernel, nv_tileaa.kernel_spec = {num_warps = 4 : i32, num_ctas = 1 : i32}} {
    %m = "nv_tileaa.make_memref"(%p, %n) {operandSegmentSizes = array<i32: 1, 1, 0>} : (!ptr, i32) -> !mem
    %v = "nv_tileaa.block_tile"(%m) : (!mem) -> !view
    %x:2 = "nv_tileas.tiled_load"(%v, %i) {access = {checked = array<i32: 0>, near, order = array<i32: 0>, vector = 2 : i32, whole_vectors}, mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 1, 0>} : (!view, i32) -> (tensor<256xf32, #l>, !nv_tileaa.mem_token)
    %y:2 = "nv_tileas.tiled_load"(%v, %j) {access = {checked = array<i32: 0>, near, order = array<i32: 0>, vector = 2 : i32, whole_vectors}, mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 1, 0>} : (!view, i8) -> (tensor<256xf32, #l>, !nv_tileaa.mem_token)
    return
  }
}
