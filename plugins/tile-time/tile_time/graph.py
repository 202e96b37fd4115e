"""A kernel twice: its PTX as chains of blocks and its SASS as blocks, each with its loops."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from functools import cached_property

from tile_sim.machine.counters import instructions_of
from tile_sim.program.flow import Jump
from tile_sim.program.program import Program
from tile_sim.ptx.syntax import Instr

from tile_time.flow import Loops, find_loops, topological
from tile_time.sass.code import SassKernel

_ENDS = ("BRA", "EXIT", "RET", "BRX", "JMP", "BREAK", "BSYNC", "KILL", "CALL")


@dataclass
class PtxGraph:
    """Blocks that always follow one another are one chain, named by its first block.

    The simulator ends a block wherever threads may wait; ptxas does not.
    """

    program: Program
    broken: tuple[int, ...] = ()  # numbers of lines that the given text does not have
    loops: Loops = field(init=False)
    chain_of: list[int] = field(init=False)
    place_of: dict[int, int] = field(init=False)  # of a block, in an order without ways back

    def __post_init__(self) -> None:
        blocks = self.program.blocks
        after = [[t.number for t in b.end.targets()] if b.end else [] for b in blocks]
        self.loops = find_loops(after)
        self.place_of = {block: at for at, block in enumerate(topological(after))}
        before = [0] * len(blocks)
        for targets in after:
            for target in set(targets):
                before[target] += 1
        self.chain_of = list(range(len(blocks)))
        for block in blocks:
            if isinstance(block.end, Jump):
                target = block.end.to.number
                same = self.loops.inner[target] == self.loops.inner[block.number]
                if before[target] == 1 and same and target != block.number:
                    self.chain_of[target] = block.number
        for number in range(len(blocks)):
            self.chain_of[number] = self._head(number)

    def _head(self, number: int) -> int:
        seen = {number}
        while self.chain_of[number] not in seen:
            number = self.chain_of[number]
            seen.add(number)
        return number

    def given_line(self, line: int) -> int:
        """The number of a line in the text as it was given."""
        return line - bisect_right(self.broken, line)

    @cached_property
    def instructions(self) -> dict[int, Instr]:
        """Every instruction by its line; the text has one a line (`tile_time.ptx`)."""
        where = self.program.source.where
        return {where(ins.pos).line: ins for b in self.program.blocks for ins in instructions_of(b)}

    @cached_property
    def block_of_line(self) -> dict[int, int]:
        where = self.program.source.where
        return {
            where(ins.pos).line: b.number for b in self.program.blocks for ins in instructions_of(b)
        }

    def loop_of_line(self, line: int) -> int | None:
        """The innermost loop of an instruction (-1: none), None for a line without one."""
        block = self.block_of_line.get(line)
        return None if block is None else self.loops.inner[block]


@dataclass
class SassGraph:
    """Basic blocks of SASS; `block_of[i]`, `loop_of(i)` and `order[i]` of an instruction's index.

    `order` are places in an order in which the instructions may run: blocks come behind those that
    lead to them, wherever ptxas put them.
    """

    kernel: SassKernel
    loops: Loops = field(init=False)
    block_of: list[int] = field(init=False)
    order: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        code = self.kernel.code
        starts = {0, *self.kernel.labels.values()}
        starts |= {i + 1 for i, sass in enumerate(code) if sass.name in _ENDS}
        firsts = sorted(s for s in starts if s < len(code))
        number = {first: n for n, first in enumerate(firsts)}
        self.block_of = [0] * len(code)
        for n, first in enumerate(firsts):
            end = firsts[n + 1] if n + 1 < len(firsts) else len(code)
            self.block_of[first:end] = [n] * (end - first)
        ends = [*(f - 1 for f in firsts[1:]), len(code) - 1][: len(firsts)]
        joins: dict[str, int] = {}
        after = [self._successors(end, number, joins) for end in ends] if code else []
        self.loops = find_loops(after)
        self.order = self._ranks(after)

    def _ranks(self, after: list[list[int]]) -> tuple[int, ...]:
        place = {block: n for n, block in enumerate(topological(after))}
        by_rank = sorted(range(len(self.block_of)), key=lambda i: (place[self.block_of[i]], i))
        ranks = [0] * len(by_rank)
        for rank, index in enumerate(by_rank):
            ranks[index] = rank
        return tuple(ranks)

    def _successors(self, end: int, number: dict[int, int], joins: dict[str, int]) -> list[int]:
        sass = self.kernel.code[end]
        found: list[int] = []
        target = self.kernel.target(sass)
        if target is not None and sass.name in ("BRA", "JMP", "BRX"):
            found.append(number.get(target, 0))
        always = not sass.guard and sass.name in ("BRA", "EXIT", "RET", "JMP", "BRX", "KILL")
        # A branch that may find no thread to take it has a predicate among its operands.
        conditional = sass.name == "BRA" and bool(sass.operands) and "`" not in sass.operands[:1]
        if (not always or conditional) and end + 1 in number:
            found.append(number[end + 1])
        return found

    def loop_of(self, index: int) -> int:
        return self.loops.inner[self.block_of[index]]
