"""What a schedule is worth once other warps are there: registers against overlap.

An SM holds as many blocks as its registers allow, and while one waits, the others run. Of B blocks
that each begin an iteration every II cycles, one begins every II / B cycles, until a resource is
busy all the time, the SM's share of memory among them: an iteration of some block takes
max(busy, II / B). Overlapping iterations makes
II smaller, and B, too, as values that cross stages take registers; where other warps hide what one
waits for already, it can only lose. (Little's law; Volkov, "Better performance at lower occupancy",
GTC 2010, for the other side.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from tile_core.sched import LoopGraph, MachineModel, Schedule
from tile_sched.graph.bounds import busy_cycles
from tile_sched.pressure import peak

LANES = 32
#: Registers of a thread besides those of tiles (addresses, counters, what instructions need), least
#: and most, and the same with the fragments that products read. Measured over the examples, sm_80:
#: 20 to 31, and 43 to 64; products that read shared memory alone (wgmma) take no fragments.
_BESIDES, _WITH_PRODUCTS = (20, 31), (31, 64)
#: Registers are given to warps in steps of so many per thread (CUDA occupancy calculator).
_STEP = 8
#: What is left of a loop whose loads run ahead is not worth registers. Two stages over one in the
#: timing model: attention of 64 columns 0.76 on H100 and 1.01 on A100, mixture of experts 0.92.
_STAGED = "one iteration after the other, since loads of products run ahead of the loop already"
#: What another stage has to gain, as times are estimates.
GAIN = Fraction(105, 100)


def registers_of(loop: LoopGraph, schedule: Schedule, *, most: bool = False) -> int:
    """Registers of a thread that the code of a schedule will take, at least or at `most`."""
    products = any(op.kind == "mma" for op in loop.ops)
    return peak(loop, schedule) + (_WITH_PRODUCTS if products else _BESIDES)[most]


def blocks_of(model: MachineModel, registers: int) -> int:
    """Blocks that an SM holds at once, by registers and warps; 0 if a thread's are too few."""
    if registers > model.registers:
        return 0
    rounded = -(-registers // _STEP) * _STEP
    by_registers = model.register_file // (rounded * LANES * model.num_warps)
    return min(by_registers, model.max_warps // model.num_warps)


def cycles_of(
    loop: LoopGraph, model: MachineModel, schedule: Schedule, *, most: bool = False
) -> Fraction | None:
    """Cycles of an SM for one iteration of some block; None if it would spill. `most`: with the
    most registers that it may take.
    """
    blocks = blocks_of(model, registers_of(loop, schedule, most=most))
    if not blocks:
        return None
    demand = busy_cycles(loop)
    busy = [Fraction(cycles, model.capacity(name)) for name, cycles in demand.items()]
    if model.memory_rate:
        moved = sum(op.memory_bytes for op in loop.ops)
        busy.append(Fraction(moved) / Fraction(model.memory_rate).limit_denominator(1000))
    return max([*busy, Fraction(schedule.ii, blocks)])


def reordering_pays(loop: LoopGraph, found: Schedule, written: Schedule) -> bool:
    """Whether, of two schedules of one stage in which arithmetic stands anywhere, `found` is worth
    another order of memory, products and barriers than that of the program (`as_written`).

    In a loop it has to gain `GAIN`: which of two orders that differ by less is faster is chance
    (RMS norm in the timing model with its two loads in the other turn, for 2 or 3 % of its
    interval: 0.95 on an H100, and 0.92 to 1.03 on an A100 by where arrays lie).

    That arithmetic has another place is no gain of a schedule's, since the assembler orders it
    itself: attention of one query over the order of `list` is 4 % by starts on an H100, of which
    nothing is left here, and 0.986 was measured; 11 % and 24 % on an RTX 5090 and an A100, where a
    load of values moves up that finds no room to run ahead, are 9 % and 16 % here.
    """
    least = GAIN if loop.is_loop else 1
    return _length(loop, written) > least * _length(loop, found)


def _length(loop: LoopGraph, schedule: Schedule) -> int:
    """Cycles from one iteration to the next, or until the last result of straight-line code."""
    if loop.is_loop:
        return schedule.ii
    pairs = zip(schedule.start, loop.ops, strict=True)
    return max((start + op.latency for start, op in pairs), default=0)


def worthwhile(loop: LoopGraph, model: MachineModel, found: Sequence[Schedule]) -> Schedule:
    """Of schedules by rising number of stages, the last that is worth its registers.

    The first one, which should have one stage, is taken unless another gains `GAIN` over it, and
    that though it takes the most registers that it may, and the first one the least: a block less
    on an SM costs more than most overlaps gain. (Attention on wgmma, H100 in the timing model: 107
    registers are two blocks, 181 are one, and 0.81 of the speed.)
    """
    best, *others = found
    if others and any(op.kind == "staged" for op in loop.ops):
        return replace(best, notes=(*best.notes, _STAGED))
    time = cycles_of(loop, model, best)
    for other in others:
        cycles = cycles_of(loop, model, other, most=True)
        if cycles is not None and (time is None or cycles * GAIN <= time):
            best, time = other, cycles
    if best.num_stages == 1 and any(other.num_stages > 1 for other in others):
        note = _why(loop, model, best, others[-1])
        return replace(best, notes=(*best.notes, note))
    return best


def _why(loop: LoopGraph, model: MachineModel, one: Schedule, more: Schedule) -> str:
    def told(found: Schedule) -> str:
        registers = registers_of(loop, found, most=found is not one)
        cycles = cycles_of(loop, model, found, most=found is not one)
        if cycles is None:
            return f"would take about {registers} registers of a thread, of {model.registers}"
        blocks = blocks_of(model, registers)
        plural = "" if blocks == 1 else "s"
        return f"{float(cycles):.0f} cycles of an SM, which has room for {blocks} block{plural}"

    return (
        f"one iteration after the other, since other warps hide what one waits for: {told(one)}; "
        f"with {more.num_stages} in flight, {told(more)}"
    )
