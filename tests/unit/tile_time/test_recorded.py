"""Records without the data that count for nothing are those of a kernel that runs whole."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from support.tiles import registry
from tile_fuzz.case import data_of
from tile_fuzz.generator import Settings, generate
from tile_fuzz.generator.gaps import GAPS
from tile_fuzz.oracle import Setting, compile_ptx
from tile_sim.program.layout import HEAP_WINDOW
from tile_time.model import Kernel, load_kernel, record
from tile_time.record import Bulk, Global, Mbarrier, Recorder

from tile_core.diagnostics import CompileError
from tile_core.machines import builtin_machines

_GPUS = (("h100-sxm", "sm_90"), ("a100", "sm_80"), ("b200", "sm_100"), ("rtx5090", "sm_120"))
_SMALL = Settings(operations=16, elements=256, avoid=frozenset(GAPS))


def _recorded(kernel: Kernel, grid: Any, args: list[Any], skipped: tuple[str, ...]) -> Any:
    """What each warp ran and asked for, with addresses of arrays from the first one's."""
    recorder = Recorder()
    record(kernel, recorder, grid, None, args, [0], {}, skipped)
    every = [note for steps in recorder.warps.values() for step in steps
             for notes in (step.notes or {}).values() for note in notes]  # fmt: skip
    heap = [n.address for n in every if isinstance(n, Global | Bulk) and n.address >= HEAP_WINDOW]
    low = min(heap, default=0)

    def told(note: Any) -> Any:
        if isinstance(note, Global | Bulk) and note.address >= HEAP_WINDOW:
            return note._replace(address=note.address - low)
        return note

    found = {}
    for key, steps in recorder.warps.items():
        # How often a warp polls is the schedule's business.
        polls = {n for n, s in enumerate(steps) if any(
            isinstance(note, Mbarrier) and note.what == "wait"
            for notes in (s.notes or {}).values() for note in notes)}  # fmt: skip
        found[key] = Counter(
            (s.block, s.lanes, tuple((pos, tuple(map(told, notes)))
                                     for pos, notes in (s.notes or {}).items()))
            for n, s in enumerate(steps) if n not in polls
        )  # fmt: skip
    return found


@pytest.mark.parametrize("seed", range(60, 72))
def test_of_random_programs(seed: int) -> None:
    gpu, target = _GPUS[seed % len(_GPUS)]
    case = generate(seed, _SMALL)
    ptx = compile_ptx(case, Setting(target, 1 + seed % 3), registry())
    for launch in case.launches:
        try:
            load_kernel(ptx, builtin_machines()[gpu], launch.entry)
        except CompileError:
            continue  # ptxas refuses it

        def run(*skipped: str, launch: Any = launch) -> Any:
            # Loaded anew, so that arrays lie in the same places.
            kernel = load_kernel(ptx, builtin_machines()[gpu], launch.entry)
            return _recorded(kernel, launch.grid, [data_of(a) for a in launch.arguments], skipped)

        assert run("values", "products", "memory") == run()
