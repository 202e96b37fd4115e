// RUN: tilec opt -p nvptx-compute-in-pieces --gpu-name sm_90

// 16 blocks of 128 threads leave 32 registers to each, and 16 of them to tiles. Products of 8 by 8
// elements take 16 for the product and 8 for the halves before: two elements after the other take 6,
// beside what goes out.
// CHECK: llvm.func @rounds
// CHECK: llvm.shufflevector %[[X:.*]], %[[X]] [0, 1]
// CHECK: llvm.mul {{.*}} : vector<2xi64>
// CHECK: llvm.xor {{.*}} : vector<2xi32>
// CHECK: llvm.shufflevector %[[X]], %[[X]] [2, 3]
// CHECK: llvm.mul {{.*}} : vector<2xi64>
// CHECK: llvm.shufflevector %[[X]], %[[X]] [6, 7]
// CHECK: %[[OUT:.*]] = llvm.shufflevector {{.*}} [0, 1, 2, 3, 4, 5, 6, 7]
// CHECK-NEXT: llvm.store %[[OUT]]
// CHECK-NOT: vector<8xi64>
gpu.module @m {
  llvm.func @rounds(%p: !llvm.ptr<1>, %n: i32) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 128>, nvvm.minctasm = 16 : i32} {
    %zero = llvm.mlir.constant(0 : i32) : i32
    %none = llvm.mlir.poison : vector<8xi32>
    %one = llvm.insertelement %n, %none[%zero : i32] : vector<8xi32>
    %all = llvm.shufflevector %one, %one [0, 0, 0, 0, 0, 0, 0, 0] : vector<8xi32>
    %times = llvm.mlir.constant(dense<3528531795> : vector<8xi64>) : vector<8xi64>
    %half = llvm.mlir.constant(dense<32> : vector<8xi64>) : vector<8xi64>
    %x = llvm.load %p : !llvm.ptr<1> -> vector<8xi32>
    %0 = llvm.zext %x : vector<8xi32> to vector<8xi64>
    %1 = llvm.mul %0, %times : vector<8xi64>
    %2 = llvm.lshr %1, %half : vector<8xi64>
    %3 = llvm.trunc %2 : vector<8xi64> to vector<8xi32>
    %4 = llvm.trunc %1 : vector<8xi64> to vector<8xi32>
    %5 = llvm.xor %3, %4 : vector<8xi32>
    %6 = llvm.add %5, %all : vector<8xi32>
    llvm.store %6, %p : vector<8xi32>, !llvm.ptr<1>
    llvm.return
  }
}
// -----
// With 128 registers they stay together.
// CHECK: llvm.func @room
// CHECK: llvm.mul {{.*}} : vector<8xi64>
// CHECK-NOT: vector<2x
gpu.module @m {
  llvm.func @room(%p: !llvm.ptr<1>) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 128>, nvvm.minctasm = 4 : i32} {
    %times = llvm.mlir.constant(dense<3528531795> : vector<8xi64>) : vector<8xi64>
    %half = llvm.mlir.constant(dense<32> : vector<8xi64>) : vector<8xi64>
    %x = llvm.load %p : !llvm.ptr<1> -> vector<8xi32>
    %0 = llvm.zext %x : vector<8xi32> to vector<8xi64>
    %1 = llvm.mul %0, %times : vector<8xi64>
    %2 = llvm.lshr %1, %half : vector<8xi64>
    %3 = llvm.trunc %2 : vector<8xi64> to vector<8xi32>
    %4 = llvm.trunc %1 : vector<8xi64> to vector<8xi32>
    %5 = llvm.xor %3, %4 : vector<8xi32>
    llvm.store %5, %p : vector<8xi32>, !llvm.ptr<1>
    llvm.return
  }
}
// -----
// Nothing is gained where all that counts comes in from memory and goes back to it.
// CHECK: llvm.func @sums
// CHECK: llvm.fadd {{.*}} : vector<16xf32>
// CHECK-NOT: vector<2x
gpu.module @m {
  llvm.func @sums(%p: !llvm.ptr<1>, %q: !llvm.ptr<1>) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 128>, nvvm.minctasm = 16 : i32} {
    %x = llvm.load %p : !llvm.ptr<1> -> vector<16xf32>
    %y = llvm.load %q : !llvm.ptr<1> -> vector<16xf32>
    %0 = llvm.fadd %x, %y : vector<16xf32>
    llvm.store %0, %p : vector<16xf32>, !llvm.ptr<1>
    llvm.return
  }
}
// -----
// CHECK: loc("nvptx-compute-in-pieces.mlir":[[# @LINE + 2]]:3): error: 'func.func' op is not in the llvm dialect; run 'convert-tileas-to-llvm' and MLIR's 'convert-to-llvm' before
gpu.module @m {
  func.func @f() {
    return
  }
}
