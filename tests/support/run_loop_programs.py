"""Launches the programs of `loop_programs` in the simulator, as they are or with a fault each; a
process of its own, since the simulator takes the place of cuTile's driver for good. Its argument is
JSON of what `run` takes, with a list of programs, or, with "faults", of what `plant` takes.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from tile_sim import Module, SimError, cutile

SCHEDULES = ("late", "early", "random")
#: What is left out, one line at a time.
SYNCHRONISATION = {
    "wait": r"mbarrier\.try_wait|cp\.async\.wait_group|wgmma\.wait_group|cp\.async\.bulk\.wait",
    "commit": r"cp\.async\.commit_group|wgmma\.commit_group|tcgen05\.commit|bulk\.commit_group",
    "expected bytes": r"expect_tx",
    "arrival": r"mbarrier\.arrive\.(?!expect)",
    "meeting": r"\bbar(rier)?\.(cta\.)?sync",
    "fence": r"fence\.(proxy\.(async|tensormap)|mbarrier_init)|wgmma\.fence|tcgen05\.fence",
}


def settle(target: str, strategy: str) -> None:
    """What programs are compiled for and run on from now on."""
    settings = cutile.settings
    settings.arch, settings.compiler, settings.opt_level = target, "tilec", 3
    settings.options, settings.strict = {"pipeline-strategy": strategy}, True


def launch(name: str, steps: int) -> None:
    """Raises AssertionError for another result than NumPy's, SimError for what is found."""
    import cuda.tile as ct  # behind the simulator, which stands in for its driver

    from support.loop_programs import CASES

    case = CASES[name](steps)
    ct.launch(None, (1, 1, 1), case.kernel, (*case.arrays, case.steps))
    np.testing.assert_array_equal(case.arrays[3], case.wanted, err_msg=f"{name}, {steps} steps")


def run(target: str, strategy: str, names: list[str], steps: list[int]) -> None:
    """Each program, for so many steps each, under every schedule."""
    settle(target, strategy)
    for name in names:
        for count in steps:
            for schedule in SCHEDULES:
                cutile.settings.launch.update(schedule=schedule)
                launch(name, count)


def faults(text: str, of: str) -> Iterator[tuple[str, str, str]]:
    """Name, the program less one line, and the program with a trap in its place, for each line of
    synchronisation that matches `of`.
    """
    lines = text.split("\n")
    for kind, pattern in SYNCHRONISATION.items():
        for at, line in enumerate(lines):
            if re.search(pattern, line) and re.search(of, line):
                both = [[*lines[:at], by, *lines[at + 1 :]] for by in ("", "trap;")]
                without, trapped = map("\n".join, both)
                yield f"{kind}, line {at + 1}: {line.strip()}", without, trapped


def plant(target: str, strategy: str, names: list[str], steps: int, of: str = "") -> list[str]:
    """Programs with a fault that is reached and that no schedule shows."""
    settle(target, strategy)
    missed: list[str] = []
    for name in names:
        launch(name, steps)
        whole = cutile.launches[-1].kernel.module
        for fault, without, trapped in faults(whole.text, of):
            if not _shown(trapped, name, steps) or _shown(without, name, steps):
                continue
            missed.append(f"{name}: {fault}")
    return missed


def _shown(text: str, name: str, steps: int) -> bool:
    """Whether a program goes wrong under some schedule."""

    module, wrong = Module(text), list[str]()
    for schedule in SCHEDULES:
        cutile.settings.instead = partial(_run_mutant, module, schedule, wrong)
        try:
            launch(name, steps)
        except AssertionError:
            return True
        finally:
            cutile.settings.instead = None
        if wrong:
            return True
    return False


def _run_mutant(
    module: Module,
    schedule: str,
    wrong: list[str],
    _: Any,
    name: str,
    grid: Any,
    cluster: Any,
    data: Any,
    buffers: Any,
) -> None:
    """In place of a launch, as `Settings.instead` has it; what is wrong goes to a list, as cuTile
    ends the process if a launch with lists of arrays fails.
    """
    try:
        report = module.launch_raw(
            name, grid, None, data, buffers, cluster=cluster, check=True, schedule=schedule,
            max_steps=100_000,
        )  # fmt: skip
        wrong += map(str, report.findings)
    except SimError as error:
        wrong.append(str(error))


if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    print(json.dumps(plant(**given) if isinstance(given["steps"], int) else run(**given)))
