"""Numbers of GPUs: one TOML file each, read by schedulers, planners and the timing model alike.

machine = machine_for("sm_90")
machine.memory.l2_latency, machine.wgmma.clk(256), machine.copies.tma_load_latency(32768, 128)
"""

from tile_core.machines.load import (
    builtin_machines,
    find_machine,
    machine_for,
    machine_of,
    machines_of,
    parse_machine,
)
from tile_core.machines.record import Machine, Source

__all__ = [
    "Machine",
    "Source",
    "builtin_machines",
    "find_machine",
    "machine_for",
    "machine_of",
    "machines_of",
    "parse_machine",
]
