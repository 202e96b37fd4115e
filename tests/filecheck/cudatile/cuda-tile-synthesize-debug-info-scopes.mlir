// RUN: tilec opt -p cuda-tile-synthesize-debug-info-scopes --debug-info

// The kernel gets a subprogram in the module's compile unit; operations get places in it, those
// without a position of their own the kernel's.
// CHECK: "cuda_tile.make_token"() : () -> !cuda_tile.token loc(#[[TOKEN:.*]])
// CHECK: "cuda_tile.return"() {{.*}} loc(#[[KERNEL:.*]])
// CHECK: sym_name = "k"} : () -> () loc(#[[KERNEL]])
// CHECK-DAG: #[[P5:.*]] = loc("dir/a.py":5:1)
// CHECK-DAG: #[[P7:.*]] = loc("a.py":7:3)
// CHECK: #[[KERNEL]] = loc(fused<{directory = "dir", file = "a.py", flags = 0 : i64, kind = "subprogram", line = 5 : i64, linkage_name = "k", name = "k", scope_line = 5 : i64, unit_directory = "u", unit_file = "m.py"}>[#[[P5]]])
// CHECK: #[[TOKEN]] = loc(fused<{directory = "dir", file = "a.py", flags = 0 : i64, kind = "subprogram", line = 5 : i64, linkage_name = "k", name = "k", scope_line = 5 : i64, unit_directory = "u", unit_file = "m.py"}>[#[[P7]]])
"cuda_tile.module"() ({
  "cuda_tile.entry"() ({
    %0 = "cuda_tile.make_token"() : () -> !cuda_tile.token loc("a.py":7:3)
    "cuda_tile.return"() {operandSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : () -> () loc(unknown)
  }) {function_type = () -> (), sym_name = "k"} : () -> () loc("dir/a.py":5:1)
}) {sym_name = "kernels"} : () -> () loc("u/m.py":1:1)
// -----
// A kernel that has a scope keeps it.
// CHECK: sym_name = "k"} : () -> () loc(#[[KERNEL:.*]])
// CHECK: #[[KERNEL]] = loc(fused<{{.*}}name = "old"
// CHECK-NOT: name = "k"
#p = loc("a.py":5:1)
#f = loc(fused<{directory = "", file = "a.py", flags = 0 : i64, kind = "subprogram", line = 5 : i64, linkage_name = "k", name = "old", scope_line = 5 : i64, unit_directory = "", unit_file = "a.py"}>[#p])
"cuda_tile.module"() ({
  "cuda_tile.entry"() ({
    "cuda_tile.return"() {operandSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : () -> () loc(#p)
  }) {function_type = () -> (), sym_name = "k"} : () -> () loc(#f)
}) {sym_name = "kernels"} : () -> () loc("u/m.py":1:1)
// -----
// Operations of other dialects have no place in a program.
// CHECK: error: 'arith.constant' op has no form in CUDA Tile IR
"cuda_tile.module"() ({
  "cuda_tile.entry"() ({
    %0 = arith.constant 1 : i32
    "cuda_tile.return"() {operandSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : () -> ()
  }) {function_type = () -> (), sym_name = "k"} : () -> ()
}) {sym_name = "kernels"} : () -> ()
