"""A launch that is ready to go, and how it is timed."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from .gpu import Gpu, parameter_bytes

#: Launches that are timed at least and at most, and those before, which are not.
FEWEST, MOST, WARM = 5, 50, 3


class Prepared:
    """A kernel with its arrays on the device."""

    def __init__(
        self, gpu: Gpu, image: Path, case: Mapping[str, Any], arrays: Sequence[np.ndarray]
    ) -> None:
        self.gpu, self.case = gpu, case
        self.arrays = [gpu.guarded(array) for array in arrays]
        addresses = [array.address for array in self.arrays]
        self.function = gpu.kernel(image, case["entry"], case.get("shared", 0))
        self.parameters = parameter_bytes(case["parameters"], addresses, gpu)

    def launch(self, changed: Mapping[int, bytes] | None = None) -> None:
        """Start it; `changed` are other bytes of some parameters."""
        case, parameters = self.case, list(self.parameters)
        for index, data in (changed or {}).items():
            parameters[index] = data
        self.gpu.launch(
            self.function, case["grid"], case["block"], parameters, case.get("shared", 0),
            case.get("cluster"),
        )  # fmt: skip


def timed(gpu: Gpu, launch: Callable[[], None], seconds: float) -> dict[str, Any]:
    """Median of the microseconds of single launches; L2 is written over before each.

    Events are recorded around a launch that waits behind the flush, so what the host does for it
    is not in the time.
    """
    for _ in range(WARM):
        launch()
    gpu.wait()
    events = [(gpu.event(), gpu.event()) for _ in range(MOST)]
    end, us = time.perf_counter() + seconds, []
    for first, last in events:
        gpu.flush_l2()
        gpu.record(first)
        launch()
        gpu.record(last)
        us.append(gpu.milliseconds(first, last) * 1000)
        if len(us) >= FEWEST and time.perf_counter() > end:
            break
    return summary(us)


def summary(us: Sequence[float]) -> dict[str, Any]:
    ordered = sorted(us)
    return {
        "us": median(ordered), "fastest": ordered[0], "launches": len(ordered),
        "p90": ordered[int(0.9 * (len(ordered) - 1))],
    }  # fmt: skip


def mechanism_slopes(gpu: Gpu, prepared: Prepared, case: Mapping[str, Any]) -> list[float]:
    """Clk of a turn: differences of two launches with different numbers of turns, some times.

    The kernel leaves what its loop took in the array of clocks.
    """
    clocks = prepared.arrays[case["clocks"]]
    turns: tuple[int, int] = tuple(case["turns"])

    def clk(count: int) -> float:
        if case["cold"]:
            gpu.flush_l2()
        prepared.launch({case["count"]: count.to_bytes(4, "little")})
        gpu.wait()
        return float(clocks.read().view(np.int64)[0])

    clk(turns[0])
    found = []
    for _ in range(case["repeats"]):
        few, many = clk(turns[0]), clk(turns[1])
        found.append((many - few) / (turns[1] - turns[0]))
    return found
