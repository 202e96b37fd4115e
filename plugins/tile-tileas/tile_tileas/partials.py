"""Where warps leave their parts of a reduction in shared memory, and who folds them. No MLIR here.

Parts of one result lie side by side, and each thread reads all parts of its results; or each part
of all results lies together, so that a thread of many results reads several at once. Where threads
hold the same results many times over, each of these is folded by one thread first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tile_cute.gf2 import combine
from tile_cute.linear import count_wavefronts

from tile_tileas.reductions import ReductionPlan

_LANES, _SCHEDULERS = 32, 4
#: Bytes of the widest access.
_WIDEST = 16
#: Cycles until threads that have met read what one of them has just written.
_MEETING = 100


@dataclass(frozen=True)
class Partials:
    """Places of partial results, in elements.

    Attributes:
        registers, threads: what each bit of a register's number, and of a thread's (lane, then
            warp), adds by XOR to the place of the result that it holds.
        stride: from one part of a result to the next.
        number: parts of a result.
        together: elements that one access reads: parts of a result where `stride` is 1, otherwise
            results.
        once: one thread folds the parts of each place, into the first of them, before all read.
        results: how many there are.
    """

    registers: tuple[int, ...]
    threads: tuple[int, ...]
    stride: int
    number: int
    together: int
    results: int
    once: bool = False

    def of_register(self, register: int) -> int:
        """Where thread 0 has the result of a register."""
        return combine(self.registers, register)

    @property
    def reads(self) -> list[int]:
        """Where thread 0 begins to read. Registers change fastest where parts lie apart."""
        held = range(1 << len(self.registers))
        if self.stride == 1:
            return [
                self.of_register(register) + part
                for register in held
                for part in range(0, self.number, self.together)
            ]
        parts = 1 if self.once else self.number
        return [
            self.of_register(register) + part * self.stride
            for part in range(parts)
            for register in held[:: self.together]
        ]

    def cycles(self, width: int) -> float:
        """What a multiprocessor takes to read and fold elements of `width` bytes, and no more."""
        warps = 1 << max(0, len(self.threads) - _LANES.bit_length() + 1)
        lanes = [combine(self.threads, lane) * width for lane in range(_LANES)]
        # Another place for all by XOR, as of each further read, leaves conflicts as they are.
        each, reads = count_wavefronts(lanes, self.together * width), len(self.reads)
        folds = reads * self.together * (not self.once)
        taken = warps * (reads * each + (reads + folds) / _SCHEDULERS)
        if self.once:
            rounds = -(-self.results // _LANES)
            taken += _MEETING + rounds * self.number * (1 + 2 / _SCHEDULERS)
        return taken


def partials_of(plan: ReductionPlan, widths: Sequence[int]) -> list[Partials]:
    """The places by which a reduction takes the least time: one for each of the tiles that it folds
    together, with elements of `widths` bytes.
    """
    ways = [[_by_result(plan, width) for width in widths]]
    apart = [_by_part(plan, width) for width in widths]
    if None not in apart:
        several = [one for one in apart if one is not None]
        ways += [several, [replace(one, once=True) for one in several]]
    return min(ways, key=lambda way: sum(map(Partials.cycles, way, widths)))


def _by_result(plan: ReductionPlan, width: int) -> Partials:
    number = plan.partials
    registers, lanes, warps = (
        tuple(number * basis for basis in plan.result.flat(space))
        for space in ("register", "lane", "warp")
    )
    together = min(number, _WIDEST // width)
    return Partials(registers, lanes + warps, 1, number, together, plan.result.size)


def _by_part(plan: ReductionPlan, width: int) -> Partials | None:
    """Neighbouring registers side by side, up to the widest access, then those of neighbouring
    threads; None where a thread's bits mean what others together do.
    """
    result = plan.result
    flat = {space: result.flat(space) for space in ("register", "lane", "warp")}
    held = [(space, bit) for space in flat for bit, basis in enumerate(flat[space]) if basis]
    registers = len(flat["register"])
    if len(held) != result.out_bits or not all(flat["register"]):
        return None
    first = min(registers, (_WIDEST // width).bit_length() - 1)
    order = sorted(held, key=lambda one: _rank(one, first))
    place = {one: 1 << at for at, one in enumerate(order)}
    bases = {
        space: tuple(place.get((space, bit), 0) for bit in range(len(flat[space])))
        for space in flat
    }
    threads = bases["lane"] + bases["warp"]
    return Partials(bases["register"], threads, result.size, plan.partials, 1 << first, result.size)


def _rank(one: tuple[str, int], first: int) -> tuple[int, int]:
    space, bit = one
    if space == "register":
        return (0 if bit < first else 2), bit
    return (1 if space == "lane" else 3), bit
