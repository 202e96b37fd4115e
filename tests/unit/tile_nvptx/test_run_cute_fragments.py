"""The less common operations of cute that cut, load, forget and print are right when they run."""

from __future__ import annotations

import numpy as np
import pytest
from support.cute_fragments import COORDINATES, PARTS, PRINT_MAP
from support.cutlass_run import ptx
from tile_sim import Module, TensorMap


@pytest.mark.parametrize("target", ["sm_80", "sm_100"])
def test_parts(target: str) -> None:
    x = np.arange(256, dtype=np.float32)
    y, z, w = np.zeros_like(x), np.zeros((16, 8), np.float32), np.zeros(32, np.float32)
    v, u, r = np.zeros(32, np.float32), np.zeros(4, np.int32), np.zeros(32, np.float32)
    n = 1
    arguments = [x, y, z, w, v, u, r, np.int32(n)]
    report = Module(ptx(PARTS, target)).launch("parts", (1, 1, 1), None, arguments, check=True)
    assert not report.findings, "\n".join(map(str, report.findings))
    np.testing.assert_array_equal(y, 2 * x)
    np.testing.assert_array_equal(z, np.full((16, 8), 16))
    np.testing.assert_array_equal(w, [(t + 1) * 3 + 2 * 5 for t in range(32)])
    square = x.reshape(8, 32)
    np.testing.assert_array_equal(v.reshape(8, 4).T, square[n::2, 2::4])
    np.testing.assert_array_equal(u, [4, 6 * n, 4, n])
    # Threads whose numbers differ in the mode that is left out have the same rows.
    np.testing.assert_array_equal(r, [square[t // 8, 16] for t in range(32)])


def test_elements_of_an_identity_tensor_are_their_coordinates() -> None:
    out = np.zeros((32, 2), np.int32)
    report = Module(ptx(COORDINATES, "sm_80")).launch(
        "coordinates", (1, 1, 1), None, [out, np.int32(4)], check=True
    )
    assert not report.findings, "\n".join(map(str, report.findings))
    np.testing.assert_array_equal(out, [(t % 4 * (t // 4), t) for t in range(32)])


def test_maps_and_numbers_are_printed() -> None:
    map_ = TensorMap(np.zeros((16, 64), np.float32), (8, 32))
    report = Module(ptx(PRINT_MAP, "sm_90")).launch("show", (1, 1, 1), None, [map_], check=True)
    first, *numbers = "".join(report.output).splitlines()
    assert numbers == ["-1.500000", "-7 0", "1"]
    head, *words = first.split()
    assert head == "tma_descriptor_tiled"
    assert len(words) == 16
    assert all(len(word) == 16 for word in words)
    assert any(int(word, 16) for word in words)
