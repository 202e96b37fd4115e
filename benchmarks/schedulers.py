"""Schedulers beside each other, in the timing model: the rows of speed.py, compiled with each.

    python benchmarks/schedulers.py --gpu h100 --only attention norm
    python benchmarks/schedulers.py --schedulers serial list cost:1 cost:2 cost:0

A scheduler may be followed by the stages it may use (`max-stages`; 1 where nothing is said, 0 for
no bound). Times are told as a speed-up over the first one. One process times one GPU. Needs
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
    """`[row][scheduler]`: microseconds, registers and spilt bytes, or an error."""
    from speed_rows import ROWS
    from tile_time.programs import launches_timed

    from tile_core.machines import builtin_machines, find_machine

    machine = find_machine(given.gpu, builtin_machines())
    launches = launches_timed(machine)
    known = _timed_once(launches)
    found: dict[str, dict[str, Any]] = {}
    for row in ROWS:
        if not any(part in row.name for part in given.only):
            continue
        if int(machine.target.removeprefix("sm_")) < row.capability:
            continue
        # The same arrays for all: where they lie alone makes 5 % (split-K, whose blocks wait for
        # one another).
        launch = row.launch(int(machine.chip.sms))
        known.clear()
        before = _small(launch)
        found[row.name] = {}
        for name in given.schedulers:
            found[row.name][name] = _one(row, name, launch, launches)
            for array, held in before:
                array[...] = held
        print(row.name, found[row.name], file=sys.stderr, flush=True)
    return found


def _timed_once(launches: list[Any]) -> dict[str, Any]:
    """The results of a row by PTX: the same code on the same arrays takes the same time."""
    from tile_sim.cutile import settings

    timed, known = settings.instead, {}
    assert timed is not None, "launches are timed"

    def once(compiled: Any, *given: Any) -> None:
        if compiled.ptx in known:
            launches.append(known[compiled.ptx])
            return
        timed(compiled, *given)
        known[compiled.ptx] = launches[-1]

    settings.instead = once
    return known


def _small(launch: Any) -> list[tuple[Any, Any]]:
    """Arrays that say what a kernel does (locks, indices), with what they hold before it runs."""
    arrays = [value for value in launch.arguments if hasattr(value, "nbytes")]
    return [(array, array.copy()) for array in arrays if array.nbytes <= _SMALL]


def _one(row: Any, scheduler: str, launch: Any, launches: list[Any]) -> dict[str, Any]:
    import cuda.tile as ct
    from speed import _kernel
    from tile_sim.cutile import settings

    name, _, stages = scheduler.partition(":")
    settings.compiler, settings.opt_level = "tilec", 3
    settings.options = settings.pass_options = {}
    if name != "default":
        settings.options = {"scheduler": name, "persistent-stages": 1}
        settings.pass_options = {f"{PASS}.max-stages": int(stages or 1)}
    try:
        # A kernel of its own each time: cuTile keeps what it has compiled.
        kernel = _kernel(row, None).replace_hints(**row.hints)
        ct.launch(None, launch.grid, kernel, launch.arguments)
    except Exception as error:  # what a compiler says about a row is its result
        return {"error": f"{type(error).__name__}: {error}".splitlines()[0]}
    result = launches[-1][1]
    registers = result.launch.resources.registers
    return {"us": round(result.us, 2), "registers": registers, "spills": result.spill_bytes}


def _print(schedulers: Sequence[str], found: dict[str, dict[str, Any]]) -> None:
    """A table in Markdown: speed-ups over the first scheduler, with registers, and their mean."""
    first, *others = schedulers
    print(f"| kernel | {first}, us | " + " | ".join(others) + " |")
    print("|---|---|" + "---|" * len(others))
    factors: dict[str, list[float]] = {name: [] for name in others}
    for row, results in found.items():
        base = results[first]
        cells = [f"{base['us']:.1f} ({base['registers']})" if "us" in base else base["error"]]
        for name in others:
            one = results[name]
            if "us" not in one or "us" not in base:
                cells.append(one.get("error", ""))
                continue
            factors[name].append(base["us"] / one["us"])
            spilt = f", spills {one['spills']}" if one["spills"] else ""
            cells.append(f"{base['us'] / one['us']:.3f} ({one['registers']}{spilt})")
        print(f"| {row} | " + " | ".join(cells) + " |")
    means = [
        f"{exp(sum(map(log, of)) / len(of)):.3f}, least {min(of):.3f}" if of else ""
        for of in factors.values()
    ]
    print("| geometric mean | | " + " | ".join(means) + " |")


if __name__ == "__main__":
    sys.exit(main())
