"""What the model says of a launch, as numbers, text and JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tile_nvptx.emit.ptxas import KernelResources

from tile_core.machines import Machine
from tile_time.engine.memory import Traffic
from tile_time.engine.ops import CAUSES
from tile_time.graph import PtxGraph
from tile_time.occupancy import Demand, Occupancy

if TYPE_CHECKING:
    from tile_time.model import Runs

_LINES_SHOWN = 12
_BINDS = 3
# What a share of a roof is called, and the counter it comes from.
_ROOFS = ("tensor", "shared memory", "L2", "DRAM", "copy engine")


@dataclass(frozen=True)
class Launch:
    """What was launched, and how it lies on the GPU."""

    entry: str
    grid: tuple[int, int, int]
    threads: int
    cluster: int
    ctas: int
    clusters: int
    places: int
    each: int  # clusters that the busiest SM runs
    resources: KernelResources
    demand: Demand
    room: Occupancy
    even: float = 1.0  # what all clusters do, of what they would if each did as much as the busiest


@dataclass(frozen=True)
class Result:
    """The time of one launch.

    `seconds` is that of the kernel, `launch_us` what a launch in a stream costs beside it.
    `causes` are shares of the critical path that sum to 1, `lines` the same by source line;
    `roofs` how much of each roof was used. `remarks` say what the model had to assume.
    """

    machine: str
    launch: Launch
    cycles: float
    mhz: float
    flops: float
    bytes_dram: float
    bytes_l2: float
    roofs: dict[str, float]
    causes: dict[str, float]
    lines: dict[str, dict[str, float]]
    l2_hit: float
    issued: int
    spill_bytes: int
    launch_us: float
    remarks: tuple[str, ...]
    marks: Sequence[tuple[str, str, float, float]]

    @property
    def seconds(self) -> float:
        return self.cycles / (self.mhz * 1e6)

    @property
    def us(self) -> float:
        return self.seconds * 1e6

    @property
    def tflops(self) -> float:
        return self.flops / self.seconds / 1e12

    @property
    def gbps(self) -> float:
        """Bytes of DRAM in GB/s."""
        return self.bytes_dram / self.seconds / 1e9

    @property
    def binds(self) -> list[tuple[str, float]]:
        """The causes that took most of the critical path, largest first."""
        return sorted(self.causes.items(), key=lambda pair: -pair[1])[:_BINDS]

    @property
    def json(self) -> dict[str, Any]:
        r = self.launch.resources
        return {
            "gpu": self.machine, "kernel": self.launch.entry, "grid": list(self.launch.grid),
            "block": self.launch.threads, "cluster": self.launch.cluster,
            "us": round(self.us, 3), "cycles": round(self.cycles), "mhz": round(self.mhz),
            "tflops": round(self.tflops, 2), "dram_gbps": round(self.gbps, 1),
            "l2_hit": round(self.l2_hit, 4), "launch_us": self.launch_us,
            "roofs": {k: round(v, 4) for k, v in self.roofs.items()},
            "causes": {k: round(v, 4) for k, v in self.causes.items()},
            "binds": [name for name, _ in self.binds],
            "lines": {
                line: {k: round(v, 4) for k, v in causes.items()}
                for line, causes in self.lines.items()
            },
            "registers": r.registers, "spill_stores": r.spill_stores,
            "spill_loads": r.spill_loads, "shared": self.launch.demand.shared,
            "ctas_per_sm": self.launch.room.ctas, "limited_by": self.launch.room.limit,
            "remarks": list(self.remarks),
        }  # fmt: skip

    @property
    def text(self) -> str:
        launch, r = self.launch, self.launch.resources
        grid = "x".join(str(n) for n in launch.grid)
        waves = launch.ctas / (launch.places * launch.cluster * launch.room.ctas)
        out = [
            f"{launch.entry} on {self.machine}: {self.us:.2f} us at {self.mhz:.0f} MHz "
            f"({self.cycles:.0f} clk), and {self.launch_us:g} us for a launch",
            f"  {self.tflops:.1f} TFLOP/s, DRAM {self.gbps:.0f} GB/s, L2 hits {self.l2_hit:.0%}",
            f"  grid {grid}, {launch.threads} threads, {r.registers} registers, "
            f"{launch.demand.shared} bytes shared; {launch.room.ctas} CTAs an SM "
            f"({launch.room.limit}), {waves:.2f} waves",
        ]
        if r.spill_stores or r.spill_loads:
            out.append(f"  spills: {r.spill_stores} bytes stored, {r.spill_loads} loaded")
        roofs = ", ".join(f"{name} {share:.0%}" for name, share in self.roofs.items())
        out += [f"  of the roofs: {roofs}", "  the time goes to:"]
        for name, share in sorted(self.causes.items(), key=lambda pair: -pair[1]):
            if share >= 0.005:
                out.append(f"    {share:6.1%}  {name}")
        out.append("  by line:")
        for line, causes in list(self.lines.items())[:_LINES_SHOWN]:
            most = sorted(causes.items(), key=lambda pair: -pair[1])[:3]
            parts = ", ".join(f"{name} {share:.1%}" for name, share in most)
            out.append(f"    {sum(causes.values()):6.1%}  {line}: {parts}")
        out += [f"  remark: {remark}" for remark in self.remarks]
        return "\n".join(out) + "\n"


def make_result(
    machine: Machine,
    graph: PtxGraph,
    launch: Launch,
    runs: Runs,
    traffic: Traffic,
    unknown: tuple[str, ...],
) -> Result:
    """Numbers of the whole grid from those of one SM."""
    busy, cycles = runs.last.busy, runs.cycles
    # The counters are those of the clusters that ran; the SM runs more, the chip more still.
    share = {name: amount * runs.scale for name, amount in busy.items()}
    chip = launch.clusters / max(launch.each, 1) * launch.cluster * launch.even
    tensor = min(share.get("tensor", 0.0) / cycles, 1.0) if cycles else 0.0
    used = tensor * launch.even * launch.clusters / (launch.places * max(launch.each, 1))
    mhz = machine.clock.at(used)
    dram, l2 = share.get("DRAM", 0.0) * chip, share.get("L2", 0.0) * chip
    m = machine.memory
    roofs = {
        "tensor": used,
        "shared memory": share.get("shared", 0.0) / cycles,
        "L2": l2 / cycles / m.l2_bandwidth,
        "DRAM": dram / (cycles / mhz) / (m.dram_bandwidth * 1e3),
        "copy engine": share.get("copy engine", 0.0) / cycles,
    }
    loads = busy.get("L2", 0.0)
    hit = 1.0 - busy.get("DRAM", 0.0) / loads if loads else 1.0
    causes, lines = _where(graph, runs)
    flops = share.get("flops", 0.0) * chip
    resources = launch.resources
    return Result(
        machine.name, launch, cycles, mhz, flops, dram, l2, roofs, causes, lines,
        hit, runs.last.issued, resources.spill_stores + resources.spill_loads,
        machine.launch.stream, (*_remarks(runs, unknown), *_unmade(graph, runs), *_locks(graph)),
        runs.last.marks,
    )  # fmt: skip


def _where(graph: PtxGraph, runs: Runs) -> tuple[dict[str, float], dict[str, dict[str, float]]]:
    """Shares of the critical path by cause, and by line and cause."""
    total = sum(runs.last.path.values()) or 1.0
    causes: dict[str, float] = {}
    lines: dict[str, dict[str, float]] = {}
    by_line = graph.instructions
    for key, clk in runs.last.path.items():
        cause, line = CAUSES[key & 15], key >> 4
        causes[cause] = causes.get(cause, 0.0) + clk / total
        ins = by_line.get(line)
        name = f"ptx:{graph.given_line(line)}" if line else "launch"
        if ins is not None:
            where = graph.program.where(ins)
            if where.source:
                name = ":".join(where.source.rsplit(":")[:2])
        entry = lines.setdefault(name, {})
        entry[cause] = entry.get(cause, 0.0) + clk / total
    order = sorted(lines.items(), key=lambda pair: -sum(pair[1].values()))
    return causes, dict(order)


def _unmade(graph: PtxGraph, runs: Runs) -> tuple[str, ...]:
    lines = [
        graph.given_line(line)
        for line, ins in graph.instructions.items() if ins.pos in runs.last.unmade
    ]  # fmt: skip
    if not lines:
        return ()
    named = ", ".join(map(str, lines[:_LINES_SHOWN])) + (", .." if lines[_LINES_SHOWN:] else "")
    return (f"no SASS makes the accesses of PTX lines {named}: they are asked for, not waited for",)


#: What a remark says where a kernel may wait for what other CTAs do.
ALONE = "loops of compare-and-swap are timed as if no other CTA were at them"


def _locks(graph: PtxGraph) -> tuple[str, ...]:
    locks = any(
        ins.op == "atom" and "cas" in ins.mods and graph.loops.inner[graph.block_of_line[line]] >= 0
        for line, ins in graph.instructions.items()
    )
    return (ALONE,) if locks else ()


def _remarks(runs: Runs, unknown: tuple[str, ...]) -> tuple[str, ...]:
    found: list[str] = []
    if runs.scale > runs.wanted / runs.clusters:
        found.append(
            f"{1 / runs.scale:.0%} of an SM's instructions were run, the rest is their pace"
        )
    elif runs.clusters < runs.wanted:
        found.append(f"{runs.clusters} of {runs.wanted} clusters of an SM were run, the rest is "
                     "their pace")  # fmt: skip
    if runs.last.forced:
        found.append(f"{runs.last.forced} waits were ended that nothing would have ended")
    if unknown:
        found.append(f"opcodes taken for the ALU's: {', '.join(unknown)}")
    return tuple(found)
