"""Elements of four bits in bytes of two: mma.sync with block scales takes the bytes as they are."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tile_tileas.dots import atom_named, has_atom, is_of_bytes, name_of_bytes
from tile_tileas.mma.block_scaled import BlockScaledTier
from tile_tileas.mma.tier import Product, Unfit

ROOT = Path(__file__).resolve().parents[3]
_KINDS = {("ue8m0", 32): "mxf4.", ("ue4m3", 16): "mxf4nvf4."}


def _chosen(scale: tuple[str, int], *, packed: bool, rank: int = 2) -> str:
    types = ("e2m1", "e2m1", "f32")
    product = Product("sm_120a", types, (1, 128, 128, 128), rank, 8, 1 << 16, scale=scale,
                      packed=packed)  # fmt: skip
    found = BlockScaledTier().choose(product)
    assert not isinstance(found, Unfit)
    return found


@pytest.mark.parametrize("scale", _KINDS)
def test_bytes_are_taken_where_there_are_such(scale: tuple[str, int]) -> None:
    """The same instruction, of half as many elements along K, and half as many for a scale."""
    name, plain = _chosen(scale, packed=True), _chosen(scale, packed=False)
    assert is_of_bytes(name)
    assert not is_of_bytes(plain)
    assert BlockScaledTier().has(name)
    atom, whole = atom_named(name), atom_named(plain)
    assert _KINDS[scale] in atom.instruction
    assert atom.instruction == whole.instruction
    assert 2 * atom.k == whole.k == 64
    assert atom.row.scale is not None
    assert 2 * atom.row.scale.vector == scale[1]
    assert atom.registers("a") == whole.registers("a")
    # Each register has the same eight elements: of bytes two coordinates each.
    for mine, theirs in ((atom.a_layout, whole.a_layout), (atom.b_layout, whole.b_layout)):
        assert mine is not None
        assert theirs is not None
        assert mine.bases["lane"] == tuple(
            _halved(vector, theirs.shape) for vector in theirs.bases["lane"]
        )


def _halved(vector: tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(at // 2 if extent == 64 else at for at, extent in zip(vector, shape, strict=True))


def test_batches_and_other_instructions_have_elements() -> None:
    assert not is_of_bytes(_chosen(("ue8m0", 32), packed=True, rank=3))
    eight = atom_named("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32")
    assert name_of_bytes(eight) is None
    assert not has_atom(f"bytes of {eight.row.name}")
    assert not has_atom("bytes of nothing")


#: A product of packed elements with scales, edges cut, in check mode; the arguments say when copies
#: arrive. Prints nothing, and fails where the simulator or NumPy finds a fault.
_PRODUCT = """
import sys
sys.path[:0] = sys.argv[1:3]
from tile_sim import cutile
cutile.settings.arch, cutile.settings.compiler, cutile.settings.opt_level = "sm_120", "tilec", 3
cutile.settings.strict = True
cutile.settings.launch.update(schedule=sys.argv[3])
import cuda.tile as ct
import numpy as np
from ml_dtypes import float8_e8m0fnu
from speed_kernels import packed_matmul
rng = np.random.default_rng(3)
m, n, k, tile = 120, 136, 640, (64, 64, 128)
a, b = (rng.integers(0, 256, (rows, k // 2)).astype(np.uint8) for rows in (m, n))
sa, sb = (rng.integers(125, 131, (rows, k // 32)).astype(np.uint8) for rows in (m, n))
c = np.zeros((m, n), np.float32)
grid = (-(-m // tile[0]) * -(-n // tile[1]), 1, 1)
scales = [x.view(float8_e8m0fnu) for x in (sa, sb)]
ct.launch(None, grid, packed_matmul, (a, scales[0], b, scales[1], c, *tile, 32))
values = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6])
def wide(x, s):
    both = np.stack([x & 15, x >> 4], -1).reshape(len(x), k)
    return values[both] * np.repeat(2.0 ** (s.astype(int) - 127), 32, 1)
np.testing.assert_array_equal(c, (wide(a, sa) @ wide(b, sb).T).astype(np.float32))
"""


@pytest.mark.parametrize("schedule", ["late", "early", "random"])
def test_a_product_of_bytes_is_that_of_their_elements(schedule: str) -> None:
    pytest.importorskip("cuda.tile", reason="cuTile programs; `make test` installs it")
    command = [sys.executable, "-c", _PRODUCT, str(ROOT / "benchmarks"), str(ROOT / "examples")]
    command.append(schedule)
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
