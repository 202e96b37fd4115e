"""Sums of loops whose products are made turned: B^T A^T on instructions that do not take A B."""

from __future__ import annotations

import numpy as np
import pytest
import tile_sim
from support.products import (
    BF16,
    BYTES,
    F16,
    INT8,
    TF32,
    Size,
    Types,
    inputs,
    loop_kernel,
    product_kernel,
    wanted,
)

#: Size, types, which operands lie transposed in memory, instructions on sm_90 and sm_100.
CASES = [
    ((32, 64, 64), F16, (False, False), ("wgmma", "tcgen05.mma")),  # few rows
    ((16, 128, 32), BF16, (True, True), ("wgmma", "tcgen05.mma")),
    ((8, 64, 32), INT8, (False, True), ("wgmma", "tcgen05.mma")),  # signs change places
    ((32, 64, 32), TF32, (False, False), ("wgmma", "tcgen05.mma")),
    ((128, 64, 32), TF32, (False, False), ("wgmma", "tcgen05.mma")),  # B lies along N
    ((64, 64, 64), BYTES, (False, False), ("wgmma", "tcgen05.mma")),  # bytes along N
    ((64, 128, 32), INT8, (False, False), ("wgmma", "tcgen05.mma")),
    ((64, 64, 64), BYTES, (True, True), ("wgmma", "tcgen05.mma")),  # A along M as it comes
    ((128, 128, 32), INT8, (True, True), ("wgmma", "tcgen05.mma")),
    ((64, 64, 32), BYTES, (True, False), ("mma.sync", "tcgen05.mma")),
    ((32, 32, 32), F16, (False, False), ("mma.sync", "mma.sync")),  # neither way
    ((64, 64, 32), TF32, (True, False), ("mma.sync", "tcgen05.mma")),
]


@pytest.mark.parametrize(("size", "types", "turned", "instructions"), CASES, ids=str)
@pytest.mark.parametrize("target", ["sm_90", "sm_100"])
def test_sums_of_loops(
    target: str, size: Size, types: Types, turned: tuple[bool, bool], instructions: tuple[str, str]
) -> None:
    text = loop_kernel(size, types, turned).ptx(target, 2)
    assert instructions[target == "sm_100"] in text
    a, b, _, out = inputs(size, types, turned)
    expected = 3 * wanted([a, b, np.zeros_like(out), out], turned)
    for schedule in ("late", "early", "random"):
        out[:] = 0
        report = tile_sim.Module(text).launch(
            "kernel", (1, 1, 1), None, [a, b, out], check=True, schedule=schedule
        )
        assert not report.findings
        np.testing.assert_array_equal(out.astype(np.float64), expected)


@pytest.mark.parametrize("target", ["sm_90", "sm_100"])
def test_single_products_stay_as_they_are(target: str) -> None:
    """What is turned has to be turned back, which only pays behind a loop."""
    text = product_kernel((32, 64, 64), F16).ptx(target, 2)
    assert "mma.sync" in text


@pytest.mark.parametrize("level", [0, 1])
def test_low_levels_turn_nothing(level: int) -> None:
    text = loop_kernel((32, 64, 64)).ptx("sm_90", level)
    assert "mma.sync" in text
