// RUN: tilec opt -p convert-cudatile-to-tileaa{num-warps=8} --gpu-name sm_90

// Arithmetic has its arith form, the module its launch defaults.
// CHECK: gpu.module @kernels
// CHECK-SAME: nv_tileaa.compute_capability = 90 : i32
// CHECK-SAME: tt.num_warps = 8 : i32
// CHECK: func.func @arithmetic(%[[N:.*]]: i32, %{{.*}}: !nv_tileaa.ptr<f32, 1 : i32>) attributes {nv_tileaa.kernel}
// CHECK-NEXT: %[[R:.*]] = "nv_tileaa.make_range"() : () -> tensor<64xi32>
// CHECK-NEXT: %[[A:.*]] = arith.addi %[[R]], %[[R]] overflow<nsw> : tensor<64xi32>
// CHECK-NEXT: %[[S:.*]] = "nv_tileaa.splat"(%[[N]]) : (i32) -> tensor<1xi32>
// CHECK-NEXT: %[[B:.*]] = "nv_tileaa.broadcast"(%[[S]]) : (tensor<1xi32>) -> tensor<64xi32>
// CHECK-NEXT: %[[M:.*]] = arith.maxui %[[A]], %[[B]] : tensor<64xi32>
// CHECK-NEXT: arith.cmpi slt, %[[M]], %[[B]] : tensor<64xi32>
// CHECK-NEXT: return
// CHECK-NOT: cuda_tile
!i = !cuda_tile.tile<array<i64>, i32>
!p = !cuda_tile.tile<array<i64>, !cuda_tile.ptr<f32>>
!t = !cuda_tile.tile<array<i64: 64>, i32>
!b = !cuda_tile.tile<array<i64: 64>, i1>
"cuda_tile.module"() ({
  "cuda_tile.entry"() ({
    ^bb0(%n: !i, %p: !p):
      %0 = "cuda_tile.iota"() : () -> !t
      %1 = "cuda_tile.addi"(%0, %0) {overflow = "no_signed_wrap"} : (!t, !t) -> !t
      %2 = "cuda_tile.reshape"(%n) : (!i) -> !cuda_tile.tile<array<i64: 1>, i32>
      %3 = "cuda_tile.broadcast"(%2) : (!cuda_tile.tile<array<i64: 1>, i32>) -> !t
      %4 = "cuda_tile.maxi"(%1, %3) {signedness = "unsigned"} : (!t, !t) -> !t
      %5 = "cuda_tile.cmpi"(%4, %3) {comparison_predicate = "less_than", signedness = "signed"} : (!t, !t) -> !b
      "cuda_tile.return"() {operandSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : () -> ()
  }) {function_type = () -> (), sym_name = "arithmetic"} : () -> ()
}) {sym_name = "kernels"} : () -> ()
// -----
// Floats keep their rounding mode and flush-to-zero where they are not the default.
// CHECK: func.func @floats(%[[X:.*]]: f32)
// CHECK-NEXT: %[[A:.*]] = "nv_tileaa.addf"(%[[X]], %[[X]]) : (f32, f32) -> f32
// CHECK-NEXT: %[[D:.*]] = "nv_tileaa.divf"(%[[A]], %[[X]]) {ftz, rounding_mode = "approx"} : (f32, f32) -> f32
// CHECK-NEXT: %[[M:.*]] = arith.maximumf %[[D]], %[[A]] : f32
// CHECK-NEXT: %[[F:.*]] = "nv_tileaa.fp_to_int"(%[[M]]) {signedness = "signed"} : (f32) -> i32
// CHECK-NEXT: %[[Z:.*]] = arith.constant 0 : i32
// CHECK-NEXT: arith.subi %[[Z]], %[[F]] : i32
!f = !cuda_tile.tile<array<i64>, f32>
!i = !cuda_tile.tile<array<i64>, i32>
"cuda_tile.module"() ({
  "cuda_tile.entry"() ({
    ^bb0(%x: !f):
      %0 = "cuda_tile.addf"(%x, %x) {rounding_mode = "nearest_even"} : (!f, !f) -> !f
      %1 = "cuda_tile.divf"(%0, %x) {rounding_mode = "approx", flush_to_zero} : (!f, !f) -> !f
      %2 = "cuda_tile.maxf"(%1, %0) {propagate_nan} : (!f, !f) -> !f
      %3 = "cuda_tile.ftoi"(%2) {signedness = "signed", rounding_mode = "nearest_int_to_zero"} : (!f) -> !i
      %4 = "cuda_tile.negi"(%3) {overflow = "none"} : (!i) -> !i
      "cuda_tile.return"() {operandSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : () -> ()
  }) {function_type = () -> (), sym_name = "floats"} : () -> ()
}) {sym_name = "kernels"} : () -> ()
// -----
// Views become memrefs and grids of tiles; sizes of an index space are counted in tiles.
// CHECK: func.func @views(%[[P:.*]]: !nv_tileaa.ptr<f32, 1 : i32>, %[[N:.*]]: i32)
// CHECK-NEXT: %[[T:.*]] = "nv_tileaa.create_mem_token"()
// CHECK-NEXT: %[[M:.*]] = "nv_tileaa.make_memref"(%[[P]], %[[N]])
// CHECK-NEXT: %[[V:.*]] = "nv_tileaa.block_tile"(%[[M]])
// CHECK-NEXT: %[[D:.*]] = "nv_tileaa.get_dim_size"(%[[M]]) {dim = 0 : i32}
// CHECK-NEXT: %[[C:.*]] = arith.constant 64 : i32
// CHECK-NEXT: arith.ceildivui %[[D]], %[[C]] : i32
// CHECK-NEXT: %[[I:.*]] = "nv_tileaa.get_program_id"() {axis = 0 : i32} : () -> i32
// CHECK: "nv_tileaa.tiled_load"(%[[V]], %[[I]], %[[T]]) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 1, 1>}
// CHECK-SAME: -> (tensor<64xf32>, !nv_tileaa.mem_token)
// Hints of this target stand over those of all; those of others, and such as mean nothing, go.
// CHECK: "nv_tileaa.tiled_store"
// CHECK-SAME: {hints = {allow_tma = false, latency = 3 : i32}, mem_semantic = "weak"
!p = !cuda_tile.tile<array<i64>, !cuda_tile.ptr<f32>>
!i = !cuda_tile.tile<array<i64>, i32>
!tok = !cuda_tile.token
!mem = !cuda_tile.tensor_view<f32, array<i64: -9223372036854775808>, array<i64: 1>, "">
!view = !cuda_tile.partition_view<array<i32: 64>, !mem, array<i32: 0>, "zero">
!t = !cuda_tile.tile<array<i64: 64>, f32>
"cuda_tile.module"() ({
  "cuda_tile.entry"() ({
    ^bb0(%p: !p, %n: !i):
      %0 = "cuda_tile.make_token"() : () -> !tok
      %1 = "cuda_tile.make_tensor_view"(%p, %n) {operandSegmentSizes = array<i32: 1, 1, 0>} : (!p, !i) -> !mem
      %2 = "cuda_tile.make_partition_view"(%1) : (!mem) -> !view
      %3 = "cuda_tile.get_index_space_shape"(%2) : (!view) -> !i
      %4:3 = "cuda_tile.get_tile_block_id"() : () -> (!i, !i, !i)
      %5:2 = "cuda_tile.load_view_tko"(%2, %4#0, %0) {inbounds = array<i1: false>, memory_ordering_semantics = "weak", operandSegmentSizes = array<i32: 1, 1, 0, 0, 1>} : (!view, !i, !tok) -> (!t, !tok)
      %6 = "cuda_tile.store_view_tko"(%5#0, %2, %4#0, %5#1) {inbounds = array<i1: false>, memory_ordering_semantics = "weak", optimization_hints = {default = {allow_tma = false, latency = 2 : i64, speed = 9 : i64}, sm_80 = {latency = 7 : i64}, sm_90 = {latency = 3 : i64}}, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 1>} : (!t, !view, !i, !tok) -> !tok
      "cuda_tile.return"() {operandSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : () -> ()
  }) {function_type = () -> (), sym_name = "views"} : () -> ()
}) {sym_name = "kernels"} : () -> ()
// -----
// A branch that returns early: what follows runs under its code.
// CHECK: func.func @leaves(%[[C:.*]]: i1, %[[P:.*]]: !nv_tileaa.ptr<f32, 1 : i32>)
// CHECK-NEXT: %[[CODE:.*]] = scf.if %[[C]] -> (i32) {
// CHECK: %[[RETURN:.*]] = arith.constant 3 : i32
// CHECK: scf.yield %[[RETURN]] : i32
// CHECK: } else {
// CHECK: %[[ON:.*]] = arith.constant 0 : i32
// CHECK: scf.yield %[[ON]] : i32
// CHECK: %[[ZERO:.*]] = arith.constant 0 : i32
// CHECK: %[[GOES:.*]] = arith.cmpi eq, %[[CODE]], %[[ZERO]] : i32
// CHECK: scf.if %[[GOES]]
// CHECK: nv_tileaa.ptr_to_int
// CHECK: return
// CHECK-NOT: ptr_to_int
!c = !cuda_tile.tile<array<i64>, i1>
!p = !cuda_tile.tile<array<i64>, !cuda_tile.ptr<f32>>
"cuda_tile.module"() ({
  "cuda_tile.entry"() ({
    ^bb0(%c: !c, %p: !p):
      "cuda_tile.if"(%c) ({
        "cuda_tile.return"() {operandSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : () -> ()
      }, {
      }) {resultSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (!c) -> ()
      %0 = "cuda_tile.ptr_to_int"(%p) : (!p) -> !cuda_tile.tile<array<i64>, i64>
      "cuda_tile.return"() {operandSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : () -> ()
  }) {function_type = () -> (), sym_name = "leaves"} : () -> ()
}) {sym_name = "kernels"} : () -> ()
// -----
// What a block allocates is freed at its end; dependent grids and fences hand their tokens on.
// CHECK: func.func @asks_the_system
// CHECK-NEXT: %[[A:.*]]:2 = "nv_tileaa.alloca"() {alignment = 64 : i64, size = 40 : i64} : () -> (!nv_tileaa.ptr<f32, 1 : i32>, !nv_tileaa.ptr<i8, 1 : i32>)
// CHECK-NEXT: %[[W:.*]] = "nv_tileaa.gdc_wait"() : () -> !nv_tileaa.mem_token
// CHECK-NEXT: %[[F:.*]] = "nv_tileaa.fence_alias"(%[[W]])
// CHECK-NEXT: "nv_tileaa.gdc_launch_dependents"(%[[F]])
// CHECK-NEXT: "nv_tileaa.free"(%[[A]]#1)
// CHECK-NEXT: return
!p = !cuda_tile.tile<array<i64>, !cuda_tile.ptr<f32>>
!k = !cuda_tile.token
"cuda_tile.module"() ({
  "cuda_tile.entry"() ({
      %0 = "cuda_tile.alloca"() {num_elem = 10 : i64, alignment = 64 : i64} : () -> !p
      %1 = "cuda_tile.gdc_wait_tko"() : () -> !k
      %2 = "cuda_tile.memory_fence_alias_tko"(%1) : (!k) -> !k
      %3 = "cuda_tile.gdc_launch_dependents_tko"(%2) : (!k) -> !k
      "cuda_tile.return"() {operandSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : () -> ()
  }) {function_type = () -> (), sym_name = "asks_the_system"} : () -> ()
}) {sym_name = "kernels"} : () -> ()
// -----
// A tile takes the place of a slice; of the whole tile, that tile is the result.
// CHECK: func.func @inserts(%[[I:.*]]: i32)
// CHECK: %[[X:.*]] = "nv_tileaa.make_range"() : () -> tensor<8xi32>
// CHECK-NEXT: %[[Y:.*]] = "nv_tileaa.make_range"() : () -> tensor<64xi32>
// CHECK-NEXT: %[[Z:.*]] = "nv_tileaa.insert_slice"(%[[X]], %[[Y]], %[[I]]) : (tensor<8xi32>, tensor<64xi32>, i32) -> tensor<64xi32>
// CHECK-NEXT: arith.addi %[[Z]], %[[Y]]
!i = !cuda_tile.tile<array<i64>, i32>
!s = !cuda_tile.tile<array<i64: 8>, i32>
!t = !cuda_tile.tile<array<i64: 64>, i32>
"cuda_tile.module"() ({
  "cuda_tile.entry"() ({
    ^bb0(%n: !i):
      %0 = "cuda_tile.iota"() : () -> !s
      %1 = "cuda_tile.iota"() : () -> !t
      %2 = "cuda_tile.insert"(%0, %1, %n) : (!s, !t, !i) -> !t
      %3 = "cuda_tile.insert"(%2, %1, %n) : (!t, !t, !i) -> !t
      %4 = "cuda_tile.addi"(%3, %1) {overflow = "none"} : (!t, !t) -> !t
      "cuda_tile.return"() {operandSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : () -> ()
  }) {function_type = () -> (), sym_name = "inserts"} : () -> ()
}) {sym_name = "kernels"} : () -> ()
// -----
// CHECK: loc("convert-cudatile-to-tileaa.mlir":[[# @LINE + 6]]:12): error: 'cuda_tile.offset' op works on elements of type f4E2M1FN in memory, which is not supported
!i = !cuda_tile.tile<array<i64>, i32>
!p = !cuda_tile.tile<array<i64>, !cuda_tile.ptr<f4E2M1FN>>
"cuda_tile.module"() ({
  "cuda_tile.entry"() ({
    ^bb0(%n: !i, %p: !p):
      %0 = "cuda_tile.offset"(%p, %n) : (!p, !i) -> !p
      "cuda_tile.return"() {operandSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : () -> ()
  }) {function_type = () -> (), sym_name = "halves"} : () -> ()
}) {sym_name = "kernels"} : () -> ()
// -----
// There is nothing of cuda_tile here: kernels of a later stage only get launch defaults.
// CHECK: func.func @later(%[[X:.*]]: tensor<64xf32>) attributes {nv_tileaa.kernel} {
// CHECK-NEXT: %[[Y:.*]] = "nv_tileaa.sqrt"(%[[X]]) : (tensor<64xf32>) -> tensor<64xf32>
// CHECK-NEXT: math.absf %[[Y]] : tensor<64xf32>
// CHECK-NEXT: return
gpu.module @kernels {
  func.func @later(%x: tensor<64xf32>) attributes {nv_tileaa.kernel} {
    %0 = "nv_tileaa.sqrt"(%x) : (tensor<64xf32>) -> tensor<64xf32>
    %1 = math.absf %0 : tensor<64xf32>
    return
  }
}
// -----
// CHECK: loc("convert-cudatile-to-tileaa.mlir":[[# @LINE + 5]]:12): error: 'cuda_tile.divi' op rounding mode 'negative_inf' is not allowed with 'unsigned' flag
!i = !cuda_tile.tile<array<i64>, i32>
"cuda_tile.module"() ({
  "cuda_tile.entry"() ({
    ^bb0(%n: !i):
      %0 = "cuda_tile.divi"(%n, %n) {rounding = "negative_inf", signedness = "unsigned"} : (!i, !i) -> !i
      "cuda_tile.return"() {operandSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : () -> ()
  }) {function_type = () -> (), sym_name = "divides"} : () -> ()
}) {sym_name = "kernels"} : () -> ()
// -----
// A loop that a return may end says so in a result of its own; what follows it looks there.
// CHECK: %[[R:.*]] = scf.while
// CHECK: scf.yield %{{.*}}, %{{.*}} : i1, i1
// CHECK: %[[C:.*]] = arith.select %[[R]], %c3_i32, %c0_i32
// CHECK: %[[ON:.*]] = arith.cmpi eq, %[[C]], %c0_i32
// CHECK: scf.if %[[ON]]
"cuda_tile.module"() ({
  "cuda_tile.entry"() ({
    "cuda_tile.loop"() ({
      "cuda_tile.return"() {operandSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : () -> ()
    }) {operandSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : () -> ()
    "cuda_tile.return"() {operandSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : () -> ()
  }) {function_type = () -> (), sym_name = "k"} : () -> ()
}) {sym_name = "kernels"} : () -> ()
