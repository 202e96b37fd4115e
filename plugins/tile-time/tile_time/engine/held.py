"""The bytes that a timed run asks for, held against those of the simulator's record.

Whatever ptxas copied, merged or moved: each access of the record is asked for once. A difference is
a fault of the model, and its time would be that of another kernel.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from tile_core.diagnostics import CompileError
from tile_time.actions import Action, Notes
from tile_time.engine.run import Engine, Load
from tile_time.graph import PtxGraph
from tile_time.record import Recorder, bytes_of

_EXACT = 1e-6  # of a sum of parts
Bytes = Counter[int]  # by the place of the PTX instruction


def check_plan(graph: PtxGraph, recorders: Sequence[Recorder], load: Load) -> None:
    """Raises CompileError where the actions of warps leave out what was recorded of them."""
    for recorder, ctas in zip(recorders, load.kinds, strict=True):
        steps = (step.notes for warp in recorder.warps.values() for step in warp if step.notes)
        actions = [action for cta in ctas for warp in cta for action in warp]
        planned = _bytes(notes for action in actions for notes in action.notes)
        recorded = _bytes(steps)
        _compare(graph, planned, recorded, recorded)


def check_run(graph: PtxGraph, engine: Engine) -> None:
    """Raises CompileError where a run has asked for less or more than its warps' actions have.

    Of a run that was ended early, what the last action of a warp has may be asked for in part.
    """
    load, least, most = engine.load, Counter[int](), Counter[int]()
    for warps in (warp for ctas in load.kinds for cta in ctas for warp in cta):
        if times := engine.ended[id(warps)]:
            for pos, size in _asked(load, warps).items():
                least[pos] += times * size
    for warp in engine.live:
        least += _asked(load, warp.actions[: warp.action])
        most += _asked(load, warp.actions[warp.action : warp.action + 1])
    _compare(graph, engine.bytes, least, least + most)


def _bytes(several: Iterable[Notes]) -> Bytes:
    found = Counter[int]()
    for notes in several:
        for pos, ones in notes.items():
            found[pos] += sum(map(bytes_of, ones))
    return found


def _asked(load: Load, actions: Sequence[Action]) -> Bytes:
    """What actions ask for: all that they have but for what was merged into other accesses."""
    found = _bytes(notes for action in actions for notes in action.notes)
    for action in actions:
        for run, pos in load.merged[action.key]:
            found[pos] -= sum(map(bytes_of, action.notes[run].get(pos, ())))
    return found


def _compare(
    graph: PtxGraph, asked: Mapping[int, float], least: Mapping[int, int], most: Mapping[int, int]
) -> None:
    for pos in sorted({*asked, *most}):
        size, low, high = asked.get(pos, 0), least.get(pos, 0), most.get(pos, 0)
        if low * (1 - _EXACT) - 1 <= size <= high * (1 + _EXACT) + 1:
            continue
        line, ins = next((at for at in graph.instructions.items() if at[1].pos == pos), (0, None))
        where = graph.program.where(ins).source if ins is not None else None
        text = ".".join((ins.op, *ins.mods)) if ins is not None else "an access"
        raise CompileError(
            f"the timed run asks for {size:.0f} bytes at line {graph.given_line(line)} of the PTX "
            f"({text}"
            f"{f', {where}' if where else ''}), the record has {low}",
            hint="this is a fault of the timing model, please report it with the PTX",
        )
