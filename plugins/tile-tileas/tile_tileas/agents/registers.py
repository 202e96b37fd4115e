"""Warps and registers of an agent that works and of one that copies for it. Plain numbers."""

from __future__ import annotations

from dataclasses import dataclass

from tile_core.target import Target
from tile_tileas.dialect.agents import INHERIT, REGISTER_GRANULE

_WARPGROUP, _LANES = 4, 32
#: What a thread keeps that computes places and begins copies (CUTLASS: 24 to 40), or that scales
#: some columns of a sum at a time.
_KEPT = 40
#: Threads whose share of the register file is less than what one of them may have: it is worth
#: warps without work to move registers to them.
_MANY_WARPS = 8


@dataclass(frozen=True)
class Warps:
    """How many an agent has, and the registers of its threads: `INHERIT` if they stay."""

    number: int
    registers: int = INHERIT


def warps_with_scaling(works: int, target: Target) -> tuple[Warps, Warps, Warps] | None:
    """The agent that works, one of as many warps that scales sums in tensor memory, and one that
    copies and begins products; None if they cannot have registers for that.
    """
    others = (works, _WARPGROUP)
    registers = _given(works, others, 1, target) if works == _MANY_WARPS else None
    if registers is None:
        return None
    scaling, copying = (Warps(number, _KEPT) for number in others)
    return Warps(works, registers), scaling, copying


def warps_with_registers(
    works: int, beside: int, needed: int, blocks: int, target: Target
) -> list[Warps]:
    """The agent that works, `beside` others of a warp each, and, where threads that work need more
    registers than all would have alike, one without work, which makes them a warpgroup.
    """
    alike = target.registers // (_LANES * (works + beside) * blocks)
    many = works >= _MANY_WARPS and works % _WARPGROUP == 0 and blocks == 1
    given = _given(works, (_WARPGROUP,), blocks, target) if many and needed > alike else None
    if given is None or beside >= _WARPGROUP:
        return [Warps(works), *[Warps(1)] * beside]
    idle = Warps(_WARPGROUP - beside, _KEPT)
    return [Warps(works, given), *[Warps(1, _KEPT)] * beside, idle]


def warps_for(works: int, blocks: int, target: Target) -> tuple[Warps, Warps]:
    """The agent that works, on `works` warps, and the one that copies, where hints ask for `blocks`
    of a multiprocessor at once.
    """
    many = works >= _MANY_WARPS and works % _WARPGROUP == 0 and blocks == 1
    registers = _given(works, (_WARPGROUP,), blocks, target) if many else None
    if registers is None:
        return Warps(works), Warps(1)
    return Warps(works, registers), Warps(_WARPGROUP, _KEPT)


def _given(works: int, others: tuple[int, ...], blocks: int, target: Target) -> int | None:
    """Registers of a thread of `works` warps when those of `others` keep `_KEPT` each; None where
    that is no more than all have alike, or the target moves none.
    """
    total = works + sum(others)
    alike = _whole(target.registers // (_LANES * total * blocks))
    left = _whole((alike * total - _KEPT * sum(others)) // works)
    moves = target.chip.endswith(("a", "f")) and left > alike > _KEPT
    return min(left, _whole(target.max_registers)) if moves else None


def _whole(registers: int) -> int:
    return registers // REGISTER_GRANULE * REGISTER_GRANULE
