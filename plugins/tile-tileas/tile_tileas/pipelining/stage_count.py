"""How many stages the buffers of a loop with products get; see `depth` for the arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from tile_cute.atoms.tensor_memory import COLUMNS

from tile_core.machines import Machine
from tile_core.mlir import ir
from tile_tileas.analysis.accumulators import columns_together, is_of_pair
from tile_tileas.analysis.axis import shape_of
from tile_tileas.analysis.held import blocks_by_registers
from tile_tileas.dialect.buffers import Buffer
from tile_tileas.dialect.tensor import LEAST_COLUMNS
from tile_tileas.dot_plan import family_of, product_shape
from tile_tileas.kernel_spec import num_warps
from tile_tileas.mma.families import TENSOR, WARPGROUP
from tile_tileas.pipelining import tcgen05_in_flight
from tile_tileas.pipelining.budget import (
    bytes_of_streams,
    demand_of,
    expecting,
    is_summed_there,
    registers_of,
    room_of,
)
from tile_tileas.pipelining.candidate import Candidate
from tile_tileas.pipelining.depth import Demand, Room, blocks_of, depth, interval
from tile_tileas.pipelining.loops import PRODUCT
from tile_tileas.pipelining.multistage import is_inside_loop
from tile_tileas.pipelining.wgmma_in_flight import Kept
from tile_tileas.storage import storage_bits

#: Columns of an m64nNk16 that are as much work as an m16n8k16 of each of four sub-cores.
_COLUMNS = 8
#: How many times the stages of other loops those have whose products nobody waits for: one stage is
#: still read, and what hides the latency of memory are copies alone. 128x128x64 of f16 on an H100,
#: 4096^3 (model): 282.7 us with four stages, 279.3 with five, 278.1 with six.
_STAGES_IN_FLIGHT = 2
#: Rows of a tile of few tokens.
_FEW_ROWS = 32
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
BESIDE = 2
#: What a step takes in clk, at least, in which all threads meet: copies, waits, a product's issue.
_MEETING_CLK = 450
#: What one thread takes for a step of a pair of blocks that it leads, with copies and waits, in
#: clk: clusters whose products take less hide each other's steps, beginnings and ends, if each has
#: so many stages. B200 (model), 4096^3 of f16 by two blocks, us with one cluster at a time and with
#: two: 128x128x64 225 and 133, 128x128x128 186 and 134, 128x256x64 128 and 111, 256x128x64 126 and
#: 110. Where there are no two of them for a multiprocessor, fewer stages cost 3 to 5 % (1024^3).
#: So do blocks that make tensor maps before their first copies: a layer for each of 8 experts,
#: 7,600 x 4096 x 2048 of bf16 by 128x128x64, takes 164.8 us with one block of seven stages, 147.8
#: with two of three. 4096^3, whose maps a launch makes, takes 133.1 and 136.5. Where a loop runs
#: again, blocks are those that stay, as many as there are multiprocessors.
_LED_CLK, _STAGES_BESIDE = 450, 3


def stages_of(
    one: Candidate,
    lag: int = 0,
    kept: Sequence[Kept] = (),
    *,
    led: bool = False,
    apart: bool = False,
    spared: int = 0,
    works: bool = False,
) -> int:
    """Stages, `lag` of which are still read while the next one is; 0 if too few fit beside the
    bytes that copies take for themselves. `kept`: products of tcgen05 that stay in flight; `led`:
    by one thread alone, while others wait behind the loop. `apart`: another agent copies, ahead of
    all that comes before the loop. `spared`: bytes that what else lives then does without,
    negative for bytes that it takes besides. `works`: threads make operands in each step, which
    another block's hide.
    """
    known = _asked(one, lag, kept, led=led, apart=apart, again=False, spared=spared, works=works)
    return known.stages()


@dataclass(frozen=True)
class Asked:
    """What a loop asks of a multiprocessor, and what that has."""

    demand: Demand
    room: Room

    def stages(self, spared: int = 0) -> int:
        """Stages, if what else lives does without so many bytes."""
        return depth(self._without(spared), self.room)

    def blocks(self, stages: int, columns: int, spared: int = 0) -> int:
        """Blocks of a multiprocessor with so many stages, and columns of tensor memory."""
        taken = max(LEAST_COLUMNS, 1 << (columns - 1).bit_length())
        return min(blocks_of(self._without(spared), self.room, stages), COLUMNS // taken)

    def _without(self, spared: int) -> Demand:
        return replace(self.demand, other_bytes=self.demand.other_bytes - spared)


def led_by_threads(one: Candidate, kept: Sequence[Kept], *, apart: bool) -> Asked:
    """What the loop of products `kept` asks for that single threads lead; `apart`: agents, which go
    on with its next run.
    """
    return _asked(one, 0, kept, led=True, apart=apart, again=apart, spared=0, works=False)


def _asked(
    one: Candidate,
    lag: int,
    kept: Sequence[Kept],
    *,
    led: bool,
    apart: bool,
    again: bool,
    spared: int,
    works: bool,
) -> Asked:
    """`again`: copies run ahead of what comes behind the loop, too."""
    macs = sum(_macs(op) for op in one.loop.regions[0].blocks[0].operations)
    tensor = bool(kept)
    most = _most(one.num_stages, lag, tensor=tensor)
    tight = not (lag or tensor or apart)
    demand = demand_of(
        one.func, one.loop, one.loads, most, macs, lag, apart=apart, again=again, tight=tight
    )
    overhead = one.engines.overhead + (tcgen05_in_flight.OVERHEAD if tensor else 0) - spared
    if apart or again:
        overhead += bytes_of_streams(one.func)
    in_tensor = sum(
        registers_of(product.op.results[0].type)
        for product in kept
        if not _is_summed_there(one.loop, product)
    )
    demand = replace(
        demand,
        other_bytes=demand.other_bytes + overhead,
        unaided=bool(lag) or tensor or _is_read_once(one),
        registers=demand.registers - in_tensor,
    )
    room, machine = room_of(one.cx.target)
    room = expecting(room, one.loads)
    if machine is not None:
        times = _LOADED_TENSOR if tensor else _LOADED if lag else 1
        latency = room.latency * times
        room = replace(room, latency=latency, mma_clk=_clk(one.loop, machine))
    once = led and not (again or is_inside_loop(one.loop))
    paired = once and _by_pairs(kept) and _hides_others(one, demand, room)
    begins = once and one.maps.are_made_by_kernel
    if tensor and (not led or paired or begins) and _leaves_columns(one.func):
        few = _STAGES_BESIDE if paired or begins or works else 0
        step = 0 if led else _MEETING_CLK
        demand = replace(demand, beside=BESIDE, enough_beside=few, step_clk=step)
    return Asked(demand, room)


def _is_summed_there(loop: ir.OpView, product: Kept) -> bool:
    """Whether a product's sum does not count among what the loop carries in registers."""
    block = loop.regions[0].blocks[0]
    argument = list(block.arguments)[len(block.arguments) - len(loop.results) :][product.place]
    return is_summed_there(product.op.results[0], argument)


def _is_read_once(one: Candidate) -> bool:
    """Whether a loop has one product, of so few rows that B is read for them alone: what hides the
    latency of memory are bytes on the way, and one block with all stages has most. (Of several
    products, as of attention, one runs beside what others wait for.)

    RTX 5090 (model), f16, us, two blocks of two stages and one of four: 16 x 4096 x 4096 by 16 x 64
    x 128 40.0 and 25.9, 32 x 4096 x 4096 by 32 x 64 x 128 45.6 and 26.2; but 4096 x 4096 x 2048 by
    32 x 128 x 64, whose launch has blocks for all, 470 and 528.
    """
    body = one.loop.regions[0].blocks[0].operations
    sums = [shape_of(op.results[0])[-2:] for op in body if op.operation.name == PRODUCT]
    if len(sums) != 1:
        return False
    rows, columns = sums[0]
    return rows <= _FEW_ROWS and columns >= 2 * rows


def fits_once(one: Candidate) -> bool:
    """Whether one stage of each tile fits into a block's shared memory."""
    demand = demand_of(one.func, one.loop, one.loads, 1, 0, 0)
    demand = replace(demand, other_bytes=demand.other_bytes + one.engines.overhead)
    return blocks_of(demand, room_of(one.cx.target)[0], 1) > 0


def _most(num_stages: int, lag: int, *, tensor: bool) -> int:
    """Stages at most, with products in flight (`lag`, or those of `tensor` memory) or without.
    A small number is asked for to save memory, not as what covers the latency.
    """
    deep = tensor or (lag and num_stages >= _ENOUGH)
    return num_stages * (_STAGES_IN_FLIGHT if deep else 1)


def _hides_others(one: Candidate, demand: Demand, room: Room) -> bool:
    """Whether a loop that one thread leads is better off with another cluster beside its own."""
    short = interval(demand, room) < _LED_CLK
    return short and blocks_by_registers(one.func, one.cx.target) >= BESIDE


def _by_pairs(kept: Sequence[Kept]) -> bool:
    """Whether pairs of blocks make the products that stay in flight."""
    return any(is_of_pair(product.op) for product in kept)


def _leaves_columns(func: ir.Operation) -> bool:
    """Whether tensor memory has room for as many blocks as are to run beside each other."""
    return columns_together(func, num_warps(func)) <= COLUMNS // BESIDE


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
