// RUN: tilec opt -p "convert-tileaa-to-tileas{occupancy=16}" --gpu-name sm_90

// The option speaks for kernels that have no hint.
// CHECK: func.func @open
// CHECK-SAME: occupancy = 16 : i32
// CHECK: func.func @hinted
// CHECK-SAME: occupancy = 3 : i32
gpu.module @m attributes {tt.num_warps = 4 : i32, tt.num_ctas = 1 : i32} {
  func.func @open(%x: f32) attributes {nv_tileaa.kernel} {
    return
  }
  func.func @hinted(%x: f32) attributes {nv_tileaa.kernel, nv_tileaa.optimization_hints = {default = {occupancy = 3 : i32}}} {
    return
  }
}
// -----
// As many as run without most registers being spilt: nine leave 56 to a thread, of which a tile
// takes 32.
// CHECK: func.func @large
// CHECK-SAME: occupancy = 9 : i32
gpu.module @m attributes {tt.num_warps = 4 : i32, tt.num_ctas = 1 : i32} {
  func.func @large(%x: tensor<64x64xf32>) attributes {nv_tileaa.kernel} {
    %0 = math.absf %x : tensor<64x64xf32>
    return
  }
}
