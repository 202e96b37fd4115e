"""The clocks of the GPU while something runs, by nvidia-smi where there is one."""

from __future__ import annotations

import shutil
import subprocess
import threading
from statistics import median
from typing import Any

_FIELDS = ("clocks.sm", "clocks.mem", "power.draw", "temperature.gpu")
_NAMES = ("sm_mhz", "memory_mhz", "watts", "celsius")
_EVERY_MS = 50


class Clocks:
    """Within the block nvidia-smi is asked all the time; `found` has medians afterwards.

    A GPU without nvidia-smi, or one that does not tell, leaves `found` empty.
    """

    def __init__(self, ordinal: int = 0) -> None:
        self.found: dict[str, Any] = {}
        self._rows: list[list[float]] = []
        self._ordinal = ordinal
        self._child: subprocess.Popen[str] | None = None

    def __enter__(self) -> Clocks:
        tool = shutil.which("nvidia-smi")
        if tool is not None:
            command = [tool, f"--id={self._ordinal}", f"--query-gpu={','.join(_FIELDS)}",
                       "--format=csv,noheader,nounits", f"--loop-ms={_EVERY_MS}"]  # fmt: skip
            try:
                self._child = subprocess.Popen(
                    command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
                )
            except OSError:
                return self
            threading.Thread(target=self._read, args=(self._child,), daemon=True).start()
        return self

    def _read(self, child: subprocess.Popen[str]) -> None:
        for line in child.stdout or ():
            try:
                self._rows.append([float(field) for field in line.split(",")])
            except ValueError:
                continue  # "[N/A]"

    def __exit__(self, *error: object) -> None:
        if self._child is not None:
            self._child.kill()
            self._child.wait(timeout=5)
        rows = [row for row in list(self._rows) if len(row) == len(_NAMES)]
        if rows:
            columns = zip(*rows, strict=True)
            self.found = {"clocks": dict(zip(_NAMES, map(median, columns), strict=True))}
