"""How many iterations of a loop are in flight. Plain numbers, no MLIR.

Two things hide the latency of loads: iterations in flight, and other blocks of the multiprocessor.
Stages take the shared memory that further blocks would need, so as many blocks as have enough
warps come first, then as many stages as cover the latency.
"""

from __future__ import annotations

from dataclasses import dataclass

#: Multiply-adds of the instruction whose time machines know, and sub-cores that issue it.
_MACS, _SUBCORES = 16 * 8 * 16, 4
#: Fewer stages than this have no copy under way while a step waits for its own.
LEAST = 2
#: With as many, a step that takes longer than others does not stop the copies at once: on an A100
#: attention of 64 x 64 x 64 takes 552 us with three stages and 612 with two (`tilec time`).
_COMFORTABLE = 3
#: Warps of a multiprocessor that keep its tensor cores at work while some of them meet.
_ENOUGH_WARPS = 8
#: Registers of a thread beside the tiles that its loop carries: fragments and addresses.
OTHER_REGISTERS = 80


@dataclass(frozen=True)
class Demand:
    """What one loop asks for.

    Attributes:
        macs: multiply-adds of the products of one iteration.
        stage_bytes: shared memory of one stage of all loads.
        other_bytes: of what else lives while the loop runs.
        most: stages that the options allow.
        warps: of a block.
        registers: of a thread, for the tiles that the loop carries.
        blocks: of a multiprocessor, that hints ask for.
        lag: stages that are still read while a later iteration runs.
        unaided: no further block is made room for: products of one iteration are made while the
            next one begins, and hide each other's waits, or what they wait for is memory alone.
        beside: blocks of a multiprocessor that are made room for all the same, where together they
            have as many copies in flight: of loops whose blocks wait for more than their products.
        enough_beside: stages of each that are enough for that, even if one block alone would have
            more copies in flight; 0: none are.
        step_clk: what a step takes at least, of whose copies those in flight need to cover no more
            than the latency.
    """

    macs: int
    stage_bytes: int
    other_bytes: int
    most: int
    warps: int = 4
    registers: int = 64
    blocks: int = 1
    lag: int = 0
    unaided: bool = False
    beside: int = 1
    enough_beside: int = 0
    step_clk: float = 0


@dataclass(frozen=True)
class Room:
    """What a multiprocessor has.

    Attributes:
        block_bytes: shared memory that one block may use.
        reserved_bytes: what the system takes for each block.
        registers: of all threads.
        warps: at once.
        latency: of a load from DRAM, in clk.
        mma_clk: for as much as an m16n8k16 on one sub-core.
    """

    block_bytes: int
    reserved_bytes: int = 1024
    registers: int = 65536
    warps: int = 64
    latency: float = 600.0
    mma_clk: float = 8.0


def depth(demand: Demand, room: Room) -> int:
    """Stages of the loop; 0 if not even two fit.

    A step is taken to last as long as its products on idle tensor cores, so that a slower loop is
    covered as well.
    """
    wanted = demand.lag + max(_COMFORTABLE, 1 + -int(-room.latency // interval(demand, room)))
    enough = demand.blocks if demand.unaided else enough_blocks(demand)
    fitting = [
        (min(enough, blocks_of(demand, room, stages)), stages)
        for stages in range(LEAST + demand.lag, min(wanted, demand.most) + 1)
        if blocks_of(demand, room, stages) >= demand.blocks
    ]
    alone = max(fitting, default=(0, 0))[1]
    return _beside(demand, room, alone) or alone


def enough_blocks(demand: Demand) -> int:
    """Blocks of a multiprocessor that keep its tensor cores at work, or that hints ask for."""
    return max(demand.blocks, -(-_ENOUGH_WARPS // demand.warps))


def interval(demand: Demand, room: Room) -> float:
    """Clk of the products of one iteration on idle tensor cores, 1 at least."""
    return max(1.0, demand.macs / _MACS * room.mma_clk / _SUBCORES)


def _beside(demand: Demand, room: Room, alone: int) -> int:
    """Stages with which as many blocks run beside each other as are asked for, and have enough, or
    no fewer copies in flight than one of `alone` stages; 0 if they do not.
    """

    def in_flight(stages: int) -> int:
        return stages - 1 - demand.lag

    needed = in_flight(alone)
    if demand.step_clk:
        needed = min(needed, -int(-room.latency // max(demand.step_clk, interval(demand, room))))
    for stages in range(alone, LEAST + demand.lag - 1, -1):
        if blocks_of(demand, room, stages) >= demand.beside:
            enough = 0 < demand.enough_beside <= stages
            as_many = demand.beside * in_flight(stages) >= needed
            return stages if enough or as_many else 0
    return 0


def depth_of_stream(demand: Demand, room: Room, bandwidth: float) -> int:
    """Stages of a loop that only loads, computes and stores; 0 if blocks alone keep memory at work.

    `bandwidth` is what a multiprocessor gets of DRAM, in bytes per clk. What is in flight at once
    must be what it moves during the latency of a load; without stages each block has the loads of
    one iteration in flight, for as long as it does nothing else, which is taken to be half of it.
    """
    needed = 2 * room.latency * bandwidth
    if blocks_of(demand, room, 0) * demand.stage_bytes >= needed:
        return 0
    for stages in range(LEAST, demand.most + 1):
        blocks = blocks_of(demand, room, stages)
        if blocks < demand.blocks:
            return stages - 1 if stages > LEAST else 0
        if blocks * (stages - 1) * demand.stage_bytes >= needed:
            return stages
    return demand.most


def blocks_of(demand: Demand, room: Room, stages: int) -> int:
    """Blocks of a multiprocessor at a time; 0 if one does not fit."""
    size = stages * demand.stage_bytes + demand.other_bytes
    if size > room.block_bytes:
        return 0
    by_memory = (room.block_bytes + room.reserved_bytes) // (size + room.reserved_bytes)
    threads = 32 * demand.warps
    by_registers = room.registers // (threads * (demand.registers + OTHER_REGISTERS))
    return max(1, min(by_memory, by_registers, room.warps // demand.warps))
