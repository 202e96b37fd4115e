// RUN: tilec opt -p math-to-libdevice

// A call for each element; in f32 for narrow types; the fast one where it may be.
// CHECK-LABEL: func.func @calls
// CHECK: llvm.call @__nv_erff
// CHECK: llvm.call @__nv_erff
// CHECK: vector.from_elements
// CHECK: arith.extf
// CHECK: llvm.call @__nv_tanhf
// CHECK: arith.truncf
// CHECK: llvm.call @__nv_fast_sinf
// CHECK: llvm.func @__nv_erff(f32) -> f32
gpu.module @m {
  func.func @calls(%v: vector<2xf32>, %h: bf16, %x: f32) -> (vector<2xf32>, bf16, f32) {
    %0 = math.erf %v : vector<2xf32>
    %1 = math.tanh %h : bf16
    %2 = math.sin %x fastmath<afn> : f32
    return %0, %1, %2 : vector<2xf32>, bf16, f32
  }
}
// -----
// CHECK-LABEL: @unchanged
// CHECK: math.sqrt
gpu.module @unchanged {
  func.func @f(%x: f32) -> f32 {
    %0 = math.sqrt %x : f32
    return %0 : f32
  }
}
// -----
// CHECK: error: 'math.erf' op expects a scalar or a vector of one dimension, but got vector<2x2xf32>
gpu.module @m {
  func.func @f(%x: vector<2x2xf32>) -> vector<2x2xf32> {
    %0 = math.erf %x : vector<2x2xf32>
    return %0 : vector<2x2xf32>
  }
}
