// RUN: tilec opt -p printf-lowering

// An i32, a float that becomes a double at offset 8, a small integer.
// CHECK: llvm.func @vprintf(!llvm.ptr, !llvm.ptr) -> i32
// CHECK-NOT: @printf
// CHECK: %[[B:.*]] = llvm.alloca %{{.*}} x !llvm.struct<(i32, f64, i32)> {alignment = 8 : i64}
// CHECK: %[[D:.*]] = llvm.fpext %{{.*}} : f32 to f64
// CHECK: %[[S:.*]] = llvm.sext %{{.*}} : i8 to i32
// CHECK: %[[A:.*]] = llvm.getelementptr %[[B]][0, 1]
// CHECK-NEXT: llvm.store %[[D]], %[[A]]
// CHECK: llvm.call @vprintf(%{{.*}}, %[[B]])
gpu.module @m {
  llvm.mlir.global internal constant @text("%d %f %d\00") {addr_space = 4 : i32}
  llvm.func @printf(!llvm.ptr, ...) -> i32
  llvm.func @k(%i: i32, %f: f32, %c: i8) attributes {nvvm.kernel} {
    %t = llvm.mlir.addressof @text : !llvm.ptr<4>
    %g = llvm.addrspacecast %t : !llvm.ptr<4> to !llvm.ptr
    %0 = llvm.call @printf(%g, %i, %f, %c) vararg(!llvm.func<i32 (ptr, ...)>) : (!llvm.ptr, i32, f32, i8) -> i32
    llvm.return
  }
}
// -----
// Nothing to print with, nothing to print.
// CHECK-LABEL: @unchanged
// CHECK-NOT: vprintf
gpu.module @unchanged {
  llvm.func @k() attributes {nvvm.kernel} {
    llvm.return
  }
}
// -----
// No arguments: no buffer.
// CHECK: %[[N:.*]] = llvm.mlir.zero : !llvm.ptr
// CHECK: llvm.call @vprintf(%{{.*}}, %[[N]])
gpu.module @m {
  llvm.mlir.global internal constant @text("hello\00")
  llvm.func @printf(!llvm.ptr, ...) -> i32
  llvm.func @k() attributes {nvvm.kernel} {
    %t = llvm.mlir.addressof @text : !llvm.ptr
    %0 = llvm.call @printf(%t) vararg(!llvm.func<i32 (ptr, ...)>) : (!llvm.ptr) -> i32
    llvm.return
  }
}
// -----
// CHECK: error: 'llvm.call' op printf format string must be a constant address space pointer
gpu.module @m {
  llvm.func @printf(!llvm.ptr, ...) -> i32
  llvm.func @k(%t: !llvm.ptr) attributes {nvvm.kernel} {
    %0 = llvm.call @printf(%t) vararg(!llvm.func<i32 (ptr, ...)>) : (!llvm.ptr) -> i32
    llvm.return
  }
}
// -----
// CHECK: error: 'llvm.call' op unsupported printf form: an argument of vector<2xf32>
gpu.module @m {
  llvm.mlir.global internal constant @text("%f\00")
  llvm.func @printf(!llvm.ptr, ...) -> i32
  llvm.func @k(%v: vector<2xf32>) attributes {nvvm.kernel} {
    %t = llvm.mlir.addressof @text : !llvm.ptr
    %0 = llvm.call @printf(%t, %v) vararg(!llvm.func<i32 (ptr, ...)>) : (!llvm.ptr, vector<2xf32>) -> i32
    llvm.return
  }
}
