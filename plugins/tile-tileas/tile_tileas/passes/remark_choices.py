"""tileas-remark-choices: what was chosen for every load, store, product and loop, as remarks.

The choices stand in the IR; why nothing better was chosen is said by the pass that chose.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from tile_cute.linear.access import vector_width

from tile_core.mlir import ir
from tile_core.passes import ALL_ANALYSES, Pass, PassContext, error_at
from tile_core.remarks import About
from tile_tileas.access import CP_ASYNC, WAYS, AccessPlan
from tile_tileas.analysis.buffers import allocated_bytes
from tile_tileas.analysis.caches import without_effect
from tile_tileas.dialect.base import layout_in, layout_of
from tile_tileas.dialect.buffers import Buffer
from tile_tileas.dot_plan import atom_name
from tile_tileas.dots import FMA
from tile_tileas.pipelining.multistage import FILLS
from tile_tileas.remedies import remedy
from tile_tileas.storage import storage_bits


@dataclass(frozen=True)
class Form:
    """An operation that moves a tile between global memory and the block, and how."""

    verb: str  # "Load", "Store", "Reduction"
    instruction: str
    by_thread: bool = True  # whether each thread moves its part, and not the copy engine all


#: Operation -> its form. Loads and stores that are added to the dialect belong here, too.
FORMS: Mapping[str, Form] = MappingProxyType({
    "nv_tileas.tiled_load": Form("Load", "ld.global"),
    "nv_tileas.load": Form("Load", "ld.global"),
    "nv_tileas.load_rest": Form("Load", "ld.global"),
    "nv_tileas.async_tiled_load": Form("Load", "cp.async"),
    "nv_tileas.async_load": Form("Load", "cp.async"),
    "nv_tileas.tiled_store": Form("Store", "st.global"),
    "nv_tileas.store": Form("Store", "st.global"),
    "nv_tileas.async_tiled_tma_load": Form("Load", "TMA Load instruction", by_thread=False),
    "nv_tileas.async_gather_tma_load": Form("Load", "TMA Gather instruction", by_thread=False),
    "nv_tileas.async_tiled_tma_store": Form("Store", "TMA Store instruction", by_thread=False),
    "nv_tileas.async_scatter_tma_store": Form("Store", "TMA Scatter instruction", by_thread=False),
    "nv_tileas.async_tiled_tma_reduce": Form("Reduction", "TMA Reduce instruction", False),
})  # fmt: skip
_DOTS = ("nv_tileas.dot", "nv_tileas.dot_scaled")
_LOOPS = ("scf.for", "scf.while")
#: Operations that wait, in a loop whose loads run ahead, for those of an earlier iteration.
_WAITS = ("nv_tileas.async_wait", "nv_tileas.barrier_wait")


@dataclass(frozen=True)
class RemarkChoices(Pass):
    """Remark what was chosen for every load, store, product and loop.

    Reads the choices where earlier passes wrote them: access plans, layouts, atoms, stages of
    buffers. Changes nothing.
    """

    name = "tileas-remark-choices"
    anchor = "func.func"
    preserves = ALL_ANALYSES

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        _remark_resources(op, cx)
        for inner in _operations(op):
            name = inner.operation.name
            if name.startswith("nv_tileas."):
                _remark_caches(inner, cx)
            if name in FORMS:
                _remark_access(inner, FORMS[name], cx)
            elif name in _DOTS:
                _remark_product(inner, cx)
            elif name in _LOOPS and FILLS not in inner.attributes:
                _remark_loop(inner, cx)


def _operations(op: ir.Operation | ir.OpView) -> Iterator[ir.OpView]:
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                yield inner
                yield from _operations(inner.operation)


# --- memory ---------------------------------------------------------------------------------------


def _remark_caches(op: ir.OpView, cx: PassContext) -> None:
    """What an access asks of caches in vain."""
    reasons = without_effect(op)
    if reasons:
        cx.missed(
            op.operation,
            "a hint to caches has no effect",
            category="memory",
            name="CacheHint",
            reasons=reasons,
        )


def _remark_access(op: ir.OpView, form: Form, cx: PassContext) -> None:
    facts: dict[str, object] = {"Instruction": form.instruction}
    plan = AccessPlan.of(op)
    if plan is not None and plan.why:
        facts["Copied by"] = plan.copy
    tile = _moved(op)
    plan = AccessPlan.of(op)
    against = _against(plan)
    if tile is not None:
        facts["Shape"] = list(tile.shape)
        facts["Element"] = str(tile.element_type)
        if form.by_thread:
            facts |= _width(op, tile)
    cx.passed(
        op.operation,
        f"{form.verb} instruction selected",
        category="memory",
        name=f"{form.verb}InstructionSelected",
        facts=facts | ({"Because": plan.why} if plan is not None and plan.why else {}),
        reasons=against,
        hint=remedy(against),
    )


def _against(plan: AccessPlan | None) -> list[str]:
    """Why each way of copying before the chosen one was not taken, best way first."""
    if plan is None:
        return []
    found = dict(plan.why_not)
    return [f"{way}: {found[way]}" for way in WAYS if way in found]


def _moved(op: ir.OpView) -> ir.RankedTensorType | None:
    """The tile that is loaded or stored; of a buffer, one stage. None for a scalar."""
    for value in op.operands:
        buffer = Buffer.of(value.type)
        if buffer is not None:
            return buffer.tile
    held = op.value.type if op.operation.name.endswith("store") else op.results[0].type
    return held if isinstance(held, ir.RankedTensorType) else None


def _width(op: ir.OpView, tile: ir.RankedTensorType) -> dict[str, object]:
    """Bytes that one thread moves at once: as the plan allows and the layout has them."""
    plan = AccessPlan.of(op)
    layout = layout_in(op.attributes["layout"]) if "layout" in op.attributes else layout_of(tile)
    if plan is None and not op.operation.name.startswith("nv_tileas.async"):
        raise error_at(op, "has no access plan; run 'tileas-plan-accesses' before")
    if plan is None or layout is None:
        return {}
    bits = storage_bits(tile.element_type)
    width = vector_width(layout, plan.order, bits, 128, plan.vector)
    checks = f"axes {', '.join(map(str, plan.checked))}" if plan.checked else "none"
    return {"Bytes per thread": max(1, width * bits // 8), "Bounds checks": checks}


# --- products -------------------------------------------------------------------------------------


def _remark_product(op: ir.OpView, cx: PassContext) -> None:
    if "atom" not in op.attributes:
        return
    atom = atom_name(op)
    shapes = [_shape(value) for value in list(op.operands)[:2]]
    facts: dict[str, object] = {"Instruction": atom, "Operands": " x ".join(map(str, shapes))}
    if atom != FMA:
        cx.passed(
            op.operation,
            "MMA operation successfully optimized to use Tensor Cores",
            category="tensorcore",
            name="MMA",
            facts=facts,
        )
        return
    element = _element(op.operands[0])
    why = f"tensor cores of {cx.target.name}: no instruction for {element} in this shape"
    cx.missed(
        op.operation,
        "MMA operation uses fused multiply-adds of each thread",
        category="tensorcore",
        name="MMA",
        facts=facts,
        reasons=[why],
        hint=remedy([why]),
    )


def _shape(value: ir.Value) -> list[int]:
    buffer = Buffer.of(value.type)
    return list(value.type.shape if buffer is None else buffer.shape)


def _element(value: ir.Value) -> ir.Type:
    buffer = Buffer.of(value.type)
    return value.type.element_type if buffer is None else buffer.tile.element_type


# --- loops and kernels ----------------------------------------------------------------------------


def _remark_loop(op: ir.OpView, cx: PassContext) -> None:
    body = [inner for region in op.regions for block in region.blocks for inner in block.operations]
    if any(inner.operation.name in _WAITS for inner in body):
        cx.passed(
            op.operation,
            "Loop pipelined",
            category="pipeline",
            name="Loop",
            facts={"Stages": _stages(body)},
        )
        return
    inside = {inner.operation.name for inner in _operations(op)}
    kinds = [word for word, names in _KINDS.items() if inside & names]
    about: About = {
        "category": "pipeline",
        "name": "Loop",
        "facts": {"Contains": ", ".join(kinds) or "arithmetic"},
    }
    said = "Loop runs one iteration at a time"
    if "loads" not in kinds:  # nothing in it could run ahead
        cx.observed(op.operation, said, **about)
        return
    reasons = _why_not_ahead(body) or ["its loads stand in branches or inner loops"]
    cx.missed(op.operation, said, **(about | {"reasons": reasons, "hint": remedy(reasons)}))


def _why_not_ahead(body: list[ir.OpView]) -> list[str]:
    """What kept each load of a loop from running ahead of it, in the words of its plan."""
    found: list[str] = []
    for op in body:
        form = FORMS.get(op.operation.name)
        plan = AccessPlan.of(op) if form is not None and form.verb == "Load" else None
        if plan is not None:
            found.append(plan.reason(CP_ASYNC) or plan.why or "no pass has moved the load")
    return found


_KINDS = {
    "loads": {name for name, form in FORMS.items() if form.verb == "Load"},
    "stores": {name for name, form in FORMS.items() if form.verb == "Store"},
    "products": set(_DOTS),
}


def _stages(body: list[ir.OpView]) -> int:
    """Stages of the buffers that the loop goes round in."""
    found = [
        buffer.stages
        for inner in body
        for value in inner.operands
        if (buffer := Buffer.of(value.type)) is not None
    ]
    return max(found, default=1)


def _remark_resources(op: ir.Operation, cx: PassContext) -> None:
    """What a block takes of an SM, as far as it is known before registers are."""
    if "nv_tileaa.kernel_spec" not in op.attributes:
        return
    spec = ir.DictAttr(op.attributes["nv_tileaa.kernel_spec"])
    warps = ir.IntegerAttr(spec["num_warps"]).value
    facts = {
        "Warps": warps,
        "Shared memory": f"{allocated_bytes(op)} of {cx.target.max_shared} bytes",
    }
    cx.observed(op, "Resources of a block", category="occupancy", name="Resources", facts=facts)
