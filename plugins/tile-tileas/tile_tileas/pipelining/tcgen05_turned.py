"""Loops whose two products by tcgen05 are made beside all else, with stages for each of their loads
by itself; which loops those are, and what becomes of a step, is in `tcgen05_chain`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tile_cute.atoms.records import TENSOR
from tile_cute.atoms.tensor_memory import COLUMNS

from tile_core.mlir import ir
from tile_tileas.analysis.accumulators import carried_place, sums
from tile_tileas.dialect import layout_of
from tile_tileas.dialect.buffers import Buffer
from tile_tileas.dialect.tensor import tensor_columns
from tile_tileas.dot_plan import tensor_plan_of
from tile_tileas.kernel_spec import num_ctas, occupancy, registers_of_thread
from tile_tileas.pipelining.candidate import Candidate, Pipelined
from tile_tileas.pipelining.carried_loads import carry, small_loads
from tile_tileas.pipelining.in_passing import load_others_in_passing, of_products
from tile_tileas.pipelining.prefetch import Prefetch
from tile_tileas.pipelining.spotted import Spotted
from tile_tileas.pipelining.stage_count import fits_once, stages_of
from tile_tileas.pipelining.tcgen05_chain import Chain, Turned, chain_of
from tile_tileas.pipelining.tcgen05_paired import pairing, turned_for
from tile_tileas.pipelining.teams import apart_of


def pipelined(one: Candidate) -> Pipelined | None:
    """Pipeline a loop that has such a pair of products; None, and a remark if it has a pair that
    cannot be made so, if it is left as it is.
    """
    every, one = one.loads, of_products(one)
    chain = chain_of(one.loop, one.loads, lambda load: load.load.results[0] in one.maps.copies)
    if chain is None:
        return None
    if isinstance(chain, Chain):
        shares = _columns(one, chain), occupancy(one.func)
        problem = _problem(one, chain, shares)
        if problem is None:
            one = replace(one, loop=_without_others(one, chain, every))
            tight, apart = _stages(one) == 1, apart_of(one, chain, _stages(one))
            turned = turned_for(one.func, one.loop, chain, shares, one.cx, tight=tight, apart=apart)
            return _in_stages(one, turned)
        why = problem
    else:
        why = chain
    one.cx.missed(one.loop.operation, f"makes its products one after the other: {why}",
                  category="pipeline", name="ProductsNotOverlapped")  # fmt: skip
    return None


def _without_others(one: Candidate, chain: Chain, every: Sequence[Prefetch]) -> ir.OpView:
    """The loop whose threads make the loads that products do not read, those of `every` among
    them, which leaves memory for stages.
    """
    load_others_in_passing(every)
    others = [load.load.operation for load in one.loads]
    small = [] if _is_crowded(one, chain) else small_loads(one.loop, others)
    one.cx.count("carried", len(small))
    return carry(one.loop, small) if small else one.loop


def _is_crowded(one: Candidate, chain: Chain) -> bool:
    """Whether scores take half of a thread's registers beside what their rows are folded into: then
    what is carried besides is spilt. B200 (model), attention of 16 heads, 4096 x 4096, with a bias
    for each key, us without and with it a step ahead: 128 x 128 of heads of 128 156 and 162,
    64 x 64 of 64 168 and 150.
    """
    layout = layout_of(chain.early.results[0].type)
    given = registers_of_thread(one.cx.target, one.warps, occupancy(one.func))
    return bool(chain.scaling) and layout is not None and 2 * layout.elements_per_thread >= given


def _columns(one: Candidate, chain: Chain) -> int:
    """Columns of tensor memory that sums take while the loop runs.

    Sums that other loops keep there all count, as they do for those; those of other chains are
    there while their own loops run.
    """
    products = sums(one.func)
    if all(carried_place(op) is None for op in products):
        products = [chain.late]
    others = [op for op in products if op.operation != chain.early.operation]
    return sum(tensor_plan_of(op, one.warps).taken for op in (*others, chain.early))


def _problem(one: Candidate, chain: Chain, shares: tuple[int, int]) -> str | None:
    """Why a chain has no room for its tiles; None if it has. `shares`: columns of sums, blocks."""
    taken, held = shares[0], Buffer.of(chain.late.operands[0].type)
    between = tensor_columns(held) if held is not None and held.space == TENSOR else 0
    if taken <= COLUMNS < taken + between and pairing(one.func, chain, shares, one.cx) is not True:
        taken += between
    if taken > COLUMNS:
        return f"their sums take {taken} columns of tensor memory, of {COLUMNS}"
    if num_ctas(one.func) > 1:
        return "blocks of the cluster fill stages of each other"
    return None if _stages(one) else "not even one stage of each tile fits into shared memory"


def _stages(one: Candidate) -> int:
    """Stages of the tiles of products that run beside all else: one, for which hints give up
    blocks of a multiprocessor, where two do not fit; 0 if not even that does.
    """
    return stages_of(one) or int(fits_once(one))


def _in_stages(old: Candidate, turned: Turned) -> Pipelined:
    """Stages for each of the loads of the new loop by itself."""
    one = Candidate.of(old.func, turned.loop, old.num_stages, old.cx)
    stages = _stages(one)
    parts = [one.maps.aligned(load) for load in one.loads]
    spots = [turned.spots[_filled(part)] for part in parts]
    by_part = [
        (one.maps.part([part], copier=spot.apart, teams=spot.teams), part)
        for part, spot in zip(parts, spots, strict=True)
    ]
    Spotted(turned.loop, by_part, stages, spots).run()
    return Pipelined(stages, len(one.loads))


def _filled(load: Prefetch) -> ir.Value:
    """The buffer that a load fills."""
    assert load.target is not None, "tensor maps fill buffers of others"
    return load.target.alloc.results[0]
