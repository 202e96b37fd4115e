"""What `dedup-wait-groups` is worth: a loop of copies whose groups are waited for one by one.

`python benchmarks/wait_groups.py [--gpu a100]` compiles a kernel that copies four groups by
`cp.async` in each of 64 rounds and waits for each of them before a barrier, as a conversion leaves
it that waits where each group is needed; with the pass and without. Times are those of the model.
"""

from __future__ import annotations

import argparse

import numpy as np
import tile_sim

import tile_core
from tile_core.machines import find_machine, machines_of
from tile_core.opt import OptJob, Selection, optimize
from tile_core.registry import default_registry

GROUPS, ROUNDS, THREADS = 4, 64, 128
_KERNEL = """
!p = !cute.ptr<f32, "gmem", 16 : i64>
!q = !cute.ptr<f32, "smem", 16 : i64>
!s = !cute.memref<f32, "smem", "(512,GROUPS):(1,512)">
!l = !cute.layout<"4:1">
!g4 = !cute.memref<f32, "gmem", "4:1">
!s4 = !cute.memref<f32, "smem", "4:1">
gpu.module @m {
  func.func @rounds(%x: !p, %y: !p) attributes {nv_tileaa.kernel,
      nv_tileaa.kernel_spec = {num_ctas = 1 : i32, num_warps = 4 : i32}} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %b = nvvm.read.ptx.sreg.ctaid.x : i32
    %i0 = arith.constant 0 : i32
    %i1 = arith.constant 1 : i32
    %i4 = arith.constant 4 : i32
    %rounds = arith.constant ROUNDS : i32
    %size = arith.constant SIZE : i32
    %l = "cute.static"() : () -> !l
    %s = "cute.memref_alloc_smem"() : () -> !s
    %q = "cute.get_iter"(%s) : (!s) -> !q
    %own = arith.muli %t, %i4 : i32
    %none = arith.constant dense<0.0> : vector<4xf32>
    %block = arith.muli %b, %rounds : i32
    %sum = scf.for %i = %i0 to %rounds step %i1 iter_args(%acc = %none) -> vector<4xf32> : i32 {
      %round = arith.addi %block, %i : i32
      %far = arith.muli %round, %size : i32
      %at = arith.addi %far, %own : i32
      COPIES
      WAITS
      nvvm.barrier
      SUMS
      nvvm.barrier
      scf.yield %accGROUPS : vector<4xf32>
    }
    %where = arith.muli %b, %size : i32
    %mine = arith.addi %where, %own : i32
    %py = "cute.add_offset"(%y, %mine) : (!p, i32) -> !p
    %vy = "cute.make_view"(%py, %l) : (!p, !l) -> !g4
    "cute.memref_store_vec"(%sum, %vy) : (vector<4xf32>, !g4) -> ()
    return
  }
}
"""
_COPY = """%c{i} = arith.constant {far} : i32
      %f{i} = arith.addi %at, %c{i} : i32
      %o{i} = arith.addi %own, %c{i} : i32
      %p{i} = "cute.add_offset"(%x, %f{i}) : (!p, i32) -> !p
      %q{i} = "cute.add_offset"(%q, %o{i}) : (!q, i32) -> !q
      %g{i} = "cute.make_view"(%p{i}, %l) : (!p, !l) -> !g4
      %s{i} = "cute.make_view"(%q{i}, %l) : (!q, !l) -> !s4
      "cute_nvgpu.arch_copy_sm80_cp_async"(%s{i}, %g{i}) {{atom = "cp.async.cg.shared.global"}}
        : (!s4, !g4) -> ()
      nvvm.cp.async.commit.group
      """
_SUM = """%v{i} = "cute.memref_load_vec"(%s{i}) : (!s4) -> vector<4xf32>
      %acc{after} = arith.addf {before}, %v{i} : vector<4xf32>
      """


def kernel() -> str:
    """The kernel's text."""
    copies = "".join(_COPY.format(i=i, far=512 * i) for i in range(GROUPS))
    waits = "\n      ".join(f"nvvm.cp.async.wait.group {GROUPS - 1 - i}" for i in range(GROUPS))
    sums = "".join(
        _SUM.format(i=i, after=i + 1, before=f"%acc{i}" if i else "%acc") for i in range(GROUPS)
    )
    text = _KERNEL.replace("COPIES", copies).replace("WAITS", waits).replace("SUMS", sums)
    text = text.replace("SIZE", str(512 * GROUPS)).replace("ROUNDS", str(ROUNDS))
    return text.replace("GROUPS", str(GROUPS))


def ptx(text: str, passes: str, target: str) -> str:
    """The kernel's PTX at -O3."""
    job = OptJob(default_registry(), Selection(passes=passes, target=target))
    lowered = optimize(text, 0, job).text
    made = tile_core.compile(
        lowered.encode(), target, opt_level=3, start_at="llvm-dialect", emit="ptx"
    )
    return str(made.stage("ptx"))


def main() -> None:
    """A line with the pass, and one without."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--gpu", default="a100")
    gpu = parser.parse_args().gpu
    machine = find_machine(gpu, machines_of(default_registry()))
    convert, blocks = "convert-cute-and-cute-nvgpu-to-llvm", 32
    x = np.ones((blocks, ROUNDS, 512 * GROUPS), np.float32)
    y = np.zeros((blocks, 512 * GROUPS), np.float32)
    times = {}
    for name, passes in (("without", convert), ("with", f"{convert},dedup-wait-groups")):
        text = ptx(kernel(), passes, machine.target)
        found = tile_sim.time(text, gpu, grid=blocks, block=THREADS, args=[x, y])
        times[name] = found.us
        waits = text.count("cp.async.wait_group")
        print(f"{name:8} {waits} waits a round, {found.us:8.2f} us on {gpu}")
    print(f"with / without: {times['with'] / times['without']:.3f}")


if __name__ == "__main__":
    main()
