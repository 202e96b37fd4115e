"""Which SASS a warp issues when it runs a chain of PTX blocks.

The simulator says what PTX a warp ran; ptxas wrote for each SASS instruction which line of the
PTX it is from. An instruction of the text is issued when its line runs, but for what ptxas moved:

- out of a loop: issued when the loop is entered;
- unrolled: a loop of SASS that holds U copies of a body runs once for U iterations of the PTX.
  The copies are issued together, in the order ptxas gave them, so loads that it gathered stay
  gathered. Remainder loops are taken for the main one, in parts.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from tile_time.accesses import Accesses, Made, accesses, expected, size_of
from tile_time.graph import PtxGraph, SassGraph
from tile_time.sass.code import NEVER, Sass, SassKernel
from tile_time.sass.cold import cold_code
from tile_time.sass.opcodes import ANCHORS, NOTED, kind_of, ptx_kind, takes_from_l1

_FLOAT = ("fma", "half", "packed", "mufu", "fp64", "convert", "convert_slow")


@dataclass(frozen=True)
class Item:
    """A SASS instruction in a chain, the copy of the body it is in, and what it accesses."""

    sass: Sass
    index: int
    pos: int  # of the PTX instruction, -1 where there is none
    made: Made


@dataclass
class Chain:
    """What running a chain issues: `unroll` runs of it at once, in order of addresses.

    `merged` are accesses that instructions of other places make, too: (position, copy).
    """

    unroll: int = 1
    items: list[Item] = field(default_factory=list)
    merged: set[tuple[int, int]] = field(default_factory=set)

    def part(self, first: int, count: int) -> list[Item]:
        """The items of runs `first` to `first + count` of the copies."""
        if count >= self.unroll:
            return self.items
        return [i for i in self.items if first <= i.made.copy < first + count]


@dataclass
class Listing:
    """The SASS of each chain of a kernel; `entered[loop]` what entering a loop of PTX issues.

    `rank` says of each instruction where it comes in the order in which SASS is run, `loops` are
    the loops of PTX that are loops of the SASS, too.
    """

    chains: dict[int, Chain]
    entered: dict[int, list[Item]]
    rank: tuple[int, ...]
    loops: frozenset[int]
    unknown: tuple[str, ...]  # opcodes that the table does not have

    @property
    def cached(self) -> frozenset[int]:
        """Places of the PTX whose loads L1 may serve."""
        items = [item for chain in self.chains.values() for item in chain.items]
        items += [item for entered in self.entered.values() for item in entered]
        return frozenset(item.pos for item in items if takes_from_l1(item.sass))


def make_listing(ptx: PtxGraph, kernel: SassKernel) -> Listing:
    """Match the SASS of a kernel with its PTX."""
    return _Matcher(ptx, SassGraph(kernel)).listing()


class _Matcher:
    def __init__(self, ptx: PtxGraph, sass: SassGraph) -> None:
        self.ptx, self.sass = ptx, sass
        self.code = sass.kernel.code
        self.of_line: dict[int, list[int]] = defaultdict(list)
        self.homeless: list[int] = []
        cold = cold_code(sass.kernel)
        for index, one in enumerate(self.code):
            if index in cold:
                continue
            if one.line in ptx.block_of_line:
                self.of_line[one.line].append(index)
            else:
                self.homeless.append(index)
        self.loop_of_sass_loop = self._match_loops()
        self.unroll_of: dict[int, int] = {}

    def _match_loops(self) -> list[int]:
        """The PTX loop of each SASS loop: that of most of its instructions, anchors first."""
        votes = [Counter[int]() for _ in self.sass.loops.parent]
        for line, indices in self.of_line.items():
            loop = self.ptx.loop_of_line(line)
            for index in indices:
                where = self.sass.loop_of(index)
                if where >= 0 and loop is not None:
                    anchor = kind_of(self.code[index].name) in ANCHORS
                    votes[where][loop] += 16 if anchor else 1
        return [max(v, key=lambda k: (v[k], -k)) if v else -1 for v in votes]

    def listing(self) -> Listing:
        groups = {line: self._group(line) for line in sorted(self.of_line)}
        for loop in range(len(self.ptx.loops.parent)):
            self.unroll_of[loop] = self._unroll(loop, groups)
        chains: dict[int, Chain] = defaultdict(Chain)
        entered: dict[int, list[Item]] = defaultdict(list)
        found: dict[int, Accesses] = {}
        for line, (indices, hoisted) in groups.items():
            block = self.ptx.block_of_line[line]
            loop = self.ptx.loops.inner[block]
            pos = self.ptx.instructions[line].pos
            unroll = self.unroll_of.get(loop, 1)
            made = accesses(self.ptx.instructions[line], [self.code[n] for n in indices], unroll)
            items = [
                Item(self.code[n], n, pos, made.of.get(i, Made(i * unroll // len(indices))))
                for i, n in enumerate(indices)
            ]
            if hoisted:
                entered[loop] += items
                continue
            found[line] = made
            chain = chains[self.ptx.chain_of[block]]
            chain.unroll = unroll
            chain.items += items
        self._add_merged(chains, found)
        self._add_homeless(chains, entered)
        rank = self.sass.order
        for items in (*(chain.items for chain in chains.values()), *entered.values()):
            items.sort(key=lambda item: rank[item.index])
        unknown = {s.name for s in self.code if kind_of(s.name) is None}
        loops = frozenset(self.loop_of_sass_loop)
        return Listing(dict(chains), dict(entered), rank, loops, tuple(sorted(unknown)))

    def _add_merged(self, chains: dict[int, Chain], found: dict[int, Accesses]) -> None:
        """Accesses that wider instructions of their loop make: as many bytes as those have more."""
        spare = Counter[tuple[str | None, int | None]]()
        asked = {line: ins for line, ins in self.ptx.instructions.items() if size_of(ins)}
        for line, ins in asked.items():
            if line in found:
                spare[ptx_kind(ins), self.ptx.loop_of_line(line)] += found[line].spare
        for line, ins in asked.items():
            block = self.ptx.block_of_line[line]
            loop = self.ptx.loops.inner[block]
            every = tuple(range(self.unroll_of.get(loop, 1)))
            for copy in found[line].left if line in found else every:
                if spare[ptx_kind(ins), loop] >= size_of(ins):
                    spare[ptx_kind(ins), loop] -= size_of(ins)
                    chains[self.ptx.chain_of[block]].merged.add((ins.pos, copy))

    def _add_homeless(self, chains: dict[int, Chain], entered: dict[int, list[Item]]) -> None:
        """Instructions without a line: of the loop they stand in, else of the kernel's start."""
        heads = {}
        for block, loop in enumerate(self.ptx.loops.inner):
            heads.setdefault(loop, self.ptx.chain_of[block])
        for index in self.homeless:
            where = self.sass.loop_of(index)
            loop = self.loop_of_sass_loop[where] if where >= 0 else -1
            item = Item(self.code[index], index, -1, Made(0))
            if loop >= 0 and loop in heads:
                chains[heads[loop]].items.append(item)
            else:
                entered[-1].append(item)

    def _group(self, line: int) -> tuple[list[int], bool]:
        """The SASS that a run of a line issues (all copies), and whether it left its loop."""
        indices = self.of_line[line]
        loop = self.ptx.loop_of_line(line)
        if loop is None or loop < 0:
            return indices, False
        by_loop: dict[int, list[int]] = defaultdict(list)
        outside: list[int] = []
        for index in indices:
            where = self.sass.loop_of(index)
            if where >= 0 and self.loop_of_sass_loop[where] == loop:
                by_loop[where].append(index)
            else:
                outside.append(index)
        if by_loop:
            inside = max(by_loop.values(), key=lambda part: (self._noted(part), len(part)))
            # An access that left the loop is issued with it, as it is recorded.
            left = [] if self._noted(inside) else [i for i in outside if self._noted([i])]
            return sorted([*inside, *left]), False
        if loop not in self.loop_of_sass_loop:
            return outside, False  # the loop is gone: all its copies stand one after the other
        anchors = any(kind_of(self.code[i].name) in ANCHORS for i in outside)
        return outside, not anchors

    def _noted(self, indices: Sequence[int]) -> int:
        """How many of these instructions act on what the record has of their PTX."""
        return sum(
            kind_of(self.code[i].name) in NOTED and self.code[i].guard != NEVER for i in indices
        )

    def _unroll(self, loop: int, groups: dict[int, tuple[list[int], bool]]) -> int:
        """How many copies of a loop's body the SASS has.

        By kind and not by line, since ptxas gives all products of a batch the line of one. The
        kind with the fewest copies tells: other instructions may need several of SASS.
        """
        found, wanted, others = Counter[str](), Counter[str](), Counter[int]()
        for line, ins in self.ptx.instructions.items():
            if self.ptx.loop_of_line(line) != loop:
                continue
            indices, hoisted = groups.get(line, ([], False))
            sass = [self.code[i] for i in indices if self.code[i].guard != NEVER]
            if kind := ptx_kind(ins):
                same = [one for one in sass if kind_of(one.name) == kind]
                wanted[kind] += expected(ins, same)
            for one in sass if not hoisted else ():
                found[kind_of(one.name) or ""] += 1
            if not kind and any(kind_of(one.name) in _FLOAT for one in sass):
                others[max(Counter(one.opcode for one in sass).values())] += 1
        copies = [max(found[kind] // n, 1) for kind, n in wanted.items() if found[kind]]
        if copies:
            return min(copies)
        return others.most_common(1)[0][0] if others else 1
