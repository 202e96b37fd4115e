// RUN: tilec opt -p nv-inline-must --remarks -

// 400 bytes of parameters, a result of 160 bytes, and a wrapper of libdevice.
// CHECK: llvm.func @large(%{{.*}}) attributes {always_inline}
// CHECK: llvm.func @wide(%{{.*}}) -> !llvm.array<40 x f32> attributes {always_inline}
// CHECK: llvm.func @wrapper(%{{.*}}) -> f32 attributes {always_inline}
gpu.module @m {
  llvm.func @large(%a: !llvm.array<100 x f32>) {
    llvm.return
  }
  llvm.func @wide(%a: !llvm.ptr) -> !llvm.array<40 x f32> {
    %0 = llvm.load %a : !llvm.ptr -> !llvm.array<40 x f32>
    llvm.return %0 : !llvm.array<40 x f32>
  }
  llvm.func @__nv_expf(f32) -> f32
  llvm.func @wrapper(%a: f32) -> f32 {
    %0 = llvm.call @__nv_expf(%a) : (f32) -> f32
    llvm.return %0 : f32
  }
}
// -----
// A kernel, a small function, one that must not be inlined.
// CHECK-LABEL: @unchanged
// CHECK-NOT: always_inline
gpu.module @unchanged {
  llvm.func @kernel(%a: !llvm.array<100 x f32>) attributes {nvvm.kernel} {
    llvm.return
  }
  llvm.func @small(%a: !llvm.ptr) {
    llvm.return
  }
  llvm.func @kept(%a: !llvm.array<100 x f32>) attributes {no_inline} {
    llvm.return
  }
}
// -----
// CHECK: not AlwaysInline into callers: @again calls itself
gpu.module @m {
  llvm.func @again(%a: !llvm.array<100 x f32>) {
    llvm.call @again(%a) : (!llvm.array<100 x f32>) -> ()
    llvm.return
  }
}
// -----
// CHECK: loc("nv-inline-must.mlir":[[# @LINE + 2]]:3): error: 'func.func' op is not in the llvm dialect; run 'convert-tileas-to-llvm' and MLIR's 'convert-to-llvm' before
gpu.module @m {
  func.func @f() {
    return
  }
}
