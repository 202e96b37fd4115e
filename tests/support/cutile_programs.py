"""cuTile programs that tests write, each run by the simulator in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

#: What stands in front: `made` has the bytecode of each kernel that was compiled, in their order.
_HEAD = """
import sys
from tile_sim import cutile
arch, schedule = sys.argv[1:3]
cutile.settings.arch, cutile.settings.compiler, cutile.settings.opt_level = arch, "tilec", 3
cutile.settings.strict = True
cutile.settings.launch.update(schedule=schedule)
import cuda.tile as ct
import numpy as np
import tile_core
made = []
cutile.compiler.watch = lambda done: made.append(done.bytecode)
"""


def counts_of(program: str, folder: Path, arch: str, schedule: str) -> dict[str, int]:
    """What a program prints, lines of a name and a number, at -O3 under strict checks."""
    path = folder / "program.py"  # in a file: cuTile reads its source
    path.write_text(_HEAD + program)
    done = subprocess.run(
        [sys.executable, str(path), arch, schedule],
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    lines = (line.rsplit(" ", 1) for line in done.stdout.splitlines())
    return {name: int(count) for name, count in lines}
