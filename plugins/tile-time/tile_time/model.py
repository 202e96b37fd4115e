"""The time of one launch: record it, assemble it, run it on the machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from tile_nvptx.emit.large_shared import without_large_arrays
from tile_sim import Module
from tile_sim.errors import SimError
from tile_sim.machine.counters import instructions_of
from tile_sim.machine.parameters import HiddenFilled
from tile_sim.machine.unmade import Wanted

from tile_core.diagnostics import CompileError, UsageError
from tile_core.machines import Machine
from tile_core.target import builtin_targets
from tile_time.actions import Plan
from tile_time.assemble import Code, architecture, make_code
from tile_time.engine.compile import make_load
from tile_time.engine.held import check_plan, check_run
from tile_time.engine.memory import Traffic
from tile_time.engine.run import Engine, Load, Outcome
from tile_time.graph import PtxGraph
from tile_time.listing import Listing, make_listing
from tile_time.occupancy import Demand, Occupancy, occupancy
from tile_time.ptx import from_cubin, one_instruction_a_line
from tile_time.record import Recorder, Recording, TooLong
from tile_time.result import Launch, Result, make_result
from tile_time.traffic import traffic_of
from tile_time.variety import Counter, variety_of

Dim = tuple[int, int, int]
#: How many blocks a recorded cluster may run, and how many warp instructions the engine issues:
#: more where clusters differ, as those end at no pace that the others could be taken to keep.
MOST_STEPS = 3_000_000
MOST_ISSUED = 600_000
MOST_ISSUED_OF_KINDS = 2_500_000
MOST_COUNTED = 200_000
MOST_COUNTED_AGAIN = 50_000
#: What is left out where only the way of the warps counts.
WAY_ALONE = ("values", "products", "copies", "memory", "addresses")
_COUNTED_AT_ONCE = 16  # clusters that are simulated side by side to count their steps


@dataclass
class Kernel:
    """A kernel of a PTX module for one machine: its code in both forms."""

    machine: Machine
    module: Module
    entry: str
    code: Code
    given: int  # bytes of static shared memory that became dynamic
    graph: PtxGraph
    listing: Listing

    @property
    def takes_over(self) -> bool:
        """Whether a CTA may ask for others that have not been launched."""
        return self.module.program(self.entry).takes_over

    @property
    def registers(self) -> int:
        return self.code.resources[self.entry].registers


@dataclass(frozen=True)
class Launched:
    """So many `clusters` of `all` those of a grid are launched, and take over others in turn."""

    clusters: int
    all: int

    @property
    def even(self) -> float:
        """How many each has, of what the one with the most has."""
        return self.all / (self.clusters * -(-self.all // self.clusters))

    def followers(self, cluster: int) -> range:
        """Which ones a cluster takes over."""
        return range(cluster + self.clusters, self.all, self.clusters)


def load_kernel(
    ptx: str, machine: Machine, entry: str | None = None, hidden: HiddenFilled | None = None
) -> Kernel:
    """Read and assemble a kernel; `entry` may be left out where there is one only.

    `hidden` fills its hidden parameters (tensor maps), as the host code of a cubin does.

    Raises:
        SimError: what is no PTX or nothing that the simulator runs.
        CompileError, ConfigurationError: from ptxas and nvdisasm.
        UsageError: no such kernel, or PTX for another GPU.
    """
    arch = architecture(ptx, machine)
    text, broken, sizes = _prepared(ptx, arch)
    module = Module(text)
    module.hidden, module.strict = hidden, False
    if entry is None:
        if len(module.entries) != 1:
            known = ", ".join(module.entries) or "none"
            raise UsageError("--entry has to say which kernel", hint=f"there are: {known}")
        entry = module.entries[0]
    program = module.program(entry)
    code = make_code(text, arch)
    if entry not in code.kernels or entry not in code.resources:
        raise CompileError(f"ptxas made no code for kernel '{entry}'")
    graph = PtxGraph(program, broken)
    listing = make_listing(graph, code.kernels[entry])
    return Kernel(machine, module, entry, code, sizes.get(entry, 0), graph, listing)


@lru_cache(maxsize=16)
def _prepared(ptx: str, arch: str) -> tuple[str, tuple[int, ...], dict[str, int]]:
    target = builtin_targets().get(arch.rstrip("af"))
    static = target.static_shared if target and arch[-1] in "af" else 48 * 1024
    large = without_large_arrays(from_cubin(ptx), static)
    return *one_instruction_a_line(large.ptx), large.sizes


def time_kernel(
    kernel: Kernel,
    grid: Dim,
    block: Dim | None,
    args: Sequence[Any],
    *,
    shared_bytes: int = 0,
    cluster: Dim | None = None,
    trace_clk: float = 0.0,
    warm: bool = False,
) -> Result:
    """How long a launch takes.

    Args:
        args: as for `tile_sim.Module.launch`; arrays are used, and changed, as the kernel does.
        trace_clk: how many clk of one SM the result's trace covers.
        warm: whether what the kernel reads is in L2 when it starts, as far as it fits.

    Raises:
        SimError: the kernel does something wrong.
        CompileError: it does not fit on the machine, or is too large for the model.
    """
    machine = kernel.machine
    options: dict[str, Any] = {"shared_bytes": shared_bytes + kernel.given, "cluster": cluster}
    first = Recorder(MOST_STEPS)
    threads, size, ctas = record(kernel, first, grid, block, args, [0], options)
    resources = kernel.code.resources[kernel.entry]
    shared = resources.static_shared + shared_bytes + kernel.given
    demand = Demand(threads, resources.registers, shared, first.most_columns)
    room = occupancy(machine, demand)
    clusters = -(-ctas // size)
    places, even = max(int(machine.chip.sms) // size, 1), 1.0
    if kernel.takes_over and room.ctas * places < clusters:
        # Those that are on the GPU at first take over all others, each as many as any other.
        taken = Launched(room.ctas * places, clusters)
        options["launched"], clusters, even = taken, taken.clusters, taken.even
        first.restart()
        record(kernel, first, grid, block, args, [0], options)
    each = -(-clusters // places)  # clusters that the busiest SM runs
    resident = min(room.ctas, each)

    def counting(which: Sequence[int]) -> list[int]:
        if each == 1 and first.steps > MOST_COUNTED_AGAIN:
            return [first.steps] * len(which)  # persistent: the first ones have the remainder
        most = len(which) * min(max(64 * first.steps, MOST_COUNTED), MOST_STEPS)
        try:
            return _steps(kernel, grid, block, args, which, size, options, most)
        except CompileError:  # some wait for others, which do not run
            return [first.steps] * len(which)

    variety = variety_of(counting, first.steps, clusters, places, each)
    recorders = [first] if variety.clusters == (0,) else []
    for number in variety.clusters[len(recorders) :]:
        recorders.append(Recorder(MOST_STEPS))
        record(kernel, recorders[-1], grid, block, args, [number], options)
    plan = Plan(kernel.graph, kernel.listing)
    typical = variety.typical
    most = variety.count or each
    load = make_load(machine, plan, recorders, size, min(room.ctas, most), variety, most)
    l1 = _l1(machine, demand, room) / load.resident
    traffic = traffic_of(
        kernel, recorders[typical], grid, block, args, options, clusters,
        variety.clusters[typical], resident, l1, warm,
    )  # fmt: skip
    check_plan(kernel.graph, recorders, load)
    active = float(min(machine.chip.sms, ctas))
    runs = _run(machine, kernel.graph, load, traffic, active, l1, trace_clk)
    launch = Launch(
        kernel.entry, grid, threads, size, ctas, clusters, places, each, resources,
        demand, room, even,
    )  # fmt: skip
    return make_result(machine, kernel.graph, launch, runs, traffic, kernel.listing.unknown)


def _l1(machine: Machine, demand: Demand, room: Occupancy) -> float:
    """Bytes of an SM that shared memory leaves for L1."""
    taken = room.ctas * (demand.shared + machine.chip.shared_reserved)
    return max(machine.chip.data_cache - taken, 0.0)


def _steps(
    kernel: Kernel,
    grid: Dim,
    block: Dim | None,
    args: Sequence[Any],
    clusters: Sequence[int],
    size: int,
    options: dict[str, Any],
    most: int,
) -> list[int]:
    """How many blocks of PTX the warps of some clusters run."""
    found: list[int] = []
    for first in range(0, len(clusters), _COUNTED_AT_ONCE):
        part = clusters[first : first + _COUNTED_AT_ONCE]
        counter = Counter(most)
        record(kernel, counter, grid, block, args, part, options, WAY_ALONE)
        found += [counter.steps(n * size, size) for n in range(len(part))]
    return found


def record(
    kernel: Kernel,
    recorder: Recording,
    grid: Dim,
    block: Dim | None,
    args: Sequence[Any],
    clusters: Sequence[int],
    options: dict[str, Any],
    skipped: Sequence[str] = ("values", "products", "memory"),
) -> tuple[int, int, int]:
    """Run some clusters in the simulator; (threads of a CTA, CTAs of a cluster, of the grid).

    Values that reach no branch and no address are not computed, nor are those of products: no
    branch is made of them but in kernels that skip work by what they computed. Where it turns out
    that a value counts which was left out, the clusters are run again, and with the addresses of
    all stores, which say where else it comes from.
    """
    program = kernel.module.program(kernel.entry)
    left = frozenset(skipped)
    options = dict(options)
    launched: Launched | None = options.pop("launched", None)
    followers = None if launched is None else [launched.followers(one) for one in clusters]
    while True:
        try:
            report = kernel.module.launch(
                kernel.entry, grid, block, args, schedule="early", check_uninitialised=False,
                trace=recorder, clusters=clusters, followers=followers, skipped=left,
                wave_threads=1 << 20, **options,
            )  # fmt: skip
            break
        except Wanted:
            recorder.restart()
            left -= {"addresses"}
        except TooLong:
            raise too_large(kernel.entry) from None
    wanted = program.entry.directives.get("reqnctapercluster")
    size = 1
    for n in options.get("cluster") or wanted or (1,):
        size *= int(n)
    x, y, z = report.block
    return x * y * z, size, report.grid[0] * report.grid[1] * report.grid[2]


def too_large(entry: str) -> CompileError:
    return CompileError(
        f"'{entry}' is too large for the model: one CTA runs more than {MOST_STEPS} blocks of PTX",
        hint="time it with a smaller size of its loops, or a larger grid",
    )


@dataclass(frozen=True)
class Runs:
    """Outcomes of the engine, and the clk of the whole grid that follow from them.

    `scale` is what the busiest SM has to do, of what the engine ran.
    """

    last: Outcome
    cycles: float
    clusters: int  # that the engine ran
    wanted: int  # that the busiest SM runs
    scale: float


def _run(
    machine: Machine,
    graph: PtxGraph,
    load: Load,
    traffic: Traffic,
    active: float,
    l1: float,
    trace_clk: float,
) -> Runs:
    """Run all clusters of an SM, or as many as show how long another one takes."""
    wanted, resident, variety = load.clusters, load.resident, load.variety
    lengths = [_length(load, kind) for kind in range(len(load.kinds))]
    whole = sum(lengths[kind] for kind in variety.order) / len(variety.order) * wanted
    budget = MOST_ISSUED if len(lengths) == 1 else MOST_ISSUED_OF_KINDS
    few = min(wanted, max(int(budget * wanted // max(whole, 1)), 2 * resident + 1))
    if few < wanted:  # a whole number of rounds is left out, so that the tail is the real one
        few = min(few + (wanted - few) % resident, wanted)
    run = replace(load, clusters=few)
    mhz = machine.clock.boost
    most = budget * 2
    engine = Engine(machine, run, traffic, active, l1, mhz, trace_clk, most)
    last = engine.run()
    check_run(graph, engine)
    if last.issued >= most:  # time goes by how much of the work was done
        scale = max(whole / last.issued, 1.0)
    elif few < wanted and len(lengths) > 1:  # clusters of different lengths end at no pace
        scale = whole / sum(lengths[variety.kind(i, few)] for i in range(few))
    else:
        scale = wanted / few
    cycles = last.cycles * scale
    if last.issued < most and few < wanted and len(lengths) == 1:
        cycles = last.cycles + (wanted - few) * _pace(last, resident)
    return Runs(last, max(cycles, engine.least_clk(scale)), few, wanted, scale)


def _length(load: Load, kind: int) -> int:
    """How many instructions a cluster of a kind issues."""
    return sum(len(load.ops[a.key]) for cta in load.kinds[kind] for warp in cta for a in warp)


def _pace(outcome: Outcome, resident: int) -> float:
    """Clk between the ends of clusters while the SM is full: over whole rounds of residents.

    Of n clusters the last one starts when n - `resident` have ended, so the SM is full until one
    more has. The first round does not count, where there are others.
    """
    ends = sorted(outcome.ends)
    last = len(ends) - resident
    rounds = max((last - 1) // resident, 1)
    first = last - rounds * resident
    return (ends[last] - (ends[first] if first >= 0 else 0.0)) / (rounds * resident)


def instruction_count(kernel: Kernel) -> int:
    return sum(1 for b in kernel.graph.program.blocks for _ in instructions_of(b))


__all__ = ["Kernel", "SimError", "load_kernel", "time_kernel"]
