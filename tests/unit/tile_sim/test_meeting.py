"""Divergent threads meet again where their paths join, whatever the other warps do."""

from __future__ import annotations

import numpy as np
from tile_sim import Module


def test_whole_warps_pass_an_aligned_instruction_beside_divergent_ones() -> None:
    """Warp 1 comes in parts, after warp 0: each stores its matrix when all its lanes are there.

    The strong load makes those of its lanes that call a function wait for their turn.
    """
    text = """
    .version 9.0
    .target sm_90
    .address_size 64
    .func (.reg .u32 %twice) slow(.reg .u32 %n) { add.u32 %twice, %n, %n; ret; }
    .entry k(.param .u64 flag, .param .u64 out) {
      .shared .align 16 .b8 rows[256];
      .reg .u32 %r<10>; .reg .u64 %rd<6>; .reg .pred %p<4>;
      ld.param.u64 %rd1, [flag]; ld.acquire.gpu.global.u32 %r1, [%rd1];
      mov.u32 %r2, %tid.x; mov.u32 %r3, %r2;
      setp.ne.u32 %p1, %r2, 40; @%p1 bra JOIN;
      call.uni (%r3), slow, (%r2);
      JOIN:
      mov.u32 %r5, rows; shr.u32 %r7, %r2, 5; shl.b32 %r7, %r7, 7; add.u32 %r5, %r5, %r7;
      and.b32 %r6, %r2, 7; shl.b32 %r6, %r6, 4; add.u32 %r6, %r5, %r6;
      stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r6], {%r3};
      and.b32 %r6, %r2, 31; shl.b32 %r6, %r6, 2; add.u32 %r6, %r5, %r6;
      ld.shared.u32 %r8, [%r6];
      ld.param.u64 %rd2, [out]; mul.wide.u32 %rd3, %r2, 4; add.u64 %rd2, %rd2, %rd3;
      st.global.u32 [%rd2], %r8;
      ret;
    }"""
    out, lanes = np.zeros(64, np.uint32), np.arange(64, dtype=np.uint32)
    module = Module(text)
    module.launch("k", (1, 1, 1), (64, 1, 1), [np.zeros(1, np.uint32), out])
    np.testing.assert_array_equal(out, np.where(lanes == 40, 80, lanes))
