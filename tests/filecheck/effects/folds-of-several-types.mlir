// RUN: tilec opt -p convert-cudatile-to-tileaa,convert-tileaa-to-tileas,tileas-plan-accesses,tileas-assign-layouts,tileas-materialize-convert-layout --gpu-name sm_90

// Operands of several types need operations with several groups of operands; a format without
// conversions in arith has one of nv_tileaa; a scan whose axis lies over warps says so.
// CHECK: func.func @mixed
// CHECK: "nv_tileaa.int_to_fp"
// CHECK: "nv_tileas.reduce_mixed"
// CHECK: "nv_tileas.yield_mixed"
// CHECK: "nv_tileas.scan_mixed"
entry @mixed(%p: tile<ptr<f32>>) {
  %x = constant <f32: 1.0> : tile<16xf32>
  %i = iota : tile<16xi32>
  %f = itof %i signed : tile<16xi32> -> tile<16xf8E4M3FN>
  print_tko "%f", %f : tile<16xf8E4M3FN> -> token
  %r, %s = reduce %x, %i dim=0 identities=[0.0 : f32, 0 : i32] : tile<16xf32>, tile<16xi32> -> tile<f32>, tile<i32>
  (%a: tile<f32>, %b: tile<f32>, %c: tile<i32>, %d: tile<i32>) {
    %e = addf %a, %b : tile<f32>
    %g = addi %c, %d : tile<i32>
    yield %e, %g : tile<f32>, tile<i32>
  }
  print_tko "%f %d", %r, %s : tile<f32>, tile<i32> -> token
  %u, %v = scan %x, %i dim=0 reverse=false identities=[0.0 : f32, 0 : i32] : tile<16xf32>, tile<16xi32> -> tile<16xf32>, tile<16xi32>
  (%a: tile<f32>, %b: tile<f32>, %c: tile<i32>, %d: tile<i32>) {
    %e = addf %a, %b : tile<f32>
    %g = addi %c, %d : tile<i32>
    yield %e, %g : tile<f32>, tile<i32>
  }
  print_tko "%f %d", %u, %v : tile<16xf32>, tile<16xi32> -> token
  return
}
// -----
// CHECK: func.func @across
// CHECK: "nv_tileas.scan_across_warps"
entry @across(%p: tile<ptr<f32>>) {
  %x = constant <f32: 1.0> : tile<4096xf32>
  %u = scan %x dim=0 reverse=false identities=[0.0 : f32] : tile<4096xf32> -> tile<4096xf32>
  (%a: tile<f32>, %b: tile<f32>) {
    %e = addf %a, %b : tile<f32>
    yield %e : tile<f32>
  }
  print_tko "%f", %u : tile<4096xf32> -> token
  return
}
