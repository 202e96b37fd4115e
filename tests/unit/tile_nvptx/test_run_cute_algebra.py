"""cute's algebra on numbers of run time gives what it gives for numbers that are known."""

from __future__ import annotations

import numpy as np
import pytest
from support.cute_algebra import CASES, Case, Kernel
from support.cutlass_run import ptx
from tile_sim import Module

#: Cases of which one kernel is made.
_TOGETHER = 12


@pytest.mark.parametrize("first", range(0, len(CASES), _TOGETHER))
def test_algebra(first: int) -> None:
    run(CASES[first : first + _TOGETHER])


def run(cases: list[Case]) -> None:
    kernel = Kernel(cases)
    x = np.arange(1024, dtype=np.float32)
    given = np.array([*kernel.given, 0], np.int32)
    out = np.full(len(kernel.elements) + 1, -1, np.float32)
    numbers = np.full(len(kernel.numbers) + 1, -1, np.int32)
    report = Module(ptx(kernel.text, "sm_80")).launch(
        "algebra", (1, 1, 1), None, [x, given, out, numbers], check=True
    )
    assert not report.findings, "\n".join(map(str, report.findings))
    assert numbers[:-1].tolist() == kernel.numbers
    assert out[:-1].astype(int).tolist() == kernel.elements
