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
