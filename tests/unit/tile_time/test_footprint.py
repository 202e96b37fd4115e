"""No kernel moves fewer bytes from and to memory than it touches: the model's traffic beside what
a simulation of all blocks touches.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[3] / "benchmarks"
#: A launch of a case at its compared sizes, on a GPU: bytes by the model, and sectors that are read
#: before they are written, and that are written, by all blocks.
_BOTH = """
import json, sys
gpu, rows, name = sys.argv[1:4]
sys.path[:0] = sys.argv[4:]
from importlib import import_module
import numpy as np
import cuda.tile as ct
from tile_core.machines import builtin_machines
from tile_sim import cutile
from tile_sim.machine.parameters import RawParameters
from tile_time.model import load_kernel, record, time_kernel
from speed_rows import named, zeros

SECTOR = 32

class Touched:
    def __init__(self):
        self.restart()

    def restart(self):
        self.read, self.written = set(), set()

    def note(self, sectors, kind):
        if kind != "write":
            self.read |= sectors - self.written
        if kind != "read":
            self.written |= sectors

    def access(self, wave, kind, g, part, count):
        if part.space == "global":
            size = part.data.dtype.itemsize
            first = part.index * size + part.base
            last = first + size * count - 1
            both = np.concatenate([first // SECTOR, last // SECTOR])
            self.note(set(both.tolist()), kind)

    def copy(self, wave, rows, lanes, start, width):
        self.note(set((start // SECTOR).tolist()), "read")

    def ignore(self, *_, **__):
        pass

    block = mbarrier = product = commit = columns = ignore

    def bulk(self, *_):
        raise NotImplementedError("boxes have more addresses than their first one")

def instead(compiled, name, grid, cluster, data, buffers):
    kernel = load_kernel(compiled.ptx, machine, name, compiled.module.hidden)
    arguments = RawParameters(data, tuple(buffers))
    result = time_kernel(kernel, grid, None, arguments, cluster=cluster)
    trace = Touched()
    number = range(int(np.prod(grid)))
    record(kernel, trace, grid, None, arguments, number, {"cluster": cluster}, ())
    found = [SECTOR * len(trace.read), SECTOR * len(trace.written), result.bytes_dram]
    print(json.dumps(found))

machine = builtin_machines()[gpu]
cutile.settings.arch, cutile.settings.compiler = machine.target, "tilec"
cutile.settings.opt_level = 3
cutile.settings.instead = instead
draw = np.random.default_rng(1)

def fill(kind, *shape):
    whole = np.issubdtype(named(kind), np.integer)
    found = draw.integers(0, 100, shape) if whole else draw.standard_normal(shape)
    held = zeros(kind, *shape)  # as drivers align them
    held[...] = found.astype(np.float32)
    return held

one = next(case for case in import_module(rows).CASES if case.name == name)
made = one.case(fill, *json.loads(sys.stdin.read()))
made.prepare()
kernel = getattr(import_module(one.module), one.kernel)
ct.launch(None, (*made.grid, 1, 1)[:3], kernel, made.arguments)
"""

#: Rows, case, sizes, and the GPU; none that the compiler loads by boxes there.
_CASES = [
    ("user_rows", "adam", (1 << 16,), "a100"),
    ("user_rows", "embedding", (32, 50, 1024), "a100"),
    ("model_rows", "causal convolution", (2, 16, 1200), "a100"),
    ("model_rows", "silu gradient", (1 << 16,), "h100-sxm"),
    ("science_rows", "jacobi", (64, 512), "a100"),
    ("science_rows", "heat", (64,), "a100"),
    ("science_rows", "lattice", (40, 200), "a100"),
    ("science_rows", "blur", (64, 256), "a100"),
    ("science_rows", "sampled grid", (40, 130), "a100"),
    ("science_rows", "tridiagonal", (40, 256), "a100"),
]


@pytest.mark.parametrize(("rows", "name", "sizes", "gpu"), _CASES)
def test_bytes_of_memory(rows: str, name: str, sizes: tuple[int, ...], gpu: str) -> None:
    """As many as are touched, and not many more: L2 holds all of them.

    Not to the byte, as blocks are taken to touch what the first one does, which leaves out what
    lies beyond the edge.
    """
    pytest.importorskip("cuda.tile", reason="cuTile programs; `make test` installs it")
    paths = [str(BENCHMARKS), str(BENCHMARKS.parent / "examples")]
    command = [sys.executable, "-c", _BOTH, gpu, rows, name, *paths]
    done = subprocess.run(
        command, input=json.dumps(sizes), capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-2000:]
    read, written, moved = json.loads(done.stdout)
    assert 0.94 * (read + written) <= moved <= 1.2 * (read + written)
