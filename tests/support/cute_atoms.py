"""Kernels written with cute that copy by atoms as values."""

from __future__ import annotations

from support.cute_blackwell import LOAD, MOVES

STORE = "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group"
REDUCE = "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group"

#: y = x and z += x, boxes of 8 rows of 64 by block; all waits are for the barrier of the atom.
BOXES = (
    """
!map = !cute_nvgpu.tma_descriptor_tiled<"f16", "8x64", "128B">
!bar = !cute.ptr<i64, "smem", 8 : i64>
!bars = !cute.memref<i64, "smem", "1:1">
!s = !cute.memref<f16, "smem", "S<3,3,3> o 0 o (8,64):(64,1)">
!at = !cute.coord<"(?,0)">
!load = !cute_nvgpu.atom<"LOAD">
!store = !cute_nvgpu.atom<"STORE">
!reduce = !cute_nvgpu.atom<"REDUCE">
gpu.module @m {
  func.func @boxes(%mx: !map, %my: !map, %mz: !map) attributes {
      nv_tileaa.kernel, nv_tileaa.kernel_spec = {num_ctas = 1 : i32, num_warps = 2 : i32}} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %b = nvvm.read.ptx.sreg.ctaid.x : i32
    %i0 = arith.constant 0 : i32
    %i1 = arith.constant 1 : i32
    %i8 = arith.constant 8 : i32
    %bytes = arith.constant 1024 : i32
    %ticks = arith.constant 10000000 : i32
    %s = "cute.memref_alloc_smem"() : () -> !s
    %bars = "cute.memref_alloc_smem"() : () -> !bars
    %own = "cute.get_iter"(%bars) : (!bars) -> !bar
    %unbound = "cute_nvgpu.atom_make_non_exec_tiled_tma_load"(%mx) : (!map) -> !load
    %load = "cute_nvgpu.atom_make_exec_tma"(%unbound, %own) : (!load, !bar) -> !load
    %store = "cute_nvgpu.atom_make_tma_store"(%my) : (!map) -> !store
    %idle = "cute_nvgpu.atom_make_non_exec_tiled_tma_reduce"(%mz) : (!map) -> !reduce
    %reduce = "cute_nvgpu.atom_make_exec_tma"(%idle) : (!reduce) -> !reduce
    %bar = "cute_nvgpu.atom_get_value"(%load) {field = "barrier"} : (!load) -> !bar
    %pb = builtin.unrealized_conversion_cast %bar : !bar to !llvm.ptr<3>
    %t0 = arith.cmpi eq, %t, %i0 : i32
    scf.if %t0 {
      nvvm.mbarrier.init %pb, %i1 : !llvm.ptr<3>, i32
      nvvm.fence.mbarrier.init
    }
    nvvm.barrier
    %row = arith.muli %b, %i8 : i32
    %at = "cute.make_coord"(%row) : (i32) -> !at
    scf.if %t0 {
      %map = "cute_nvgpu.atom_get_value"(%load) {field = "map"} : (!load) -> !map
      "cute_nvgpu.prefetch_tma_desc"(%map) : (!map) -> ()
      nvvm.mbarrier.arrive.expect_tx %pb, %bytes : !llvm.ptr<3>, i32
      "cute.copy_atom_call"(%load, %at, %s) : (!load, !at, !s) -> ()
    }
    nvvm.mbarrier.try_wait.parity %pb, %i0, %ticks : !llvm.ptr<3>, i32, i32
    scf.for %i = %i0 to %i8 step %i1 : i32 {
      %v = "cute.memref_load"(%s, %i, %t) : (!s, i32, i32) -> f16
      %w = arith.addf %v, %v : f16
      "cute.memref_store"(%w, %s, %i, %t) : (f16, !s, i32, i32) -> ()
    }
    nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
    nvvm.barrier
    scf.if %t0 {
      "cute.copy"(%store, %s, %at) : (!store, !s, !at) -> ()
      "cute.copy_atom_call"(%reduce, %s, %at) : (!reduce, !s, !at) -> ()
      nvvm.cp.async.bulk.commit.group
      nvvm.cp.async.bulk.wait_group 0
    }
    return
  }
}
""".replace("LOAD", LOAD)
    .replace("STORE", STORE)
    .replace("REDUCE", REDUCE)
)
#: The same, with the mbarrier bound when the atom is made.
BOUND = (
    BOXES.replace(
        '%unbound = "cute_nvgpu.atom_make_non_exec_tiled_tma_load"(%mx) : (!map) -> !load',
        '%load = "cute_nvgpu.atom_make_tma_load"(%mx, %own) : (!map, !bar) -> !load',
    )
    .replace(
        '%load = "cute_nvgpu.atom_make_exec_tma"(%unbound, %own) : (!load, !bar) -> !load\n', ""
    )
    .replace(
        '"cute_nvgpu.atom_make_non_exec_tiled_tma_reduce"', '"cute_nvgpu.atom_make_tma_reduce"'
    )
    .replace('"cute_nvgpu.atom_make_tma_store"', '"cute_nvgpu.atom_make_non_exec_tiled_tma_store"')
)

_CP = "tcgen05.cp.cta_group::1.128x128b"
_ATOMS = """
!st = !cute_nvgpu.atom<"tcgen05.st.sync.aligned.32x32b.x8.b32">
!ld = !cute_nvgpu.atom<"tcgen05.ld.sync.aligned.32x32b.x8.b32">
!cp = !cute_nvgpu.atom<"CP">
!eight = !cute.memref<i32, "rmem", "8:1">
!teight = !cute.memref<i32, "tmem", "8:1">
""".replace("CP", _CP)
_STORED = """%near = builtin.unrealized_conversion_cast %own : i32 to !teight
    %regs = "cute_nvgpu.arch_alloc_rmem"() : () -> !eight
    %more = "cute_nvgpu.arch_alloc_rmem"() : () -> !eight
    %astore = "cute_nvgpu.atom_make_tmem_copy"(%near) : (!teight) -> !st
    %aload = "cute_nvgpu.atom_make_tmem_copy"(%near) : (!teight) -> !ld
    "cute.memref_store_vec"(%words, %regs) : (vector<8xi32>, !eight) -> ()
    "cute.copy_atom_call"(%astore, %regs, %near) : (!st, !eight, !teight) -> ()
    "cute.copy"(%aload, %near, %more) : (!ld, !teight, !eight) -> ()
    %back = "cute.memref_load_vec"(%more) : (!eight) -> vector<8xi32>
"""
_COPIED = """%cp = "cute_nvgpu.atom_make_s2t_copy"(%zero) : (i64) -> !cp
      %is = "cute_nvgpu.atom_get_copy_s2t_smem_desc_view"(%cp, %s) : (!cp, !s) -> !is
      %first_one = "cute.deref_desc_iter"(%is) : (!is) -> !desc
      %bound = "cute_nvgpu.atom_make_s2t_copy"(%first_one) : (!desc) -> !cp
      %d = "cute_nvgpu.atom_get_value"(%bound) {field = "descriptor"} : (!cp) -> !desc
"""


def tensor_memory_atoms() -> str:
    """`MOVES`, by atoms."""
    stored = MOVES.index('"cute_nvgpu.arch_copy_sm100_tmem_store"')
    read = MOVES.index("    %py = ")
    made = MOVES.index('%is = "cute.make_desc_iter"')
    taken = MOVES.index('      "cute_nvgpu.arch_copy_sm100_copy_s2t"')
    text = MOVES[:stored] + _STORED + MOVES[read:made] + _COPIED + MOVES[taken:]
    text = text.replace("%i0 = ", "%zero = arith.constant 0 : i64\n    %i0 = ", 1)
    return text.replace("gpu.module", _ATOMS + "gpu.module", 1)
