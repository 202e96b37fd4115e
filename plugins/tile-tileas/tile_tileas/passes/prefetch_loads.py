"""tileas-prefetch-loads: loads of loops without products run ahead, where too few are in flight."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from tile_core.machines import Machine
from tile_core.mlir import ir
from tile_core.passes import Pass, PassContext, option
from tile_tileas.analysis.bounds import BoundsAnalysis
from tile_tileas.analysis.buffers import lives_of
from tile_tileas.copying.engines import EngineLoads
from tile_tileas.modulo.body import is_persistent
from tile_tileas.passes.allocate_shared import ENOUGH_WARPS
from tile_tileas.passes.unspecialized_pipeline import PRODUCT, left_to_threads, prefetches
from tile_tileas.pipelining.budget import demand_of, expecting, room_of
from tile_tileas.pipelining.depth import LEAST, depth, depth_of_stream
from tile_tileas.pipelining.multistage import Multistage
from tile_tileas.pipelining.prefetch import Prefetch
from tile_tileas.remedies import remedy

#: Without numbers of the machine: bytes of DRAM per clk and multiprocessor (A100).
_BANDWIDTH = 11.0
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
    statistics = {"loops": "loops whose loads run ahead", "stages": "stages of those loops"}

    strategy: str = option("unspecialize", "'none' leaves all loops as they are")
    num_stages: int = option(4, "iterations in flight at most")
    when: str = option(
        "always", "'estimate': only where too few bytes are in flight", choices=_WHEN
    )

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        if self.strategy == "none" or self.num_stages < LEAST:
            return
        for loop in list(_streams(op.regions[0])):
            engines = EngineLoads(op, loop, cx.analysis(BoundsAnalysis, op))
            loads = prefetches(loop, engines.takes, cx)
            stages = self._stages(op, loop, loads, engines.overhead, cx) if loads else 0
            if stages:
                Multistage(loop, engines.fillings(loads), stages).run()
                cx.count("loops")
                cx.count("stages", stages)

    def _stages(
        self,
        func: ir.Operation,
        loop: ir.OpView,
        loads: list[Prefetch],
        overhead: int,
        cx: PassContext,
    ) -> int:
        demand = demand_of(func, loop, loads, self.num_stages, macs=0, lag=0)
        blocks = demand.blocks
        if not is_persistent(loop):
            blocks = max(blocks, -(-ENOUGH_WARPS // demand.warps))
        # All buffers of a kernel lie apart then: loops that follow one another meet no more often.
        everything = sum(life.size for life in lives_of(func))
        demand = replace(demand, blocks=blocks, other_bytes=everything + overhead)
        room, machine = room_of(cx.target)
        room = expecting(room, loads)
        if self.when == "always":
            stages = depth(demand, room)
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


def _streams(region: ir.Region) -> Iterator[ir.OpView]:
    """Innermost loops without products, program order."""
    for block in region.blocks:
        for op in block.operations:
            if not op.operation.name.startswith("scf."):
                continue
            inner = [loop for part in op.regions for loop in _streams(part)]
            yield from inner
            if op.operation.name != "scf.for" or "unsignedCmp" in op.attributes:
                continue
            names = {one.operation.name for one in op.regions[0].blocks[0].operations}
            if not names & {PRODUCT, "scf.for", "scf.while"}:
                yield op
