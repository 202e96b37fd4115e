"""What times are computed with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tile_sched.machine import Cost, MachineTable, load_machine, parse_machine

from tile_core.machines import Machine, machine_for
from tile_core.sched import MachineModel
from tile_core.target import Target

LANES = 32


@dataclass(frozen=True)
class Machinery:
    """What times are computed with: a machine model's classes, a GPU's numbers, a block's warps."""

    table: MachineTable
    machine: Machine
    target: str
    num_warps: int
    registers: int  # registers per thread that bodies should keep to
    register_file: int = 0  # registers of an SM
    max_warps: int = 0  # warps of an SM
    shared: int = 0  # bytes of shared memory that a block may use
    staged: bool = False  # loads of products run ahead of their loops (`loads_ahead`)
    #: What was asked for: most operations of a kernel cost the same as others of it.
    _costs: dict[tuple[str, tuple[tuple[str, float], ...]], Cost] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )

    @classmethod
    def of(
        cls,
        target: Target,
        num_warps: int,
        model: tuple[str, str] | None = None,
        *,
        staged: bool = False,
    ) -> Machinery:
        """For a block of `num_warps` warps; `model` is (where it is from, TOML), else ours."""
        table = load_machine("sm") if model is None else parse_machine(model[1], model[0])
        most = target.registers // (LANES * num_warps)
        return cls(
            table,
            machine_for(target.name),
            target.name,
            num_warps,
            min(most, target.max_registers),
            target.registers,
            target.max_warps_per_sm,
            target.max_shared,
            staged,
        )

    def cost(self, class_: str, work: Mapping[str, float]) -> Cost:
        """What an operation costs (`MachineTable.cost`)."""
        key = class_, tuple(work.items())
        if key not in self._costs:
            self._costs[key] = self.table.cost(class_, work, self.machine)
        return self._costs[key]

    def model(self) -> MachineModel:
        """The resources of one SM."""
        return self.table.model(
            self.target,
            self.num_warps,
            registers=self.registers,
            shared=self.shared,
            register_file=self.register_file,
            max_warps=self.max_warps,
            memory_rate=self.machine.dram_bytes_per_clk() / self.machine.chip.sms,
        )
