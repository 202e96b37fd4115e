"""tileas-prefetch-loads: loads of loops without products run ahead, where too few are in flight."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tile_core.machines import Machine
from tile_core.mlir import ir
from tile_core.passes import Pass, PassContext, option
from tile_tileas.agents.leaders import has_agents
from tile_tileas.analysis.bounds import BoundsAnalysis
from tile_tileas.analysis.buffers import lives_of, stage_bytes
from tile_tileas.copying.engines import EngineLoads
from tile_tileas.kernel_spec import num_warps, occupancy
from tile_tileas.modulo.body import is_persistent
from tile_tileas.passes.allocate_shared import ENOUGH_WARPS
from tile_tileas.pipelining.budget import demand_of, expecting, room_of
from tile_tileas.pipelining.depth import LEAST, blocks_of, depth, depth_of_stream
from tile_tileas.pipelining.loads_ahead import left_to_threads, prefetches
from tile_tileas.pipelining.loops import streams
from tile_tileas.pipelining.multistage import Multistage
from tile_tileas.pipelining.prefetch import Prefetch
from tile_tileas.pipelining.repeated import Kept, Repeats, Rereading
from tile_tileas.remedies import remedy

#: Without numbers of the machine: bytes of DRAM per clk and multiprocessor (A100).
_BANDWIDTH = 11.0
#: Stages of loops whose tiles stay, and warps that a multiprocessor has of such kernels, else as
#: many as of others: a block that reads what it has waits for nothing, others load. Layer norm of
#: bf16, 65536x16384, H100 (model): 1775 us with four stages and none that stay, 1657 with 8 and 24
#: warps, 1421 with 4 and 32; 1749 with four stages, 16 tiles and 16 warps.
_RING, _MANY_WARPS = 3, 32
_WHEN = ("always", "estimate")


@dataclass(frozen=True)
class PrefetchLoads(Pass):
    """Begin loads of reductions, norms and other loops without products iterations ahead.

    Each thread copies what it reads itself (cp.async), so that nobody has to meet, unless a plan
    leaves it to tensor maps or bulk copies. Stages leave room for as many blocks as have sixteen
    warps, but in persistent loops, which have as many blocks as there are multiprocessors. With
    `when` = 'estimate', only where blocks of a multiprocessor have fewer bytes in flight than its
    part of memory takes.
    """

    name = "tileas-prefetch-loads"
    anchor = "func.func"
    statistics = {
        "loops": "loops whose loads run ahead",
        "stages": "stages of those loops",
        "kept": "loads of which tiles stay, or that read them",
    }

    strategy: str = option("unspecialize", "'none' leaves all loops as they are")
    num_stages: int = option(4, "iterations in flight at most")
    keep: int = option(
        16, "tiles that stay in shared memory for loops behind that load them again, at most"
    )
    when: str = option(
        "always", "'estimate': only where too few bytes are in flight", choices=_WHEN
    )

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        if self.strategy == "none" or self.num_stages < LEAST:
            return
        loops = list(streams(op.regions[0]))
        repeats = Repeats(loops if self.keep else [])
        for number, loop in enumerate(loops):
            repeats.enter(number, loop)
            engines = EngineLoads(op, loop, cx.analysis(BoundsAnalysis, op))
            loads = prefetches(loop, engines.takes, cx)
            stages, kept = self._planned(op, loop, loads, engines.overhead, repeats, cx)
            if not stages:
                continue
            fillings = engines.fillings(loads)
            made = Rereading(loop, fillings, stages, kept) if kept else None
            (made or Multistage(loop, fillings, stages)).run()
            cx.count("loops")
            cx.count("stages", stages)
            cx.count("kept", len(kept))

    def _planned(
        self,
        func: ir.Operation,
        loop: ir.OpView,
        loads: list[Prefetch],
        overhead: int,
        repeats: Repeats,
        cx: PassContext,
    ) -> tuple[int, dict[ir.Value, Kept]]:
        """Stages, and the loads of which tiles stay or have stayed, by their results."""
        kept = repeats.held(loads)
        new = [load for load in loads if load.load.results[0] not in kept]
        most = min((one.ring for one in kept.values()), default=self.num_stages)
        stages = min(most, self._stages(func, loop, new, overhead, cx)) if new else most
        if not kept and not new:
            return 0, kept
        starts = repeats.starts(loads) if stages else []
        ring = min(stages, _RING)
        tiles = self._tiles(func, loads, ring, repeats, cx) if starts else 0
        if tiles:
            stages = ring
            kept |= {load.load.results[0]: repeats.keep(load, tiles, ring) for load in starts}
        return stages, kept

    def _tiles(
        self,
        func: ir.Operation,
        loads: list[Prefetch],
        stages: int,
        repeats: Repeats,
        cx: PassContext,
    ) -> int:
        """How many tiles of each load that is repeated may stay: as many as leave room for the
        blocks, and for the stages of this loop and those behind it.
        """
        room = room_of(cx.target)[0]
        taken = sum(life.size for life in lives_of(func))
        rings = sum(stage_bytes(load.buffer) for load in loads) + repeats.bytes_behind
        new = sum(stage_bytes(load.buffer) for load in repeats.starts(loads))
        for warps in (_MANY_WARPS, ENOUGH_WARPS):
            blocks = max(occupancy(func), -(-warps // num_warps(func)))
            each = (room.block_bytes + room.reserved_bytes) // blocks - room.reserved_bytes
            tiles = min(self.keep, (each - taken - stages * rings) // new)
            if tiles > stages:  # fewer are not worth a block less (RTX 5090: 2 % slower)
                return tiles
        return 0

    def _stages(
        self,
        func: ir.Operation,
        loop: ir.OpView,
        loads: list[Prefetch],
        overhead: int,
        cx: PassContext,
    ) -> int:
        demand = demand_of(func, loop, loads, self.num_stages, macs=0, lag=0)
        room, machine = room_of(cx.target)
        room = expecting(room, loads)
        # All buffers of a kernel lie apart, where they may: loops that follow one another meet no
        # more often.
        here, everything = demand.other_bytes, sum(life.size for life in lives_of(func))
        demand = replace(demand, other_bytes=everything + overhead)
        if not is_persistent(loop):
            most = max(demand.blocks, blocks_of(demand, room, 0))
            enough = max(demand.blocks, -(-ENOUGH_WARPS // demand.warps))
            demand = replace(demand, blocks=min(most, enough))
        if self.when == "always":
            stages = depth(demand, room)
            if not stages and not has_agents(func):
                stages = depth(replace(demand, other_bytes=here + overhead), room)
            if not stages:
                left_to_threads(loads, "two stages do not fit into shared memory")
            return stages
        stages = depth_of_stream(demand, room, _bandwidth(machine))
        if not stages:
            left_to_threads(loads, "blocks of a multiprocessor have enough loads in flight")
            cx.missed(
                loop.operation,
                "loads do not run ahead: blocks of a multiprocessor have enough of them in flight",
                category="pipeline",
                name="LoopNotPipelined",
                hint=remedy(["enough of them in flight"]),
            )
        return stages


def _bandwidth(machine: Machine | None) -> float:
    """Bytes of DRAM per clk that a multiprocessor gets when all are at work."""
    if machine is None:
        return _BANDWIDTH
    return machine.memory.dram_bandwidth * 1e3 / machine.clock.boost / machine.chip.sms
