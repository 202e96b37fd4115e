"""How many CTAs of a kernel an SM holds at once, and what limits them."""

from __future__ import annotations

from dataclasses import dataclass

from tile_core.diagnostics import CompileError
from tile_core.machines import Machine


@dataclass(frozen=True)
class Demand:
    """What one CTA takes of an SM: registers a thread, bytes of shared memory, columns."""

    threads: int
    registers: int
    shared: int
    columns: int = 0


@dataclass(frozen=True)
class Occupancy:
    """CTAs of an SM, and the resource that there are no more."""

    ctas: int
    limit: str


def occupancy(machine: Machine, demand: Demand) -> Occupancy:
    """CUDA's rules (programming guide, "Occupancy Calculator").

    Raises:
        CompileError: not one CTA fits.
    """
    chip = machine.chip
    warps = -(-demand.threads // 32)
    unit = chip.register_unit
    for_warp = -(-max(demand.registers, 1) * 32 // unit) * unit
    shared = demand.shared + chip.shared_reserved
    limits = [
        (int(chip.ctas), "CTAs of an SM"),
        (int(chip.warps // warps), "warps of an SM"),
        (int(chip.registers // (for_warp * warps)), "registers"),
        (int(chip.shared // shared), "shared memory"),
    ]
    if demand.columns:
        limits.append((int(chip.tensor_memory_columns // demand.columns), "tensor memory"))
    if demand.shared > chip.shared_cta:
        limits.append((0, "shared memory of a CTA"))
    ctas, limit = min(limits, key=lambda pair: pair[0])
    if ctas < 1:
        raise CompileError(
            f"a CTA does not fit on an SM of {machine.title}; the limit is {limit}",
            notes=(
                f"{demand.threads} threads of {demand.registers} registers, {demand.shared} bytes "
                f"of shared memory, {demand.columns} columns of tensor memory",
            ),
        )
    return Occupancy(ctas, limit)
