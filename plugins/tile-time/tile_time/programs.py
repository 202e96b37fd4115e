"""Times of the launches of a cuTile program."""

from __future__ import annotations

from typing import Any

from tile_sim.machine.parameters import RawParameters
from tile_sim.script import run_script

from tile_core.machines import Machine
from tile_time.model import load_kernel, time_kernel
from tile_time.result import Result


def time_program(machine: Machine, given: dict[str, Any]) -> list[tuple[str, Result]]:
    """Run a program whose launches are timed and not run, but for one cluster each.

    What the program computes is therefore not there afterwards: a program that checks its results
    fails after its launches. `given` are the options of the command line.
    """
    from tile_core.diagnostics import UsageError

    try:
        from tile_sim import cutile
    except ImportError as error:
        raise UsageError(f"--cutile: {error}") from None
    found: list[tuple[str, Result]] = []

    def instead(
        compiled: Any, name: str, grid: Any, cluster: Any, data: bytes, buffers: Any
    ) -> None:
        kernel = load_kernel(compiled.ptx, machine, name, compiled.module.hidden)
        raw: Any = RawParameters(data, tuple(buffers))
        result = time_kernel(kernel, grid, None, raw, cluster=cluster, warm=given["warm_l2"])
        found.append((f"launch {len(found)} {name}", result))

    cutile.settings.instead = instead
    options = {"gpu_name": machine.target, "scheduler": None, "layout_strategy": None,
               "schedule": "early", "seed": 0, **given}  # fmt: skip
    run_script(options, given["script_args"])
    return found
