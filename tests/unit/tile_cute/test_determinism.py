"""Nothing depends on the order of hashes, and importing the algebra imports nothing heavy."""

import os
import subprocess
import sys

SCRIPT = """
from tile_cute.linear import *
from tile_cute.draw import draw, to_svg
from tile_cute.atoms import mma_rows
a = blocked((64, 128), (1, 4), (2, 16), (4, 1), (1, 0))
b = blocked((64, 128), (4, 1), (16, 2), (1, 4), (0, 1))
c = slice_dim(a, 0)
print(a, c, c.kernel(), plan_conversion(a, b, 16))
print(plan_conversion(a, b, 32, max_smem=8192, guarded=True))
print(best_shared_layout(a, b, 8), invert(a), broadcast_registers(expand_dim(c, 0), a))
print(to_svg(draw(str(b))))
print([row.name for row in mma_rows()])
"""

LAZY = """
import sys
import tile_cute, tile_cute.linear, tile_cute.plugin
heavy = {"torch_mlir", "mlir", "numpy", "llvmlite", "click"} & set(sys.modules)
assert not heavy, heavy
"""


def run(script: str, seed: str) -> str:
    environment = {**os.environ, "PYTHONHASHSEED": seed}
    return subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
    ).stdout


def test_hash_order_does_not_matter() -> None:
    assert run(SCRIPT, "1") == run(SCRIPT, "2") != ""


def test_imports_are_light() -> None:
    run(LAZY, "0")
