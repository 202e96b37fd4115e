// RUN: tilec opt -p tileas-shorten-steps{mma=tcgen05} --gpu-name sm_100

// tcgen05 takes bytes in rows of N: steps of half the length, of which there is room for six.
// CHECK-LABEL: func.func @bytes
// CHECK: parts_of = array<i32: 256, 128>
// CHECK: tensor<128x128xf8E4M3FN>
!ptr = !nv_tileaa.ptr<f8E4M3FN, 1 : i32>
!memref = !nv_tileaa.memref<f8E4M3FN, array<i64: -9223372036854775808, -9223372036854775808>, array<i64: -9223372036854775808, 1>>
!va = !nv_tileaa.tiled_view<!memref, array<i32: 128, 256>, array<i32: 0, 1>, "zero">
!vb = !nv_tileaa.tiled_view<!memref, array<i32: 256, 128>, array<i32: 0, 1>, "zero">
!tok = !nv_tileaa.mem_token
!left = tensor<128x256xf8E4M3FN>
!right = tensor<256x128xf8E4M3FN>
!sum = tensor<128x128xf32>
func.func @bytes(%a: !ptr, %b: !ptr, %m: i32, %n: i32, %depth: i32, %x: i32, %y: i32) -> !sum {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c128 = arith.constant 256 : i32
  %zero = arith.constant dense<0.0> : !sum
  %ma = "nv_tileaa.make_memref"(%a, %m, %depth, %depth) {operandSegmentSizes = array<i32: 1, 2, 1>} : (!ptr, i32, i32, i32) -> !memref
  %mb = "nv_tileaa.make_memref"(%b, %depth, %n, %n) {operandSegmentSizes = array<i32: 1, 2, 1>} : (!ptr, i32, i32, i32) -> !memref
  %va = "nv_tileaa.block_tile"(%ma) : (!memref) -> !va
  %vb = "nv_tileaa.block_tile"(%mb) : (!memref) -> !vb
  %count = arith.ceildivsi %depth, %c128 : i32
  %sum = scf.for %k = %c0 to %count step %c1 iter_args(%acc = %zero) -> (!sum) : i32 {
    %l:2 = "nv_tileaa.tiled_load"(%va, %x, %k) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 2, 0>} : (!va, i32, i32) -> (!left, !tok)
    %r:2 = "nv_tileaa.tiled_load"(%vb, %k, %y) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 2, 0>} : (!vb, i32, i32) -> (!right, !tok)
    %p = "nv_tileaa.dot"(%l#0, %r#0, %acc) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (!left, !right, !sum) -> !sum
    scf.yield %p : !sum
  }
  return %sum : !sum
}
