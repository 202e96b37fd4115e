// RUN: tilec opt -p dedup-wait-groups

// A wait that was done before, and one that is done behind with arithmetic alone in between.
// CHECK-LABEL: @same
// CHECK: nvvm.cp.async.bulk.wait_group 0
// CHECK-NEXT: llvm.load
// CHECK-NEXT: nvvm.wgmma.wait.group.sync.aligned 0
// CHECK-NEXT: llvm.add
// CHECK-NEXT: nvvm.cp.async.wait.group 0
// CHECK-NEXT: llvm.store
// CHECK-NEXT: llvm.return
gpu.module @same {
  llvm.func @k(%p: !llvm.ptr<1>) {
    nvvm.cp.async.bulk.wait_group 0
    %x = llvm.load %p : !llvm.ptr<1> -> i32
    nvvm.cp.async.bulk.wait_group 1
    nvvm.cp.async.wait.group 1
    nvvm.wgmma.wait.group.sync.aligned 1
    nvvm.wgmma.wait.group.sync.aligned 0
    %y = llvm.add %x, %x : i32
    nvvm.cp.async.bulk.wait_group 0 {read}
    nvvm.cp.async.wait.group 0
    llvm.store %y, %p : i32, !llvm.ptr<1>
    llvm.return
  }
}
// -----
// A group that was committed in between; reads only; what a load in between needs; another flavour;
// what assembly may have committed.
// CHECK-LABEL: @needed
// CHECK: nvvm.cp.async.wait.group 0
// CHECK: nvvm.cp.async.commit.group
// CHECK: nvvm.cp.async.wait.group 0
// CHECK: nvvm.cp.async.bulk.wait_group 0 {read}
// CHECK: nvvm.cp.async.bulk.wait_group 0
// CHECK: nvvm.wgmma.wait.group.sync.aligned 1
// CHECK: llvm.load
// CHECK: nvvm.wgmma.wait.group.sync.aligned 0
// CHECK: llvm.inline_asm
// CHECK: nvvm.wgmma.wait.group.sync.aligned 0
gpu.module @needed {
  llvm.func @k(%p: !llvm.ptr<1>) {
    nvvm.cp.async.wait.group 0
    nvvm.cp.async.commit.group
    nvvm.cp.async.wait.group 0
    nvvm.cp.async.bulk.wait_group 0 {read}
    %x = llvm.load %p : !llvm.ptr<1> -> i32
    nvvm.cp.async.bulk.wait_group 0
    nvvm.wgmma.wait.group.sync.aligned 1
    %y = llvm.load %p : !llvm.ptr<1> -> i32
    nvvm.wgmma.wait.group.sync.aligned 0
    llvm.inline_asm has_side_effects "wgmma.commit_group.sync.aligned;", "" : () -> ()
    nvvm.wgmma.wait.group.sync.aligned 0
    llvm.return
  }
}
// -----
// Arithmetic between waits for products may be on what they write.
// CHECK-LABEL: @registers
// CHECK: nvvm.wgmma.wait.group.sync.aligned 1
// CHECK-NEXT: llvm.add
// CHECK-NEXT: nvvm.wgmma.wait.group.sync.aligned 0
gpu.module @registers {
  llvm.func @k(%x: i32) -> i32 {
    nvvm.wgmma.wait.group.sync.aligned 1
    %y = llvm.add %x, %x : i32
    nvvm.wgmma.wait.group.sync.aligned 0
    llvm.return %y : i32
  }
}
// -----
// One group more may be left behind a commit than before it; branches are blocks of their own.
// CHECK-LABEL: @counted
// CHECK: nvvm.cp.async.wait.group 0
// CHECK-NEXT: nvvm.cp.async.commit.group
// CHECK-NEXT: scf.if
// CHECK-NEXT: nvvm.cp.async.wait.group 0
// CHECK-NEXT: }
// CHECK-NEXT: nvvm.cp.async.wait.group 1
gpu.module @counted {
  func.func @k(%c: i1) {
    nvvm.cp.async.wait.group 0
    nvvm.cp.async.commit.group
    nvvm.cp.async.wait.group 1
    scf.if %c {
      nvvm.cp.async.wait.group 0
    }
    nvvm.cp.async.wait.group 1
    return
  }
}
// -----
// CHECK: error: expected
gpu.module @m {
  llvm.func @k() {
    nvvm.cp.async.wait.group
    llvm.return
  }
}
