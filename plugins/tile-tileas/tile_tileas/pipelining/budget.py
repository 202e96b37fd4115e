"""What a loop asks of a multiprocessor, read from the IR; see `depth` for what is made of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tile_tileaa.dialect.hints import latency_of

from tile_core.diagnostics import TileError
from tile_core.machines import Machine, machine_for
from tile_core.mlir import ir
from tile_core.target import Target
from tile_tileas.access import GENERIC, AccessPlan
from tile_tileas.analysis.accumulators import together_with
from tile_tileas.analysis.buffers import lives_during, lives_of, lives_until, stage_bytes
from tile_tileas.analysis.constants import is_zero
from tile_tileas.analysis.tokens import LOADS
from tile_tileas.dialect import layout_of
from tile_tileas.dot_plan import IN_FLIGHT, family_of
from tile_tileas.kernel_spec import num_warps, occupancy
from tile_tileas.mma.families import TENSOR
from tile_tileas.passes.allocate_shared import RESERVED, place
from tile_tileas.pipelining.depth import Demand, Room
from tile_tileas.pipelining.loops import PRODUCT, streams
from tile_tileas.pipelining.prefetch import Prefetch
from tile_tileas.storage import storage_bits, tile_bytes

#: Of loops without products, whose stages agents fill while others of the kernel are in use.
_STAGES_OF_STREAMS = 3
#: The hint `latency` of a load that has none (as tileiras takes it).
USUAL = 5


def demand_of(
    func: ir.Operation,
    loop: ir.OpView,
    loads: Sequence[Prefetch],
    most: int,
    macs: int,
    lag: int,
    *,
    apart: bool = False,
    again: bool = False,
    tight: bool = False,
) -> Demand:
    """What stages for `loads` of `loop` take, at most `most` of them. `apart`: they are filled
    while anything runs that comes before the loop; `again`: or behind it, which one agent does,
    whose buffers share places. `tight`: other buffers do, as nothing of one iteration is under way
    in the next but what stages are for.
    """
    if again:
        lives = lives_of(func)
    else:
        lives = lives_until(func, loop) if apart else lives_during(func, loop)
    staged = [load.target.alloc.operation for load in loads if load.target is not None]
    others = [life for life in lives if life.op.operation not in staged]
    size = place(others, 0) if tight or again else sum(_aligned(life.size) for life in others)
    return Demand(
        macs=macs,
        stage_bytes=sum(_bytes(load) for load in loads),
        other_bytes=size,
        most=most,
        warps=num_warps(func),
        registers=carried_registers(loop),
        blocks=occupancy(func),
        lag=lag,
    )


def bytes_of_streams(func: ir.Operation) -> int:
    """What loops without products want of shared memory for stages of what they load."""
    return _STAGES_OF_STREAMS * sum(
        _aligned(tile_bytes(op.results[0].type))
        for loop in streams(func.regions[0])
        for op in loop.regions[0].blocks[0].operations
        if op.operation.name in LOADS and _runs_ahead(op)
    )


def _runs_ahead(load: ir.OpView) -> bool:
    plan = AccessPlan.of(load)
    return plan is not None and plan.copy != GENERIC and layout_of(load.results[0].type) is not None


def room_of(target: Target) -> tuple[Room, Machine | None]:
    """What a multiprocessor of `target` has, and the numbers of such a machine if there are any."""
    room = Room(target.max_shared, RESERVED, target.registers, target.max_warps_per_sm)
    try:
        machine = machine_for(target.name)
    except TileError:
        return room, None
    return replace(room, latency=machine.memory.dram_latency), machine


def expecting(room: Room, loads: Sequence[Prefetch]) -> Room:
    """`room` with the latency that hints of `loads` promise: they say how heavy traffic to memory
    will be, and one of `USUAL` what a load without a hint is taken to have.
    """
    hints = [latency_of(load.load) or USUAL for load in loads]
    return replace(room, latency=room.latency * max(hints, default=USUAL) / USUAL)


def _aligned(size: int) -> int:
    return -(-size // 128) * 128


def _bytes(load: Prefetch) -> int:
    return _aligned(stage_bytes(load.buffer))


def carried_registers(loop: ir.OpView) -> int:
    """Registers of a thread for what `loop` carries; what a product by tcgen05 leaves in tensor
    memory until the next iteration, or adds to there, takes none.
    """
    block = loop.regions[0].blocks[0]
    end = block.operations[len(block.operations) - 1]
    yielded = list(end.operands)[-len(loop.results) :]
    is_for = loop.operation.name == "scf.for"  # another loop's block has arguments of its own
    arguments = list(block.arguments)[1:] if is_for else yielded
    carried = zip(loop.results, arguments, yielded, strict=True)
    return sum(
        registers_of(to.type)
        for to, argument, value in carried
        if not (_stays_there(value) or is_summed_there(value, argument))
    )


def is_summed_there(value: ir.Value, argument: ir.Value) -> bool:
    """Whether products by tcgen05 add `value` to what the iteration before gave, and nothing else
    reads either: the sum has columns of its own (`accumulators`).
    """
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.name != PRODUCT or family_of(owner) != TENSOR:
        return False
    first = together_with(owner.opview)[0]
    return first.operands[2] == argument and all(
        len(list(one.uses)) == 1 for one in (value, argument)
    )


def _stays_there(value: ir.Value) -> bool:
    """Whether it is the result of a product in tensor memory that nothing is added to."""
    owner = value.owner
    if isinstance(owner, ir.Block) or IN_FLIGHT not in owner.attributes:
        return False
    return family_of(owner) == TENSOR and is_zero(owner.operands[2])


def registers_of_thread(func: ir.Operation, target: Target) -> int:
    """Registers that a thread may have, with as many blocks at once as hints ask for."""
    threads = target.warp_size * num_warps(func) * occupancy(func)
    return min(target.max_registers, target.registers // threads)


def registers_of(type_: ir.Type) -> int:
    """Registers of a thread that a tile takes; scalars take none worth counting."""
    layout = layout_of(type_)
    if layout is None:
        return 0
    return -(-layout.elements_per_thread * storage_bits(type_.element_type) // 32)
