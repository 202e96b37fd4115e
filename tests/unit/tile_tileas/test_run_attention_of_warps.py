"""Attention by mma.sync: 64 rows are those of four warps, and of a block on sm_120; it is right."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

_ATTENTION = """
import math, sys
from tile_sim import cutile
arch, schedule, rows, depth, causal, blocks, threads = sys.argv[1:8]
cutile.settings.arch, cutile.settings.compiler, cutile.settings.opt_level = arch, "tilec", 3
cutile.settings.strict = True
cutile.settings.launch.update(schedule=schedule)
import cuda.tile as ct
import numpy as np
import tile_core
made = []
cutile.compiler.watch = lambda done: made.append(done.bytecode)
Int, Flag = ct.Constant[int], ct.Constant[bool]

@ct.kernel
def attention(q, k, v, out, scale: float, rows: Int, keys: Int, depth: Int, causal: Flag):
    first = ct.bid(0) * rows
    queries = ct.load(q, index=(ct.bid(0), 0), shape=(rows, depth))
    most = ct.full((rows, 1), -math.inf, dtype=ct.float32)
    sums = ct.full((rows, 1), 0.0, dtype=ct.float32)
    total = ct.full((rows, depth), 0.0, dtype=ct.float32)
    place = first + ct.arange(rows, dtype=ct.int32)[:, None]
    for j in range(ct.num_tiles(k, axis=0, shape=(keys, depth))):
        key = ct.permute(ct.load(k, index=(j, 0), shape=(keys, depth)), (1, 0))
        scores = ct.mma(queries, key, ct.full((rows, keys), 0.0, dtype=ct.float32))
        if causal:
            other = j * keys + ct.arange(keys, dtype=ct.int32)[None, :]
            scores = scores + ct.where(place >= other, 0.0, -math.inf)
        now = max(most, ct.max(scores, axis=-1, keepdims=True) * scale)
        weights = ct.exp2(scores * scale - now)
        old = ct.exp2(most - now)
        sums, most = sums * old + ct.sum(weights, axis=-1, keepdims=True), now
        value = ct.load(v, index=(j, 0), shape=(keys, depth))
        total = ct.mma(weights.astype(q.dtype), value, total * old)
    ct.store(out, index=(ct.bid(0), 0), tile=(total / sums).astype(out.dtype))

rows, depth, causal = int(rows), int(depth), causal == "causal"
size, rng = 256, np.random.default_rng(0)
q, k, v = (rng.standard_normal((size, depth)).astype(np.float16) for _ in range(3))
out = np.zeros((size, depth), np.float16)
scale = 1 / math.sqrt(depth)
ct.launch(
    None, (size // rows, 1, 1), attention,
    (q, k, v, out, scale / math.log(2), rows, 64, depth, causal),
)
scores = q.astype(np.float64) @ k.astype(np.float64).T * scale
if causal:
    scores[np.triu_indices(size, 1)] = -np.inf
weights = np.exp(scores - scores.max(axis=1, keepdims=True))
expected = weights / weights.sum(axis=1, keepdims=True) @ v.astype(np.float64)
np.testing.assert_allclose(out, expected, atol=4e-3)
text = str(tile_core.compile(made[-1], arch, opt_level=3, emit="ptx").output)
assert f".reqntid {threads}" in text or f".maxntid {threads}" in text
assert (".reqnctapercluster " + blocks in text) == (blocks != "1")
"""


@pytest.mark.parametrize("schedule", ["late", "early", "random"])
@pytest.mark.parametrize(
    ("arch", "rows", "depth", "kind", "blocks", "threads"),
    [
        ("sm_120", 64, 128, "full", 1, 128),
        ("sm_120", 128, 128, "causal", 2, 128),
        ("sm_120", 256, 64, "full", 4, 128),
        ("sm_80", 64, 128, "causal", 1, 128),
    ],
)
def test_attention_of_warps(
    tmp_path: Path, schedule: str, arch: str, rows: int, depth: int, kind: str, blocks: int,
    threads: int,
) -> None:  # fmt: skip
    pytest.importorskip("cuda.tile", reason="cuTile programs; `make test` installs it")
    program = tmp_path / "program.py"  # in a file: cuTile reads its source
    program.write_text(_ATTENTION)
    numbers = [arch, schedule, str(rows), str(depth), kind, str(blocks), str(threads)]
    command = [sys.executable, str(program), *numbers]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
