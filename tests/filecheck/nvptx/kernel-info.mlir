// RUN: tilec opt -p kernel-info --remarks -

// CHECK: kernel-info: smem in function 'k' = 128
// CHECK: kernel-info: params in function 'k' = 16
// CHECK: kernel-info: barriers in function 'k' = 1
// CHECK: kernel-info: loads in function 'k' = 2
// CHECK: kernel-info: stores in function 'k' = 1
// CHECK: kernel-info: fp_ops in function 'k' = 1
// CHECK: kernel-info: inline_asm in function 'k' = 1
// CHECK: kernel-info: flat_accesses in function 'k' = 1
gpu.module @m {
  llvm.mlir.global internal @s() {addr_space = 3 : i32} : !llvm.array<32 x f32>
  llvm.func @k(%v: f32, %g: !llvm.ptr) attributes {nvvm.kernel} {
    %p = llvm.mlir.addressof @s : !llvm.ptr<3>
    %0 = llvm.load %g : !llvm.ptr -> f32
    %1 = llvm.fadd %0, %v : f32
    llvm.store %1, %p : f32, !llvm.ptr<3>
    nvvm.barrier
    llvm.inline_asm has_side_effects "membar.cta;", "" : () -> ()
    %2 = llvm.load %p : !llvm.ptr<3> -> f32
    llvm.return
  }
}
// -----
// No kernel, no remark.
// CHECK-LABEL: @none
// CHECK-NOT: kernel-info:
gpu.module @none {
  llvm.func @f() {
    llvm.return
  }
}
// -----
// CHECK: loc("kernel-info.mlir":[[# @LINE + 2]]:3): error: 'func.func' op is not in the llvm dialect; run 'convert-tileas-to-llvm' and MLIR's 'convert-to-llvm' before
gpu.module @m {
  func.func @f() {
    return
  }
}
