"""One instruction of each family of PTX that not every target has, and its names in LLVM and MLIR.

`body` is PTX with registers %r0-%r31 (b32), %rd0-%rd7 (b64), %h0-%h7 (b16), %f0-%f7 (f32) and
%p0; %rd0 is an address in global memory, %rd3 one in shared memory.
"""

from __future__ import annotations

from dataclasses import dataclass

DECLARATIONS = """
	.reg .pred %p<4>;
	.reg .b8 %b<2>;
	.reg .b16 %h<8>;
	.reg .b32 %r<32>;
	.reg .b64 %rd<8>;
	.reg .f32 %f<8>;
	.reg .f64 %fd<4>;
	.reg .b128 %q<4>;
	.shared .align 128 .b8 smem[1024];
"""


@dataclass(frozen=True)
class Family:
    """`intrinsics` are behind `llvm.nvvm.`, `operations` behind `nvvm.`."""

    name: str
    body: str
    intrinsics: tuple[str, ...] = ()
    operations: tuple[str, ...] = ()


def module(family: Family, chip: str, version: str = "9.3") -> str:
    """PTX with a kernel that holds the instruction."""
    return (
        f".version {version}\n.target {chip}\n.address_size 64\n"
        f".visible .entry k(.param .u64 a)\n{{{DECLARATIONS}\tld.param.u64 %rd0, [a];\n"
        f"\tmov.u64 %rd3, smem;\n\t{family.body}\n\tret;\n}}\n"
    )


_MMA_E4M3 = "{%f0,%f1,%f2,%f3}, {%r0,%r1,%r2,%r3}, {%r4,%r5}, {%f0,%f1,%f2,%f3};"

FAMILIES = (
    Family("mbarrier.init", "mbarrier.init.shared.b64 [%rd3], 1;",
           ("mbarrier.init.shared",), ("mbarrier.init.shared",)),
    Family("mbarrier.arrive", "mbarrier.arrive.shared.b64 %rd1, [%rd3];",
           ("mbarrier.arrive.shared",), ("mbarrier.arrive.shared",)),
    Family("mbarrier.arrive.count", "mbarrier.arrive.shared.b64 %rd1, [%rd3], %r0;"),
    Family("mbarrier.arrive.noComplete", "mbarrier.arrive.noComplete.shared.b64 %rd1, [%rd3], 1;",
           ("mbarrier.arrive.noComplete.shared",), ("mbarrier.arrive.nocomplete.shared",)),
    Family("mbarrier.test_wait", "mbarrier.test_wait.shared.b64 %p0, [%rd3], %rd1;",
           ("mbarrier.test.wait.shared",), ("mbarrier.test.wait.shared",)),
    Family("mbarrier.test_wait.parity", "mbarrier.test_wait.parity.shared.b64 %p0, [%rd3], %r0;",
           (), ()),
    Family("mbarrier.try_wait", "mbarrier.try_wait.parity.shared.b64 %p0, [%rd3], %r0;",
           (), ("mbarrier.try_wait.parity.shared",)),
    Family("mbarrier.expect_tx", "mbarrier.expect_tx.relaxed.cta.shared.b64 [%rd3], 16;",
           ("mbarrier.expect.tx.scope.cta.space.cta",), ("mbarrier.expect_tx",)),
    Family("mbarrier.arrive.expect_tx", "mbarrier.arrive.expect_tx.shared.b64 %rd1, [%rd3], 16;",
           ("mbarrier.arrive.expect.tx.scope.cta.space.cta",), ("mbarrier.arrive.expect_tx",)),
    Family("mbarrier.complete_tx", "mbarrier.complete_tx.relaxed.cta.shared.b64 [%rd3], 16;",
           ("mbarrier.complete.tx.scope.cta.space.cta",), ("mbarrier.complete_tx",)),
    Family("mbarrier.arrive_drop", "mbarrier.arrive_drop.shared.b64 %rd1, [%rd3];",
           ("mbarrier.arrive.drop.shared",), ("mbarrier.arrive_drop",)),
    Family("mbarrier.arrive.cluster",
           "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%rd3];"),
    Family("fence.mbarrier_init", "fence.mbarrier_init.release.cluster;",
           ("fence.mbarrier_init.release.cluster",), ("fence.mbarrier.init",)),
    Family("fence.proxy.async", "fence.proxy.async;", ("fence.proxy.async",), ("fence.proxy",)),
    Family("fence.proxy.tensormap", "fence.proxy.tensormap::generic.release.gpu;",
           ("fence.proxy.tensormap_generic.release.gpu",), ("fence.proxy.release",)),
    Family("fence.proxy.alias", "fence.proxy.alias;"),
    Family("fence.cluster", "fence.acq_rel.cluster;", (), ()),
    Family("fence.sc.cluster", "fence.sc.cluster;", ("fence.sc.cluster",), ("fence.sc.cluster",)),
    Family("fence.acquire", "fence.acquire.gpu;"),
    Family("fence.release", "fence.release.gpu;"),
    Family("membar", "fence.acq_rel.gpu;"),
    Family("cp.async", "cp.async.cg.shared.global [%rd3], [%rd0], 16;",
           ("cp.async.cg.shared.global.16",), ("cp.async.shared.global",)),
    Family("cp.async.mbarrier", "cp.async.mbarrier.arrive.noinc.shared.b64 [%rd3];",
           ("cp.async.mbarrier.arrive.noinc.shared",), ("cp.async.mbarrier.arrive",)),
    Family("cp.async.bulk", "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
           "[%rd3], [%rd0], 16, [%rd3];",
           ("cp.async.bulk.global.to.shared.cluster",), ("cp.async.bulk.shared.cluster.global",)),
    Family("cp.async.bulk.store",
           "cp.async.bulk.global.shared::cta.bulk_group [%rd0], [%rd3], 16;"),
    Family("cp.async.bulk.commit", "cp.async.bulk.commit_group;",
           ("cp.async.bulk.commit.group",), ("cp.async.bulk.commit.group",)),
    Family("cp.async.bulk.prefetch", "cp.async.bulk.prefetch.L2.global [%rd0], 16;"),
    Family("cp.reduce.async.bulk", "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 "
           "[%rd0], [%rd3], 16;", ("cp.reduce.async.bulk",), ("cp.reduce.async.bulk",)),
    Family("cp.async.bulk.tensor", "cp.async.bulk.tensor.1d.global.shared::cta.bulk_group "
           "[%rd0, {%r0}], [%rd3];",
           ("cp.async.bulk.tensor.s2g.tile.1d",), ("cp.async.bulk.tensor.global.shared.cta",)),
    Family("cp.reduce.async.bulk.tensor", "cp.reduce.async.bulk.tensor.1d.global.shared::cta.add."
           "bulk_group [%rd0, {%r0}], [%rd3];", (), ("cp.async.bulk.tensor.reduce",)),
    Family("prefetch.tensormap", "prefetch.tensormap [%rd0];",
           ("prefetch.tensormap",), ()),
    Family("tensormap.cp_fenceproxy", "tensormap.cp_fenceproxy.global.shared::cta."
           "tensormap::generic.release.gpu.sync.aligned [%rd0], [%rd3], 128;"),
    Family("tensormap.replace", "tensormap.replace.tile.global_address.global.b1024.b64 "
           "[%rd0], %rd1;", ("tensormap.replace.global.address",), ("tensormap.replace",)),
    Family("ldmatrix", "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r0}, [%rd3];",
           ("ldmatrix.sync.aligned.m8n8.x1.b16",), ()),
    Family("ldmatrix.m16n16", "ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%r0,%r1}, [%rd3];",
           ("ldmatrix.sync.aligned.m16n16.x1.trans.b8",), ()),
    Family("ldmatrix.m8n16", "ldmatrix.sync.aligned.m8n16.x1.shared.b8x16.b4x16_p64 "
           "{%r0}, [%rd3];", ("ldmatrix.sync.aligned.m8n16.x1.b8x16.b4x16_p64",), ()),
    Family("stmatrix", "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%rd3], {%r0};",
           ("stmatrix.sync.aligned.m8n8.x1.b16",), ("stmatrix",)),
    Family("stmatrix.m16n8", "stmatrix.sync.aligned.m16n8.x1.trans.shared.b8 [%rd3], {%r0};",
           ("stmatrix.sync.aligned.m16n8.x1.trans.b8",), ()),
    Family("movmatrix", "movmatrix.sync.aligned.m8n8.trans.b16 %r0, %r1;"),
    Family("mma.f16", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 " + _MMA_E4M3),
    Family("mma.e4m3", "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 " + _MMA_E4M3),
    Family("mma.e4m3.f16", "mma.sync.aligned.m16n8k32.row.col.f16.e4m3.e4m3.f16 "
           "{%r0,%r1}, {%r0,%r1,%r2,%r3}, {%r4,%r5}, {%r0,%r1};"),
    Family("mma.kind", "mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e4m3.e2m1.f32 "
           + _MMA_E4M3),
    Family("mma.block_scale", "mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale."
           "scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0 {%f0,%f1,%f2,%f3}, {%r0,%r1,%r2,%r3}, {%r4,%r5}, "
           "{%f0,%f1,%f2,%f3}, {%r6}, {0,0}, {%r7}, {0,0};",
           ("mma.block.scale.m16n8k64",), ("mma.block_scale",)),
    Family("mma.f64.m16n8k4", "mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 "
           "{%fd0,%fd1,%fd2,%fd3}, {%fd0,%fd1}, {%fd2}, {%fd0,%fd1,%fd2,%fd3};"),
    Family("wgmma.fence", "wgmma.fence.sync.aligned;",
           ("wgmma.fence.sync.aligned",), ("wgmma.fence.aligned",)),
    Family("tcgen05.fence", "tcgen05.fence::before_thread_sync;",
           ("tcgen05.fence.before.thread.sync",), ("tcgen05.fence",)),
    Family("tcgen05.alloc", "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%rd3], 32;",
           ("tcgen05.alloc.shared.cg1",), ("tcgen05.alloc",)),
    Family("setmaxnreg", "setmaxnreg.dec.sync.aligned.u32 32;",
           ("setmaxnreg.dec.sync.aligned.u32",), ("setmaxregister",)),
    Family("barrier.cluster", "barrier.cluster.arrive;",
           ("barrier.cluster.arrive",), ("cluster.arrive",)),
    Family("mapa", "mapa.u64 %rd1, %rd3, %r0;", ("mapa",), ("mapa",)),
    Family("getctarank", "getctarank.u64 %r0, %rd3;", ("getctarank",), ()),
    Family("isspacep.cluster", "isspacep.shared::cluster %p0, %rd0;"),
    Family("elect", "elect.sync %r0|%p0, 0xffffffff;", ("elect.sync",), ("elect.sync",)),
    Family("griddepcontrol", "griddepcontrol.wait;",
           ("griddepcontrol.wait",), ("griddepcontrol",)),
    Family("clusterlaunchcontrol", "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::"
           "complete_tx::bytes.b128 [%rd3], [%rd3];",
           ("clusterlaunchcontrol.try_cancel",), ("clusterlaunchcontrol.try.cancel",)),
    Family("clusterlaunchcontrol.multicast", "clusterlaunchcontrol.try_cancel.async.shared::cta."
           "mbarrier::complete_tx::bytes.multicast::cluster::all.b128 [%rd3], [%rd3];"),
    Family("st.bulk", "st.bulk.weak.shared::cta [%rd3], 64, 0;", (), ("st.bulk",)),
    Family("st.async", "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 "
           "[%rd3], %r0, [%rd3];"),
    Family("red.async", "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes."
           "inc.u32 [%rd3], %r0, [%rd3];"),
    Family("multimem", "multimem.ld_reduce.relaxed.gpu.global.add.f32 %f0, [%rd0];"),
    Family("redux.i32", "redux.sync.add.s32 %r0, %r1, 0xffffffff;",
           ("redux.sync.add",), ("redux.sync",)),
    Family("redux.f32", "redux.sync.min.f32 %f0, %f1, 0xffffffff;", ("redux.sync.fmin",), ()),
    Family("cvt.e4m3x2", "cvt.rn.satfinite.e4m3x2.f32 %h0, %f0, %f1;",
           (), ("convert.f32x2.to.f8x2",)),
    Family("cvt.f16x2.e4m3x2", "cvt.rn.f16x2.e4m3x2 %r0, %h0;", (), ("convert.f8x2.to.f16x2",)),
    Family("cvt.e2m3x2", "cvt.rn.satfinite.e2m3x2.f32 %h0, %f0, %f1;",
           (), ("convert.f32x2.to.f6x2",)),
    Family("cvt.e2m1x2", "{ .reg .b8 t; cvt.rn.satfinite.e2m1x2.f32 t, %f0, %f1; }",
           (), ("convert.f32x2.to.f4x2",)),
    Family("cvt.ue8m0x2", "cvt.rz.satfinite.ue8m0x2.f32 %h0, %f0, %f1;"),
    Family("cvt.bf16x2.ue8m0x2", "cvt.rn.bf16x2.ue8m0x2 %r0, %h0;"),
    Family("cvt.tf32", "cvt.rna.tf32.f32 %r0, %f0;"),
    Family("cvt.tf32.rn", "cvt.rn.tf32.f32 %r0, %f0;"),
    Family("cvt.tf32.satfinite", "cvt.rn.satfinite.tf32.f32 %r0, %f0;"),
    Family("cvt.rs.f16x2", "cvt.rs.f16x2.f32 %r0, %f0, %f1, %r1;"),
    Family("cvt.rs.e4m3x4", "cvt.rs.satfinite.e4m3x4.f32 %r0, {%f0,%f1,%f2,%f3}, %r1;",
           (), ("convert.f32x4.to.f8x4",)),
    Family("cvt.bf16", "cvt.rn.bf16.f32 %h0, %f0;"),
    Family("cvt.f32.bf16", "cvt.f32.bf16 %f0, %h0;"),
    Family("cvt.bf16.s32", "cvt.rn.bf16.s32 %h0, %r0;"),
    Family("cvt.s32.bf16", "cvt.rzi.s32.bf16 %r0, %h0;"),
    Family("cvt.f64.bf16", "cvt.f64.bf16 %fd0, %h0;"),
    Family("cvt.bf16.f64", "cvt.rn.bf16.f64 %h0, %fd0;"),
    Family("cvt.bf16.f16", "cvt.rn.bf16.f16 %h0, %h1;"),
    Family("cvt.bf16x2.f32", "cvt.rn.bf16x2.f32 %r0, %f0, %f1;"),
    Family("cvt.f16.f32", "cvt.rn.f16.f32 %h0, %f0;"),
    Family("max.f32", "max.NaN.f32 %f0, %f1, %f2;"),
    Family("mul.bf16x2", "mul.rn.bf16x2 %r0, %r1, %r2;"),
    Family("ld.shared", "ld.shared.v4.f32 {%f0,%f1,%f2,%f3}, [%rd3];"),
    Family("atom.cta", "atom.relaxed.cta.global.add.u32 %r0, [%rd0], %r1;"),
    Family("add.bf16", "add.rn.bf16 %h0, %h1, %h2;"),
    Family("fma.bf16", "fma.rn.bf16 %h0, %h1, %h2, %h3;"),
    Family("max.bf16", "max.bf16 %h0, %h1, %h2;"),
    Family("ex2.bf16", "ex2.approx.ftz.bf16 %h0, %h1;"),
    Family("tanh.bf16", "tanh.approx.bf16 %h0, %h1;"),
    Family("tanh.f32", "tanh.approx.f32 %f0, %f1;"),
    Family("add.f32x2", "add.rn.f32x2 %rd0, %rd1, %rd2;"),
    Family("max3.f32", "max.f32 %f0, %f1, %f2, %f3;"),
    Family("atom.add.bf16", "atom.global.add.noftz.bf16 %h0, [%rd0], %h1;"),
    Family("atom.add.f16", "atom.global.add.noftz.f16 %h0, [%rd0], %h1;"),
    Family("atom.add.bf16x2", "atom.global.add.noftz.bf16x2 %r0, [%rd0], %r1;"),
    Family("red.add.bf16", "red.global.add.noftz.bf16 [%rd0], %h1;"),
    Family("atom.v4.f32", "atom.global.v4.f32.add {%f0,%f1,%f2,%f3}, [%rd0], {%f0,%f1,%f2,%f3};"),
    Family("red.v2.f32", "red.global.v2.f32.add [%rd0], {%f0,%f1};"),
    Family("atom.b128", "atom.exch.b128.global %q0, [%rd0], %q1;"),
    Family("atom.cas.b16", "atom.global.cas.b16 %h0, [%rd0], %h1, %h2;"),
    Family("atom.cluster", "atom.relaxed.cluster.global.add.u32 %r0, [%rd0], %r1;"),
    Family("red.cluster", "red.relaxed.cluster.global.add.u32 [%rd0], %r1;"),
    Family("ld.cluster", "ld.relaxed.cluster.global.u32 %r0, [%rd0];"),
    Family("st.cluster", "st.release.cluster.global.u32 [%rd0], %r0;"),
    Family("ld.shared.cluster", "ld.shared::cluster.u32 %r0, [%rd3];"),
    Family("atom.shared.cluster", "atom.shared::cluster.add.u32 %r0, [%rd3], %r1;"),
    Family("ld.v8.f32", "ld.global.v8.f32 {%f0,%f1,%f2,%f3,%f4,%f5,%f6,%f7}, [%rd0];"),
    Family("ld.v4.b64", "ld.global.v4.b64 {%rd1,%rd2,%rd4,%rd5}, [%rd0];"),
    Family("ld.b128", "ld.global.b128 %q0, [%rd0];"),
    Family("ld.L2.evict_last", "ld.global.L2::evict_last.v8.b32 "
           "{%r0,%r1,%r2,%r3,%r4,%r5,%r6,%r7}, [%rd0];"),
    Family("dp4a", "dp4a.u32.u32 %r0, %r1, %r2, %r3;"),
    Family("match", "match.any.sync.b32 %r0, %r1, 0xffffffff;"),
)  # fmt: skip
