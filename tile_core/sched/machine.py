"""The resources of one SM, as schedulers see them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class MachineModel:
    """The resources of one SM that a schedule competes for.

    `units` are resources and how many requests of a cycle each takes: 1 is a slot that one
    operation holds at a time, more is a pool. `slots` numbers those that have a bit in the rows
    of a reservation table (bit = number - 1), as the specification prints them.
    """

    target: str  # "sm_90"
    units: tuple[tuple[str, int], ...]  # resource -> how many requests per cycle
    num_warps: int
    slots: tuple[tuple[str, int], ...] = ()  # resource -> number from 1
    families: tuple[tuple[str, str], ...] = ()  # resource -> family; the like may be fused
    banks: tuple[str, ...] = ()  # resources that compete for banks of memory
    registers: int = 0  # registers per thread that a body should keep to; 0: unknown
    shared: int = 0  # bytes of shared memory of a block; 0: unknown
    register_file: int = 0  # registers of an SM; 0: unknown
    max_warps: int = 0  # warps that an SM holds at most
    memory_rate: float = 0.0  # bytes per cycle that an SM gets from memory if all ask; 0: unknown
    ceiling: int = 0  # cycles of latency above which a dependence is not pipelined; 0: none

    @cached_property
    def capacities(self) -> dict[str, int]:
        """Resource -> requests per cycle."""
        return dict(self.units)

    @cached_property
    def slot_numbers(self) -> dict[str, int]:
        """Resource -> slot number; those without one have no row bit."""
        return dict(self.slots)

    @cached_property
    def family_of(self) -> dict[str, str]:
        """Resource -> family."""
        return dict(self.families)

    def capacity(self, resource: str) -> int:
        """Requests per cycle; a resource that nobody describes takes one."""
        return self.capacities.get(resource, 1)
