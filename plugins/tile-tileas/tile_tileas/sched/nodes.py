"""What operations cost: the nodes of the graph that schedulers see."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from tile_core.locations import source_location
from tile_core.mlir import ir
from tile_core.sched import LoopOp, Use
from tile_tileas.analysis.pressure import tile_bits
from tile_tileas.dialect.buffers import Buffer
from tile_tileas.sched.constraints import constraints_of
from tile_tileas.sched.facts import STAGED_LOAD, Facts, facts_of
from tile_tileas.sched.machinery import LANES, Machinery
from tile_tileas.sched.staged import feeds_products

_REGISTER_BITS = 32
#: Classes of accesses that memory itself serves; operands of products are mostly in the L2 cache.
_STREAMED = ("global_load", "global_store", "atomic", "async_copy")
#: Iterations that a loop inside of a body is taken to have where its bounds are not constant.
_INNER_TRIPS = 8
#: Classes whose operations cost what they do without a tile, too.
_ANYWHERE = ("free", "barrier", "control", "region")


def node_of(op: ir.OpView, machinery: Machinery, *, ahead: bool = False) -> LoopOp:
    """`op` as schedulers see it; a load that runs `ahead` of its loop is another pass' matter."""
    name = op.operation.name
    facts = facts_of(name)
    bits = sum(tile_bits(result) for result in op.results)
    if ahead:
        facts, bits = STAGED_LOAD, 0 if feeds_products(op) else bits
    uses, latency = _cost(op, facts, machinery)
    threads = LANES * machinery.num_warps
    return LoopOp(
        name,
        facts.kind,
        latency,
        uses=uses,
        constraints=constraints_of(op.operation).constraints,
        registers=-(-bits // (threads * _REGISTER_BITS)),
        memory_bytes=int(_work(op, facts, machinery)["bytes"]) if facts.class_ in _STREAMED else 0,
        where=str(source_location(op.operation.location) or ""),
    )


def _cost(op: ir.OpView, facts: Facts, machinery: Machinery) -> tuple[tuple[Use, ...], int]:
    work = _work(op, facts, machinery)
    if facts.class_ not in _ANYWHERE and not _has_tile(op):
        return (), machinery.cost("scalar", work).latency
    if facts.class_ == "region":
        return _composed(op, machinery)
    if op.regions and facts.class_ == "control":
        work["scale"] = _inside(op, machinery)
    name = facts.class_
    if name == "mma" and not _on_tensor_cores(op):
        name = "mma_fma"
    cost = machinery.cost(name, work)
    return cost.uses, cost.latency


def _composed(op: ir.OpView, machinery: Machinery) -> tuple[tuple[Use, ...], int]:
    """What the operations of a region that runs once hold, each from when it starts there: in
    program order, behind what it takes.
    """
    uses: list[Use] = []
    ready: dict[ir.Value, int] = {}
    now = end = 0
    for region in op.regions:
        for inner in (inner for block in region.blocks for inner in block.operations):
            now = max([now, *(ready.get(value, 0) for value in inner.operands)])
            held, latency = _cost(inner, facts_of(inner.operation.name), machinery)
            uses += [replace(use, at=use.at + now) for use in held]
            ready |= dict.fromkeys(inner.results, now + latency)
            end = max(end, now + latency)
            now += 1 if held else 0
    return tuple(uses), end


def _on_tensor_cores(op: ir.OpView) -> bool:
    return "atom" not in op.attributes or "mma" in str(op.attributes["atom"])


def _inside(op: ir.OpView, machinery: Machinery) -> int:
    """Cycles of the operations inside, one after the other, as often as they are repeated."""
    total = sum(
        max(1, _cost(inner, facts_of(inner.operation.name), machinery)[1])
        for region in op.regions
        for block in region.blocks
        for inner in block.operations
    )
    trips = trip_count(op)
    repeated = op.operation.name in ("scf.for", "scf.while")
    return total * ((_INNER_TRIPS if trips is None else trips) if repeated else 1)


def _work(op: ir.OpView, facts: Facts, machinery: Machinery) -> dict[str, float]:
    """The measures of an operation, by the largest tile it makes, takes or stores."""
    results = [value.type for value in op.results]
    taken = [value.type for value in op.operands]
    tiles = [_size(type_) for type_ in results] or [(0, 0)]
    if max(tiles) == (0, 0):
        tiles = [_size(type_) for type_ in taken] or [(0, 0)]
    elements, bits = max(tiles)
    if facts.class_ == "reduce":
        elements, bits = max([_size(type_) for type_ in taken] or [(0, 0)])
    work: dict[str, float] = {
        "elements": elements,
        "bytes": elements * bits / 8,
        "scale": facts.scale,
        "warps": machinery.num_warps,
    }
    if facts.kind == "mma":
        work |= _products([_shape(type_) for type_ in taken], taken)
    return work


def _products(shapes: list[list[int]], types: list[ir.Type]) -> dict[str, float]:
    """Multiply-adds and operand bytes of a product [B,] M, K x [B,] K, N; 16-bit ones count 1."""
    a, b = shapes[0], shapes[1]
    bits = max(_size(types[0])[1], 1)
    products = prod(a) * b[-1]
    operand_bytes = sum(
        prod(shape) * _size(type_)[1] / 8
        for shape, type_ in zip(shapes[:2], types[:2], strict=True)
    )
    return {"products": products * bits / 16, "bytes": operand_bytes}


def _shape(type_: ir.Type) -> list[int]:
    return list(type_.shape) if isinstance(type_, ir.RankedTensorType) else [1]


def _has_tile(op: ir.OpView) -> bool:
    return any(_size(value.type) != (0, 0) for value in [*op.results, *op.operands])


def _size(type_: ir.Type) -> tuple[int, int]:
    """(elements, bits of each) of a tile or of a stage of a buffer; nothing for anything else."""
    buffer = Buffer.of(type_)
    type_ = type_ if buffer is None else buffer.tile
    if not isinstance(type_, ir.RankedTensorType):
        return 0, 0
    element = type_.element_type
    if isinstance(element, (ir.IntegerType, ir.FloatType)):
        return prod(type_.shape), max(8, element.width)
    return prod(type_.shape), 64  # pointers


def trip_count(loop: ir.Operation | ir.OpView) -> int | None:
    """The number of iterations of an `scf.for` with constant bounds."""
    if loop.operation.name != "scf.for":
        return None
    bounds = [constant_of(value) for value in list(loop.operands)[:3]]
    if None in bounds:
        return None
    first, last, step = (bound or 0 for bound in bounds)
    return max(0, -(-(last - first) // step)) if step > 0 else None


def constant_of(value: ir.Value) -> int | None:
    """The number that a value is, where that is known."""
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.name != "arith.constant":
        return None
    attribute = owner.attributes["value"]
    return attribute.value if isinstance(attribute, ir.IntegerAttr) else None
