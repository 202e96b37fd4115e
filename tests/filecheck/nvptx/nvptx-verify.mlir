// RUN: tilec opt -p nvptx-verify --gpu-name sm_90

// Nothing changes.
// CHECK: llvm.func @kernel(%arg0: !llvm.ptr<1>) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 128>} {
// CHECK: llvm.atomicrmw add %arg0, %{{.*}} syncscope("device") monotonic : !llvm.ptr<1>, i32
gpu.module @m {
  llvm.func @kernel(%p: !llvm.ptr<1>) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 128>} {
    %one = llvm.mlir.constant(1 : i32) : i32
    %x = llvm.atomicrmw add %p, %one syncscope("device") monotonic : !llvm.ptr<1>, i32
    llvm.return
  }
}
// -----
// Functions that are no kernels have no ceiling of parameters.
// CHECK: llvm.func internal @helper(%arg0: !llvm.array<40000 x i8>) {
gpu.module @m {
  llvm.func internal @helper(%p: !llvm.array<40000 x i8>) {
    llvm.return
  }
}
// -----
// Code that LLVM would write as something else.
// CHECK: loc("nvptx-verify.mlir":[[# @LINE + 5]]:10): error: 'llvm.atomicrmw' op unsupported ordering for nvvm.atomic.rmw: LLVM would make it relaxed and of device scope
// CHECK: hint: use inline PTX with .sem and .scope
gpu.module @m {
  llvm.func @kernel(%p: !llvm.ptr<1>) attributes {nvvm.kernel} {
    %one = llvm.mlir.constant(1 : i32) : i32
    %x = llvm.atomicrmw add %p, %one syncscope("device") acq_rel : !llvm.ptr<1>, i32
    llvm.return
  }
}
// -----
// CHECK: error: 'llvm.func' op Formal parameter space overflowed (40000 bytes required, max 32764 bytes allowed) in function kernel
gpu.module @m {
  llvm.func @kernel(%p: !llvm.ptr {llvm.byval = !llvm.array<40000 x i8>}) attributes {nvvm.kernel} {
    llvm.return
  }
}
