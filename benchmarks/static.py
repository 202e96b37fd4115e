"""Generated code without a GPU: size, registers, spills, shared memory, widths of accesses.

Compiles the examples with tilec and, where it is installed, with NVIDIA's tileiras, and looks at
both cubins with cuobjdump (dependency group `peer`).

    python benchmarks/static.py --gpu-name sm_90 -O 3
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from peer import find_tool

import tile_core

EXAMPLES = Path(__file__).resolve().parents[1] / "examples" / "bytecode"
# One encoded instruction: an address and an opcode; the second half of its 16 bytes has neither.
_INSTRUCTION = re.compile(r"^\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)", re.MULTILINE)
_USAGE = re.compile(r"REG:(\d+) STACK:(\d+) SHARED:(\d+) LOCAL:(\d+)")


@dataclass(frozen=True)
class Code:
    """What a cubin holds; instructions without the padding behind the last EXIT's loop."""

    instructions: int
    registers: int
    stack: int
    shared: int
    memory: tuple[tuple[str, int], ...]  # global accesses by opcode

    def __str__(self) -> str:
        accesses = " ".join(f"{count}x{name}" for name, count in self.memory)
        return (
            f"{self.instructions:5} instructions {self.registers:4} registers "
            f"{self.stack:4} stack {self.shared:7} shared  {accesses}"
        )


def inspect(cubin: bytes, cuobjdump: Path) -> Code:
    """What cuobjdump says of `cubin`."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        sass = _output([cuobjdump, "-sass", file.name])
        usage = _output([cuobjdump, "-res-usage", file.name])
    opcodes = [name for name in _INSTRUCTION.findall(sass) if name != "NOP"]
    registers, stack, shared, local = map(int, _USAGE.findall(usage)[-1])
    memory = Counter(name for name in opcodes if name.startswith(("LDG", "STG", "UTMA", "UBLK")))
    return Code(len(opcodes), registers, stack + local, shared, tuple(sorted(memory.items())))


def _output(command: list[object]) -> str:
    return subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, check=True
    ).stdout


def peer_cubin(tileiras: Path, source: Path, target: str, level: int) -> bytes:
    """The cubin that tileiras makes."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "peer.cubin"
        _output([tileiras, source, "-o", out, "--gpu-name", target, f"-O{level}"])
        return out.read_bytes()


def rows(names: list[str], target: str, level: int) -> Iterator[tuple[str, Code, Code | None]]:
    """Kernel, our code, tileiras' code."""
    cuobjdump, tileiras = find_tool("cuobjdump"), find_tool("tileiras")
    if cuobjdump is None:
        sys.exit("cuobjdump is not installed: pip install nvidia-cuda-cuobjdump")
    for name in names:
        source = EXAMPLES / f"{name}.tileirbc"
        made = tile_core.compile(source.read_bytes(), target, opt_level=level).stages["cubin"]
        assert isinstance(made, bytes)
        ours = inspect(made, cuobjdump)
        theirs = None
        if tileiras is not None:
            theirs = inspect(peer_cubin(tileiras, source, target, level), cuobjdump)
        yield name, ours, theirs


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0] if __doc__ else None)
    known = sorted(path.stem for path in EXAMPLES.glob("*.tileirbc"))
    parser.add_argument("--kernel", action="append", choices=known)
    parser.add_argument("--gpu-name", default="sm_90")
    parser.add_argument("-O", "--opt-level", type=int, default=3)
    options = parser.parse_args()
    print(f"{options.gpu_name}, -O{options.opt_level}")
    for name, ours, theirs in rows(options.kernel or known, options.gpu_name, options.opt_level):
        print(f"{name:22} tilec    {ours}")
        if theirs is not None:
            ratio = ours.instructions / theirs.instructions
            print(f"{'':22} tileiras {theirs}\n{'':22} instructions {ratio:.2f}x")
    return 0


if __name__ == "__main__":
    sys.exit(main())
