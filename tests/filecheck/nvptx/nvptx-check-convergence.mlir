// RUN: tilec opt -p nvptx-check-convergence --gpu-name sm_90

// A loop and a branch that all threads take alike.
// CHECK: func.func @together
// CHECK: nvvm.barrier
gpu.module @m {
  func.func @together(%n: i32, %p: !llvm.ptr<1>) {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %b = nvvm.read.ptx.sreg.ctaid.x : i32
    %x = llvm.load %p : !llvm.ptr<1> -> i32
    %c = arith.cmpi slt, %b, %x : i32
    scf.for %i = %zero to %n step %one : i32 {
      scf.if %c {
        nvvm.barrier
      }
    }
    return
  }
}
// -----
// Without barriers threads go where they like.
// CHECK: func.func @apart
gpu.module @m {
  func.func @apart(%p: !llvm.ptr<1>) {
    %zero = arith.constant 0 : i32
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %c = arith.cmpi eq, %t, %zero : i32
    scf.if %c {
      llvm.store %zero, %p : i32, !llvm.ptr<1>
    }
    return
  }
}
// -----
// CHECK: loc("nvptx-check-convergence.mlir":[[# @LINE + 8]]:7): error: 'nvvm.barrier' op stands where not all threads of the block are known to come by
gpu.module @m {
  func.func @first() {
    %zero = arith.constant 0 : i32
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %x = arith.andi %t, %zero : i32
    %c = arith.cmpi eq, %t, %zero : i32
    scf.if %c {
      nvvm.barrier
    }
    return
  }
}
