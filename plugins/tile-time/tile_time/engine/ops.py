"""SASS instructions as the engine issues them: pipe, interval, latency, from the machine file."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tile_sim.ptx.syntax import Instr

from tile_core.machines import Machine
from tile_time.listing import Item
from tile_time.sass.code import NEVER, NO_SCOREBOARD
from tile_time.sass.opcodes import NOTED, kind_of, takes_from_l1

# Causes of waiting: what a cycle of the critical path went to.
CAUSES = (
    "issue", "latency", "tensor", "shared memory", "L2", "DRAM", "barrier", "launch", "tail",
    "fence", "pipe", "copy engine",
)  # fmt: skip
ISSUE, LATENCY, TENSOR, SHARED, L2, DRAM, BARRIER, LAUNCH, TAIL, FENCE, PIPE, COPY = range(12)

# Pipes of a sub-core; the rest is shared by the SM (engine/sm.py).
PIPES = (
    "fma", "half", "packed", "alu", "imad", "mufu", "popc", "convert", "convert_slow", "shuffle",
    "redux", "fp64", "uniform", "branch", "constant", "mma", "tmem",
)  # fmt: skip
_PIPE_INDEX = {name: i for i, name in enumerate(PIPES)}
_VARIABLE = frozenset(("mufu", "popc", "convert_slow", "shuffle", "redux", "fp64", "uniform"))
_SHAPE = re.compile(r"\.(\d+)x(\d+)x(\d+)")
_DIGITS = re.compile(r"^[A-Z]+\.(?:SF\.|SP\.)*(\d{3,6})(?:\.|$)")
_SHAPES = {
    "16816": (16, 8, 16), "1688": (16, 8, 8), "1684": (16, 8, 4), "884": (8, 8, 4),
    "16832": (16, 8, 32), "16864": (16, 8, 64), "168128": (16, 8, 128), "168256": (16, 8, 256),
    "8816": (8, 8, 16), "8832": (8, 8, 32),
}  # fmt: skip
#: Elements of six and four bits, which take as long as a byte would without scales ("mxf6").
_SIX_OR_FOUR = re.compile(r"\.E(2M1|2M3|3M2)\b")
_KEPT = re.compile(r"SB(\d),\s*(0x[0-9a-f]+)")
_GROUP = re.compile(r"gsb0,\s*(0x[0-9a-f]+)")
_SPILL = {"128": 4, "64": 2}


@dataclass(slots=True)
class Op:
    """One instruction, ready to issue.

    `pipe` is an index of PIPES or -1, `gap` clk until the pipe of the sub-core is free again,
    `latency` until a scoreboard is released. `run` and `pos` say where its note is (-1: it has
    none), of which it makes the `part`th of `share` parts.
    """

    kind: str
    pipe: int
    gap: float
    latency: float
    stall: int
    wait: int
    write: int
    read: int
    key: int  # line of the PTX << 4
    text: str
    pos: int
    run: int
    share: int
    amount: float = 0.0  # what the kind needs: clk of a product, groups kept, sectors, ...
    extra: float = 0.0
    flops: float = 0.0
    flag: bool = False
    guarded: bool = False
    part: int = 0


def make_op(machine: Machine, item: Item, ins: Instr | None, run: int, line: int) -> Op:
    """The op of a SASS instruction; `ins` is the PTX instruction it comes from."""
    sass = item.sass
    kind = "never" if sass.guard == NEVER else kind_of(sass.name) or "alu"
    op = Op(
        kind, -1, 0.0, 0.0, sass.stall, sass.wait, sass.write, sass.read, line << 4, sass.text,
        item.pos if kind not in NOTED or item.made.share else -1, run, max(item.made.share, 1),
    )  # fmt: skip
    op.part = item.made.part
    op.guarded = bool(sass.guard)
    if sass.opcode.startswith(("BAR.ARV", "BAR.SYNC", "BAR.RED")):
        op.flag = sass.opcode.startswith("BAR.ARV")
    elif kind in _PIPE_INDEX and kind not in ("mma", "constant"):
        pipe = getattr(machine.pipes, kind)
        op.pipe = _PIPE_INDEX[kind]
        op.gap = machine.chip.sub_cores / pipe.rate
        op.latency = pipe.latency
        if sass.name in ("S2R", "S2UR", "CS2R"):
            op.latency = 3 * pipe.latency
    elif kind == "constant":
        op.pipe, op.gap, op.latency = _PIPE_INDEX["constant"], 2.0, machine.memory.shared_latency
    elif kind == "mma":
        shape = _mma_shape(sass.opcode)
        macs = shape[0] * shape[1] * shape[2]
        op.pipe, op.gap = _PIPE_INDEX["mma"], _mma_clk(machine, sass.opcode, macs)
        op.flops = 2.0 * macs
        op.latency = machine.mma.latency
    elif kind == "wgmma":
        _wgmma(machine, op, sass.opcode, sass.operands)
    elif kind == "warpgroup":
        found = _GROUP.search(sass.operands)
        op.flag = "DEPBAR" in sass.opcode
        op.amount = int(found[1], 16) if found else 0
    elif kind == "scoreboard":
        found = _KEPT.search(sass.operands)
        op.amount = int(found[2], 16) if found else 0
        op.extra = int(found[1]) if found else 0
        op.flag = ins is not None and "read" in ins.mods
    elif kind in ("local_load", "local_store"):
        words = next((n for name, n in _SPILL.items() if f".{name}" in sass.opcode), 1)
        op.amount = 4 * words
    elif kind in ("load", "async_copy"):
        op.flag = not takes_from_l1(sass)
    elif kind == "fence":
        op.latency = _fence(machine, sass.opcode)
    return op


def is_variable(kind: str) -> bool:
    """Whether the result comes by scoreboard and not after the stall count."""
    return kind in _VARIABLE


def _fence(machine: Machine, opcode: str) -> float:
    if opcode.startswith("MEMBAR"):
        wide = ".GPU" in opcode or ".SYS" in opcode
        return machine.sync.fence_gpu if wide else machine.sync.fence_cta
    if opcode.startswith("FENCE"):
        return machine.sync.fence_proxy
    return machine.sync.fence_cta


def _mma_shape(opcode: str) -> tuple[int, int, int]:
    found = _SHAPE.search(opcode)
    if found:
        return int(found[1]), int(found[2]), int(found[3])
    digits = _DIGITS.match(opcode)
    return _SHAPES.get(digits[1], (16, 8, 16)) if digits else (16, 8, 16)


def _mma_clk(machine: Machine, opcode: str, macs: int) -> float:
    """Clk of a sub-core's tensor core, from the shape and the types in the opcode."""
    if opcode.startswith("DMMA"):
        return machine.mma.fp64_m8n8k4 * macs / 256
    bits = _operand_bits(opcode)
    if ".SF." in opcode and not (bits == 8 and _SIX_OR_FOUR.search(opcode)):
        return machine.mma.scaled_m16n8k32 * macs * bits / (16 * 8 * 32 * 8)
    narrow = opcode.startswith("IMMA") or (bits in (8, 16) and ".F32" not in opcode)
    clk = machine.mma.narrow_m16n8k16 if narrow else machine.mma.m16n8k16
    return clk * macs * bits / (16 * 8 * 16 * 16)


def _operand_bits(opcode: str) -> int:
    if ".TF32" in opcode:
        return 32
    if opcode.startswith("OMMA") or ".S4" in opcode or ".U4" in opcode:
        return 4
    if opcode.startswith("BMMA"):
        return 1
    return 8 if opcode.startswith(("QMMA", "IMMA")) else 16


def _wgmma(machine: Machine, op: Op, opcode: str, operands: str) -> None:
    """`amount` clk of a sub-core, `extra` bytes that its part reads from shared memory, `flag` for
    the last product of a group. A with `gdesc` is in shared memory."""
    found = _SHAPE.search(opcode)
    n = int(found[2]) if found else 256
    parts = operands.split(",")
    # `gdesc[UR4]` stands once for both operands; with A in registers a register comes before it.
    in_registers = not (len(parts) > 1 and parts[1].strip().startswith("gdesc"))
    op.amount = machine.wgmma.clk(n, in_registers)
    columns = n * machine.wgmma.shared_per_column
    base = 0.0 if in_registers else machine.wgmma.shared_base
    op.extra = (base + columns) * machine.memory.shared_bandwidth / machine.chip.sub_cores
    op.flops = 2.0 * 16 * n * (int(found[3]) if found else 16)
    op.flag = "gsb0" in operands
    op.latency = machine.wgmma.drain
    op.guarded = False


NONE = NO_SCOREBOARD
