// RUN: tilec opt -p ipmsp

// All calls pass global memory, one of them by way of another function.
// CHECK: llvm.func @leaf(%[[P:.*]]: !llvm.ptr)
// CHECK-NEXT: %[[G:.*]] = llvm.addrspacecast %[[P]] : !llvm.ptr to !llvm.ptr<1>
// CHECK-NEXT: llvm.load %[[G]] : !llvm.ptr<1> -> f32
// CHECK: llvm.func @middle(%[[Q:.*]]: !llvm.ptr)
// CHECK-NEXT: %[[R:.*]] = llvm.getelementptr %[[Q]][4] : (!llvm.ptr)
// CHECK-NEXT: llvm.call @leaf(%[[R]])
gpu.module @m {
  llvm.func @leaf(%p: !llvm.ptr) -> f32 {
    %0 = llvm.load %p : !llvm.ptr -> f32
    llvm.return %0 : f32
  }
  llvm.func @middle(%p: !llvm.ptr) -> f32 {
    %q = llvm.getelementptr %p[4] : (!llvm.ptr) -> !llvm.ptr, f32
    %0 = llvm.call @leaf(%q) : (!llvm.ptr) -> f32
    llvm.return %0 : f32
  }
  llvm.func @k(%a: !llvm.ptr<1>, %b: !llvm.ptr) attributes {nvvm.kernel} {
    %g = llvm.addrspacecast %a : !llvm.ptr<1> to !llvm.ptr
    %0 = llvm.call @middle(%g) : (!llvm.ptr) -> f32
    %1 = llvm.call @leaf(%b) : (!llvm.ptr) -> f32
    llvm.return
  }
}
// -----
// A function whose address is taken, and one of whose argument nothing is known.
// CHECK-LABEL: @unchanged
// CHECK-NOT: addrspacecast
gpu.module @unchanged {
  llvm.func @leaf(%p: !llvm.ptr) -> f32 {
    %0 = llvm.load %p : !llvm.ptr -> f32
    llvm.return %0 : f32
  }
  llvm.func @held(%p: !llvm.ptr) {
    llvm.return
  }
  llvm.func @k(%a: i64, %b: !llvm.ptr) attributes {nvvm.kernel} {
    %f = llvm.mlir.addressof @held : !llvm.ptr
    llvm.call @held(%b) : (!llvm.ptr) -> ()
    %p = llvm.inttoptr %a : i64 to !llvm.ptr
    %0 = llvm.call @leaf(%p) : (!llvm.ptr) -> f32
    llvm.return
  }
}
// -----
// One call knows nothing: the function stays as it is, and the other call has a copy.
// CHECK: llvm.func internal @leaf.1(
// CHECK-NEXT: to !llvm.ptr<1>
// CHECK: llvm.func @leaf(%[[P:.*]]: !llvm.ptr)
// CHECK-NEXT: llvm.load %[[P]]
// CHECK: llvm.call @leaf(
// CHECK: llvm.call @leaf.1(
gpu.module @m {
  llvm.func @leaf(%p: !llvm.ptr) -> f32 {
    %0 = llvm.load %p : !llvm.ptr -> f32
    llvm.return %0 : f32
  }
  llvm.func @k(%a: i64, %b: !llvm.ptr) attributes {nvvm.kernel} {
    %p = llvm.inttoptr %a : i64 to !llvm.ptr
    %0 = llvm.call @leaf(%p) : (!llvm.ptr) -> f32
    %1 = llvm.call @leaf(%b) : (!llvm.ptr) -> f32
    llvm.return
  }
}
// -----
// A parameter by value lies in parameter memory.
// CHECK-LABEL: @by_value
// CHECK-NOT: addrspacecast
gpu.module @by_value {
  llvm.func @leaf(%p: !llvm.ptr) -> f32 {
    %0 = llvm.load %p : !llvm.ptr -> f32
    llvm.return %0 : f32
  }
  llvm.func @k(%a: !llvm.ptr {llvm.byval = f32}) attributes {nvvm.kernel} {
    %0 = llvm.call @leaf(%a) : (!llvm.ptr) -> f32
    llvm.return
  }
}
// -----
// Calls that disagree: a copy for shared memory.
// CHECK: llvm.func internal @leaf.3(
// CHECK-NEXT: to !llvm.ptr<3>
// CHECK: llvm.func @leaf(
// CHECK-NEXT: to !llvm.ptr<1>
// CHECK: llvm.call @leaf(
// CHECK: llvm.call @leaf.3(
gpu.module @m {
  llvm.func @leaf(%p: !llvm.ptr) -> f32 {
    %0 = llvm.load %p : !llvm.ptr -> f32
    llvm.return %0 : f32
  }
  llvm.func @k(%a: !llvm.ptr<1>, %b: !llvm.ptr<3>) attributes {nvvm.kernel} {
    %g = llvm.addrspacecast %a : !llvm.ptr<1> to !llvm.ptr
    %s = llvm.addrspacecast %b : !llvm.ptr<3> to !llvm.ptr
    %0 = llvm.call @leaf(%g) : (!llvm.ptr) -> f32
    %1 = llvm.call @leaf(%s) : (!llvm.ptr) -> f32
    llvm.return
  }
}
// -----
// CHECK: loc("ipmsp.mlir":[[# @LINE + 2]]:3): error: 'func.func' op is not in the llvm dialect; run 'convert-tileas-to-llvm' and MLIR's 'convert-to-llvm' before
gpu.module @m {
  func.func @f() {
    return
  }
}
