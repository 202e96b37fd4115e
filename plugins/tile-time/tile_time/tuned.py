"""What `--tune` tunes: a launch of one kernel, or all launches of a cuTile program."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from tile_core.diagnostics import CompileError
from tile_core.fingerprint import installed
from tile_core.machines import Machine
from tile_core.registry import Registry
from tile_time.api import Dim, compiled
from tile_time.model import load_kernel, time_kernel


@dataclass
class Kernel:
    """One launch of a kernel of a TileIR program.

    `arguments` makes the arguments anew for each candidate, as kernels change them; `chosen` goes
    to the compiler with every candidate.
    """

    data: bytes
    machine: Machine
    grid: Dim
    arguments: Callable[[], Sequence[Any]]
    entry: str | None = None
    registry: Registry | None = None
    warm: bool = False
    chosen: Mapping[str, Any] = field(default_factory=dict)

    def measure(self, options: Mapping[str, str], timed: Mapping[str, float]) -> tuple[str, float]:
        """Compile it; time what was not timed before."""
        chosen = {**self.chosen, "options": {**(self.chosen.get("options") or {}), **options}}
        program = compiled(self.data, self.machine, self.registry, "program", **chosen)
        if program.ptx in timed:
            return program.ptx, timed[program.ptx]
        kernel = load_kernel(program.ptx, self.machine, self.entry, program.hidden)
        result = time_kernel(kernel, self.grid, None, self.arguments(), warm=self.warm)
        return program.ptx, round(result.us, 3)

    def decides(self) -> dict[str, Any]:
        """Bytecode, launch, arguments, numbers of the machine, and all sources."""
        machine = asdict(self.machine)
        machine.pop("sources")
        return {
            "program": hashlib.sha256(self.data).hexdigest(), "gpu": self.machine.name,
            "machine": machine, "grid": self.grid,
            "arguments": [_digest(a) for a in self.arguments()], "entry": self.entry,
            "warm": self.warm, "chosen": dict(self.chosen), "sources": installed(),
        }  # fmt: skip


@dataclass
class Script:
    """All launches of a cuTile program, which runs once for each candidate, in a process of its
    own: cuTile keeps what it has compiled. `command` is `tilec time` with what all have in common,
    `script` the program and its arguments.
    """

    command: Sequence[str]
    script: Sequence[str]

    def measure(self, options: Mapping[str, str], timed: Mapping[str, float]) -> tuple[str, float]:
        """Run it; what code its launches have is not known."""
        settings = [f"--set={name}={value}" for name, value in options.items()]
        with TemporaryDirectory() as folder:
            file = Path(folder, "times.json")
            command = [*self.command, *settings, f"--json={file}", *self.script]
            done = subprocess.run(
                [sys.executable, "-m", "tile_core", *command], capture_output=True, text=True
            )
            if done.returncode:
                raise CompileError(_last_error(done.stderr))
            results = json.loads(file.read_text())
        return " ".join(settings), round(sum(one["us"] for one in results.values()), 3)

    def decides(self) -> None:
        """Nobody knows what a program reads."""


def _last_error(text: str) -> str:
    """What a command said is wrong."""
    lines = [line for line in text.splitlines() if "error:" in line] or text.splitlines()[-1:]
    return lines[0].partition("error:")[2].strip() or lines[0] if lines else "it failed"


def _digest(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        data = hashlib.sha256(value.tobytes()).hexdigest()
        return [value.dtype.str, list(value.shape), list(value.strides), data]
    return repr(value)
