"""Generated code without a GPU: instructions, registers, spills, widths of accesses, conflicts.

Compiles the examples with tilec and, where it is installed, with NVIDIA's tileiras, and looks at
both cubins with cuobjdump (dependency group `peer`). Bank conflicts and sectors are counted while
the simulator runs tilec's code on the inputs of `examples/cases.py`. Bytecode of other programs
(`--folder`) is compiled, but not run.

    python benchmarks/static.py --gpu-name sm_80 --gpu-name sm_90 -O 3
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from peer import find_tool

import tile_core

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
BYTECODE = EXAMPLES / "bytecode"
# One encoded instruction: an address and an opcode; the second half of its 16 bytes has neither.
_INSTRUCTION = re.compile(r"^\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)", re.MULTILINE)
_USAGE = re.compile(r"REG:(\d+) STACK:(\d+) SHARED:(\d+) LOCAL:(\d+)")
#: Class of an instruction -> how its opcodes begin; the rest is integers and moves.
_CLASSES = {
    "tensor": ("HMMA", "IMMA", "DMMA", "QMMA", "BMMA", "HGMMA", "QGMMA", "IGMMA", "UTC"),
    "float": ("F", "H", "D", "MUFU"),
    "global": ("LDG", "STG", "UTMA", "UBLK", "ATOMG", "RED", "LDGSTS"),
    "shared": ("LDS", "STS", "STSM", "ATOMS", "SYNCS"),
    "spills": ("LDL", "STL"),
    "control": ("BRA", "BAR", "EXIT", "BSSY", "BSYNC", "WARPSYNC", "RET", "CALL", "YIELD"),
}
_GLOBAL = ("LDG", "STG", "UTMALDG", "UTMASTG", "UBLK")


@dataclass(frozen=True)
class Code:
    """What a cubin holds; instructions without padding, stack and shared memory in bytes."""

    registers: int
    stack: int
    shared: int
    opcodes: Counter[str]

    @property
    def instructions(self) -> int:
        return self.opcodes.total()

    @property
    def mix(self) -> dict[str, int]:
        """Instructions by class."""
        found = dict.fromkeys((*_CLASSES, "other"), 0)
        for opcode, count in self.opcodes.items():
            found[_class_of(opcode)] += count
        return found

    @property
    def accesses(self) -> str:
        """Global accesses by opcode."""
        rows = sorted((o, n) for o, n in self.opcodes.items() if o.startswith(_GLOBAL))
        return " ".join(f"{count}x{name}" for name, count in rows)

    def __str__(self) -> str:
        mix = " ".join(f"{name} {count}" for name, count in self.mix.items() if count)
        return (
            f"{self.instructions:5} instructions {self.registers:4} registers {self.stack:4} stack "
            f"{self.shared:7} shared\n{'':31} {mix}\n{'':31} {self.accesses}"
        )


def _class_of(opcode: str) -> str:
    for name in ("tensor", "global", "spills", "shared", "control", "float"):
        if opcode.startswith(_CLASSES[name]):
            return name
    return "other"


@dataclass(frozen=True)
class Traffic:
    """What the simulator counted in one launch."""

    conflicts: int  # wavefronts of shared memory beyond those needed
    shared: int  # wavefronts needed
    coalescing: float | None  # bytes asked for, of the bytes of all sectors

    def __str__(self) -> str:
        share = "" if self.coalescing is None else f", {self.coalescing:.0%} of sectors used"
        return f"{self.conflicts} bank conflicts in {self.shared} wavefronts{share}"


def inspect(cubin: bytes, cuobjdump: Path) -> Code:
    """What cuobjdump says of `cubin`."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        sass = _output([cuobjdump, "-sass", file.name])
        usage = _output([cuobjdump, "-res-usage", file.name])
    opcodes = Counter(name for name in _INSTRUCTION.findall(sass) if name != "NOP")
    registers, stack, shared, local = map(int, _USAGE.findall(usage)[-1])
    return Code(registers, stack + local, shared, opcodes)


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


def traffic(name: str, ptx: str) -> Traffic:
    """Run example `name` in the simulator."""
    import cases  # pyright: ignore[reportMissingImports]  # beside the examples
    from tile_sim import Module

    case = cases.case(name)
    report = Module(ptx).launch(name, case.grid, None, case.flat, check=True, stats=True)
    if report.findings or case.errors():
        sys.exit(f"{name}: {[*report.findings, *case.errors()][0]}")
    assert report.cost is not None
    total = report.cost.total
    return Traffic(total.bank_conflicts, total.shared_ideal, total.coalescing)


def measure(
    source: Path, target: str, level: int, cuobjdump: Path, tileiras: Path | None
) -> tuple[Code, Traffic | None, Code | None]:
    """Our code for a bytecode file, what it did if it is an example, and tileiras' code.

    Theirs is None without tileiras, and where it refuses the program for this target.
    """
    made = tile_core.compile(source.read_bytes(), target, opt_level=level)
    ours = inspect(made.cubin, cuobjdump)
    did = traffic(source.stem, str(made.stage("ptx"))) if source.parent == BYTECODE else None
    theirs = None
    if tileiras is not None:
        try:
            theirs = inspect(peer_cubin(tileiras, source, target, level), cuobjdump)
        except subprocess.CalledProcessError as error:
            print(f"tileiras: {error.stderr.strip().splitlines()[0]}", file=sys.stderr)
    return ours, did, theirs


def _table_row(name: str, ours: Code, did: Traffic | None, theirs: Code | None) -> str:
    other = theirs.instructions if theirs else 0
    cells: list[object] = [
        name, ours.instructions, other or "", f"{ours.instructions / other:.2f}" if other else "",
        ours.registers, theirs.registers if theirs else "",
        ours.mix["spills"], theirs.mix["spills"] if theirs else "", did.conflicts if did else "",
    ]  # fmt: skip
    return "| " + " | ".join(map(str, cells)) + " |"


def _details(name: str, ours: Code, did: Traffic | None, theirs: Code | None) -> str:
    lines = [f"{name:22} tilec    {ours}"]
    if did is not None:
        lines.append(f"{'':31} {did}")
    if theirs is not None:
        ratio = ours.instructions / theirs.instructions
        lines.append(f"{'':22} tileiras {theirs}\n{'':31} instructions {ratio:.2f}x")
    return "\n".join(lines)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0] if __doc__ else None)
    known = sorted(path.stem for path in BYTECODE.glob("*.tileirbc"))
    parser.add_argument("--kernel", action="append", choices=known)
    parser.add_argument("--folder", type=Path, help="bytecode files instead of the examples")
    parser.add_argument("--gpu-name", action="append", help="several times if need be")
    parser.add_argument("-O", "--opt-level", type=int, default=3)
    parser.add_argument("--table", action="store_true", help="rows of docs/benchmarks.md")
    options = parser.parse_args()
    sys.path.insert(0, str(EXAMPLES))
    cuobjdump, tileiras = find_tool("cuobjdump"), find_tool("tileiras")
    if cuobjdump is None:
        sys.exit("cuobjdump is not installed: pip install nvidia-cuda-cuobjdump")
    sources = [BYTECODE / f"{name}.tileirbc" for name in options.kernel or known]
    if options.folder is not None:
        sources = sorted(options.folder.glob("*.tileirbc"))
    for target in options.gpu_name or ["sm_90"]:
        print(f"{target}, -O{options.opt_level}")
        for source in sources:
            found = measure(source, target, options.opt_level, cuobjdump, tileiras)
            show = _table_row if options.table else _details
            print(show(source.stem, *found), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
