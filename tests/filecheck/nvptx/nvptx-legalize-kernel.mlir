// RUN: tilec opt -p nvptx-legalize-kernel --gpu-name sm_90

// 8 warps are 256 threads; what earlier stages noted is gone.
// CHECK: gpu.module @m {
// CHECK-NEXT: llvm.func @kernel() attributes {nvvm.kernel, nvvm.minctasm = 3 : i32, nvvm.reqntid = array<i32: 256>} {
gpu.module @m attributes {nv_tileaa.compute_capability = 90 : i32, tt.num_warps = 4 : i32} {
  llvm.func @kernel() attributes {nv_tileaa.kernel, nv_tileaa.kernel_spec = {num_ctas = 1 : i32, num_warps = 8 : i32, occupancy = 3 : i32}, nv_tileas.shared_bytes = 0 : i32} {
    llvm.return
  }
}
// -----
// Functions that are no kernels keep their attributes; those with a body are nobody else's.
// CHECK: llvm.func internal @helper() attributes {always_inline} {
// CHECK-NEXT: llvm.return
// CHECK: llvm.func internal @other() {
// CHECK: llvm.func @elsewhere()
gpu.module @m {
  llvm.func internal @helper() attributes {always_inline} {
    llvm.return
  }
  llvm.func @other() {
    llvm.return
  }
  llvm.func @elsewhere()
}
// -----
// CHECK: loc("nvptx-legalize-kernel.mlir":[[# @LINE + 2]]:3): error: 'llvm.func' op has no kernel_spec; run 'convert-tileaa-to-tileas' before
gpu.module @m {
  llvm.func @kernel() attributes {nv_tileaa.kernel} {
    llvm.return
  }
}
