"""tileas-unspecialized-pipeline: loads of a loop's products run ahead, all warps do everything."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod

from tile_cute.atoms.tensor_memory import COLUMNS

from tile_core.machines import Machine
from tile_core.mlir import ir
from tile_core.passes import Pass, PassContext, option
from tile_tileas.access import fall_back
from tile_tileas.analysis.accumulators import (
    carried_place,
    columns_together,
    is_of_pair,
    tensor_products,
)
from tile_tileas.analysis.bounds import BoundsAnalysis
from tile_tileas.analysis.tokens import LOADS
from tile_tileas.copying.ahead import ESTIMATE, SPECIALIZE
from tile_tileas.copying.engines import EngineLoads
from tile_tileas.dialect.buffers import Buffer
from tile_tileas.dot_plan import family_of, product_shape, tensor_plan_of
from tile_tileas.mma.families import TENSOR, WARPGROUP
from tile_tileas.passes.convert_tileaa import num_ctas, num_warps, occupancy
from tile_tileas.pipelining import in_turn, tcgen05_in_flight
from tile_tileas.pipelining.across import Across, Runs
from tile_tileas.pipelining.awaited import wait_for_no_reads
from tile_tileas.pipelining.budget import demand_of, expecting, registers_of, room_of
from tile_tileas.pipelining.depth import blocks_of, depth
from tile_tileas.pipelining.fragments_ahead import FragmentsAhead, product_to_feed
from tile_tileas.pipelining.multistage import Multistage, is_inside_loop
from tile_tileas.pipelining.overlap import chain_to_overlap, late_loads, overlap
from tile_tileas.pipelining.prefetch import Prefetch, Takes, prefetch_of
from tile_tileas.pipelining.refilled import Refilled
from tile_tileas.pipelining.released import can_be_released, release
from tile_tileas.pipelining.specialized import Specialized
from tile_tileas.pipelining.spotted import Spotted
from tile_tileas.pipelining.tcgen05_chain import Turned, chain_of
from tile_tileas.pipelining.tcgen05_paired import turned_for
from tile_tileas.pipelining.wgmma_in_flight import LAG, Kept, keep_in_flight, products_to_keep
from tile_tileas.remedies import remedy
from tile_tileas.storage import storage_bits
from tile_tileas.tma.filling import Tma

PRODUCT = "nv_tileas.dot"
#: Columns of an m64nNk16 that are as much work as an m16n8k16 of each of four sub-cores.
_COLUMNS = 8
#: How many times the stages of other loops those have whose products nobody waits for: one stage is
#: still read, and what hides the latency of memory are copies alone. 128x128x64 of f16 on an H100,
#: 4096^3 (model): 282.7 us with four stages, 279.3 with five, 278.1 with six.
_STAGES_IN_FLIGHT = 2
#: The number of stages that is no saving.
_ENOUGH = 4
#: How much longer than an idle memory one takes that feeds tensor cores without a break. 128x256x64
#: of f16 on an H100, 4096^3 (model): 448 TFLOP/s with stages for the latency of an idle one, 532
#: with twice its latency, both while ptxas serialised the products; with overlap 569. Three times
#: are what a gather needs whose matrix comes from DRAM alone (MoE: 153.4 us with five stages, 150.5
#: with six). tcgen05 gains nothing by it (B200, persistent 256x256x64: 106.6 us, and 107.5).
_LOADED, _LOADED_TENSOR = 3, 2
#: Blocks of a multiprocessor that hide each other's meetings where threads meet before products.
#: B200 (model), 4096^3 of e2m1 with scales in rows, 128x128x128: 68.7 us with one and 8 stages,
#: 51.1 with two of 6. Of e4m3, 85 with one and 6 stages, 101 with two of 3, which have half of the
#: copies in flight.
_BESIDE = 2


@dataclass(frozen=True)
class UnspecializedPipeline(Pass):
    """Load what products of later iterations read while those of this one are made.

    By tensor maps where the plan of accesses says so and the buffer is one that they fill, else by
    cp.async, into as many stages of each buffer as cover the latency of memory and fit. Loops
    that cannot be are left as they are, with a remark that says why.
    """

    name = "tileas-unspecialized-pipeline"
    anchor = "func.func"
    statistics = {
        "loops": "loops that were pipelined",
        "stages": "stages of those loops",
        "in_flight": "products that stay in flight from one iteration to the next",
    }

    strategy: str = option(
        "unspecialize",
        "'none' leaves all loops as they are; 'warp-specialize' marks loops that copy for products "
        "of warpgroups, for 'tileas-specialize-warps', 'estimate' those where that pays",
        choices=("none", "unspecialize", SPECIALIZE, ESTIMATE),
    )
    num_stages: int = option(
        4,
        "iterations in flight at most; twice as many where products of tcgen05 are in flight, and, "
        "from 4 on, those of wgmma",
    )
    fragments_ahead: bool = option(
        True, "fragments of mma.sync are read while the part of K before them is multiplied"
    )

    in_turn: bool = option(
        True,
        "products by tcgen05 of loops that run again have two accumulators in turn, and agents of "
        "their own",
    )
    across: bool = option(
        True, "loops that two threads lead fill stages of their next run before what follows them"
    )

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        if self.strategy == "none" or self.num_stages < 2:
            return
        for loop in list(_loops(op.regions[0])):
            engines = EngineLoads(op, loop, cx.analysis(BoundsAnalysis, op))
            loads = prefetches(loop, engines.takes, cx)
            if not loads:
                continue
            targets = [load.target for load in loads if load.target is not None]
            filled = [target.alloc.results[0] for target in targets]
            if self._pipelined_apart(op, loop, loads, engines, cx):
                continue
            by_tensor = tcgen05_in_flight.products_to_keep(op, loop, filled)
            chain = None if by_tensor else chain_to_overlap(op, loop, filled, cx)
            kept = by_tensor or ([] if chain else products_to_keep(loop, filled))
            if by_tensor and self._pipelined_led(op, loop, loads, engines, by_tensor, cx):
                continue
            by_tma = can_be_released(loads, engines.tma) and not by_tensor
            late = late_loads(loads, chain) if by_tma and chain is not None else []
            lag = LAG if kept or (chain and not late) else 0
            overhead = engines.overhead + (tcgen05_in_flight.OVERHEAD if by_tensor else 0)
            stages = self._stages(op, loop, loads, cx, lag, overhead, by_tensor)
            if lag and not stages:
                lag, stages, chain = 0, self._stages(op, loop, loads, cx, 0, engines.overhead), None
                _remark_on_no_room(loop, cx)
            if not stages:
                self._with_one_stage(op, loop, loads, engines, cx)
                continue
            feeds = self.fragments_ahead and not engines.tma.is_shared
            fed = product_to_feed(loop, loads) if feeds else None
            if fed is not None:
                FragmentsAhead(loop, engines.fillings(loads), stages, fed).run()
                self._count(cx, stages, 1)
                continue
            fillings = engines.fillings(loads, num_warps(op) if by_tma else 0)
            behind = chain.early[0] if by_tma and chain is not None else None
            made = Multistage(loop, fillings, stages, lag, phased=bool(by_tensor),
                              released=by_tma, behind=behind, late=late)  # fmt: skip
            filling = fillings[0][0] if by_tma else None
            assert filling is None or isinstance(filling, Tma), "tensor maps copy all loads"
            new = made.run()
            if chain is not None:
                new = overlap(new.opview, chain, made, filling, cx)
            elif lag:
                _keep_in_flight(op, new, made, kept, tensor=bool(by_tensor))
            if filling is not None:
                release(new, filling, stages, lag, begun=chain is not None)
            self._count(cx, stages, len(kept) if lag else 0)

    def _pipelined_apart(
        self,
        func: ir.Operation,
        loop: ir.OpView,
        loads: list[Prefetch],
        engines: EngineLoads,
        cx: PassContext,
    ) -> bool:
        """Whether the loop is one of those that are made in a way of their own, and is now."""
        turned = self._turned(func, loop, loads, engines, cx)
        if turned is not None:
            self._pipeline_turned(func, turned, cx)
        return turned is not None or self._specialized(func, loop, loads, engines, cx)

    def _specialized(
        self,
        func: ir.Operation,
        loop: ir.OpView,
        loads: list[Prefetch],
        engines: EngineLoads,
        cx: PassContext,
    ) -> bool:
        """Whether the loop is divided into one that copies and one that multiplies."""
        if self.strategy == ESTIMATE:
            if not Specialized.pays(func, loop, loads, engines.tma):
                return False
        elif self.strategy != SPECIALIZE:
            return False

        def stages(lag: int) -> int:
            return self._stages(func, loop, loads, cx, lag, engines.overhead, apart=True)

        divided = Specialized.of(func, loop, loads, engines.tma, stages, cx)
        if divided is None:
            return False
        divided.run(cx)
        self._count(cx, divided.stages, len(divided.kept))
        return True

    def _pipelined_led(
        self,
        func: ir.Operation,
        loop: ir.OpView,
        loads: list[Prefetch],
        engines: EngineLoads,
        products: list[Kept],
        cx: PassContext,
    ) -> bool:
        """Whether single threads lead the loop for all, and it is made so now."""
        if not tcgen05_in_flight.is_led(loop, loads, products, len(engines.tma.copies)):
            return False
        if self._pipelined_in_turn(func, loop, loads, engines, products, cx):
            return True
        if self._pipelined_across(func, loop, loads, engines, products, cx):
            return True
        overhead = engines.overhead + tcgen05_in_flight.OVERHEAD
        stages = self._stages(func, loop, loads, cx, 0, overhead, products, led=True)
        if not stages:
            return False
        # Where blocks fill stages of each other, one thread says what all of its block have read.
        copier, pair = not engines.tma.is_shared, is_of_pair(products[0].op)
        fillings = engines.fillings(loads, pair=pair, copier=copier)
        made = Multistage(loop, fillings, stages, phased=True, led=True)
        tcgen05_in_flight.keep_in_flight(func, made.run(), made, products, copier=copier)
        self._count(cx, stages, len(products))
        return True

    def _pipelined_in_turn(
        self,
        func: ir.Operation,
        loop: ir.OpView,
        loads: list[Prefetch],
        engines: EngineLoads,
        products: list[Kept],
        cx: PassContext,
    ) -> bool:
        """Whether the products of the loop have two accumulators in turn now."""
        if not (self.in_turn and is_inside_loop(loop)):
            return False

        def stages(spared: int) -> int:
            overhead = engines.overhead + tcgen05_in_flight.OVERHEAD - spared
            return self._stages(func, loop, loads, cx, 0, overhead, products, led=True, apart=True)

        found = in_turn.pipelined(func, loop, loads, engines.tma, products, stages, cx)
        if found:
            self._count(cx, found, len(products))
        return found > 0

    def _pipelined_across(
        self,
        func: ir.Operation,
        loop: ir.OpView,
        loads: list[Prefetch],
        engines: EngineLoads,
        products: list[Kept],
        cx: PassContext,
    ) -> bool:
        """Whether the stages of the loop, which one thread leads, go on from run to run now."""
        if not (self.across and is_inside_loop(loop)):
            return False
        runs: Runs | str = "blocks of the cluster fill stages of each other"
        if not engines.tma.is_shared:
            runs = Runs.of(loop, loads)
        stages = 0
        if not isinstance(runs, str):
            overhead = engines.overhead + tcgen05_in_flight.OVERHEAD
            ahead, behind = (
                self._stages(
                    func, loop, loads, cx, 0, overhead, products, led=True, apart=beside_all
                )
                for beside_all in (True, False)
            )
            # Memory that what follows the loop has in common with its stages is theirs alone.
            if ahead < behind:
                runs = f"{ahead} stages of {behind} fit into shared memory beside what follows it"
            stages = ahead
        if isinstance(runs, str) or not stages:
            if isinstance(runs, str):
                cx.missed(
                    loop.operation,
                    f"begins each of its runs with empty stages: {runs}",
                    category="pipeline",
                    name="RunsNotAhead",
                    hint=remedy([runs]),
                )
            return False
        pair = is_of_pair(products[0].op)
        fillings = engines.fillings(loads, pair=pair, copier=True, once=True)
        made = Across(loop, fillings, stages, runs, pair=pair)
        tcgen05_in_flight.keep_in_flight(func, made.run(), made, products, copier=True)
        self._count(cx, stages, len(products))
        return True

    @staticmethod
    def _count(cx: PassContext, stages: int, in_flight: int) -> None:
        cx.count("in_flight", in_flight)
        cx.count("loops")
        cx.count("stages", stages)

    def _turned(
        self,
        func: ir.Operation,
        loop: ir.OpView,
        loads: list[Prefetch],
        engines: EngineLoads,
        cx: PassContext,
    ) -> Turned | None:
        """The loop whose two products by tcgen05 run beside all else, if it has such a pair."""
        chain = chain_of(loop, loads, lambda load: load.load.results[0] in engines.tma.copies)
        if chain is None:
            return None
        stages = taken = 0
        if not isinstance(chain, str):
            # Sums that other loops keep in tensor memory all count, as they do for those; those
            # of other chains are there while their own loops run.
            products = list(tensor_products(func))
            if all(carried_place(op) is None for op in products):
                products = [chain.late]
            taken = sum(tensor_plan_of(op, num_warps(func)).taken for op in products)
            taken += tensor_plan_of(chain.early, num_warps(func)).taken
            if taken > COLUMNS:
                chain = f"their sums take {taken} columns of tensor memory, of {COLUMNS}"
            elif num_ctas(func) > 1:
                chain = "blocks of the cluster fill stages of each other"
            elif not (stages := self._stages_of_chain(func, loop, loads, engines, cx)):
                chain = "not even one stage of each tile fits into shared memory"
        if isinstance(chain, str):
            cx.missed(loop.operation, f"makes its products one after the other: {chain}",
                      category="pipeline", name="ProductsNotOverlapped")  # fmt: skip
            return None
        blocks = occupancy(func)
        return turned_for(loop, chain, (taken, blocks, num_warps(func)), cx, tight=stages == 1)

    def _stages_of_chain(
        self,
        func: ir.Operation,
        loop: ir.OpView,
        loads: list[Prefetch],
        engines: EngineLoads,
        cx: PassContext,
    ) -> int:
        """Stages of the tiles of products that run beside all else: one, for which hints give up
        blocks of a multiprocessor, where two do not fit; 0 if not even that does.
        """
        stages = self._stages(func, loop, loads, cx, 0, engines.overhead)
        return stages or int(_one_fits(func, loop, loads, engines, cx))

    def _pipeline_turned(self, func: ir.Operation, turned: Turned, cx: PassContext) -> None:
        """Stages for each of the loads by itself."""
        engines = EngineLoads(func, turned.loop, cx.analysis(BoundsAnalysis, func))
        loads = prefetches(turned.loop, engines.takes, cx)
        stages = self._stages_of_chain(func, turned.loop, loads, engines, cx)
        parts = [engines.tma.aligned(load) for load in loads]
        spots = [turned.spots[_filled(part)] for part in parts]
        by_part = [(engines.tma.part([part]), part) for part in parts]
        Spotted(turned.loop, by_part, stages, spots).run()
        self._count(cx, stages, len(loads))

    @staticmethod
    def _with_one_stage(
        func: ir.Operation,
        loop: ir.OpView,
        loads: list[Prefetch],
        engines: EngineLoads,
        cx: PassContext,
    ) -> None:
        """Fill the one stage of each tile that fits again as soon as it has been read, for which
        hints give up blocks of a multiprocessor; or leave loads to threads.

        H100 (model), attention of one query, 32 heads, 64 x 256 x 128: 17.2 us by threads, 9.2 so,
        where a second block would have had room by threads; B200, by tcgen05, 17.8 and 13.5 us.
        """
        fits = _one_fits(func, loop, loads, engines, cx)
        if not (fits and can_be_released(loads, engines.tma, (WARPGROUP, TENSOR))):
            why = "two stages do not fit into shared memory"
            left_to_threads(loads, why)
            cx.missed(
                loop.operation,
                f"is not pipelined: {why}",
                category="pipeline",
                name="LoopNotPipelined",
                hint=remedy([why]),
            )
            return
        new = Refilled(loop, loads, engines.tma, 1, num_warps(func)).run()
        cx.count("loops")
        cx.count("stages")
        cx.passed(
            new,
            "fills the one stage of each tile that fits again as soon as that has been read",
            category="pipeline",
            name="StagesRefilled",
        )

    def _most(self, lag: int, *, tensor: bool) -> int:
        """Stages at most, with products in flight (`lag`, or those of `tensor` memory) or without.
        A small number is asked for to save memory, not as what covers the latency.
        """
        deep = tensor or (lag and self.num_stages >= _ENOUGH)
        return self.num_stages * (_STAGES_IN_FLIGHT if deep else 1)

    def _stages(
        self,
        func: ir.Operation,
        loop: ir.OpView,
        loads: list[Prefetch],
        cx: PassContext,
        lag: int,
        overhead: int,
        kept: Sequence[Kept] = (),
        *,
        led: bool = False,
        apart: bool = False,
    ) -> int:
        """Stages, `lag` of which are still read while the next one is; 0 if too few fit with
        `overhead` bytes of the copies' own. `kept`: products of tcgen05 that stay in flight; `led`:
        by one thread alone, while others wait behind the loop.
        `apart`: another agent copies, ahead of all that comes before the loop.
        """
        macs = sum(_macs(op) for op in loop.regions[0].blocks[0].operations)
        tensor = bool(kept)
        most = self._most(lag, tensor=tensor)
        demand = demand_of(func, loop, loads, most, macs, lag, apart=apart)
        in_tensor = sum(registers_of(one.op.results[0].type) for one in kept)
        demand = replace(
            demand,
            other_bytes=demand.other_bytes + overhead,
            in_flight=bool(lag) or tensor,
            registers=demand.registers - in_tensor,
            beside=_BESIDE if tensor and not led and _leaves_columns(func) else 1,
        )
        room, machine = room_of(cx.target)
        room = expecting(room, loads)
        if machine is not None:
            times = _LOADED_TENSOR if tensor else _LOADED if lag else 1
            latency = room.latency * times
            room = replace(room, latency=latency, mma_clk=_clk(loop, machine))
        return depth(demand, room)


def _keep_in_flight(
    func: ir.Operation, loop: ir.Operation, made: Multistage, kept: Sequence[Kept], *, tensor: bool
) -> None:
    """Begin the products of `loop` without waiting for them: of tcgen05 (`tensor`) or wgmma."""
    if tensor:
        tcgen05_in_flight.keep_in_flight(func, loop, made, kept)
    else:
        keep_in_flight(loop, kept)


def _remark_on_no_room(loop: ir.OpView, cx: PassContext) -> None:
    cx.missed(
        loop.operation,
        "waits for its products in each step: three stages do not fit into shared "
        "memory, or are more than the option allows",
        category="pipeline",
        name="ProductsNotAhead",
        hint=remedy(["three stages do not fit into shared memory"]),
    )


def _one_fits(
    func: ir.Operation,
    loop: ir.OpView,
    loads: list[Prefetch],
    engines: EngineLoads,
    cx: PassContext,
) -> bool:
    """Whether one stage of each tile fits into a block's shared memory."""
    demand = demand_of(func, loop, loads, 1, 0, 0)
    demand = replace(demand, other_bytes=demand.other_bytes + engines.overhead)
    return blocks_of(demand, room_of(cx.target)[0], 1) > 0


def _leaves_columns(func: ir.Operation) -> bool:
    """Whether tensor memory has room for as many blocks as are to run beside each other."""
    return columns_together(func, num_warps(func)) <= COLUMNS // _BESIDE


def _clk(loop: ir.OpView, machine: Machine) -> float:
    """Cycles that a sub-core needs for as much as an m16n8k16, on the instructions of the loop."""
    products = [op for op in loop.regions[0].blocks[0].operations if op.operation.name == PRODUCT]
    families = {family_of(op) for op in products}
    if TENSOR in families:
        # Of 128 rows, and not 64; as many bytes of K take as long, whatever the elements.
        bits = max(_element_bits(op) for op in products)
        return _COLUMNS * machine.tcgen05.clk_per_column / 2 * bits / 16
    if WARPGROUP in families:
        return _COLUMNS * machine.wgmma.clk_per_column
    return machine.mma.m16n8k16


def _macs(op: ir.OpView) -> int:
    """Multiply-adds of a product."""
    if op.operation.name != PRODUCT:
        return 0
    a, c = (_shape(op.operands[at]) for at in (0, 2))
    return prod(product_shape(a, c))


def _element_bits(op: ir.OpView) -> int:
    """Bits of an element of A as it lies in memory."""
    type_ = op.operands[0].type
    buffer = Buffer.of(type_)
    return storage_bits((type_ if buffer is None else buffer.tile).element_type)


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
            if any(inner.operation.name == PRODUCT for inner in body.operations):
                yield op


def _filled(load: Prefetch) -> ir.Value:
    """The buffer that a load fills."""
    assert load.target is not None, "tensor maps fill buffers of others"
    return load.target.alloc.results[0]


def prefetches(loop: ir.OpView, takes: Takes, cx: PassContext) -> list[Prefetch]:
    """Loads of the loop that can run ahead, by cp.async unless `takes`; a remark for each that
    cannot, and in their plans what they are left to.
    """
    found: list[Prefetch] = []
    for op in list(loop.regions[0].blocks[0].operations):
        if op.operation.name not in LOADS:
            continue
        wait_for_no_reads(op, loop)
        made = prefetch_of(op, loop, takes)
        if isinstance(made, str):
            cx.missed(
                op.operation,
                f"does not run ahead of its loop: {made}",
                category="pipeline",
                name="LoadNotAhead",
                hint=remedy([made]),
            )
            fall_back(op, made)
        else:
            if not made.by_engine:
                fall_back(op, "its buffer is no sequence of what is copied at once", ahead=True)
            found.append(made)
    return found


def left_to_threads(loads: Sequence[Prefetch], why: str) -> None:
    """Write into the plans of loads that they do not run ahead after all."""
    for load in loads:
        fall_back(load.load, why)
