"""Blocks and what ends them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from tile_sim.errors import SimError, Where
from tile_sim.machine.group import Group
from tile_sim.program.decode import Exec, Sync
from tile_sim.ptx.syntax import Instr

if TYPE_CHECKING:
    from tile_sim.machine.scheduler import Scheduler

Next = tuple["Block", Group] | None


class Terminator:
    """Ends a block: returns where the group continues, or pushes its parts and returns None."""

    def targets(self) -> Sequence[Block]:
        return ()

    def go(self, g: Group, scheduler: Scheduler) -> Next:
        raise NotImplementedError


@dataclass(eq=False)
class Block:
    """Straight-line code. With `sync`, its first instruction may wait.

    `number` is the rank of the block among all of a program; `instrs` go with `code`, one each.
    """

    code: list[Exec] = field(default_factory=list)
    instrs: list[Instr] = field(default_factory=list)
    sync: Sync | None = None
    end: Terminator | None = None
    end_instr: Instr | None = None
    number: int = -1
    function: str = ""


@dataclass(eq=False)
class Jump(Terminator):
    to: Block

    def targets(self) -> Sequence[Block]:
        return (self.to,)

    def go(self, g: Group, scheduler: Scheduler) -> Next:
        return self.to, g


@dataclass(eq=False)
class Branch(Terminator):
    """To `taken` where the predicate (xor `negated`) holds, to `other` elsewhere."""

    slot: int
    negated: bool
    taken: Block
    other: Block

    def targets(self) -> Sequence[Block]:
        return (self.other, self.taken)

    def go(self, g: Group, scheduler: Scheduler) -> Next:
        # A copy: the parts keep it as their mask, and the register may change.
        p = g.v[self.slot][g.sel]
        p = ~p if self.negated else p.copy()
        if g.mask is None:
            take, stay = p, None
            if p.all():
                return self.taken, g
        else:
            take = p & g.mask
            stay = g.mask & ~p
            if not stay.any():
                return self.taken, g
        if not take.any():
            return self.other, g
        yes, no = g.part(take), g.part(~p if stay is None else stay)
        if yes is not None:
            scheduler.push(self.taken, yes)
        if no is not None:
            scheduler.push(self.other, no)
        return None


@dataclass(eq=False)
class Switch(Terminator):
    """`brx.idx`: the register holds an index into `to`."""

    slot: int
    to: list[Block]
    where: Where

    def targets(self) -> Sequence[Block]:
        return self.to

    def go(self, g: Group, scheduler: Scheduler) -> Next:
        index = g.v[self.slot][g.sel]
        active = g.active
        for value in np.unique(index[active]):
            if value >= len(self.to):
                message = f"index {value} of a table of {len(self.to)} targets"
                raise SimError("bad-branch", message, self.where)
            part = g.part(active & (index == value))
            if part is not None:
                scheduler.push(self.to[int(value)], part)
        return None


class Exit(Terminator):
    """The threads end."""

    def go(self, g: Group, scheduler: Scheduler) -> Next:
        scheduler.exit(g)
        return None


@dataclass(eq=False)
class Call(Terminator):
    """Enter a function; its `returns` slot remembers the block to come back to."""

    body: FunctionCode
    back: Block
    before: list[Exec]

    def targets(self) -> Sequence[Block]:
        # Not the callee: blocks are ordered within one function.
        return (self.back,)

    def go(self, g: Group, scheduler: Scheduler) -> Next:
        for step in self.before:
            step(g)
        g.put(self.body.return_slot, np.uint32(self.back.number))
        return self.body.start, g


@dataclass(eq=False)
class IndirectCall(Terminator):
    """Call through a register that holds one of the known function addresses."""

    slot: int
    calls: dict[int, Call]
    back: Block
    where: Where

    def targets(self) -> Sequence[Block]:
        return (self.back,)

    def go(self, g: Group, scheduler: Scheduler) -> Next:
        address = g.v[self.slot][g.sel]
        active = g.active
        for value in np.unique(address[active]):
            call = self.calls.get(int(value))
            if call is None:
                message = f"{int(value):#x} is not the address of a function"
                raise SimError("bad-call", message, self.where)
            part = g.part(active & (address == value))
            if part is not None:
                after = call.go(part, scheduler)
                if after is not None:
                    scheduler.push(*after)
        return None


@dataclass(eq=False)
class Return(Terminator):
    """Back to where each thread called from."""

    code: FunctionCode

    def go(self, g: Group, scheduler: Scheduler) -> Next:
        back = g.v[self.code.return_slot][g.sel]
        active = g.active
        blocks = scheduler.blocks
        numbers = np.unique(back[active])
        if len(numbers) == 1:
            return blocks[int(numbers[0])], g
        for number in numbers:
            part = g.part(active & (back == number))
            if part is not None:
                scheduler.push(blocks[int(number)], part)
        return None


@dataclass(eq=False)
class FunctionCode:
    """The blocks of one function."""

    name: str
    blocks: list[Block] = field(default_factory=list)
    return_slot: int = -1

    @property
    def start(self) -> Block:
        return self.blocks[0]
