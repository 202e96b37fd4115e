"""Kernels with a loop over [first, last), run in check mode and compared with what they mean."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import tile_sim

_MOST_STEPS = 30_000  # of a kernel that ends; mutants may wait for ever


class Looped(Protocol):
    """A kernel "k" of one block; its last arguments are its results."""

    def arguments(self, first: int, last: int) -> list[Any]: ...

    def expected(self, first: int, last: int) -> list[np.ndarray]: ...


def check(program: Looped, text: str, first: int, last: int, schedule: str) -> None:
    """Run the PTX `text` of a program: nothing is found, and each result is just as expected."""
    arguments, wanted = program.arguments(first, last), program.expected(first, last)
    report = tile_sim.Module(text).launch(
        "k", (1, 1, 1), None, arguments, check=True, schedule=schedule, max_steps=_MOST_STEPS
    )
    assert not report.findings
    for found, meant in zip(arguments[-len(wanted) :], wanted, strict=True):
        np.testing.assert_array_equal(found, meant)
