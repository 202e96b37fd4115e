"""The gates a seat must pass, in this order: pending, depth, resources, group."""

from __future__ import annotations

from typing import ClassVar, Protocol

from tile_sched.placement.state import State

#: What to do about a refusal: hold the op to the next attempt, mark it dead in this one, try the
#: next cycle, or try the group in another order.
HOLD, DEAD, NEXT, REORDER = "hold", "dead", "next", "reorder"


class Gate(Protocol):
    """Part of kind "gate": whether `op` may start in `cycle`."""

    name: ClassVar[str]

    def check(self, state: State, op: int, cycle: int) -> str | None:
        """None if it may, else what to do about it: `HOLD`, `DEAD`, `NEXT` or `REORDER`."""
        ...


class Pending:
    """G1: the op is not held over to a later attempt."""

    name: ClassVar[str] = "G1"

    def check(self, state: State, op: int, cycle: int) -> str | None:
        return HOLD if op in state.pending else None


class Depth:
    """G2: the stage is within the op's `max_depth` and what the body may have."""

    name: ClassVar[str] = "G2"

    def check(self, state: State, op: int, cycle: int) -> str | None:
        limit = state.limit(op)
        return DEAD if limit is not None and cycle // state.ii > limit else None


class Resources:
    """G3: slots and pools are free in every cycle the op holds them."""

    name: ClassVar[str] = "G3"

    def check(self, state: State, op: int, cycle: int) -> str | None:
        return None if state.table.probe(state.footprints[op], cycle) else NEXT


class Group:
    """G4: placed members of the op's group are in the same stage."""

    name: ClassVar[str] = "G4"

    def check(self, state: State, op: int, cycle: int) -> str | None:
        stage = state.group_stage(op)
        return REORDER if stage is not None and cycle // state.ii != stage else None


GATES: tuple[Gate, ...] = (Pending(), Depth(), Resources(), Group())
