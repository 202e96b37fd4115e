"""A worker is a new interpreter, or a fork where that is safe; both answer alike and die alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[3] / "examples" / "bytecode"

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="forks on Linux only")

#: Compiles with a worker, has it die, and compiles again.
_PROGRAM = """
import hashlib, sys, threading
from tile_core import own_process
how = sys.argv[2]
if how != "library":
    own_process.claim()
hold = threading.Event()
if how == "threads":
    threading.Thread(target=hold.wait, daemon=True).start()
from tile_core.api import compile
from tile_core.diagnostics import TileError
from tile_nvptx.emit.child import Forked, Spawned
from tile_nvptx.emit.pool import POOL, WorkerFailure
data = open(sys.argv[1], "rb").read()
made = [compile(data, "sm_90").cubin]
(worker,) = POOL._all
kind = type(worker.process).__name__
fatal = '''target triple = "nvptx64-nvidia-cuda"
declare i32 @llvm.nvvm.nothing.of.this.name(i32)
define ptx_kernel void @k(ptr addrspace(1) %p) {
  %v = load i128, ptr addrspace(1) %p
  %a = atomicrmw add ptr addrspace(1) %p, i128 %v seq_cst
  ret void
}'''
request = {"ir": fatal, "chip": "sm_80", "features": "+ptx80", "opt_level": 0}
try:
    POOL.ask(request, 60)
    print("no failure")
except WorkerFailure:
    print("failed", worker.alive)
made.append(compile(data, "sm_90").cubin)
print(kind, len(set(made)), hashlib.sha256(made[0]).hexdigest())
sys.stdout.flush()
hold.set()
"""


def run(how: str) -> list[str]:
    """What the program prints: how LLVM's end was seen; kind of worker, and the cubin's digest."""
    source = str(EXAMPLES / "vector_add_f32.tileirbc")
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, source, how], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout.splitlines()


def test_all_ways_make_the_same_and_survive_the_worker() -> None:
    ways = {how: run(how) for how in ("library", "command", "threads")}
    assert [lines[1].split()[0] for lines in ways.values()] == ["Spawned", "Forked", "Spawned"]
    assert {lines[0] for lines in ways.values()} == {"failed False"}
    assert len({tuple(lines[1].split()[1:]) for lines in ways.values()}) == 1
    assert ways["command"][1].split()[1] == "1"
