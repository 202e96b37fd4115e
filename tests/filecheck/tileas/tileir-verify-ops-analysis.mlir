// RUN: tilec opt -p tileir-verify-ops-analysis --gpu-name sm_80

// A module that is whole stays as it is.
// CHECK-LABEL: gpu.module @whole
// CHECK: func.func @kernel
// CHECK: math.absf
gpu.module @whole {
  func.func @kernel(%x: f32) attributes {nv_tileaa.kernel, nv_tileaa.kernel_spec = {num_warps = 4 : i32, num_ctas = 1 : i32}} {
    %0 = math.absf %x : f32
    return
  }
  func.func private @declared(f32)
}
// -----
// An instruction that the target has.
// CHECK-LABEL: gpu.module @atoms
// CHECK: cute.make_atom
gpu.module @atoms {
  func.func @kernel() attributes {nv_tileaa.kernel, nv_tileaa.kernel_spec = {num_warps = 32 : i32}} {
    %0 = "cute.make_atom"() : () -> !cute_nvgpu.atom<"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32">
    return
  }
}
// -----
// CHECK: error: 'func.func' op is a kernel without 'nv_tileaa.kernel_spec'
gpu.module @unbounded {
  func.func @kernel() attributes {nv_tileaa.kernel} {
    %p, %c = "nv_tileas.async_pipeline_create_pipeline"() {numStages = 3 : i32, producerGroupId = 0 : i8, consumerGroupId = 1 : i8, operandSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : () -> (!nv_tileas.pipeline_producer_token, !nv_tileas.pipeline_consumer_token)
    return
  }
}
// -----
// CHECK: error: 'func.func' op has 33 as 'num_warps', which is from 1 to 32
gpu.module @wide {
  func.func @kernel() attributes {nv_tileaa.kernel, nv_tileaa.kernel_spec = {num_warps = 33 : i32}} {
    return
  }
}
// -----
// CHECK: error: 'func.func' op has 32 as 'num_ctas', which is from 1 to 16
gpu.module @clusters {
  func.func @kernel() attributes {nv_tileaa.kernel, nv_tileaa.kernel_spec = {num_warps = 4 : i32, num_ctas = 32 : i32}} {
    return
  }
}
// -----
// CHECK: error: 'func.func' op has 'nv_tileaa.kernel_spec', but is not marked as a kernel
gpu.module @unmarked {
  func.func @kernel() attributes {nv_tileaa.kernel_spec = {num_warps = 4 : i32}} {
    return
  }
}
// -----
// CHECK: error: 'cute.make_atom' op is 'wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16', which sm_80 does not have
gpu.module @other {
  func.func @kernel() attributes {nv_tileaa.kernel, nv_tileaa.kernel_spec = {num_warps = 4 : i32}} {
    %0 = "cute.make_atom"() : () -> !cute_nvgpu.atom<"wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16">
    return
  }
}
// -----
// CHECK: error: 'func.func' op has an invalid schedule: 'nv_tile.aws.stage' has 1 entries for 2 operations
gpu.module @scheduled {
  func.func @kernel(%x: f32) attributes {nv_tileaa.kernel, nv_tileaa.kernel_spec = {num_warps = 4 : i32}, nv_tileas.ii = 9 : i32, nv_tile.aws.stage = array<i64: 0>, nv_tile.aws.order = array<i64: 0, 1>} {
    %0 = math.absf %x {nv_tileas.start = 0 : i32} : f32
    return {nv_tileas.start = 8 : i32}
  }
}
