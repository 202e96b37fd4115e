"""`Device`, raw launches on real addresses, tensors of other libraries."""

from __future__ import annotations

import struct
from typing import Any, cast

import numpy as np
import pytest
from tile_sim import Device, RawBuffer, SimError

from .conftest import ptx_text

# out[i] = 2 * in[i] for i < n, one CTA of 64 threads.
DOUBLE = """
mov.u32 %r1, %tid.x; setp.ge.u32 %p1, %r1, n; @%p1 bra END;
mul.wide.u32 %rd1, %r1, 4; add.u64 %rd2, in, %rd1; add.u64 %rd3, out, %rd1;
ld.global.f32 %f1, [%rd2]; add.f32 %f1, %f1, %f1; st.global.f32 [%rd3], %f1;
END:
"""
# The same through 8 bytes at a time: element pairs 0 to 31.
PAIRS = """
mov.u32 %r1, %tid.x; mul.wide.u32 %rd1, %r1, 8; add.u64 %rd2, in, %rd1; add.u64 %rd3, out, %rd1;
ld.b64 %rd4, [%rd2]; st.b64 [%rd3], %rd4;
"""
PARAMS = "u64 out, u64 in, u32 n"


def _double(arch: str = "sm_90a", body: str = DOUBLE):
    return Device(arch).load(ptx_text(body, PARAMS)).kernel()


def _pack(out: np.ndarray, source: np.ndarray, n: int) -> bytes:
    return struct.pack("<QQI", out.ctypes.data, source.ctypes.data, n)


def test_launch_with_arrays() -> None:
    source, out = np.arange(50, dtype=np.float32), np.zeros(50, np.float32)
    report = _double().launch(1, [out, source, 50], block=64)
    np.testing.assert_array_equal(out, 2 * source)
    assert report.entry == "k"


@pytest.mark.parametrize(("arch", "target", "fits"), [
    ("sm_90", "sm_80", True), ("sm_80", "sm_90", False), ("sm_90a", "sm_90a", True),
    ("sm_100a", "sm_90a", False), ("sm_90", "sm_90a", False), ("sm_103", "sm_100f", True),
    ("sm_120", "sm_100f", False),
])  # fmt: skip
def test_targets(arch: str, target: str, fits: bool) -> None:
    text = ptx_text("", target=target)
    if fits:
        Device(arch).load(text)
        return
    with pytest.raises(SimError, match=f"for {target} does not run on {arch}"):
        Device(arch).load(text)


def test_names() -> None:
    module = Device("sm_90a").load(ptx_text(""))
    assert module["k"].name == "k"
    with pytest.raises(SimError, match="no kernel 'x'"):
        module.kernel("x")
    with pytest.raises(SimError, match="no architecture"):
        Device("gfx90a")


def test_raw_launch_uses_real_addresses() -> None:
    source, out = np.arange(50, dtype=np.float32), np.zeros(50, np.float32)
    _double().launch_raw(1, _pack(out, source, 50), [source, out], block=64)
    np.testing.assert_array_equal(out, 2 * source)


@pytest.mark.parametrize("shift", [1, 2, 3])
def test_raw_views_at_any_alignment(shift: int) -> None:
    """A buffer whose base is no multiple of the element that the kernel moves."""
    whole, out = np.arange(40, dtype=np.float64), np.zeros(40)  # at multiples of 8
    whole, out = whole.view(np.float32), out.view(np.float32)
    whole[:] = range(80)
    odd = -(whole.ctypes.data // 4 + shift) % 2
    source, target = whole[shift + odd :], out[shift + odd :]
    # The registered region begins one element earlier than what is accessed.
    buffers = [whole[shift + odd - 1 :] if shift + odd else whole, out]
    _double(body=PAIRS).launch_raw(1, _pack(target, source, 0), buffers, block=32)
    np.testing.assert_array_equal(target[:64], source[:64])
    assert not out[: shift + odd].any()


def test_raw_launch_checks_bounds() -> None:
    source, out = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    with pytest.raises(SimError, match="outside every buffer") as caught:
        _double().launch_raw(1, _pack(out, source, 50), [source, out[:49]], block=64)
    assert caught.value.kind == "out-of-bounds"
    assert "the nearest before them" not in caught.value.message
    with pytest.raises(SimError, match="of buffer 0, the nearest before them, which has 32 bytes"):
        _double().launch_raw(1, _pack(out, source[30:], 30), [source[:8], out], block=64)
    with pytest.raises(SimError, match="outside every buffer"):
        _double().launch_raw(1, _pack(out[1:], source, 50), [source, out[2:]], block=64)
    fixed = RawBuffer(out.ctypes.data, out.nbytes, "fixed", writable=False)
    with pytest.raises(SimError, match="read-only"):
        _double().launch_raw(1, _pack(out, source, 50), [source, fixed], block=64)
    assert not out.any()


def test_raw_launch_checks_parameters() -> None:
    with pytest.raises(SimError, match="takes 20 bytes of parameters, got 3"):
        _double().launch_raw(1, b"abc", [], block=64)
    with pytest.raises(SimError, match="no memory"):
        _double().launch_raw(1, bytes(20), [RawBuffer(1 << 60, 8)], block=64)
    with pytest.raises(SimError, match="buffer 0: str is no array"):
        _double().launch_raw(1, bytes(20), cast(Any, ["x"]), block=64)


def test_overlapping_raw_buffers_are_one() -> None:
    data = np.arange(64, dtype=np.float32)
    wanted = np.concatenate([data[:32], 2 * data[:32]])
    kernel = _double()
    kernel.launch_raw(1, _pack(data[32:], data, 32), [data[:40], data[30:]], block=64)
    np.testing.assert_array_equal(data, wanted)


class _Tensor:
    """The attributes of a CPU tensor of torch that the simulator asks for."""

    def __init__(self, array: np.ndarray, device: str = "cpu") -> None:
        self.array, self.shape, self.device = array, array.shape, device

    def data_ptr(self) -> int:
        return self.array.ctypes.data

    def element_size(self) -> int:
        return self.array.itemsize

    def stride(self) -> tuple[int, ...]:
        return tuple(s // self.array.itemsize for s in self.array.strides)


def test_tensors_of_other_libraries() -> None:
    source, out = np.arange(50, dtype=np.float32), np.zeros(50, np.float32)
    _double().launch(1, [_Tensor(out), _Tensor(source), 50], block=64)
    np.testing.assert_array_equal(out, 2 * source)
    with pytest.raises(SimError, match="device cuda:0"):
        _double().launch(1, [_Tensor(out, "cuda:0"), source, 50], block=64)
