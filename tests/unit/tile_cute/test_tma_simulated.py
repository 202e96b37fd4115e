"""A tensor-map copy with the box of `partition` writes the canonical operand buffer."""

from collections.abc import Sequence

import numpy as np
import pytest
import tile_sim
from simulated import PTX
from tile_cute import gf2
from tile_cute.atoms.descriptors import canonical_buffer
from tile_cute.atoms.tma import partition
from tile_cute.bridge import to_cute
from tile_cute.layout import Layout, identity_layout
from tile_cute.linear import LinearLayout, invert
from tile_cute.swizzle import ComposedLayout
from tile_sim.machine.parameters import Argument

BODY = """
.shared .align 1024 .b8 buf[32768];
.shared .align 8 .b64 bar;
mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0; mov.u32 %r2, buf; mov.u32 %r3, bar;
@%p1 mbarrier.init.shared.b64 [%r3], 1;
@%p1 fence.mbarrier_init.release.cluster;
bar.sync 0;
@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r3], {size};
@%p1 cp.async.bulk.tensor.{rank}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes
  [%r2], [map, {{{zeros}}}], [%r3];
WAIT: mbarrier.try_wait.parity.shared.b64 %p2, [%r3], 0; @!%p2 bra WAIT;
mov.u32 %r10, %r1;
DUMP: setp.ge.u32 %p3, %r10, {words}; @%p3 bra DONE; shl.b32 %r11, %r10, 2;
add.u32 %r12, %r2, %r11; ld.shared.b32 %r13, [%r12];
cvt.u64.u32 %rd1, %r11; add.u64 %rd2, out, %rd1; st.global.b32 [%rd2], %r13;
add.u32 %r10, %r10, 128; bra DUMP;
DONE:
"""

CASES = [
    (major, swizzle, bits)
    for major in ("K", "MN")
    for swizzle in ("none", "32B", "64B", "128B")
    for bits in (16, 32)
]


def cute_of(buffer: LinearLayout) -> Layout | ComposedLayout:
    """The buffer as shape:stride with a swizzle, coordinates to offset."""
    layout = to_cute(invert(buffer))
    assert layout is not None
    return layout


@pytest.mark.parametrize(("major", "swizzle", "bits"), CASES)
def test_canonical_buffers(major: str, swizzle: str, bits: int) -> None:
    shape = (64, 128) if major == "K" else (128, 64)
    shape = shape if bits == 16 else (shape[0] // 2, shape[1] // 2)
    buffer = canonical_buffer(*shape, bits, major, swizzle)
    fast = 1 if major == "K" else 0
    gmem = Layout(shape, (shape[1], 1) if fast else (1, shape[0]))
    box = partition(cute_of(buffer), gmem, identity_layout(shape), bits)
    assert box.swizzle == swizzle
    rng = np.random.default_rng(9)
    kind = np.uint16 if bits == 16 else np.uint32
    tensor = rng.integers(0, 1 << bits, shape, dtype=np.uint64).astype(kind)
    memory = np.ascontiguousarray(tensor if fast else tensor.T)
    order = np.array(gf2.table(buffer.flat("offset")))
    expected = tensor.reshape(-1)[order]
    tensor_map = tile_sim.TensorMap(
        memory,
        box=box.box,
        dims=box.box,
        strides=tuple(stride * bits // 8 for stride in box.strides[1:]),
        swizzle=swizzle,
    )
    size = tensor.nbytes
    body = BODY.format(size=size, rank=box.rank, zeros=", ".join(["0"] * box.rank), words=size // 4)
    out = np.zeros(size // 4, np.uint32)
    launch(body, [tensor_map, out])
    np.testing.assert_array_equal(out.view(kind), expected)


def launch(body: str, arguments: Sequence[Argument]) -> None:
    loads = "\n".join(
        f".reg .u64 {name}; ld.param.u64 {name}, [{name}_p];" for name in ("map", "out")
    )
    params = ".param .u64 map_p, .param .u64 out_p"
    text = PTX.format(target="sm_90a", params=params, loads=loads, body=body)
    tile_sim.Module(text).launch("k", (1, 1, 1), (128, 1, 1), arguments)
