// RUN: tilec opt -p tileas-share-turns --gpu-name sm_100

// Each iteration takes one turn of both barriers, and one follows the other: behind the loop, too.
// The phase that the loop carries is that of the first one, whose turn comes before all that asks.
// Threads have 128 registers, and a tile of 256.
// CHECK-LABEL: func.func @in_step
// CHECK: scf.for
// CHECK-NEXT: %[[TURN:.*]] = "nv_tileas.barrier_turn"(%[[A:.*]]) :
// CHECK-NEXT: "nv_tileas.barrier_wait"(%[[C:.*]], %{{.*}}, %[[TURN]]) :
// CHECK-NEXT: "nv_tileas.barrier_wait"(%[[A]], %{{.*}}, %[[TURN]]) :
// CHECK-NEXT: "nv_tileas.barrier_wait"(%[[B:.*]], %{{.*}}, %[[TURN]]) :
// CHECK-NEXT: arith.xori %[[TURN]]
// CHECK: %[[LAST:.*]] = "nv_tileas.barrier_turn"(%[[A]]) :
// CHECK-NEXT: "nv_tileas.barrier_wait"(%[[A]], %{{.*}}, %[[LAST]]) :
// CHECK-NEXT: "nv_tileas.barrier_wait"(%[[B]], %{{.*}}, %[[LAST]]) :
#w = #nv_tileas.layout<": 1">
#l = #nv_tileas.layout<"register=[[1],[2],[4],[512],[1024],[2048],[4096],[8192]] lane=[[8],[16],[32],[64],[128]] warp=[[256],[16384]] : 32768">
!word = !nv_tileas.buffer<tensor<1xi64, #w>, "shared", 1 : i32>
!barrier = !nv_tileas.barrier<1 : i32, 1 : i32>
!wide = tensor<32768xf32, #l>
func.func @in_step(%n: i32, %x: !wide) -> !wide attributes {nv_tileaa.kernel, nv_tileaa.kernel_spec = {num_ctas = 1 : i32, num_warps = 4 : i32, occupancy = 4 : i32}} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %wa = "nv_tileas.alloc_tensor"() {alignment = 8 : i32, shared_offset = 0 : i32} : () -> !word
  %wb = "nv_tileas.alloc_tensor"() {alignment = 8 : i32, shared_offset = 8 : i32} : () -> !word
  %wc = "nv_tileas.alloc_tensor"() {alignment = 8 : i32, shared_offset = 16 : i32} : () -> !word
  %a = "nv_tileas.barrier_init"(%wa) : (!word) -> !barrier
  %b = "nv_tileas.barrier_init"(%wb) : (!word) -> !barrier
  %c = "nv_tileas.barrier_init"(%wc) : (!word) -> !barrier
  %end = scf.for %i = %c0 to %n step %c1 iter_args(%phase = %c0) -> (i32) : i32 {
    "nv_tileas.barrier_wait"(%c, %c0, %phase) : (!barrier, i32, i32) -> ()
    %ta = "nv_tileas.barrier_turn"(%a) : (!barrier) -> i32
    "nv_tileas.barrier_wait"(%a, %c0, %ta) : (!barrier, i32, i32) -> ()
    %tb = "nv_tileas.barrier_turn"(%b) : (!barrier) -> i32
    "nv_tileas.barrier_wait"(%b, %c0, %tb) : (!barrier, i32, i32) -> ()
    %next = arith.xori %phase, %c1 : i32
    scf.yield %next : i32
  }
  %la = "nv_tileas.barrier_turn"(%a) : (!barrier) -> i32
  "nv_tileas.barrier_wait"(%a, %c0, %la) : (!barrier, i32, i32) -> ()
  %lb = "nv_tileas.barrier_turn"(%b) : (!barrier) -> i32
  "nv_tileas.barrier_wait"(%b, %c0, %lb) : (!barrier, i32, i32) -> ()
  return %x : !wide
}
// -----
// A turn before the loop, two turns an iteration, and a turn of one branch: none is in step with
// the first, nor is a phase that begins at one.
// CHECK-LABEL: func.func @out_of_step
// CHECK: "nv_tileas.barrier_turn"(%[[A:.*]]) :
// CHECK: scf.for
// CHECK: "nv_tileas.barrier_wait"(%{{.*}}, %{{.*}}, %arg{{.*}}) :
// CHECK: "nv_tileas.barrier_turn"(%[[A]]) :
// CHECK: "nv_tileas.barrier_turn"(%[[B:.*]]) :
// CHECK: "nv_tileas.barrier_turn"(%[[C:.*]]) :
// CHECK: "nv_tileas.barrier_turn"(%[[C]]) :
// CHECK: scf.if
// CHECK: "nv_tileas.barrier_turn"(%[[D:.*]]) :
#w = #nv_tileas.layout<": 1">
#l = #nv_tileas.layout<"register=[[1],[2],[4],[512],[1024],[2048],[4096],[8192]] lane=[[8],[16],[32],[64],[128]] warp=[[256],[16384]] : 32768">
!word = !nv_tileas.buffer<tensor<1xi64, #w>, "shared", 1 : i32>
!barrier = !nv_tileas.barrier<1 : i32, 1 : i32>
!wide = tensor<32768xf32, #l>
func.func @out_of_step(%n: i32, %which: i1, %x: !wide) -> !wide attributes {nv_tileaa.kernel, nv_tileaa.kernel_spec = {num_ctas = 1 : i32, num_warps = 4 : i32, occupancy = 4 : i32}} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %wa = "nv_tileas.alloc_tensor"() {alignment = 8 : i32, shared_offset = 0 : i32} : () -> !word
  %wb = "nv_tileas.alloc_tensor"() {alignment = 8 : i32, shared_offset = 8 : i32} : () -> !word
  %wc = "nv_tileas.alloc_tensor"() {alignment = 8 : i32, shared_offset = 16 : i32} : () -> !word
  %wd = "nv_tileas.alloc_tensor"() {alignment = 8 : i32, shared_offset = 24 : i32} : () -> !word
  %a = "nv_tileas.barrier_init"(%wa) : (!word) -> !barrier
  %b = "nv_tileas.barrier_init"(%wb) : (!word) -> !barrier
  %c = "nv_tileas.barrier_init"(%wc) : (!word) -> !barrier
  %d = "nv_tileas.barrier_init"(%wd) : (!word) -> !barrier
  %early = "nv_tileas.barrier_turn"(%a) : (!barrier) -> i32
  "nv_tileas.barrier_wait"(%a, %c0, %early) : (!barrier, i32, i32) -> ()
  %end:2 = scf.for %i = %c0 to %n step %c1 iter_args(%phase = %c0, %late = %c1) -> (i32, i32) : i32 {
    "nv_tileas.barrier_wait"(%d, %c0, %phase) : (!barrier, i32, i32) -> ()
    %ta = "nv_tileas.barrier_turn"(%a) : (!barrier) -> i32
    "nv_tileas.barrier_wait"(%a, %c0, %ta) : (!barrier, i32, i32) -> ()
    %tb = "nv_tileas.barrier_turn"(%b) : (!barrier) -> i32
    "nv_tileas.barrier_wait"(%b, %c0, %tb) : (!barrier, i32, i32) -> ()
    %tc = "nv_tileas.barrier_turn"(%c) : (!barrier) -> i32
    "nv_tileas.barrier_wait"(%c, %c0, %tc) : (!barrier, i32, i32) -> ()
    %td = "nv_tileas.barrier_turn"(%c) : (!barrier) -> i32
    "nv_tileas.barrier_wait"(%c, %c0, %td) : (!barrier, i32, i32) -> ()
    scf.if %which {
      %te = "nv_tileas.barrier_turn"(%d) : (!barrier) -> i32
      "nv_tileas.barrier_wait"(%d, %c0, %te) : (!barrier, i32, i32) -> ()
    }
    %next = arith.xori %phase, %c1 : i32
    %then = arith.xori %late, %c1 : i32
    scf.yield %next, %then : i32, i32
  }
  return %x : !wide
}
// -----
// Threads have registers for all that they hold: each count has its own.
// CHECK-LABEL: func.func @has_room
// CHECK: "nv_tileas.barrier_turn"
// CHECK: "nv_tileas.barrier_turn"
#w = #nv_tileas.layout<": 1">
!word = !nv_tileas.buffer<tensor<1xi64, #w>, "shared", 1 : i32>
!barrier = !nv_tileas.barrier<1 : i32, 1 : i32>
func.func @has_room(%n: i32) attributes {nv_tileaa.kernel, nv_tileaa.kernel_spec = {num_ctas = 1 : i32, num_warps = 4 : i32}} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %wa = "nv_tileas.alloc_tensor"() {alignment = 8 : i32, shared_offset = 0 : i32} : () -> !word
  %wb = "nv_tileas.alloc_tensor"() {alignment = 8 : i32, shared_offset = 8 : i32} : () -> !word
  %a = "nv_tileas.barrier_init"(%wa) : (!word) -> !barrier
  %b = "nv_tileas.barrier_init"(%wb) : (!word) -> !barrier
  scf.for %i = %c0 to %n step %c1 : i32 {
    %ta = "nv_tileas.barrier_turn"(%a) : (!barrier) -> i32
    "nv_tileas.barrier_wait"(%a, %c0, %ta) : (!barrier, i32, i32) -> ()
    %tb = "nv_tileas.barrier_turn"(%b) : (!barrier) -> i32
    "nv_tileas.barrier_wait"(%b, %c0, %tb) : (!barrier, i32, i32) -> ()
  }
  return
}
// -----
// CHECK: error: 'nv_tileas.barrier_turn' op expects a barrier of one stage, but got 2
#w = #nv_tileas.layout<": 1">
!words = !nv_tileas.buffer<tensor<1xi64, #w>, "shared", 2 : i32>
!barrier = !nv_tileas.barrier<1 : i32, 2 : i32>
func.func @staged() {
  %w = "nv_tileas.alloc_tensor"() {alignment = 8 : i32, shared_offset = 0 : i32} : () -> !words
  %a = "nv_tileas.barrier_init"(%w) : (!words) -> !barrier
  %t = "nv_tileas.barrier_turn"(%a) : (!barrier) -> i32
  return
}
