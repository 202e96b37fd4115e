// RUN: tilec opt -p convert-cute-and-cute-nvgpu-to-llvm

// An element of a swizzled tensor of shared memory; a vector of a strided one, element by element.
// CHECK: llvm.mlir.global internal @__cute_smem_0() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<512 x f16>
// CHECK: func.func @accesses(%[[P:.*]]: !llvm.ptr<1>, %[[I:.*]]: i32)
// CHECK: %[[B:.*]] = llvm.getelementptr %{{.*}}[%{{.*}}] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f16
// CHECK: %[[I:.*]] = llvm.ptrtoint %[[B]] : !llvm.ptr<3> to i32
// CHECK: %[[X:.*]] = arith.xori %[[I]]
// CHECK: %[[A:.*]] = llvm.inttoptr %[[X]] : i32 to !llvm.ptr<3>
// CHECK: llvm.load %[[A]] : !llvm.ptr<3> -> f16
// CHECK-COUNT-2: llvm.load %{{.*}} : !llvm.ptr<1> -> f16
// CHECK: vector.from_elements %{{.*}}, %{{.*}} : vector<2xf16>
!s = !cute.memref<f16, "smem", "S<2,3,3> o 0 o (8,64):(64,1)">
!g = !cute.memref<f16, "gmem", "2:8">
gpu.module @m {
  func.func @accesses(%p: !g, %i: i32) -> vector<2xf16> {
    %s = "cute.memref_alloc_smem"() : () -> !s
    %x = "cute.memref_load"(%s, %i, %i) : (!s, i32, i32) -> f16
    "cute.memref_store"(%x, %s, %i, %i) : (f16, !s, i32, i32) -> ()
    %v = "cute.memref_load_vec"(%p) : (!g) -> vector<2xf16>
    return %v : vector<2xf16>
  }
}
// -----
// Nothing of cute: nothing changes.
// CHECK-LABEL: @unchanged
// CHECK-NEXT: func.func @f(%[[X:.*]]: i32) -> i32
// CHECK-NEXT: return %[[X]] : i32
gpu.module @unchanged {
  func.func @f(%x: i32) -> i32 {
    return %x : i32
  }
}
// -----
// CHECK: loc("convert-cute-and-cute-nvgpu-to-llvm.mlir":[[# @LINE + 6]]:5): error: 'cute.copy' op cannot vectorize copy to 8 elements (static strides must be 1) of !cute.memref<f16, smem, (8,8):(8,1)>
!s = !cute.memref<f16, "smem", "(8,8):(8,1)">
!g = !cute.memref<f16, "gmem", "(8,8):(8,1)">
!a = !cute_nvgpu.atom<"cp.async.ca.shared.global">
gpu.module @m {
  func.func @copy(%s: !s, %g: !g, %a: !a) {
    "cute.copy"(%a, %g, %s) : (!a, !g, !s) -> ()
    return
  }
}
// -----
// CHECK: error: 'cute.local_partition' op cannot cut a swizzled tensor: an address inside of it has no layout
!s = !cute.memref<f16, "gmem", "S<2,3,3> o 0 o (8,64):(64,1)">
!r = !cute.memref<f16, "gmem", "S<2,3,3> o 0 o (1,16):(0,4)">
!t = !cute.layout<"(8,4):(4,1)">
gpu.module @m {
  func.func @part(%s: !s, %t: !t, %i: i32) {
    %r = "cute.local_partition"(%s, %t, %i) : (!s, !t, i32) -> !r
    return
  }
}
// -----
// CHECK: error: 'cute.tiled_mma_partition' op makes !cute.memref<f16, smem, ((2,2,2),1,1):((1,128,8),0,0)>, but its type is
!s = !cute.memref<f16, "smem", "(16,16):(16,1)">
!r = !cute.memref<f16, "smem", "((2,2,2),1,1):((1,64,8),0,0)">
!mma = !cute.tiled_mma<"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "(1,1,1):(1,1,1)", "(16,8,16)">
gpu.module @m {
  func.func @part(%m: !mma, %s: !s, %i: i32) {
    %r = "cute.tiled_mma_partition"(%m, %s, %i) {operand = "A"} : (!mma, !s, i32) -> !r
    return
  }
}
// -----
// Offsets keep their width; larger tensors are refused, as indices into them are i32.
// CHECK: error: 'cute.memref_load' op expects less than 2^31 elements, as indices are i32
!g = !cute.memref<f16, "gmem", "(65536,65536):(65536,1)">
gpu.module @m {
  func.func @large(%p: !g, %i: i32) {
    %x = "cute.memref_load"(%p, %i, %i) : (!g, i32, i32) -> f16
    return
  }
}
// -----
// CHECK: func.func @far(%[[P:.*]]: !llvm.ptr<1>, %[[N:.*]]: i64)
// CHECK-NEXT: llvm.getelementptr %[[P]][%[[N]]] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f16
!p = !cute.ptr<f16, "gmem", 16 : i64>
gpu.module @m {
  func.func @far(%p: !p, %n: i64) {
    %q = "cute.add_offset"(%p, %n) : (!p, i64) -> !p
    return
  }
}
// -----
// CHECK: error: 'cute_nvgpu.arch_copy_sm80_cp_async' op copies what lies in a row, but got
!g = !cute.memref<f16, "gmem", "4:2">
!s = !cute.memref<f16, "smem", "4:1">
gpu.module @m {
  func.func @copy(%s: !s, %g: !g) {
    "cute_nvgpu.arch_copy_sm80_cp_async"(%s, %g) {atom = "cp.async.ca.shared.global"} : (!s, !g) -> ()
    return
  }
}
// -----
// CHECK: error: 'cute_nvgpu.arch_copy_sm80_cp_async' op copies 4, 8 or 16 bytes, but got
!g = !cute.memref<f16, "gmem", "16:1">
!s = !cute.memref<f16, "smem", "16:1">
gpu.module @m {
  func.func @copy(%s: !s, %g: !g) {
    "cute_nvgpu.arch_copy_sm80_cp_async"(%s, %g) {atom = "cp.async.ca.shared.global"} : (!s, !g) -> ()
    return
  }
}
// -----
// CHECK: error: 'cute_nvgpu.arch_copy_ldsm' op cannot be lowered for 'ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8'
!p = !cute.ptr<i8, "smem", 16 : i64>
gpu.module @m {
  func.func @wide(%p: !p) -> vector<8xi8> {
    %x = "cute_nvgpu.arch_copy_ldsm"(%p) {atom = "ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8"} : (!p) -> vector<8xi8>
    return %x : vector<8xi8>
  }
}
// -----
// CHECK: func.func @divide(%[[X:.*]]: i32, %[[D:.*]]: i32) -> i32
// CHECK-NEXT: %[[Q:.*]] = arith.divui %[[X]], %[[D]] : i32
// CHECK-NEXT: return %[[Q]]
!d = !cute.fast_divmod_divisor<32 : i32>
gpu.module @m {
  func.func @divide(%x: i32, %n: i32) -> i32 {
    %d = "cute.fast_divmod_create_divisor"(%n) : (i32) -> !d
    %q = "cute.fast_divmod_divide"(%x, %d) : (i32, !d) -> i32
    return %q : i32
  }
}
// -----
// CHECK: func.func @factory(%[[X:.*]]: i32, %[[D:.*]]: i32) -> i32
// CHECK-NEXT: %[[Q:.*]] = arith.divui %[[X]], %[[D]] : i32
!d = !cute.fast_divmod_divisor<32 : i32>
gpu.module @m {
  func.func @factory(%x: i32, %n: i32) -> i32 {
    %d = "cute.fast_divmod_make_divisor"(%n) : (i32) -> !d
    %q = "cute.fast_divmod_divide"(%x, %d) : (i32, !d) -> i32
    return %q : i32
  }
}
// -----
// CHECK: error: 'cute.print' op prints integers and floats, but got vector<2xi32>
gpu.module @m {
  func.func @print(%x: vector<2xi32>) {
    "cute.print"(%x) : (vector<2xi32>) -> ()
    return
  }
}
// -----
// Tensor memory has addresses of its own.
// CHECK: func.func @tensor(%{{.*}}: i32)
!t = !cute.memref<f32, "tmem", "(8,8):(8,1)">
gpu.module @m {
  func.func @tensor(%t: !t) {
    return
  }
}
// -----
// CHECK: error: 'cute.memref_load' op cannot swizzle addresses by S<3,0,-8>: it moves by more than 1024 bytes
!s = !cute.memref<f32, "smem", "S<3,0,-8> o 0 o (8,256):(256,1)">
gpu.module @m {
  func.func @high(%s: !s, %i: i32) {
    %x = "cute.memref_load"(%s, %i, %i) : (!s, i32, i32) -> f32
    return
  }
}
