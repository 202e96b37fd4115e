"""Schedulers beside each other, in the timing model: the rows of speed.py, compiled with each.

    python benchmarks/schedulers.py --gpu h100 --only attention norm
    python benchmarks/schedulers.py --schedulers serial list cost:1 cost:2 cost:0

A scheduler may be followed by the stages it may use (`max-stages`; 1 where nothing is said, 0 for
no bound). Times are told as a speed-up over the first one; what all compile to the same code is not
timed, as its speed-up is 1. One process times one GPU. Needs
cuda-tile and NVIDIA's tools (groups `export` and `peer`).
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from math import exp, log
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
PASS = "tileas-generate-schedule-constraints"
_SMALL = 1 << 20  # bytes
#: The result of schedulers that all make the same code.
SAME: dict[str, Any] = {"same": True}
DEFAULT = ("serial", "default", "list", "cost:1", "cost:2", "cost:0")


def main(argv: Sequence[str] | None = None) -> int:
    sys.path[:0] = [str(HERE), str(HERE.parent / "examples")]
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--gpu", default="h100")
    parser.add_argument(
        "--only", nargs="+", default=[""], help="rows with one of these in the name"
    )
    parser.add_argument("--schedulers", nargs="+", default=list(DEFAULT))
    parser.add_argument("--json", type=Path, help="write all results there")
    given = parser.parse_args(argv)
    found = _all(given)
    _print(given.schedulers, found)
    if given.json is not None:
        given.json.write_text(json.dumps(found, indent=1) + "\n")
    return 0


def _all(given: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """`[row][scheduler]`: microseconds, registers and spilt bytes, `SAME`, or an error."""
    from speed_rows import ROWS

    from tile_core.machines import builtin_machines, find_machine

    machine = find_machine(given.gpu, builtin_machines())
    found: dict[str, dict[str, Any]] = {}
    for row in ROWS:
        if not any(part in row.name for part in given.only):
            continue
        if int(machine.target.removeprefix("sm_")) < row.capability:
            continue
        found[row.name] = _row(row, machine, given.schedulers)
        print(row.name, found[row.name], file=sys.stderr, flush=True)
        if given.json is not None:
            given.json.write_text(json.dumps(found, indent=1) + "\n")
    return found


def _row(row: Any, machine: Any, schedulers: Sequence[str]) -> dict[str, Any]:
    """One row. What has one code only is not timed: neither where schedulers make the same PTX, nor
    where ptxas makes the same of theirs.
    """
    # The same arrays for all: where they lie alone makes 5 % (split-K, whose blocks wait for
    # one another).
    launch = row.launch(int(machine.chip.sms))
    try:
        kept = _Kept(row, launch, machine)
    except _of_rows() as error:
        return dict.fromkeys(schedulers, _error(error))
    codes = _codes(kept.compiled.bytecode, machine.target, schedulers)
    texts = list(dict.fromkeys(code for code in codes.values() if isinstance(code, str)))
    kernels: dict[str, Any] = {}
    try:
        if len(texts) > 1:
            kernels = {text: kept.kernel(text) for text in texts}
    except _of_rows() as error:
        return dict.fromkeys(schedulers, _error(error))
    sass = {text: _sass(kernel) for text, kernel in kernels.items()}
    times: dict[str, Any] = {}
    if len(set(sass.values())) > 1:
        times = kept.times({sass[text]: kernel for text, kernel in kernels.items()})
    return {
        name: times.get(sass.get(code, ""), SAME) if isinstance(code, str) else _error(code)
        for name, code in codes.items()
    }


class _Kept:
    """A row's launch, to be timed with other code than it was compiled to.

    `compiled` has the program.
    """

    def __init__(self, row: Any, launch: Any, machine: Any) -> None:
        import cuda.tile as ct
        from speed import _kernel
        from tile_sim.cutile import settings

        kept: list[Any] = []
        settings.arch, settings.compiler, settings.opt_level = machine.target, "tilec", 3
        settings.instead = lambda *given: kept.append(given)
        ct.launch(None, launch.grid, _kernel(row, None), launch.arguments)
        self.compiled, self._name, self._grid, self._cluster, self._data, self._buffers = kept[0]
        self._machine, self._small = machine, _small(launch)

    def kernel(self, ptx: str) -> Any:
        from tile_sim import Module
        from tile_time.model import load_kernel

        return load_kernel(ptx, self._machine, self._name, Module(ptx).hidden)

    def times(self, kernels: dict[str, Any]) -> dict[str, Any]:
        """Each kernel's time, on the same data."""
        found = {}
        for key, kernel in kernels.items():
            try:
                found[key] = self._time(kernel)
            except _of_rows() as error:
                found[key] = _error(error)
            for array, held in self._small:
                array[...] = held
        return found

    def _time(self, kernel: Any) -> dict[str, Any]:
        from tile_sim.machine.parameters import RawParameters
        from tile_time.model import time_kernel

        raw: Any = RawParameters(self._data, tuple(self._buffers))
        result = time_kernel(kernel, self._grid, None, raw, cluster=self._cluster)
        registers = result.launch.resources.registers
        return {"us": round(result.us, 2), "registers": registers, "spills": result.spill_bytes}


def _sass(kernel: Any) -> str:
    """Instructions with what controls them, without the lines of PTX that they come from."""
    return "\n".join(
        f"{sass.text} {sass.stall} {sass.write} {sass.read} {sass.wait}"
        for sass in kernel.code.kernels[kernel.entry].code
    )


def _codes(bytecode: bytes, target: str, schedulers: Sequence[str]) -> dict[str, str | Exception]:
    """The PTX by each scheduler, or why there is none."""
    from tile_fuzz.oracle import Setting
    from tile_fuzz.together import Together

    from tile_core.diagnostics import TileError
    from tile_core.registry import default_registry

    settings = {}
    for scheduler in schedulers:
        name, _, stages = scheduler.partition(":")
        chosen = name != "default"
        options = {"scheduler": name, "persistent-stages": 1} if chosen else {}
        more = {f"{PASS}.max-stages": int(stages or 1)} if chosen else {}
        settings[scheduler] = Setting(target, 3, None, options, more)
    together = Together(bytecode, list(settings.values()), default_registry())
    found: dict[str, str | Exception] = {}
    for scheduler, setting in settings.items():
        try:
            found[scheduler] = together.ptx(setting)
        except TileError as error:
            found[scheduler] = error
    return found


def _small(launch: Any) -> list[tuple[Any, Any]]:
    """Arrays that say what a kernel does (locks, indices), with what they hold before it runs."""
    arrays = [value for value in launch.arguments if hasattr(value, "nbytes")]
    return [(array, array.copy()) for array in arrays if array.nbytes <= _SMALL]


def _of_rows() -> tuple[type[Exception], ...]:
    """What cuTile, the compiler, ptxas and the model say about a row: its result. Whatever else is
    raised is a fault of ours, and ends the run.
    """
    import cuda.tile as ct
    from tile_sim.errors import SimError

    from tile_core.diagnostics import TileError

    return (ct.TileError, TileError, SimError)


def _error(error: Any) -> dict[str, Any]:
    return {"error": f"{type(error).__name__}: {error}".splitlines()[0]}


def _print(schedulers: Sequence[str], found: dict[str, dict[str, Any]]) -> None:
    """A table in Markdown: speed-ups over the first scheduler, with registers, and their mean."""
    first, *others = schedulers
    print(f"| kernel | {first}, us | " + " | ".join(others) + " |")
    print("|---|---|" + "---|" * len(others))
    factors: dict[str, list[float]] = {name: [] for name in others}
    for row, results in found.items():
        print(f"| {row} | {' | '.join(_cells(results[first], others, results, factors))} |")
    means = [
        f"{exp(sum(map(log, of)) / len(of)):.3f}, least {min(of):.3f}" if of else ""
        for of in factors.values()
    ]
    print("| geometric mean | | " + " | ".join(means) + " |")


def _cells(
    base: dict[str, Any],
    others: Sequence[str],
    results: dict[str, Any],
    factors: dict[str, list[float]],
) -> list[str]:
    """The cells of a row behind its name; its factors are added to those of each scheduler."""
    told = f"{base['us']:.1f} ({base['registers']})" if "us" in base else ""
    cells = [base.get("error", told or "one code")]
    for name in others:
        one = results[name]
        if base == one and "error" not in one:
            factors[name].append(1.0)
            cells.append("1")
        elif "us" not in one or "us" not in base:
            cells.append(one.get("error", ""))
        else:
            factors[name].append(base["us"] / one["us"])
            spilt = f", spills {one['spills']}" if one["spills"] else ""
            cells.append(f"{factors[name][-1]:.3f} ({one['registers']}{spilt})")
    return cells


if __name__ == "__main__":
    sys.exit(main())
