"""Loops in which all warps do everything, step by step: what their products do meanwhile.

By wgmma, those of one step are in flight while the next one begins, or beside those that read what
they give (`overlap`); by tcgen05, they stay in flight in tensor memory; by mma.sync, their
fragments are read ahead. Where there is not the room for that, each step waits for its products.
"""

from __future__ import annotations

from collections.abc import Sequence

from tile_core.mlir import ir
from tile_tileas.dot_plan import family_of
from tile_tileas.kernel_spec import num_ctas
from tile_tileas.mma.families import TENSOR
from tile_tileas.mma.warpgroup import WARPS
from tile_tileas.pipelining import met_ring, tcgen05_in_flight
from tile_tileas.pipelining.candidate import Candidate, Pipelined
from tile_tileas.pipelining.chains import Chain
from tile_tileas.pipelining.depth import LEAST
from tile_tileas.pipelining.fragments_ahead import FragmentsAhead, products_to_feed
from tile_tileas.pipelining.made_operands import alternate, further_bytes, is_multiplied
from tile_tileas.pipelining.multistage import Multistage
from tile_tileas.pipelining.overlap import chain_to_overlap, late_loads, overlap
from tile_tileas.pipelining.released import can_be_released, release
from tile_tileas.pipelining.stage_count import stages_of
from tile_tileas.pipelining.wgmma_in_flight import LAG, Kept, keep_in_flight, products_to_keep
from tile_tileas.remedies import remedy
from tile_tileas.tma.filling import Tma

_DOT = "nv_tileas.dot"


def with_tensor_memory(
    one: Candidate, products: Sequence[Kept], by_threads: Sequence[ir.OpView]
) -> Pipelined | None:
    """Keep `products` by tcgen05 in flight, which read what is loaded ahead, and buffers that
    threads fill in each step; None if two stages do not fit, or beside such buffers three.
    """
    lag, further, works = LAG, further_bytes(by_threads), any(map(is_multiplied, by_threads))
    stages = stages_of(one, lag, products, spared=-further, works=works)
    if not stages and by_threads:
        return None
    if not stages:
        lag, stages = 0, stages_of(one)
        _remark_on_no_room(one)
    if not stages:
        return None
    fillings = one.engines.fillings(one.loads)
    alone = bool(lag) and _are_by_tensor(one.loop)
    behind = products[-1].op if _fills_behind(one, stages, lag) else None
    read = 0 if behind is not None else lag
    made = Multistage(
        one.loop, fillings, stages, read, phased=True, by_one_thread=alone, behind=behind
    )
    new = made.run()
    if lag:
        new = alternate(new, by_threads)
        tcgen05_in_flight.keep_in_flight(one.func, new, made, products)
    return Pipelined(stages, len(products) if lag else 0)


def _fills_behind(one: Candidate, stages: int, lag: int) -> bool:
    """Whether a stage is filled anew in the step that waits for the product which read it, behind
    that wait, and not where the next step begins: so that of three stages copies are under way for
    two iterations. Threads have read it before the step's meeting. B200 (model), 4096^3: weights of
    bytes 181 us and 142, a layer behind a norm 204 and 181; with more stages 2 to 5 % slower.
    """
    return 0 < lag == stages - LEAST and num_ctas(one.func) == 1


def _are_by_tensor(loop: ir.OpView) -> bool:
    """Whether one thread begins all products of a loop: what warps multiply, each reads itself."""
    body = loop.regions[0].blocks[0].operations
    return all(family_of(op) == TENSOR for op in body if op.operation.name == _DOT)


def pipelined(one: Candidate, *, fragments_ahead: bool) -> Pipelined | None:
    """Products by wgmma, by mma.sync, with `fragments_ahead` where that may be, or by tcgen05 that
    are waited for; None if two stages do not fit.
    """
    chain = chain_to_overlap(one.func, one.loop, one.filled, one.cx)
    by_tma = can_be_released(one.loads, one.maps, to_threads=chain is None)
    if chain is not None and by_tma and _run_apart(one, chain):
        chain = None
    kept = [] if chain else products_to_keep(one.loop, one.filled)
    late = late_loads(one.loads, chain) if by_tma and chain is not None else []
    lag = LAG if kept or (chain and not late) else 0
    stages = stages_of(one, lag)
    if lag and not stages:
        lag, stages, chain = 0, stages_of(one), None
        _remark_on_no_room(one)
    in_turns = met_ring.pipelined(one, stages)
    if in_turns is not None:
        return in_turns
    if not stages:
        return None
    feeds = fragments_ahead and not one.maps.is_shared
    fed = products_to_feed(one.loop, one.loads, stages) if feeds else []
    if fed:
        FragmentsAhead(one.loop, one.engines.fillings(one.loads), stages, fed).run()
        return Pipelined(stages, len(fed))
    fillings = one.engines.fillings(one.loads, one.warps if by_tma else 0)
    behind, read = None, lag
    if by_tma and chain is not None:
        behind = chain.early[0]
    elif by_tma and lag and all(product.meeting is None for product in kept):
        # Behind the wait for the step before, whose stage is the next to be filled: as many are on
        # the way as nobody reads. H100 (model), f16 in tiles of 16 x 128 x 256, three stages, 4096
        # by 4096 weights: 20.4 us before the product, 13.9 behind; 12288 x 4096 x 2560 in tiles of
        # 128 x 256 x 64, four: 426 and 419.
        behind, read = _last_product(one.loop), 0
    made = Multistage(one.loop, fillings, stages, read, released=by_tma, behind=behind, late=late)
    filling = fillings[0][0] if by_tma else None
    assert filling is None or isinstance(filling, Tma), "tensor maps copy all loads"
    new = made.run()
    if chain is not None:
        new = overlap(new.opview, chain, made, filling, one.cx)
    elif lag:
        keep_in_flight(new, kept)
    if filling is not None:
        release(new, filling, stages, lag, begun=chain is not None)
    return Pipelined(stages, len(kept) if lag else 0)


def _last_product(loop: ir.OpView) -> ir.OpView:
    """The last product of a loop, behind which each step waits and releases a stage."""
    body = loop.regions[0].blocks[0].operations
    return [op for op in body if op.operation.name == _DOT][-1]


def _run_apart(one: Candidate, chain: Chain) -> bool:
    """Whether a loop whose stages are released is better off without late products a step later:
    where it has more than two. One warpgroup's are made while another one works on what its own
    gave, and products of the step before would come in between those that a warpgroup waits for.
    H100 (model), us, with late products a step later and without: attention with two products for
    the scores 380 and 317, the gradient of queries 465 and 322; attention, with one, 394 and 470.
    """
    return len(chain.early) + len(chain.late) > 2 and one.warps > WARPS


def _remark_on_no_room(one: Candidate) -> None:
    one.cx.missed(
        one.loop.operation,
        "waits for its products in each step: three stages do not fit into shared "
        "memory, or are more than the option allows",
        category="pipeline",
        name="ProductsNotAhead",
        hint=remedy(["three stages do not fit into shared memory"]),
    )
