"""Kernels in PTX for what no compiler's output shows alone.

Tensor maps that a kernel changes for itself: a template in parameters is copied to shared memory,
its fields are replaced there, and it goes to global memory through a fence (PTX ISA,
"tensormap.replace", "tensormap.cp_fenceproxy"; CUDA C++ Programming Guide, "Modifying a tensor map
on device"). The block that is loaded with it is written out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from tile_sim import TensorMap

ROWS, COLUMNS = 16, 32
_BYTES = ROWS * COLUMNS * 4

_IN_KERNEL = """.version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .align 64 .b8 template[128], .param .u64 scratch, .param .u64 source,
.param .u64 out, .param .u32 width, .param .u32 height, .param .u64 stride) .reqntid 32 {{
.reg .b64 %rd<16>; .reg .b32 %r<24>; .reg .pred %p<8>; .reg .f32 %f<8>;
.shared .align 128 .b8 map[128];
.shared .align 1024 .b8 tile[{bytes}];
.shared .align 8 .b64 bar;
ld.param.u64 %rd1, [scratch]; ld.param.u64 %rd2, [source]; ld.param.u64 %rd3, [out];
ld.param.u32 %r1, [width]; ld.param.u32 %r2, [height]; ld.param.u64 %rd4, [stride];
mov.u32 %r3, %tid.x; setp.eq.u32 %p1, %r3, 0;
mov.u32 %r4, map; mov.u32 %r5, tile; mov.u32 %r6, bar;
cvta.to.global.u64 %rd1, %rd1; cvta.to.global.u64 %rd3, %rd3;
mov.b64 %rd5, template; shl.b32 %r7, %r3, 2; cvt.u64.u32 %rd6, %r7; add.u64 %rd5, %rd5, %rd6;
ld.param.b32 %r8, [%rd5]; add.u32 %r9, %r4, %r7; st.shared.b32 [%r9], %r8;
@%p1 mbarrier.init.shared.b64 [%r6], 1;
bar.warp.sync -1;
@%p1 tensormap.replace.tile.global_address.shared::cta.b1024.b64 [map], %rd2;
@%p1 tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [map], 0, %r1;
@%p1 tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [map], 1, %r2;
@%p1 tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [map], 0, %rd4;
{more}
bar.warp.sync -1;
tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned
  [%rd1], [%r4], 128;
fence.proxy.tensormap::generic.acquire.gpu [%rd1], 128;
fence.proxy.async.shared::cta;
@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r6], {bytes};
mov.u32 %r10, 0; mov.u32 %r11, 0;
@%p1 cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes
  [%r5], [%rd1, {{%r10, %r11}}], [%r6];
WAIT: mbarrier.try_wait.parity.shared.b64 %p2, [%r6], 0; @!%p2 bra WAIT;
mov.u32 %r12, %r7;
COPY: add.u32 %r13, %r5, %r12; ld.shared.b32 %r14, [%r13];
cvt.u64.u32 %rd7, %r12; add.u64 %rd8, %rd3, %rd7; st.global.b32 [%rd8], %r14;
add.u32 %r12, %r12, 128; setp.lt.u32 %p3, %r12, {bytes}; @%p3 bra COPY;
ret;
}}
"""
#: Fields of a map that was all zeros: rank 2, a box of f32, no swizzle.
_EVERY_FIELD = f"""@%p1 tensormap.replace.tile.rank.shared::cta.b1024.b32 [map], 1;
@%p1 tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [map], 0, {COLUMNS};
@%p1 tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [map], 1, {ROWS};
@%p1 tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [map], 0, 1;
@%p1 tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [map], 1, 1;
@%p1 tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [map], 7;
@%p1 tensormap.replace.tile.interleave_layout.shared::cta.b1024.b32 [map], 0;
@%p1 tensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32 [map], 0;
@%p1 tensormap.replace.tile.fill_mode.shared::cta.b1024.b32 [map], 0;"""


@dataclass(frozen=True)
class InKernel:
    """A kernel that changes a map, and the arguments of its launch; what it should write."""

    ptx: str
    arguments: tuple[object, ...]
    expected: np.ndarray


def in_kernel_map(from_nothing: bool) -> InKernel:
    """A map of a tensor of 20 by 40 floats whose rows are 48 apart.

    The template is of another tensor; or nothing but zeros, of which no document says that it will
    do.
    """
    source = np.arange(64 * 48, dtype=np.float32)
    other = np.zeros((64, 64), np.float32)
    width, height, stride = 40, 12, 48
    template = (
        bytes(128) if from_nothing
        else TensorMap(other, box=(COLUMNS, ROWS), l2_promotion="none")
    )  # fmt: skip
    expected = np.zeros((ROWS, COLUMNS), np.float32)
    rows = source[: height * stride].reshape(height, stride)[:, :COLUMNS]
    expected[:height] = rows  # rows beyond the tensor are zeros
    out = np.full((ROWS, COLUMNS), -1.0, np.float32)
    ptx = _IN_KERNEL.format(bytes=_BYTES, more=_EVERY_FIELD if from_nothing else "")
    arguments = (
        template, np.zeros(128, np.uint8), source, out, np.uint32(width), np.uint32(height),
        np.uint64(4 * stride),
    )  # fmt: skip
    return InKernel(ptx, arguments, expected)
