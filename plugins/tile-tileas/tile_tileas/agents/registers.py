"""Warps and registers of an agent that works and of one that copies for it. Plain numbers."""

from __future__ import annotations

from dataclasses import dataclass

from tile_core.target import Target
from tile_tileas.dialect.agents import INHERIT, REGISTER_GRANULE

_WARPGROUP, _LANES = 4, 32
#: What a thread keeps that computes places and begins copies (CUTLASS: 24 to 40).
_KEPT = 40
#: Threads whose share of the register file is less than what one of them may have: it is worth
#: warps without work to move registers to them.
_MANY_WARPS = 8


@dataclass(frozen=True)
class Warps:
    """How many an agent has, and the registers of its threads: `INHERIT` if they stay."""

    number: int
    registers: int = INHERIT


#: What a thread keeps that scales some columns of a sum at a time.
_SCALING = 40


def warps_with_scaling(works: int, target: Target) -> tuple[Warps, Warps, Warps] | None:
    """The agent that works, one of as many warps that scales sums in tensor memory, and one that
    copies and begins products; None if they cannot have registers for that.
    """
    total = 2 * works + _WARPGROUP
    launched = target.registers // (_LANES * total) // REGISTER_GRANULE * REGISTER_GRANULE
    kept = _KEPT * _WARPGROUP + _SCALING * works
    left = (launched * total - kept) // works // REGISTER_GRANULE * REGISTER_GRANULE
    may = target.chip.endswith(("a", "f")) and works == _MANY_WARPS and left > launched > _SCALING
    if not may:
        return None
    most = target.max_registers // REGISTER_GRANULE * REGISTER_GRANULE
    return Warps(works, min(left, most)), Warps(works, _SCALING), Warps(_WARPGROUP, _KEPT)


def warps_for(works: int, blocks: int, target: Target) -> tuple[Warps, Warps]:
    """The agent that works, on `works` warps, and the one that copies, where hints ask for `blocks`
    of a multiprocessor at once.
    """
    total = works + _WARPGROUP
    launched = target.registers // (_LANES * total * blocks) // REGISTER_GRANULE * REGISTER_GRANULE
    left = (launched * total - _KEPT * _WARPGROUP) // works // REGISTER_GRANULE * REGISTER_GRANULE
    moves = (
        target.chip.endswith(("a", "f"))
        and works >= _MANY_WARPS
        and works % _WARPGROUP == 0
        and blocks == 1
        and left > launched > _KEPT
    )
    if not moves:
        return Warps(works), Warps(1)
    most = target.max_registers // REGISTER_GRANULE * REGISTER_GRANULE
    return Warps(works, min(left, most)), Warps(_WARPGROUP, _KEPT)
