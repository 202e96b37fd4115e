"""A loop of chained products, pipelined: late ones beside the next iteration (see `chains`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tile_core.mlir import ir
from tile_core.passes import PassContext
from tile_tileas.modulo.expand import Expander
from tile_tileas.pipelining.budget import carried_registers, registers_of, registers_of_thread
from tile_tileas.pipelining.chains import Chain, chain_of, delayed, registers_between
from tile_tileas.pipelining.depth import OTHER_REGISTERS
from tile_tileas.pipelining.multistage import Multistage
from tile_tileas.pipelining.prefetch import Prefetch
from tile_tileas.pipelining.released import release_before
from tile_tileas.pipelining.wgmma_in_step import fly_within, may_fly
from tile_tileas.remedies import remedy
from tile_tileas.tma.filling import Tma

_LATE = "late"


def chain_to_overlap(
    func: ir.Operation, loop: ir.OpView, filled: list[ir.Value], cx: PassContext
) -> Chain | None:
    """Chained products of `loop` that can be in flight beside each other, and that registers
    suffice for; a remark where there are some, and they cannot.
    """
    chain = chain_of(loop, lambda product: may_fly(product, filled))
    if chain is None:
        return None
    problem = delayed(loop, chain, filled)
    if not isinstance(problem, str):
        wanted = registers_between(chain, registers_of) + carried_registers(loop)
        share = registers_of_thread(func, cx.target)
        if wanted + OTHER_REGISTERS <= share:
            return chain
        problem = f"beside each other their tiles take {wanted} of {share} registers of a thread"
    cx.missed(
        loop.operation,
        f"makes its products one after the other: {problem}",
        category="pipeline",
        name="ProductsNotOverlapped",
        hint=remedy([problem]),
    )
    return None


def late_loads(loads: Sequence[Prefetch], chain: Chain) -> list[Prefetch]:
    """Loads for late products alone, which need not be there before those; none if a tile goes to
    late products and others, or the place of one is carried by the loop.
    """
    late = [op.operation for op in chain.late]
    found: list[Prefetch] = []
    for load in loads:
        if load.target is None or load.slice.carried or load.is_placed_by_memory:
            return []
        readers = {reader in late for reader in load.target.readers}
        if len(readers) != 1:
            return []
        found += [load] if readers == {True} else []
    return found


def overlap(
    loop: ir.OpView, chain: Chain, made: Multistage, filling: Tma | None, cx: PassContext
) -> ir.Operation:
    """The loop of full steps, behind the first iteration's early products and before the last one's
    late ones. `filling`: its stages are released, those of the first step here.
    """
    for wait in made.late_waits:
        wait.attributes[_LATE] = ir.UnitAttr.get()
    rings = delayed(loop, replace(chain, waits=tuple(made.late_waits)))
    assert not isinstance(rings, str), "asked before"
    kernel = Expander(rings).run().operation
    _wait_once(kernel)
    if filling is not None and made.late:
        release_before(kernel, filling)
    flying = fly_within(kernel)
    cx.count("in_flight", flying)
    cx.passed(
        kernel,
        f"{flying} products are in flight while results of others are worked on",
        category="pipeline",
        name="ProductsOverlap",
    )
    return kernel


def _wait_once(kernel: ir.Operation) -> None:
    """A step has waited for the stage of its late products: that of its early ones."""
    for op in list(kernel.regions[0].blocks[0].operations):
        if _LATE in op.attributes:
            op.operation.erase()
    for op in kernel.block.operations:
        if _LATE in op.attributes:
            del op.attributes[_LATE]
