"""Why threads cannot copy a tile ahead of its use (cp.async), as far as it is known before layouts
and buffers are.
"""

from __future__ import annotations

from math import prod

from tile_tileaa.dialect.hints import latency_of
from tile_tileaa.dialect.types import pointee_of

from tile_core.mlir import ir
from tile_tileas.access import AccessPlan
from tile_tileas.analysis.axis import element_bytes, shape_of
from tile_tileas.analysis.tokens import is_weak
from tile_tileas.analysis.views import tiled_view
from tile_tileas.sched.staged import is_only_multiplied

#: Bytes that the least cp.async copies (PTX ISA, "cp.async").
LEAST = 4
#: The pipeline strategy with which agents of their own copy.
SPECIALIZE = "warp-specialize"
#: That with which they do where it is estimated to pay.
ESTIMATE = "estimate"


def refusal(load: ir.OpView, plan: AccessPlan, strategy: str) -> str | None:
    """What keeps a load from running ahead by cp.async; None if nothing is known to."""
    if strategy == "none":
        return "the option pipeline-strategy is 'none'"
    if not is_in_a_loop(load):
        return "no loop runs it, whose later iterations it could be loaded for"
    found = movable_problem(load)
    if found is not None:
        return found
    size = min(plan.vector, prod(shape_of(load.results[0]))) * element_bytes(_element(load))
    return f"runs of {size} bytes are too short for cp.async" if size < LEAST else None


def movable_problem(load: ir.OpView) -> str | None:
    """Why a load cannot happen earlier, or not by cp.async."""
    if not is_weak(load):
        return "the load is ordered"
    if latency_of(load) == 1 and not is_only_multiplied(load):
        return "its hint latency = 1 says that it is worth no prefetch"
    if load.operation.name == "nv_tileas.load":
        return None
    if (tiled_view(load.view).padding or "zero") != "zero":
        return "cp.async pads with zeros only"
    return None


def _element(load: ir.OpView) -> ir.Type:
    if load.operation.name == "nv_tileas.load":
        element = pointee_of(load.base.type)
        assert element is not None, "verified"
        return element
    return tiled_view(load.view).memref.element


def is_in_a_loop(load: ir.OpView) -> bool:
    """Whether a loop that counts runs a load."""
    parent = load.operation.parent
    while parent is not None and parent.name != "func.func":
        if parent.name == "scf.for":
            return True
        parent = parent.operation.parent
    return False
