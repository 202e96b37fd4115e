"""Machine models: TOML files with resources, and what each class of operation holds."""

from tile_sched.machine.tables import Cost, MachineTable, load_machine, parse_machine

__all__ = ["Cost", "MachineTable", "load_machine", "parse_machine"]
