"""Times of the launches of a cuTile program."""

from __future__ import annotations

from typing import Any

from tile_sim.machine.parameters import RawParameters
from tile_sim.script import run_script

from tile_core.diagnostics import TileError, UsageError
from tile_core.machines import Machine
from tile_time.model import load_kernel, time_kernel
from tile_time.ptx import with_registers
from tile_time.result import Result


def launches_timed(
    machine: Machine, warm: bool = False, registers: int = 0, trace_clk: float = 0.0
) -> list[tuple[str, Result]]:
    """From now on launches of cuTile are timed and not run, but for one cluster each.

    The list that is returned grows by (name of the kernel, result) with each of them. What a kernel
    computes is not there afterwards. What a program's own tuner launches (`cuda.tile.tune`) is
    timed for it, once each, and not in the list. With `registers` that is the limit of a thread's
    registers where the PTX has one (`.maxnreg`). What one SM does is kept of the first `trace_clk`
    cycles.

    Raises:
        UsageError: cuTile is not installed.
    """
    try:
        from tile_sim import cutile
    except ImportError as error:
        raise UsageError(f"--cutile: {error}") from None
    found: list[tuple[str, Result]] = []
    tried: dict[tuple[Any, ...], Result] = {}  # a tuner times each several times

    def timed(
        compiled: Any, name: str, grid: Any, cluster: Any, data: bytes, buffers: Any
    ) -> Result:
        ptx = with_registers(compiled.ptx, registers) if registers else compiled.ptx
        kernel = load_kernel(ptx, machine, name, compiled.module.hidden)
        raw: Any = RawParameters(data, tuple(buffers))
        return time_kernel(kernel, grid, None, raw, cluster=cluster, warm=warm, trace_clk=trace_clk)

    def instead(compiled: Any, name: str, *launch: Any) -> None:
        found.append((name, timed(compiled, name, *launch)))

    def measure(compiled: Any, name: str, *launch: Any) -> float:
        grid, cluster, data, _ = launch
        key = (compiled.ptx, name, grid, cluster, data)
        if key not in tried:
            tried[key] = timed(compiled, name, *launch)
        return tried[key].us

    cutile.settings.arch = machine.target
    cutile.settings.instead, cutile.settings.measure = instead, measure
    return found


def time_program(
    machine: Machine, given: dict[str, Any], trace_clk: float = 0.0
) -> tuple[list[tuple[str, Result]], str | None]:
    """Run a program whose launches are timed; `given` are the options of the command line,
    `trace_clk` as of `launches_timed`.

    A program that checks its results fails after its launches, as they were not computed: then the
    second part of the answer says where it ended. Other failures are the program's own.
    """
    found = launches_timed(machine, given["warm_l2"], trace_clk=trace_clk)
    options = {"gpu_name": machine.target, "scheduler": None, "layout_strategy": None,
               "schedule": "early", "seed": 0, **given}  # fmt: skip
    ended = None
    try:
        run_script(options, given["script_args"])
    except TileError as error:
        if not found or not isinstance(error.__cause__, AssertionError):
            raise
        ended = f"the program's own check failed at {error.where}: launches are timed and not run"
    return [(f"launch {n} {name}", result) for n, (name, result) in enumerate(found)], ended
