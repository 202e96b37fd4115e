"""How far schedulers are from the shortest interval: the loops of the examples, or of programs.

    python benchmarks/gap.py                              # examples, sm_90, two targets more
    python benchmarks/gap.py --gpu-name sm_80 kernel.tileirbc ...
    python benchmarks/gap.py --stages 2 --schedulers cost ims fast list

A row is a loop that may overlap its iterations: its operations, the shortest interval that `exact`
proves, and of each scheduler the interval over that and milliseconds. Where a scheduler reaches the
lower bound (below it every interval is excluded by dependences, resources, or both together), that
is the shortest; elsewhere `exact` is asked, which needs OR-tools
(`pip install 'tile-sched[exact]'`) and may take minutes. With --bound it is not: the lower bound
then stands for the shortest interval (marked ~), so that gaps are upper bounds.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import mean, median
from time import process_time
from typing import Any

_RUNS = 3
EXAMPLES = Path(__file__).resolve().parent.parent / "examples" / "bytecode"


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("programs", nargs="*", type=Path)
    parser.add_argument("--gpu-name", nargs="+", default=["sm_80", "sm_90", "sm_120"])
    parser.add_argument("--schedulers", nargs="+", default=["cost", "ims"])
    parser.add_argument("--bound", action="store_true", help="compare with the lower bound")
    parser.add_argument("--stages", type=int, default=0, help="iterations in flight; 0: no bound")
    given = parser.parse_args(argv)
    rows = list(_rows(given))
    print("| loop | ops | exact | " + " | ".join(given.schedulers) + " |")
    print("|---|---|---|" + "---|" * len(given.schedulers))
    for name, ops, best, proven, found in rows:
        cells = [f"{ii / best:.3f} ({ms:.1f} ms)" for ii, ms in found]
        print(f"| {name} | {ops} | {best}{'' if proven else ' ~'} | " + " | ".join(cells) + " |")
    status = 0
    for at, scheduler in enumerate(given.schedulers):
        gaps = [found[at][0] / best for *_, best, _, found in rows]
        times = [found[at][1] for *_, found in rows]
        print(
            f"{scheduler}: at most {max(gaps):.3f} of the shortest interval, {mean(gaps):.3f} on "
            f"average; {max(times):.1f} ms at most, median {median(times):.1f} ms"
        )
        status |= max(gaps) > 1.05
    return status


def _rows(given: argparse.Namespace) -> Iterator[tuple[str, int, int, bool, list[Any]]]:
    from tile_sched.graph.bounds import bounds
    from tile_sched.graph.exclusion import Exclusions

    from tile_core.registry import Registry

    registry = Registry.discover()
    for target in given.gpu_name:
        for path in given.programs or sorted(EXAMPLES.glob("*.tileirbc")):
            for graph, model in graphs(path, target, given.stages):
                found = [_timed(registry, name, graph, model) for name in given.schedulers]
                best, proven = min(ii for ii, _ in found), True
                lower = bounds(graph, model)
                assert lower is not None, "the loop of a program has a schedule"
                least = lower.mii
                exclusions = Exclusions(graph, model)
                while least < best and exclusions.excluded(least):
                    least += 1
                if best > least and given.bound:
                    best, proven = least, False
                elif best > least:
                    exact = registry.load("scheduler", "exact")().schedule(graph, model)
                    best = min(best, exact.ii)
                    proven = not any("not proven" in note for note in exact.notes)
                row = (f"{target} {graph.name}", len(graph.ops), best, proven, found)
                print(*row, file=sys.stderr, flush=True)
                yield row


def _timed(registry: Any, name: str, graph: Any, model: Any) -> tuple[int, float]:
    """Interval and milliseconds of the processor, the least of three runs."""
    interval, times = 0, []
    for _ in range(_RUNS):
        began = process_time()
        interval = registry.load("scheduler", name)().schedule(graph, model).ii
        times.append(process_time() - began)
    return interval, 1000 * min(times)


def graphs(path: Path, target: str, stages: int) -> list[tuple[Any, Any]]:
    """(graph, machine) of every loop of a program that may overlap its iterations."""
    from tile_tileas.cli.schedule import graphs_of_program

    from tile_core.registry import Registry

    found = graphs_of_program(Registry.discover(), path.read_bytes(), target, stages)
    return [(g, m) for g, m in found if g.is_loop and g.options.max_stages != 1]


if __name__ == "__main__":
    sys.exit(main())
