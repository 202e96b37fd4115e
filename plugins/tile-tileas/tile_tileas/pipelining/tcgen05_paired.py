"""Two chained products by tcgen05, of blocks that share a multiprocessor and its tensor memory.

    S(0) = Q K(0)
    for i:
        wait for S(i); read it; K's stage is filled anew
        P = softmax(S(i)); scaled O          another block's products are made meanwhile
        store P where S(i) was; begin P V(i), then S(i+1) = Q K(i+1)
        wait for P V(i), add it to scaled O; V's stage is filled anew

`tcgen05_chain.Turned` overlaps the products of a block with its own threads, for which S(i+1) needs
columns beside P(i). Two blocks overlap as well where each takes half of the columns, and what one
of them waits for does not matter then. B200 (model), attention of 32 heads, 4096 x 4096 x 128, in
128 x 128: 293 us by one block in 320 columns, 259 by two in 256.

P lies where S was. A thread stores there what it made of what it has read itself, so that the rows
of S that a warp reads have to be those of P that it stores. S(i+1) is written over the P that the
product begun before it reads. The PTX ISA ("tcgen05 memory consistency", pipelined instructions)
promises the order of products with one accumulator; that all that one thread begins are made in
order is what Triton's guide says of tensor cores (Gluon tutorial, "TCGen05 Copy Instruction") and
what FlashAttention-4 relies on for the same columns (`flash_fwd_sm100.py`, `mma`).
"""

from __future__ import annotations

from tile_cute.atoms.records import TENSOR
from tile_cute.atoms.tensor_memory import COLUMNS
from tile_cute.linear import LinearLayout

from tile_core.mlir import ir
from tile_core.passes import PassContext
from tile_tileas.dialect import layout_of
from tile_tileas.dialect.buffers import Buffer
from tile_tileas.dialect.staging import FEW
from tile_tileas.dialect.tensor import tensor_columns
from tile_tileas.dot_plan import FREES
from tile_tileas.kernel_spec import num_warps, registers_of_thread
from tile_tileas.pipelining.spotted import Spot
from tile_tileas.pipelining.tcgen05_chain import Chain, Turned
from tile_tileas.pipelining.tcgen05_scaled import Scaled, problem_of
from tile_tileas.pipelining.teams import Apart, teams_of

_WAIT = "nv_tileas.dot_wait"
#: Of P that are made one after the other.
_PARTS = 2
#: Registers of a sum that are read at a time: threads that have 128 hold no more beside O.
_FEW = 32


def pairing(
    func: ir.Operation, chain: Chain, shares: tuple[int, int], cx: PassContext
) -> bool | str:
    """Whether what lies between a chain's products takes the place of the first one's sum, so that
    all blocks of a multiprocessor have columns, or the second one's sum can be scaled there; why
    not, if they need it. Teams have products of their own there, whatever else there is room for.
    `shares`: columns of both sums, blocks.
    """
    (sums, blocks), warps = shares, num_warps(func)
    held = Buffer.of(chain.late.operands[0].type)
    share = COLUMNS // blocks
    if held is None or held.space != TENSOR:
        return False
    columns = tensor_columns(held)
    fits = sums + columns <= share
    registers = registers_of_thread(cx.target, warps, blocks)
    alone = blocks < 2 or not _is_held_twice(chain, registers)
    if fits and alone and not _is_of_teams(chain, warps):
        return False
    if sums > share:
        return f"their sums take {sums} columns of tensor memory, of {share} for each block"
    if columns > chain.taken(warps) or not _own_rows(chain):
        return False if fits else "threads store rows between them that others read"
    return True


def _is_of_teams(chain: Chain, warps: int) -> bool:
    """Whether teams have products of their own, with a sum that is scaled in tensor memory. B200
    (model), attention of 16 heads, 4096 x 4096 x 128, 256 x 64, which has columns for all: 257 us
    with sums in registers and spills of 1,180 bytes, 172 so.
    """
    return teams_of(chain, warps) > 1 and problem_of(chain, warps) is None


def _is_held_twice(chain: Chain, registers: int) -> bool:
    """Whether the second one's sum, as it is read and as it is carried, takes all of a thread's
    registers. B200 (model), attention of 16 heads, 4096 x 4096 x 128, 128 x 64: 201 us in registers
    with spills of 888 bytes, 183 in tensor memory with none; of 128 x 32, where it is read a few
    registers at a time, 305 with 600 bytes and 272 with none. With heads of 64 and 32, which leave
    half of the registers and more: 180 and 182, 84 and 120.
    """
    layout = layout_of(chain.late.results[0].type)
    return layout is not None and 2 * layout.elements_per_thread >= registers


def _own_rows(chain: Chain) -> bool:
    """Whether each warp stores rows of which it has read all, and nobody else any."""
    read = layout_of(chain.early.results[0].type)
    stored = layout_of(chain.stored.operands[0].type)
    return read is not None and stored is not None and _rows(read) == _rows(stored)


def _rows(layout: LinearLayout) -> tuple[frozenset[int], tuple[int, ...]]:
    """The bits of rows that a warp has by registers and lanes, and those of each bit of warps."""
    own = {vector[-2] for space in ("register", "lane") for vector in layout.bases[space]}
    return frozenset(own - {0}), tuple(vector[-2] for vector in layout.bases["warp"])


class Paired(Turned):
    """Rewrites the loop of a chain whose first product's columns take what the second reads."""

    def __init__(self, loop: ir.OpView, chain: Chain, warps: int, *, tight: bool) -> None:
        self._warps = warps
        super().__init__(loop, chain, tight=tight)

    def _run(self) -> tuple[ir.OpView, dict[ir.Value, Spot]]:
        at, chain = self._at, self._chain
        early, late = chain.early, chain.late
        chain.lie_over(self._warps)
        first, new, _, scores = self._turn()
        chain.put_early(late.operation)
        at.move(ir.InsertionPoint.after(early))
        awaited = self._await(late.results[0])
        at.move(ir.InsertionPoint.after(new))
        self._await(new.results[len(new.results) - 1])
        for wait in (scores, awaited):
            wait.attributes[FREES] = ir.UnitAttr.get()
        awaited.attributes[FEW] = ir.IntegerAttr.get(at.i32, _FEW)
        return new.opview, {
            **chain.early_spots(scores.opview, first),
            late.operands[1]: Spot(late, awaited.opview, own=True),
        }


def turned_for(
    func: ir.Operation,
    loop: ir.OpView,
    chain: Chain,
    shares: tuple[int, int],
    cx: PassContext,
    *,
    tight: bool,
    apart: Apart,
) -> Turned:
    """The loop of a chain of `func`, so that several blocks of a multiprocessor have columns, if
    they are to. `shares`: columns of its sums, blocks. `apart`: what other agents may do.
    """
    (_, blocks), warps = shares, num_warps(func)
    paired = pairing(func, chain, shares, cx)
    if isinstance(paired, str):
        cx.missed(loop.operation, f"leaves no columns to {blocks} blocks: {paired}",
                  category="pipeline", name="BlocksNotPaired")  # fmt: skip
    if paired is not True:
        return Turned(loop, chain, tight=tight)
    why = problem_of(chain, warps)
    teams = teams_of(chain, warps) if why is None else 1
    if why is None:
        made: Turned = Scaled(func, loop, chain, warps, tight=tight, apart=apart)
    else:
        made = Paired(loop, chain, warps, tight=tight)
        cx.missed(made.loop.operation, f"keeps the second one's sum in registers: {why}",
                  category="pipeline", name="SumNotInTensorMemory")  # fmt: skip
    where = ", in parts, and their sum in tensor memory," if why is None else ""
    so_that = (
        f"{blocks} blocks of a multiprocessor have columns"
        if teams == 1 or blocks > 1
        else f"{teams} teams make theirs each for itself"
    )
    cx.passed(
        made.loop.operation,
        f"stores what lies between its products{where} where the first one's sum was, so that "
        f"{so_that}",
        category="pipeline",
        name="BlocksPaired",
    )
    return made
