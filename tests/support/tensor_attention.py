"""Attention of the benchmarks on sm_100, by tiles and hints of the test's choice, in check mode."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
import tile_sim

import tile_core

ROOT = Path(__file__).resolve().parents[2]
_MOST_STEPS = 60_000  # of a block of a kernel that ends; mutants may wait for ever
#: Writes the bytecode.
_PROGRAM = """
import sys
sys.path[:0] = sys.argv[2:]
from pathlib import Path
from tile_sim import cutile
cutile.settings.arch, cutile.settings.compiler = "sm_100", "none"
cutile.compiler.watch = lambda done: Path(sys.argv[1]).write_bytes(done.bytecode)
import cuda.tile as ct
import numpy as np
from speed_kernels import attention
q, out = (np.zeros((1, 1, QUERIES, DEPTH), np.float16) for _ in range(2))
k, v = (np.zeros((1, 1, KEYS, DEPTH), np.float16) for _ in range(2))
kernel = attention.replace_hints(HINTS)
tiles = (DEPTH, 1, ROWS, COLUMNS, 1, CAUSAL, True)
ct.launch(None, (QUERIES // ROWS, 1, 1), kernel, (q, k, v, out, 1.0, 0, *tiles))
"""


@dataclass(frozen=True)
class Attention:
    """Attention of `rows` queries by `keys` at a time, of which there are so many `tiles`, and
    heads of so much `depth`. `hints` are those of its kernel; with `causal` as many keys count as
    queries stand before.
    """

    rows: int = 128
    keys: int = 128
    depth: int = 128
    causal: bool = False
    hints: str = ""
    tiles: int = 3

    @property
    def queries(self) -> int:
        """All queries: one block of them more than keys ask for, for causal ones."""
        return self.rows * max(2, -(-self.tiles * self.keys // self.rows))


@cache
def compiled(what: Attention) -> tile_core.Artifact:
    """What `what` becomes for sm_100 at -O3."""
    pytest.importorskip("cuda.tile", reason="cuTile programs; `make test` installs it")
    program = _PROGRAM
    for name, value in (
        ("QUERIES", what.queries), ("DEPTH", what.depth), ("COLUMNS", what.keys),
        ("KEYS", what.tiles * what.keys), ("ROWS", what.rows), ("CAUSAL", what.causal),
        ("HINTS", what.hints),
    ):  # fmt: skip
        program = program.replace(name, str(value))
    with TemporaryDirectory() as folder:
        file = Path(folder, "attention.tileirbc")
        paths = [str(ROOT / "benchmarks"), str(ROOT / "examples")]
        command = [sys.executable, "-c", program, str(file), *paths]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        assert file.exists(), done.stderr[-2000:]
        return tile_core.compile(file.read_bytes(), "sm_100", opt_level=3, emit="ptx")


def ptx(what: Attention) -> str:
    """Its PTX."""
    return str(compiled(what).stage("ptx"))


def attend(what: Attention, text: str, schedule: str, block: int = 0) -> np.ndarray:
    """What one block of queries gives, by PTX of `what`, with nothing found and close to NumPy."""
    rng = np.random.default_rng(0)
    q = rng.normal(size=(1, 1, what.queries, what.depth)).astype(np.float16)
    k, v = (
        rng.normal(size=(1, 1, what.tiles * what.keys, what.depth)).astype(np.float16)
        for _ in range(2)
    )
    out = np.zeros_like(q)
    arguments: list[Any] = []
    for array in (q, k, v, out):
        strides = [one // array.itemsize for one in array.strides]
        arguments += [array, *map(np.int32, (*array.shape, *strides))]
    scale = what.depth**-0.5
    arguments += [np.float32(scale), np.int32(0)]
    name = re.findall(r"\.entry (\w+)", text)[0]
    # All blocks before it are so many: the simulator is given a grid that ends with it.
    steps = _MOST_STEPS * (block + 1) * what.rows // 128
    report = tile_sim.Module(text).launch(
        name, (block + 1, 1, 1), None, arguments, check=True, schedule=schedule, max_steps=steps
    )
    assert not report.findings
    rows = slice(what.rows * block, what.rows * (block + 1))
    scores = q[0, 0, rows].astype(np.float64) @ k[0, 0].astype(np.float64).T * scale
    if what.causal:
        seen = np.arange(rows.start, rows.stop)[:, None] >= np.arange(scores.shape[1])
        scores = np.where(seen, scores, -np.inf)
    weights = np.exp(scores - scores.max(1, keepdims=True))
    wanted = weights / weights.sum(1, keepdims=True) @ v[0, 0].astype(np.float64)
    np.testing.assert_allclose(out[0, 0, rows], wanted, atol=4e-3)
    return out
