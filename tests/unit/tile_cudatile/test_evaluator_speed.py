"""Large programs evaluate in seconds."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import numpy as np
from tile_cudatile import evaluate, parse_text, verify

SIZE, BLOCK, DEPTH = 1024, 128, 64
MATRIX = f"tensor_view<{SIZE}x{SIZE}xf16, strides=[{SIZE},1]>"
LEFT, RIGHT, RESULT = (
    f"partition_view<tile=({a}x{b}), {MATRIX}>"
    for a, b in ((BLOCK, DEPTH), (DEPTH, BLOCK), (BLOCK, BLOCK))
)
ACC = f"tile<{BLOCK}x{BLOCK}xf32>"
A, B, C = f"tile<{BLOCK}x{DEPTH}xf16>", f"tile<{DEPTH}x{BLOCK}xf16>", f"tile<{BLOCK}x{BLOCK}xf16>"
VIEW = f"shape = [{SIZE}, {SIZE}], strides = [{SIZE}, 1] : tile<ptr<f16>> -> {MATRIX}"
PRODUCT = f"""\
entry @k(%a: tile<ptr<f16>>, %b: tile<ptr<f16>>, %c: tile<ptr<f16>>) {{
  %x, %y, %z = get_tile_block_id : tile<i32>
  %va = make_tensor_view %a, {VIEW}
  %vb = make_tensor_view %b, {VIEW}
  %vc = make_tensor_view %c, {VIEW}
  %pa = make_partition_view %va : {LEFT}
  %pb = make_partition_view %vb : {RIGHT}
  %pc = make_partition_view %vc : {RESULT}
  %lo = constant <i32: 0> : tile<i32>
  %hi = constant <i32: {SIZE // DEPTH}> : tile<i32>
  %one = constant <i32: 1> : tile<i32>
  %zero = constant <f32: 0.0> : {ACC}
  %s = for %i in (%lo to %hi, step %one) : tile<i32> iter_values(%acc = %zero) -> ({ACC}) {{
    %ta, %u = load_view_tko weak %pa[%x, %i] : {LEFT}, tile<i32> -> {A}, token
    %tb, %w = load_view_tko weak %pb[%i, %y] : {RIGHT}, tile<i32> -> {B}, token
    %n = mmaf %ta, %tb, %acc : {A}, {B}, {ACC}
    continue %n : {ACC}
  }}
  %h = ftof %s : {ACC} -> {C}
  %o = store_view_tko weak %h, %pc[%x, %y] : {C}, {RESULT}, tile<i32> -> token
}}
"""


def multiply() -> float:
    """1024 x 1024 x 1024 in f16, tile by tile as a kernel does it; gives the CPU seconds."""
    module = parse_text(PRODUCT)
    verify(module)
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-3, 4, (SIZE, SIZE)).astype(np.float16) for _ in range(2))
    c = np.zeros((SIZE, SIZE), np.float16)
    start = time.process_time()
    evaluate(module, "k", (SIZE // BLOCK, SIZE // BLOCK), [a, b, c])
    spent = time.process_time() - start
    # Sums of whole numbers below 2**24 are exact.
    exact = a.astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_array_equal(c, exact.astype(np.float16))
    return spent


def test_a_large_product_takes_seconds() -> None:
    """On one core: several would wait for each other where the machine is busy."""
    single = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    run = subprocess.run(
        [sys.executable, __file__],
        env={**os.environ, **single},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert float(run.stdout) < 20


if __name__ == "__main__":
    print(multiply())
