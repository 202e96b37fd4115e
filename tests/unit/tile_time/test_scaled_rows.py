"""Products with block scales of benchmarks/scaled_rows.py, small, against NumPy in check mode; and
what they run as.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PATHS = [str(ROOT / "benchmarks"), str(ROOT / "examples")]

#: One launch of three tiles by one, six steps; all numbers are small, so that sums are exact. One
#: cluster is launched at a time, and may take over the others.
_LAUNCH = """
import sys
target, schedule, form, scales, tile, ctas, wanted, unwanted = sys.argv[1:9]
sys.path[:0] = sys.argv[9:]
from tile_sim import cutile
cutile.settings.arch, cutile.settings.compiler, cutile.settings.opt_level = target, "tilec", 3
cutile.settings.strict = True
cutile.settings.launch.update(schedule=schedule, wave_threads=1)
import cuda.tile as ct
import ml_dtypes
import numpy as np
import tile_core
from importlib import import_module
from scaled_rows import FORMATS, KERNELS

made = []
cutile.compiler.watch = lambda done: made.append(done.bytecode)
kind, in_byte, _, scale_kind, block = FORMATS[form]
tm, tn, tk = map(int, tile.split("x"))
m, n, k = 3 * tm, tn, 6 * tk
draw = np.random.default_rng(1)
NIBBLES = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])

def numbers(rows):
    "As they lie in memory, and what they are."
    if in_byte == 1:
        found = draw.integers(-4, 5, (rows, k)).astype(np.float32)
        return found.astype(ml_dtypes.float8_e4m3fn), found
    raw = draw.integers(0, 256, (rows, k // 2)).astype(np.uint8)
    codes = np.stack([raw & 15, raw >> 4], -1).reshape(rows, k)
    return raw, (NIBBLES[codes & 7] * np.where(codes & 8, -1, 1)).astype(np.float32)

def factors(rows):
    count = k // block
    found = draw.integers(0, 3, (rows, count)).astype(np.float32)
    if scale_kind == "e8m0":
        found = 2 ** (found - 1)
        held = found.astype(ml_dtypes.float8_e8m0fnu)
    else:
        held = found.astype(ml_dtypes.float8_e4m3fn)
    if scales == "interleaved":
        parts = held.reshape(rows // 128, 4, 32, count // 4, 4).transpose(0, 3, 2, 1, 4)
        held = np.ascontiguousarray(parts).reshape(rows // 128, count // 4, 32, 16)
    return held, np.repeat(found, block, axis=1)

(a, left), (b, right) = numbers(m), numbers(n)
(sfa, by), (sfb, others) = factors(m), factors(n)
if scales == "b in rows":
    b, sfb = np.ascontiguousarray(b.T), np.ascontiguousarray(sfb.T)
where, name = KERNELS[form, scales].split(":")
kernel = getattr(import_module(where), name)
kernel = kernel.replace_hints(num_ctas=int(ctas)) if int(ctas) > 1 else kernel
c = np.zeros((m, n), np.float32)
ct.launch(None, (3, 1, 1), kernel, (a, sfa, b, sfb, c, tm, tn, tk, block))
np.testing.assert_array_equal(c, (left * by) @ (right * others).T)
text = str(tile_core.compile(made[-1], target, opt_level=3, emit="ptx").output)
assert wanted in text and unwanted not in text
"""
_PAIR, _ALONE = ".reqnctapercluster 2", ".reqnctapercluster"
_CASES = [
    # A cluster by hint, by each block alone: what B has comes to both.
    ("sm_100", "MXFP8", "rows", "256x256x128", 2, _PAIR, "f64"),
    ("sm_100", "MXFP8", "interleaved", "256x256x128", 2, _PAIR, "cp.async.commit_group"),
    ("sm_100", "MXFP8", "b in rows", "256x256x128", 2, _PAIR, "f64"),
    ("sm_100", "MXFP4", "interleaved", "256x128x256", 2, _PAIR, "cp.async.commit_group"),
    ("sm_100", "NVFP4", "rows", "256x128x256", 2, _PAIR, "f64"),
    # Sums of one block leave no columns for scales.
    ("sm_100", "MXFP8", "rows", "256x256x128", 1, _PAIR, "f64"),
    # Of 64 rows each there would be no instruction.
    ("sm_100", "MXFP8", "rows", "128x128x128", 2, "tcgen05.cp", _ALONE),
    # By warps, in blocks that share nothing.
    ("sm_120", "NVFP4", "rows", "128x256x128", 1, _PAIR, "f64"),
    ("sm_120", "MXFP8", "interleaved", "128x128x128", 1, "block_scale", _ALONE),
    ("sm_120", "MXFP8", "rows", "256x256x128", 2, ".reqnctapercluster 4", "f64"),
    # Threads make B's scales of the next step, as its rows are in memory.
    ("sm_100", "MXFP8", "b in rows", "128x128x128", 1, "tcgen05.cp", _ALONE),
]


@pytest.mark.parametrize("schedule", ["late", "random"])
@pytest.mark.parametrize("case", _CASES, ids=lambda case: " ".join(map(str, case[:5])))
def test_against_numpy(case: tuple[str, ...], schedule: str) -> None:
    pytest.importorskip("cuda.tile", reason="cuTile programs; `make test` installs it")
    target, *rest = map(str, case)
    command = [sys.executable, "-c", _LAUNCH, target, schedule, *rest, *PATHS]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
