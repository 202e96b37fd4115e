// RUN: tilec opt -p dead-sync-elim

// Two barriers in a row, and one that only reads lie around.
// CHECK-LABEL: @adjacent
// CHECK: llvm.store
// CHECK-NEXT: nvvm.barrier
// CHECK-NEXT: llvm.load
// CHECK-NEXT: llvm.load
// CHECK-NEXT: llvm.return
gpu.module @adjacent {
  llvm.mlir.global internal @s() {addr_space = 3 : i32} : !llvm.array<32 x f32>
  llvm.func @k(%v: f32) attributes {nvvm.kernel} {
    %p = llvm.mlir.addressof @s : !llvm.ptr<3>
    %q = llvm.getelementptr %p[1] : (!llvm.ptr<3>) -> !llvm.ptr<3>, f32
    llvm.store %v, %p : f32, !llvm.ptr<3>
    nvvm.barrier
    nvvm.barrier
    %0 = llvm.load %q : !llvm.ptr<3> -> f32
    nvvm.barrier
    %1 = llvm.load %p : !llvm.ptr<3> -> f32
    llvm.return
  }
}
// -----
// Different objects, and different spaces, are no reason to wait.
// CHECK-LABEL: @apart
// CHECK-NOT: nvvm.barrier
gpu.module @apart {
  llvm.mlir.global internal @s() {addr_space = 3 : i32} : !llvm.array<32 x f32>
  llvm.mlir.global internal @t() {addr_space = 3 : i32} : !llvm.array<32 x f32>
  llvm.func @k(%v: f32, %g: !llvm.ptr<1>) attributes {nvvm.kernel} {
    %p = llvm.mlir.addressof @s : !llvm.ptr<3>
    %q = llvm.mlir.addressof @t : !llvm.ptr<3>
    llvm.store %v, %p : f32, !llvm.ptr<3>
    nvvm.barrier
    llvm.store %v, %q : f32, !llvm.ptr<3>
    nvvm.barrier
    llvm.store %v, %g : f32, !llvm.ptr<1>
    llvm.return
  }
}
// -----
// Kept: write and read, read and write, write and write of one object, global memory handed on, an
// unknown operation, and the first barrier of a block that is not the first.
// CHECK-LABEL: @kept
// CHECK-COUNT-6: nvvm.barrier
gpu.module @kept {
  llvm.mlir.global internal @s() {addr_space = 3 : i32} : !llvm.array<32 x f32>
  llvm.func @k(%v: f32, %g: !llvm.ptr<1>, %c: i1) attributes {nvvm.kernel} {
    %p = llvm.mlir.addressof @s : !llvm.ptr<3>
    llvm.store %v, %p : f32, !llvm.ptr<3>
    nvvm.barrier
    %0 = llvm.load %p : !llvm.ptr<3> -> f32
    nvvm.barrier
    llvm.store %v, %p : f32, !llvm.ptr<3>
    nvvm.barrier
    llvm.store %v, %p : f32, !llvm.ptr<3>
    llvm.store %v, %g : f32, !llvm.ptr<1>
    nvvm.barrier
    %1 = llvm.load %g : !llvm.ptr<1> -> f32
    llvm.inline_asm has_side_effects "membar.cta;", "" : () -> ()
    nvvm.barrier
    %2 = llvm.load %g : !llvm.ptr<1> -> f32
    llvm.cond_br %c, ^next, ^end
  ^next:
    nvvm.barrier
    llvm.br ^end
  ^end:
    llvm.return
  }
}
// -----
// Arrays of dynamic shared memory overlap.
// CHECK-LABEL: @dynamic
// CHECK: nvvm.barrier
gpu.module @dynamic {
  llvm.mlir.global external @s() {addr_space = 3 : i32} : !llvm.array<0 x f32>
  llvm.mlir.global external @t() {addr_space = 3 : i32} : !llvm.array<0 x f32>
  llvm.func @k(%v: f32) attributes {nvvm.kernel} {
    %p = llvm.mlir.addressof @s : !llvm.ptr<3>
    %q = llvm.mlir.addressof @t : !llvm.ptr<3>
    llvm.store %v, %p : f32, !llvm.ptr<3>
    nvvm.barrier
    %0 = llvm.load %q : !llvm.ptr<3> -> f32
    llvm.return
  }
}
// -----
// CHECK: loc("dead-sync-elim.mlir":[[# @LINE + 2]]:3): error: 'func.func' op is not in the llvm dialect; run 'convert-tileas-to-llvm' and MLIR's 'convert-to-llvm' before
gpu.module @m {
  func.func @f() {
    return
  }
}
