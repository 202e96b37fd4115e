"""Which threads run next: the lowest ranked block first, fairly, with deadlocks reported.

The rule "lowest rank first" brings diverged threads together again (see `program.order`) and
batches warps that are behind with those ahead. It alone would starve: a loop that polls a flag
stands before the code that sets it. So a group that goes round a loop after looking at something
that others may change ("polled") yields until all others have waited, yielded or ended.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from operator import length_hint
from typing import TYPE_CHECKING

import numpy as np

from tile_sim.errors import SimError
from tile_sim.machine.group import Group, merge
from tile_sim.program.flow import Block, Next
from tile_sim.ptx.syntax import Instr

if TYPE_CHECKING:
    from tile_sim.machine.wave import Wave

# Rounds of pure polling without any change of memory before it counts as a deadlock.
_IDLE_ROUNDS = 200
# How often so many rounds may have changed registers of the pollers alone.
_COUNTED = 5000
# Loop iterations of one group while others could run.
_QUANTUM = 4096


class Scheduler:
    """Runs the groups of one wave to their end."""

    def __init__(self, wave: Wave, counts: np.ndarray) -> None:
        self.wave = wave
        wave.scheduler = self
        self.blocks: list[Block] = wave.program.blocks
        self.counts = counts
        self.ready: dict[int, list[Group]] = {}
        self.heap: list[int] = []
        self.parked: dict[int, Group] = {}
        self.yielded: list[tuple[Block, Group]] = []
        # Called when nothing can run: complete something asynchronous, say whether anything did.
        self.idle_hooks: list[Callable[[], bool]] = [
            wave.asyncs.idle,
            wave.copies.idle,
            wave.tmem.idle,
        ]
        self._ticking = wave.settings.schedule == "random"
        #: What to run of each block, where values that decide nothing are left out.
        left = wave.program.left(wave.settings.skipped)
        self._way = None if left is None else left.code
        self._limit = wave.settings.max_steps or 1 << 62
        self._iterations = 0
        self._idles = 0
        self._idle_rounds = 0
        self._last_progress = -1
        self._held: list[list[np.ndarray]] = []
        self._turns = 0

    # --- queues -----------------------------------------------------------------------------

    def push(self, block: Block, g: Group) -> None:
        waiting = self.ready.get(block.number)
        if waiting is None:
            self.ready[block.number] = [g]
            heapq.heappush(self.heap, block.number)
        else:
            waiting.append(g)

    def wake(self, reason: str) -> None:
        """Look again at the threads parked for `reason`."""
        for number in self.parked:
            sync = self.blocks[number].sync
            if sync is not None and sync.reason == reason and number not in self.ready:
                self.ready[number] = []
                heapq.heappush(self.heap, number)

    def exit(self, g: Group) -> None:
        self.wave.live[g.lane_rows(), g.lane_ids()] = False
        self.wave.progress += 1
        self.wave.barriers.complete()
        if self.wave.barriers.cluster_arrived.any():
            self.wave.barriers.complete_cluster()

    # --- the loop ---------------------------------------------------------------------------

    def run(self) -> None:
        """Run all threads to their end; Ctrl-C is an error that says where they stand."""
        try:
            self._loop()
        except KeyboardInterrupt:
            raise self._ended("interrupted", "stopped by Ctrl-C", None) from None

    def _loop(self) -> None:
        wave = self.wave
        self.push(wave.program.functions[wave.program.entry.name].start, wave.everyone())
        while True:
            while self.heap:
                number = heapq.heappop(self.heap)
                groups = self.ready.pop(number)
                self._run(self.blocks[number], merge(groups) if groups else None)
            if not wave.live.any():
                self._drain()
                return
            self._idle()

    def _run(self, block: Block, g: Group | None) -> None:
        """Run a block and what follows it while nothing else comes before."""
        while True:
            if block.sync is not None:
                g = self._pass(block, g)
            if g is None:
                return
            after = self._execute(block, g)
            if after is None:
                return
            target, g = after
            if target.number <= block.number and self._back_edge(target, g):
                return
            if self.heap and self.heap[0] <= target.number:
                self.push(target, g)
                return
            block = target

    def _pass(self, block: Block, g: Group | None) -> Group | None:
        sync = block.sync
        assert sync is not None
        try:
            passing, parked = sync.arrive(g, self.parked.pop(block.number, None))
        except SimError as error:
            assert block.end_instr is not None
            raise error.at(self.wave.program.where(block.end_instr)) from None
        if parked is not None:
            self.parked[block.number] = parked
        return passing

    def _execute(self, block: Block, g: Group) -> Next:
        wave = self.wave
        wave.clock += 1
        if wave.clock > self._limit:
            raise self._ended("timeout", f"more than {self._limit} blocks executed", (block, g))
        wave.polled = False
        counts = self.counts[block.number]
        counts[0] += len(g.rows)
        counts[1] += 32 * len(g.rows) if g.mask is None else int(np.count_nonzero(g.mask))
        if wave.trace is not None:
            wave.trace.block(wave, block, g)
        code = block.code if self._way is None else self._way[block.number]
        steps = iter(code)
        wave.cursor = (block, steps)
        try:
            for step in steps:
                step(g)
        except SimError as error:
            place = len(code) - 1 - length_hint(steps)
            raise error.at(wave.program.where(block.instrs[place])) from None
        if wave.polled:
            g.polled = True
        if self._ticking:
            wave.copies.tick()
            wave.asyncs.tick()
            wave.tmem.tick()
        assert block.end is not None
        return block.end.go(g, self)

    def _back_edge(self, target: Block, g: Group) -> bool:
        """At the end of an iteration: True when the group was set aside."""
        self._iterations += 1
        if g.polled:
            g.polled = False
        elif self._iterations < _QUANTUM or not self.heap:
            return False
        self._iterations = 0
        self.yielded.append((target, g))
        return True

    # --- nothing to run ---------------------------------------------------------------------

    def _idle(self) -> None:
        """All threads wait or poll: let time pass, or report a deadlock."""
        wave = self.wave
        self._idles += 1
        stuck = wave.progress == self._last_progress
        # Also now and then where pollers themselves write: time passes for them too.
        if (stuck or self._idles % 64 == 0) and any(hook() for hook in self.idle_hooks):
            wave.progress += 1
            stuck = False
        self._idle_rounds = self._idle_rounds + 1 if stuck else 0
        self._last_progress = wave.progress
        if self._idle_rounds > (_IDLE_ROUNDS if self.yielded else 2) and not self._counting():
            self._deadlock()
        self._retry()

    def _counting(self) -> bool:
        """Whether pollers only wait for something: a loop that reads what others may write and
        goes on by itself, as one with a counter does, changes its registers."""
        rows = [np.unique(g.lane_rows()) for _, g in self.yielded]
        before, self._held = (
            self._held,
            [[register[mine].copy() for register in self.wave.registers] for mine in rows],
        )
        self._turns += 1
        if not rows or self._turns > _COUNTED:
            return False
        self._idle_rounds = 0
        if len(before) != len(rows):
            return True
        return any(
            a.shape != b.shape or not np.array_equal(a, b)
            for old, new in zip(before, self._held, strict=True)
            for a, b in zip(old, new, strict=True)
        )

    def _retry(self) -> None:
        for block, g in self.yielded:
            self.push(block, g)
        self.yielded = []
        for number in self.parked:
            if number not in self.ready:
                self.ready[number] = []
                heapq.heappush(self.heap, number)

    def _drain(self) -> None:
        """After the last thread: what is still asynchronous completes."""
        if self.wave.monitor is not None:
            self.wave.monitor.exit()
        self.wave.copies.drain()
        self.wave.asyncs.drain()
        self.wave.tmem.drain()

    # --- reports ----------------------------------------------------------------------------

    def _deadlock(self) -> None:
        """Say where every warp stands and what it waits for."""
        places = [(self.blocks[n], g, True) for n, g in sorted(self.parked.items())]
        places += [(block, g, False) for block, g in self.yielded]
        lines = [self._position(block, g, parked) for block, g, parked in places]
        lines += self.wave.mbarriers.describe(int(self.wave.cta_of[places[0][1].rows[0]]))
        stands = [_instruction(block, parked) for block, _, parked in places]
        first = next((ins for ins in stands if ins is not None), None)
        divergent = [
            (b, g) for b, g, p in places if p and b.sync is not None and b.sync.reason == "aligned"
        ]
        kind, head = "deadlock", "no thread can go on"
        if divergent and len(divergent) == sum(1 for _, _, p in places if p):
            kind, head = "divergent", "threads of a warp never meet at an .aligned instruction"
        where = self.wave.program.where(first) if first is not None else None
        raise SimError(kind, head + "".join(f"\n  {line}" for line in lines), where)

    def _ended(self, kind: str, head: str, running: tuple[Block, Group] | None) -> SimError:
        """The error of a launch that is ended: where the threads wait, poll or run."""
        places = [(self.blocks[n], g, True) for n, g in sorted(self.parked.items())]
        places += [(block, g, False) for block, g in self.yielded]
        places += [(self.blocks[n], g, False) for n, gs in sorted(self.ready.items()) for g in gs]
        lines = [self._position(block, g, parked) for block, g, parked in places]
        block = self.wave.cursor[0] if running is None and self.wave.cursor else None
        if running is not None:
            block = running[0]
            lines.append(self._position(*running, parked=False))
        instruction = None if block is None else _instruction(block, False)
        where = None if instruction is None else self.wave.program.where(instruction)
        return SimError(kind, head + "".join(f"\n  {line}" for line in lines), where)

    def _position(self, block: Block, g: Group, parked: bool) -> str:
        wave = self.wave
        ins = _instruction(block, parked)
        where = wave.program.where(ins) if ins is not None else "?"
        text = ins.spelling if ins is not None else "?"
        state = "waits at" if parked else "polls at"
        return f"{_who(wave, g)}: {state} {text} ({where})"


def _instruction(block: Block, parked: bool) -> Instr | None:
    """What threads wait at, or poll with: the first instruction of the loop."""
    return block.end_instr if parked else (block.instrs or [block.end_instr])[0]


def _who(wave: Wave, g: Group) -> str:
    """`CTA 0 warps 0-3`, at most a few of them."""
    names = []
    for cta in np.unique(wave.cta_of[g.rows]):
        mine = g.rows[wave.cta_of[g.rows] == cta]
        warps = sorted(int(wave.warpid[row, 0]) for row in mine)
        threads = int(g.active[wave.cta_of[g.rows] == cta].sum())
        names.append(f"CTA {int(cta) + wave.first_cta} warps {_ranges(warps)} ({threads} threads)")
    more = f" and {len(names) - 4} more CTAs" if len(names) > 4 else ""
    return ", ".join(names[:4]) + more


def _ranges(numbers: list[int]) -> str:
    """`0-3,7`."""
    pieces: list[list[int]] = []
    for n in numbers:
        if pieces and pieces[-1][1] == n - 1:
            pieces[-1][1] = n
        else:
            pieces.append([n, n])
    return ",".join(f"{a}" if a == b else f"{a}-{b}" for a, b in pieces)
