"""tileas-unspecialized-pipeline: loads of a loop's products run ahead, all warps do everything."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from tile_core.diagnostics import TileError
from tile_core.machines import machine_for
from tile_core.mlir import ir
from tile_core.passes import Pass, PassContext, option
from tile_tileas.analysis.buffers import lives_during, stage_bytes
from tile_tileas.analysis.tokens import LOADS
from tile_tileas.dialect.buffers import Buffer
from tile_tileas.dot_plan import product_shape
from tile_tileas.pipelining.cp_async import CpAsync
from tile_tileas.pipelining.depth import Demand, depth
from tile_tileas.pipelining.multistage import Multistage
from tile_tileas.pipelining.prefetch import Prefetch, prefetch_of

_DOT = "nv_tileas.dot"


@dataclass(frozen=True)
class UnspecializedPipeline(Pass):
    """Load what products of later iterations read while those of this one are made.

    By cp.async, into as many stages of each buffer as cover the latency of memory and fit. Loops
    that cannot be are left as they are, with a remark that says why.
    """

    name = "tileas-unspecialized-pipeline"
    anchor = "func.func"
    statistics = {"loops": "loops that were pipelined", "stages": "stages of those loops"}

    strategy: str = option("unspecialize", "'none' leaves all loops as they are")
    num_stages: int = option(4, "iterations in flight at most")

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        if self.strategy == "none" or self.num_stages < 2:
            return
        for loop in list(_loops(op.regions[0])):
            loads = _prefetches(loop, cx)
            if not loads:
                continue
            stages = self._stages(op, loop, loads, cx)
            if not stages:
                cx.missed(
                    loop.operation, "is not pipelined: two stages do not fit into shared memory"
                )
                continue
            Multistage(loop, [(CpAsync(), loads)], stages).run()
            cx.count("loops")
            cx.count("stages", stages)

    def _stages(
        self, func: ir.Operation, loop: ir.OpView, loads: list[Prefetch], cx: PassContext
    ) -> int:
        own = sum(_aligned(stage_bytes(load.buffer)) for load in loads)
        others = sum(_aligned(life.size) for life in lives_during(func, loop))
        others -= sum(_aligned(stage_bytes(load.buffer)) for load in loads if not load.private)
        macs = sum(_macs(op) for op in loop.regions[0].blocks[0].operations)
        blocks = max(1, _occupancy(func))
        budget = cx.target.max_shared // blocks - others
        demand = Demand(macs, own, budget, self.num_stages)
        try:
            machine = machine_for(cx.target.name)
        except TileError:
            return depth(demand)
        return depth(demand, machine.memory.dram_latency)


def _aligned(size: int) -> int:
    return -(-size // 128) * 128


def _occupancy(func: ir.Operation) -> int:
    if "nv_tileaa.kernel_spec" not in func.attributes:
        return 1
    spec = ir.DictAttr(func.attributes["nv_tileaa.kernel_spec"])
    return ir.IntegerAttr(spec["occupancy"]).value if "occupancy" in spec else 1


def _macs(op: ir.OpView) -> int:
    """Multiply-adds of a product."""
    if op.operation.name != _DOT:
        return 0
    a, b = (_shape(value) for value in list(op.operands)[:2])
    return prod(product_shape(a, b))


def _shape(value: ir.Value) -> tuple[int, ...]:
    buffer = Buffer.of(value.type)
    return tuple(value.type.shape if buffer is None else buffer.shape)


def _loops(region: ir.Region) -> Iterator[ir.OpView]:
    """Loops that have products of their own."""
    for block in region.blocks:
        for op in block.operations:
            if not op.operation.name.startswith("scf."):
                continue
            for inner in op.regions:
                yield from _loops(inner)
            if op.operation.name != "scf.for" or "unsignedCmp" in op.attributes:
                continue
            body = op.regions[0].blocks[0]
            if any(inner.operation.name == _DOT for inner in body.operations):
                yield op


def _prefetches(loop: ir.OpView, cx: PassContext) -> list[Prefetch]:
    """Loads of the loop that can run ahead; a remark for each that cannot."""
    found: list[Prefetch] = []
    for op in loop.regions[0].blocks[0].operations:
        if op.operation.name not in LOADS:
            continue
        made = prefetch_of(op, loop)
        if isinstance(made, str):
            cx.missed(op.operation, f"does not run ahead of its loop: {made}")
        else:
            found.append(made)
    return found
