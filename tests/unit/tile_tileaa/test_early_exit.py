"""Branches that leave early: a kernel of cuTile Python, compiled and run.

The kernel returns in blocks past n, skips with `continue` in a `for`, and ends a `while` with
`break`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tile_cudatile
import tile_sim
from support.tiles import registry

import tile_core

BYTECODE = Path(__file__).parent / "data" / "early_exit.tileirbc"
WIDTH, BLOCKS, WORKING = 128, 4, 3  # elements of a row; blocks of the grid; blocks that go on
ROWS = 6


def reference(a: np.ndarray) -> np.ndarray:
    """One row of results per block."""
    rows = a.reshape(-1, WIDTH)
    out = np.full((BLOCKS, WIDTH), -7.0, np.float32)
    for block in range(WORKING):
        acc = np.zeros(WIDTH, np.float32)
        for j in range(ROWS):
            if j == 2:
                continue
            acc = acc + (np.float32(100) if j == 4 else rows[j])
        for k in (1, 3):
            acc = acc + rows[k]
        out[block] = acc
    return out


@pytest.fixture(scope="module")
def bytecode() -> bytes:
    return BYTECODE.read_bytes()


def kernel_of(bytecode: bytes) -> str:
    (entry,) = tile_cudatile.read_bytecode(bytecode).entries
    return entry.name


@pytest.mark.parametrize("opt_level", [0, 1, 2, 3])
def test_runs_as_numpy_does(bytecode: bytes, opt_level: int) -> None:
    made = tile_core.compile(
        bytecode, "sm_90", opt_level=opt_level, emit="ptx", registry=registry(), keep_stages=False
    )
    module = tile_sim.Module(str(made.stages["ptx"]))
    a = np.random.default_rng(0).standard_normal(ROWS * WIDTH).astype(np.float32)
    out = np.full(BLOCKS * WIDTH, -7.0, np.float32)
    arguments = [a, a.size, 1, out, out.size, 1, WORKING]
    module.launch(kernel_of(bytecode), (BLOCKS, 1, 1), None, arguments, check=True)
    np.testing.assert_allclose(out.reshape(BLOCKS, WIDTH), reference(a), rtol=1e-6)


def test_evaluator_agrees(bytecode: bytes) -> None:
    module = tile_cudatile.read_bytecode(bytecode)
    a = np.random.default_rng(1).standard_normal(ROWS * WIDTH).astype(np.float32)
    out = np.full(BLOCKS * WIDTH, -7.0, np.float32)
    arguments = [a, a.size, 1, out, out.size, 1, WORKING]
    tile_cudatile.evaluate(module, kernel_of(bytecode), (BLOCKS, 1, 1), arguments)
    np.testing.assert_allclose(out.reshape(BLOCKS, WIDTH), reference(a), rtol=1e-6)
