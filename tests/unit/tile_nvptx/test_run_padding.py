"""Gathers that are padded: what a load does not bring is there before it, for every type."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.cutile_programs import counts_of

pytest.importorskip("cuda.tile", reason="cuTile programs; `make test` installs it")

_PROGRAM = """
import math, re
N, USED = 2048, 1240  # of a multiple of what one access brings

@ct.kernel
def padded(x, out, padding: ct.Constant):
    j = ct.arange(N, dtype=ct.int32)
    ct.scatter(out, (ct.bid(0), j), ct.gather(x, (ct.bid(0), j), padding_value=padding))

@ct.kernel
def guarded(x, flags, out, padding: ct.Constant):
    j = ct.arange(N, dtype=ct.int32)
    wanted = ct.gather(flags, (j,), padding_value=0) > 0
    got = ct.gather(x, (ct.bid(0), j), mask=wanted, padding_value=padding)
    ct.scatter(out, (ct.bid(0), j), got)

rng = np.random.default_rng(1)
for dtype, paddings in {
    "float16": (-math.inf, 1.5), "float32": (-math.inf, 3.25, -0.0), "float64": (-math.inf, 0.125),
    "int8": (-3, 100), "int16": (-3, 30000), "int32": (-3, 1 << 30), "int64": (-3, 1 << 40),
    "uint8": (200,),
}.items():
    for padding in paddings:
        x = rng.integers(0, 9, (2, USED)).astype(dtype)
        out = np.zeros((2, N), dtype)
        ct.launch(None, (2, 1, 1), padded, (x, out, padding))
        whole = np.full((2, N), padding, dtype)
        whole[:, :USED] = x
        assert out.tobytes() == whole.tobytes(), (dtype, padding)
        flags = rng.integers(0, 2, N).astype(np.int32)
        ct.launch(None, (2, 1, 1), guarded, (x, flags, out, padding))
        whole = np.where(flags > 0, whole, np.array(padding, dtype))
        assert out.tobytes() == whole.tobytes(), (dtype, padding)
print("all", 1)
x, out = np.zeros((2, USED), np.float32), np.zeros((2, N), np.float32)
ct.launch(None, (2, 1, 1), padded, (x, out, -math.inf))
ptx = tile_core.compile(made[-1], arch, opt_level=3, emit="ptx").output
print("loads", len(re.findall(r"@%p\\d+ ld.global", ptx)))
print("selections", len(re.findall(r"selp", ptx)))
"""


@pytest.mark.parametrize("arch", ["sm_80", "sm_100"])
def test_what_is_not_loaded_is_the_padding(arch: str, tmp_path: Path) -> None:
    found = counts_of(_PROGRAM, tmp_path, arch, "late")
    assert found["all"] == 1
    assert found["loads"] > 1
    assert found["selections"] < found["loads"]
