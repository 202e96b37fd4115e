// RUN: tilec opt -p tileas-reuse-loads

// A thread has four elements in a row. Those that lie aligned are loaded as a vector, in front; of
// those one to the left, three are there already.
// CHECK-LABEL: func.func @shared
// CHECK: %[[WHOLE:[0-9]*]]:2 = "nv_tileas.load"({{[^)]*}})
// CHECK-SAME: vector = 4 : i32
// CHECK: %[[LEFT:[0-9]*]] = "nv_tileas.load_rest"(%{{[0-9]*}}, %[[WHOLE]]#0)
// CHECK-SAME: registers = array<i32: 0, 0, 1, 2>, sources = array<i32: -1, 0, 0, 0>
// CHECK: arith.addf %[[LEFT]], %[[WHOLE]]#0
#l = #nv_tileas.layout<"register=[[1],[2]] lane=[[4],[8],[16],[32],[64]] : 128">
!p = !nv_tileaa.ptr<f32, 1 : i32>
!ps = tensor<128x!p, #l>
!is = tensor<128xi32, #l>
!x = tensor<128xf32, #l>
!t = !nv_tileaa.mem_token
func.func @shared(%p: !p) -> !x {
  %t = "nv_tileaa.create_mem_token"() : () -> !t
  %one = arith.constant dense<1> : !is
  %r = "nv_tileaa.make_range"() {start = 0 : i32, end = 128 : i32} : () -> !is
  %b = "nv_tileaa.splat"(%p) : (!p) -> !ps
  %i = arith.subi %r, %one : !is
  %q = "nv_tileaa.addptr"(%b, %i) : (!ps, !is) -> !ps
  %left:2 = "nv_tileas.load"(%q, %t) {access = {checked = array<i32>, order = array<i32: 0>, vector = 1 : i32}, mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 0, 0, 1>} : (!ps, !t) -> (!x, !t)
  %v = "nv_tileaa.addptr"(%b, %r) : (!ps, !is) -> !ps
  %whole:2 = "nv_tileas.load"(%v, %t) {access = {checked = array<i32>, order = array<i32: 0>, vector = 4 : i32}, mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 0, 0, 1>} : (!ps, !t) -> (!x, !t)
  %s = arith.addf %left#0, %whole#0 : !x
  return %s : !x
}
// -----
// What is written in between may be what is read: by program order, and by tokens, of which the
// second load has one that waits for more.
// CHECK-LABEL: func.func @written_between
// CHECK-NOT: load_rest
#l = #nv_tileas.layout<"register=[[1],[2]] lane=[[4],[8],[16],[32],[64]] : 128">
!p = !nv_tileaa.ptr<f32, 1 : i32>
!ps = tensor<128x!p, #l>
!is = tensor<128xi32, #l>
!x = tensor<128xf32, #l>
!t = !nv_tileaa.mem_token
func.func @written_between(%p: !p, %other: !t) -> !x {
  %t = "nv_tileaa.create_mem_token"() : () -> !t
  %one = arith.constant dense<1> : !is
  %r = "nv_tileaa.make_range"() {start = 0 : i32, end = 128 : i32} : () -> !is
  %b = "nv_tileaa.splat"(%p) : (!p) -> !ps
  %i = arith.subi %r, %one : !is
  %q = "nv_tileaa.addptr"(%b, %i) : (!ps, !is) -> !ps
  %v = "nv_tileaa.addptr"(%b, %r) : (!ps, !is) -> !ps
  %a:2 = "nv_tileas.load"(%q, %t) {access = {checked = array<i32>, order = array<i32: 0>, vector = 1 : i32}, mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 0, 0, 1>} : (!ps, !t) -> (!x, !t)
  %w = "nv_tileas.store"(%v, %a#0, %t) {access = {checked = array<i32>, order = array<i32: 0>, vector = 4 : i32}, mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 1, 0, 1>} : (!ps, !x, !t) -> !t
  %c:2 = "nv_tileas.load"(%v, %t) {access = {checked = array<i32>, order = array<i32: 0>, vector = 4 : i32}, mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 0, 0, 1>} : (!ps, !t) -> (!x, !t)
  %d:2 = "nv_tileas.load"(%q, %other) {access = {checked = array<i32>, order = array<i32: 0>, vector = 1 : i32}, mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 0, 0, 1>} : (!ps, !t) -> (!x, !t)
  %s = arith.addf %c#0, %d#0 : !x
  return %s : !x
}
// -----
// Other elements: of an unknown number of places, of another mask, of an acquiring load, of loads
// that each ask memory anew.
// CHECK-LABEL: func.func @others
// CHECK-NOT: load_rest
#l = #nv_tileas.layout<"register=[[1],[2]] lane=[[4],[8],[16],[32],[64]] : 128">
!p = !nv_tileaa.ptr<f32, 1 : i32>
!ps = tensor<128x!p, #l>
!is = tensor<128xi32, #l>
!m = tensor<128xi1, #l>
!x = tensor<128xf32, #l>
!t = !nv_tileaa.mem_token
func.func @others(%p: !p, %n: i32, %m: !m) -> !x {
  %t = "nv_tileaa.create_mem_token"() : () -> !t
  %one = arith.constant dense<1> : !is
  %r = "nv_tileaa.make_range"() {start = 0 : i32, end = 128 : i32} : () -> !is
  %b = "nv_tileaa.splat"(%p) : (!p) -> !ps
  %far = "nv_tileaa.splat"(%n) : (i32) -> !is
  %i = arith.subi %r, %one : !is
  %j = arith.subi %r, %far : !is
  %q = "nv_tileaa.addptr"(%b, %i) : (!ps, !is) -> !ps
  %u = "nv_tileaa.addptr"(%b, %j) : (!ps, !is) -> !ps
  %v = "nv_tileaa.addptr"(%b, %r) : (!ps, !is) -> !ps
  %a:2 = "nv_tileas.load"(%v, %t) {access = {checked = array<i32>, order = array<i32: 0>, vector = 4 : i32}, mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 0, 0, 1>} : (!ps, !t) -> (!x, !t)
  %c:2 = "nv_tileas.load"(%u, %t) {access = {checked = array<i32>, order = array<i32: 0>, vector = 1 : i32}, mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 0, 0, 1>} : (!ps, !t) -> (!x, !t)
  %d:2 = "nv_tileas.load"(%v, %m, %t) {access = {checked = array<i32>, order = array<i32: 0>, vector = 1 : i32}, mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 1, 0, 1>} : (!ps, !m, !t) -> (!x, !t)
  %e:2 = "nv_tileas.load"(%q, %m, %t) {access = {checked = array<i32>, order = array<i32: 0>, vector = 1 : i32}, mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 1, 0, 1>} : (!ps, !m, !t) -> (!x, !t)
  %f:2 = "nv_tileas.load"(%v, %t) {access = {checked = array<i32>, order = array<i32: 0>, vector = 4 : i32}, cache_modifier = "cv", mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 0, 0, 1>} : (!ps, !t) -> (!x, !t)
  %g:2 = "nv_tileas.load"(%q, %t) {access = {checked = array<i32>, order = array<i32: 0>, vector = 1 : i32}, cache_modifier = "cv", mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 0, 0, 1>} : (!ps, !t) -> (!x, !t)
  %h:2 = "nv_tileas.load"(%q, %t) {access = {checked = array<i32>, order = array<i32: 0>, vector = 1 : i32}, mem_scope = "gpu", mem_semantic = "acquire", operandSegmentSizes = array<i32: 1, 0, 0, 1>} : (!ps, !t) -> (!x, !t)
  %s = arith.addf %a#0, %c#0 : !x
  %s1 = arith.addf %d#0, %e#0 : !x
  %s2 = arith.addf %f#0, %g#0 : !x
  %s3 = arith.addf %s, %s1 : !x
  %s4 = arith.addf %s2, %h#0 : !x
  %s5 = arith.addf %s3, %s4 : !x
  return %s5 : !x
}
// -----
// What another block wrote before is read behind a load that acquires it.
// CHECK-LABEL: func.func @acquired_between
// CHECK-NOT: load_rest
#l = #nv_tileas.layout<"register=[[1],[2]] lane=[[4],[8],[16],[32],[64]] : 128">
!p = !nv_tileaa.ptr<f32, 1 : i32>
!ps = tensor<128x!p, #l>
!is = tensor<128xi32, #l>
!x = tensor<128xf32, #l>
!t = !nv_tileaa.mem_token
func.func @acquired_between(%p: !p) -> !x {
  %t = "nv_tileaa.create_mem_token"() : () -> !t
  %one = arith.constant dense<1> : !is
  %r = "nv_tileaa.make_range"() {start = 0 : i32, end = 128 : i32} : () -> !is
  %b = "nv_tileaa.splat"(%p) : (!p) -> !ps
  %i = arith.subi %r, %one : !is
  %q = "nv_tileaa.addptr"(%b, %i) : (!ps, !is) -> !ps
  %v = "nv_tileaa.addptr"(%b, %r) : (!ps, !is) -> !ps
  %a:2 = "nv_tileas.load"(%q, %t) {access = {checked = array<i32>, order = array<i32: 0>, vector = 1 : i32}, mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 0, 0, 1>} : (!ps, !t) -> (!x, !t)
  %c:2 = "nv_tileas.load"(%q, %t) {access = {checked = array<i32>, order = array<i32: 0>, vector = 1 : i32}, mem_scope = "gpu", mem_semantic = "acquire", operandSegmentSizes = array<i32: 1, 0, 0, 1>} : (!ps, !t) -> (!x, !t)
  %d:2 = "nv_tileas.load"(%v, %t) {access = {checked = array<i32>, order = array<i32: 0>, vector = 4 : i32}, mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 0, 0, 1>} : (!ps, !t) -> (!x, !t)
  %s = arith.addf %a#0, %c#0 : !x
  %u = arith.addf %s, %d#0 : !x
  return %u : !x
}
// -----
// What assembly makes of two indices at a time may be of its neighbour.
// CHECK-LABEL: func.func @neighbours
// CHECK-NOT: load_rest
#l = #nv_tileas.layout<"register=[[1],[2]] lane=[[4],[8],[16],[32],[64]] : 128">
!p = !nv_tileaa.ptr<f32, 1 : i32>
!ps = tensor<128x!p, #l>
!is = tensor<128xi16, #l>
!x = tensor<128xf32, #l>
!t = !nv_tileaa.mem_token
func.func @neighbours(%p: !p) -> !x {
  %t = "nv_tileaa.create_mem_token"() : () -> !t
  %one = arith.constant dense<1> : !is
  %r = "nv_tileaa.make_range"() : () -> !is
  %b = "nv_tileaa.splat"(%p) : (!p) -> !ps
  %next = arith.addi %r, %one : !is
  %i = "nv_tileaa.elementwise_inline_asm"(%r) {asm = "prmt.b32 $0, $1, 0, 0x1032;", constraints = "=r,r", packed_element = 2 : i32, pure} : (!is) -> !is
  %j = "nv_tileaa.elementwise_inline_asm"(%next) {asm = "prmt.b32 $0, $1, 0, 0x1032;", constraints = "=r,r", packed_element = 2 : i32, pure} : (!is) -> !is
  %q = "nv_tileaa.addptr"(%b, %i) : (!ps, !is) -> !ps
  %v = "nv_tileaa.addptr"(%b, %j) : (!ps, !is) -> !ps
  %a:2 = "nv_tileas.load"(%q, %t) {access = {checked = array<i32>, order = array<i32: 0>, vector = 1 : i32}, mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 0, 0, 1>} : (!ps, !t) -> (!x, !t)
  %c:2 = "nv_tileas.load"(%v, %t) {access = {checked = array<i32>, order = array<i32: 0>, vector = 1 : i32}, mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 0, 0, 1>} : (!ps, !t) -> (!x, !t)
  %s = arith.addf %a#0, %c#0 : !x
  return %s : !x
}
// -----
// CHECK: error: 'nv_tileas.load_rest' op has registers that are none of 4
#l = #nv_tileas.layout<"register=[[1],[2]] lane=[[4],[8],[16],[32],[64]] : 128">
!ps = tensor<128x!nv_tileaa.ptr<f32, 1 : i32>, #l>
!x = tensor<128xf32, #l>
func.func @invalid(%p: !ps, %x: !x) -> !x {
  %r = "nv_tileas.load_rest"(%p, %x) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 0, 0, 1>, registers = array<i32: 0, 1, 2, 4>, sources = array<i32: 0, 0, -1, 0>} : (!ps, !x) -> !x
  return %r : !x
}
