"""Teams: of products of several instructions along M, four warps each have the rows of one.

    team 0                                      team 1
    for i:                                      for i:
        wait for S(i), its own rows                 wait for S(i), its own rows
        powers, when it is its turn                 powers, when the other's are made
        its leader begins O += P V(i),              its leader begins O += P V(i),
        S(i+1) = Q K(i+1)                           S(i+1) = Q K(i+1)

No row is of two teams, so that none waits for the other: tensor cores make one team's products
while the other one computes, as they do of two blocks of a multiprocessor, but that what comes when
is decided, and K and V are copied once. They take turns at powers, of which a multiprocessor makes
no more for two at once. A stage is filled anew when products of all teams have read it.

Where one block has a multiprocessor, the leaders, with the thread that copies, are an agent of
their own, and so are threads that scale sums, told by what through shared memory: two warps of a
sub-core, of which one begins products or waits for sums, leave its pipes idle. B200 (model),
attention of 16 heads, 4096 x 4096 x 128, 256 x 128 (tileiras 141.7 us):

    one product after the other, weights in shared memory      233.6 us, spills of 3,712 bytes
    weights over scores, sums scaled in tensor memory          209.5, none
    teams                                                      180.6
    leaders an agent                                           191.6 (no code stops powers any more)
    and teams in turns                                         160.2
    and scaling an agent, by 16 registers, by 32               147.9, 136.9
    one thread of each warp of leaders                         133.5
    code for each leader, elected                              128.0
    K is awaited between both products                         125.0
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tile_cute.linear.layout import log2

from tile_core.mlir import ir
from tile_tileas.agents.registers import warps_for, warps_with_scaling
from tile_tileas.analysis.accumulators import tensor_products
from tile_tileas.analysis.buffers import ALLOC, is_shared, stage_bytes
from tile_tileas.dialect import layout_of
from tile_tileas.dialect.buffers import Buffer
from tile_tileas.dot_plan import tensor_plan_of
from tile_tileas.kernel_spec import occupancy
from tile_tileas.mma.tensor import WARPS
from tile_tileas.pipelining.apart import refusal
from tile_tileas.pipelining.candidate import Candidate
from tile_tileas.pipelining.multistage import is_inside_loop
from tile_tileas.pipelining.tcgen05_chain import Chain
from tile_tileas.pipelining.tcgen05_in_flight import OVERHEAD

_LANES = 32
#: Bytes of what a row is scaled by, at most.
_FACTOR = 4


class Apart(NamedTuple):
    """What agents of their own do: begin products and copies, scale sums."""

    leaders: bool = False
    scaling: bool = False


def apart_of(one: Candidate, chain: Chain, stages: int) -> Apart:
    """What other agents may do: copy and begin products, where that is a warpgroup, which gives
    most of its registers to the first one; scale sums, where there are registers for that, too.
    Sums that several agents work on have their columns as long as those run, so that the kernel has
    no other products; so have its `stages` their memory, beside all that the kernel has there.
    """
    target, runs_once = one.cx.target, not is_inside_loop(one.loop)
    copies = warps_for(one.warps, occupancy(one.func), target)[1]
    alone = runs_once and len(list(tensor_products(one.func))) == len(chain.parts) + 1
    alone = alone and _bytes_beside(one, chain, stages) <= target.max_shared
    alone = alone and refusal(one.func, one.loop, one.loads) is None
    leaders = copies.number == WARPS and alone
    return Apart(leaders, leaders and warps_with_scaling(one.warps, target) is not None)


def _bytes_beside(one: Candidate, chain: Chain, stages: int) -> int:
    """Shared memory where nothing of a kernel has the place of anything else, bytes."""
    filled, rows = one.filled, chain.early.results[0].type.shape[-2]
    own = [value for value in shared_buffers(one.func) if value not in filled]
    buffers = [buffer for value in own if (buffer := Buffer.of(value.type)) is not None]
    others = sum(stage_bytes(buffer) * buffer.stages for buffer in buffers)
    return (
        others
        + stages * sum(stage_bytes(load.buffer) for load in one.loads)
        + rows * _FACTOR
        + OVERHEAD
    )


def shared_buffers(op: ir.Operation) -> Iterator[ir.Value]:
    """Shared memory that is allocated inside of `op`."""
    for block in (block for region in op.regions for block in region.blocks):
        for inner in block.operations:
            if inner.operation.name == ALLOC and is_shared(inner.results[0].type):
                yield inner.results[0]
            yield from shared_buffers(inner.operation)


def teams_of(chain: Chain, warps: int) -> int:
    """How many teams of four warps make the products of a chain each for itself: as many as there
    are instructions along M, whose rows each has alone; 1 if all make them together.
    """
    count = warps // WARPS
    plans = [tensor_plan_of(product, warps) for product in (*chain.parts, chain.late)]
    tiles = (chain.early.results[0], chain.stored.operands[0], chain.late.results[0])
    alike = all(plan.counts[0] == count and plan.ctas == 1 for plan in plans)
    return count if alike and all(map(is_of_teams, tiles)) else 1


def is_of_teams(tile: ir.Value) -> bool:
    """Whether each team has all of the rows of one instruction along M, and no others."""
    layout = layout_of(tile.type)
    if layout is None:
        return False
    each, bits = _LANES * WARPS, log2(WARPS)
    own = [v for space in ("register", "lane") for v in layout.bases[space]]
    own += layout.bases["warp"][:bits]
    nothing = (0,) * (layout.rank - 2)
    teams = layout.bases["warp"][bits:]
    apart = [(*nothing, each << bit, 0) for bit in range(len(teams))]
    return list(teams) == apart and all(vector[-2] < each for vector in own)
