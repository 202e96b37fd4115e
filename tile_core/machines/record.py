"""A machine: the sections of its file, and where every number comes from."""

# Annotations are values here: loading reads them, and would have to compile texts at each start.

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from tile_core.machines.schema import (
    Chip,
    Clock,
    Copies,
    Launch,
    Memory,
    Mma,
    Pipes,
    Sync,
    Tcgen05,
    Wgmma,
)

#: How sure a number is: raw logs or two sources; one measured source; derived or neighbouring chip.
CONFIDENCE = ("A", "B", "C")


@dataclass(frozen=True)
class Source:
    """Where a number comes from: `origin` is a list of sources of docs/timing.md."""

    unit: str
    origin: str
    confidence: str


@dataclass(frozen=True)
class Machine:
    """One GPU. `sources` has the path of each number ("memory.l2_latency") as its key."""

    name: str  # "h100-sxm", the --gpu spelling
    title: str  # "NVIDIA H100 SXM"
    target: str  # "sm_90", what to compile for
    aliases: tuple[str, ...]
    stands_for: tuple[str, ...]  # targets whose schedules this machine is asked for
    chip: Chip
    clock: Clock
    memory: Memory
    pipes: Pipes
    mma: Mma
    wgmma: Wgmma
    tcgen05: Tcgen05
    copies: Copies
    sync: Sync
    launch: Launch
    sources: Mapping[str, Source]

    def dram_bytes_per_clk(self, mhz: float | None = None) -> float:
        """The chip's DRAM bandwidth in bytes per SM clock."""
        return self.memory.dram_bandwidth * 1e3 / (mhz or self.clock.boost)

    def peak_flops_per_clk(self, operand_bits: int = 16) -> float:
        """Dense tensor FLOP per clk of an SM for operands of so many bits (multiply-add: 2)."""
        if self.tcgen05.clk_per_column:
            half = 2 * 128 * 16 / self.tcgen05.clk_per_column
        elif self.wgmma.clk_per_column:
            half = 2 * 64 * 16 / self.wgmma.clk_per_column
        else:
            clk = self.mma.m16n8k16 if operand_bits > 8 else self.mma.scaled_m16n8k32
            half = 2 * 16 * 8 * 16 * self.chip.sub_cores / clk
        return half * 16 / operand_bits

    def with_number(self, path: str, value: float) -> Self:
        """The same machine with one number changed, for experiments ("clock.boost").

        Raises:
            KeyError: the machine has no such number.
        """
        if path not in self.sources:
            raise KeyError(path)
        return _replaced(self, path.split("."), value)


def _replaced(record: Any, path: list[str], value: float) -> Any:
    if len(path) == 1:
        return replace(record, **{path[0]: value})
    return replace(record, **{path[0]: _replaced(getattr(record, path[0]), path[1:], value)})
