"""How well the timing model does: mechanisms against the machine's numbers, ladders of kernels
against published ratios.

    python benchmarks/timing.py mechanisms [--gpu h100-sxm] [NAME ...]
    python benchmarks/timing.py ladders
    python benchmarks/timing.py published
"""

from __future__ import annotations

import argparse

import numpy as np
from tile_time.mechanisms import Mechanism, every
from tile_time.model import load_kernel, time_kernel

from tile_core.machines import builtin_machines


def measured(mechanism: Mechanism) -> float:
    """What the model gives for a mechanism, by the slope between two numbers of turns."""
    machine = builtin_machines()[mechanism.gpu]
    kernel = load_kernel(mechanism.ptx, machine)
    clk = [
        time_kernel(
            kernel,
            (mechanism.grid, 1, 1),
            None,
            [mechanism.array(), turns, np.zeros(1, np.int64)],
            warm=mechanism.warm,
        ).cycles
        for turns in mechanism.turns
    ]
    return mechanism.value((clk[1] - clk[0]) / (mechanism.turns[1] - mechanism.turns[0]))


def show_mechanisms(names: list[str], gpu: str | None) -> float:
    """A table; the largest error."""
    print("| mechanism | GPU | unit | published | model | error |")
    print("|---|---|---|--:|--:|--:|")
    worst = 0.0
    for mechanism in every():
        if gpu not in (None, mechanism.gpu) or (names and not _named(mechanism, names)):
            continue
        value = measured(mechanism)
        error = value / mechanism.expected - 1
        worst = max(worst, abs(error))
        print(f"| {mechanism.name} | {mechanism.gpu} | {mechanism.unit} | {mechanism.expected:g} | "
              f"{value:.1f} | {error:+.1%} |", flush=True)  # fmt: skip
    print(f"\nlargest error {worst:.1%}")
    return worst


def _named(mechanism: Mechanism, names: list[str]) -> bool:
    return any(name in mechanism.name for name in names)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=["mechanisms", "ladders", "published"])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--gpu")
    parser.add_argument("--cache", help="folder of results of `published`, as speed.py's")
    given = parser.parse_args()
    if given.part == "mechanisms":
        show_mechanisms(given.names, given.gpu)
    elif given.part == "published":
        from published import show_published

        show_published(given.names, cache=given.cache)
    else:
        from ladders import show_ladders

        show_ladders(given.names)


if __name__ == "__main__":
    main()
