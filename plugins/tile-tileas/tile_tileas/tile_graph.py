"""From a function to the plain graph that layout strategies see."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tile_tileaa.dialect.math import FUNCTIONS

from tile_core.mlir import ir
from tile_core.passes import error_at
from tile_tileas.access import AccessPlan
from tile_tileas.analysis.axis import shape_of
from tile_tileas.layouts import NodeKind, TileGraph, TileNode, TileValue

POINTER_BITS = 64

#: Operation -> how its layouts relate; what is not listed must not touch tiles.
KINDS: dict[str, NodeKind] = {
    "arith.constant": "source",
    "ub.poison": "source",
    "nv_tileaa.make_range": "source",
    "nv_tileaa.splat": "source",
    "nv_tileaa.broadcast": "broadcast",
    "nv_tileaa.histogram": "count",
    "nv_tileaa.permute": "permute",
    "nv_tileas.atomic_cas": "atomic",
    "nv_tileas.atomic_rmw": "atomic",
    "nv_tileas.multimem": "atomic",
    "nv_tileas.cat": "cat",
    "nv_tileas.extract_slice": "slice",
    "nv_tileas.insert_slice": "insert",
    "nv_tileas.convert_layout": "convert",
    "nv_tileas.dot": "dot",
    "nv_tileas.load": "load",
    "nv_tileas.pad_outside": "same",
    "nv_tileas.reduce": "reduce",
    "nv_tileas.reduce_mixed": "reduce",
    "nv_tileas.scan": "scan",
    "nv_tileas.scan_mixed": "scan",
    "nv_tileas.store": "store",
    "nv_tileas.tiled_load": "load",
    "nv_tileas.tiled_store": "store",
    "nv_tileas.view": "view",
}
KINDS |= {
    f"nv_tileaa.{name}": "same"
    for name in (
        "addf", "addptr", "assume", "atan2", "bitcast", "divf", "exp2", "fma", "fp_to_fp",
        "fp_to_int", "int_to_fp", "int_to_ptr", "maxf", "minf", "mulf", "mulhiui", "pow",
        "ptr_to_int", "rsqrt", "sqrt", "subf", *FUNCTIONS,
    )
}  # fmt: skip
#: Elementwise, but called for what else they do, too, unless they say `pure`.
_CALLS = frozenset(
    f"nv_tileaa.{name}{suffix}"
    for name in ("extern_elementwise", "call_elementwise_intrinsic", "elementwise_inline_asm")
    for suffix in ("", "_mixed")
)
_KEEPING_PLACE = _CALLS | {"nv_tileaa.optimization_barrier"}
KINDS |= dict.fromkeys(sorted(_KEEPING_PLACE), "same")

_ALONG_AXIS = ("reduce", "cat", "scan")
_TILED = ("nv_tileas.tiled_load", "nv_tileas.tiled_store")
_ELEMENTWISE_DIALECTS = ("arith.", "math.")
# Control flow is seen through what it carries; `extract` reads one element from any layout.
# So do assertions and printing.
_TRANSPARENT = (
    "scf.condition",
    "scf.yield",
    "nv_tileaa.assert",
    "nv_tileaa.extract",
    "nv_tileaa.print",
    "nv_tileas.yield",
    "nv_tileas.yield_mixed",
)


def kind_of(op: ir.OpView | ir.Operation) -> NodeKind | None:
    """How the layouts of an operation's tiles relate; None if it needs no relation."""
    name = op.name
    if name in KINDS:
        return KINDS[name]
    return "same" if name.startswith(_ELEMENTWISE_DIALECTS) else None


def only_computes(op: ir.OpView | ir.Operation) -> bool:
    """Whether an elementwise operation may stand elsewhere, or twice: it does nothing else."""
    return op.operation.name not in _KEEPING_PLACE or "pure" in op.attributes


def is_tile(value: ir.Value) -> bool:
    """Whether threads hold `value` together."""
    return isinstance(value.type, ir.RankedTensorType)


def is_free(value: ir.Value) -> bool:
    """Whether the tile can be made again in any layout."""
    return not isinstance(value.owner, ir.Block) and kind_of(value.owner) == "source"


class GraphBuilder:
    """Numbers the tiles of a function and records its operations; `graph` is the result.

    Of a load of a family, by its first result, `families` has the family's number and how far on it
    is.
    """

    def __init__(
        self,
        func: ir.Operation,
        num_warps: int,
        families: Mapping[ir.Value, tuple[int, tuple[int, ...]]] | None = None,
    ) -> None:
        self.ids: dict[ir.Value, int] = {}
        #: First result of an operation -> its node; operations hash by content, which changes.
        self.node_of: dict[ir.Value, int] = {}
        self._values: list[TileValue] = []
        self._nodes: list[TileNode] = []
        self._families = families or {}
        self._region(func.regions[0], 0)
        self.graph = TileGraph(tuple(self._values), tuple(self._nodes), num_warps)

    def _id(self, value: ir.Value) -> int:
        if value not in self.ids:
            self.ids[value] = len(self._values)
            element = value.type.element_type
            bits = getattr(element, "width", POINTER_BITS)
            self._values.append(TileValue(shape_of(value), bits))
        return self.ids[value]

    def _ids(self, values: Iterator[ir.Value] | list[ir.Value]) -> tuple[int, ...]:
        return tuple(self._id(value) for value in values if is_tile(value))

    def _region(self, region: ir.Region, depth: int) -> None:
        for block in region.blocks:
            for op in block.operations:
                self._operation(op, depth)

    def _operation(self, op: ir.OpView, depth: int) -> None:
        if op.name == "scf.for":
            self._loop(op, depth)
        elif op.name == "scf.while":
            self._while(op, depth)
        elif op.name == "scf.if":
            self._branch(op, depth)
        elif op.name not in _TRANSPARENT:
            self._node(op, depth)

    def _node(self, op: ir.OpView, depth: int) -> None:
        operands, results = self._ids(list(op.operands)), self._ids(list(op.results))
        if not operands and not results:
            return
        kind = kind_of(op)
        if kind is None:
            raise error_at(op, "works on tiles, but no layout rule knows it")
        if kind == "store":
            operands = self._ids([op.value, *(v for v in op.operands if v != op.value)])
        plan = AccessPlan.of(op) if kind in ("load", "store", "atomic") else None
        if plan is None and kind in ("load", "store"):
            raise error_at(op, "has no access plan; run 'tileas-plan-accesses' before")
        axis = ir.IntegerAttr(op.attributes["axis"]).value if kind in _ALONG_AXIS else None
        self.node_of[op.results[0]] = len(self._nodes)
        family, offset = self._families.get(op.results[0], (None, ()))
        self._nodes.append(
            TileNode(
                kind,
                op.name,
                operands,
                results,
                axis,
                plan.order if plan else (),
                plan.vector if plan else 1,
                depth,
                _permutation(op) if kind == "permute" else (),
                by_threads=plan is None or plan.by_threads,
                in_rows=plan is None or op.name in _TILED or max(plan.vector, plan.run) > 1,
                atom=ir.StringAttr(op.attributes["atom"]).value if kind == "dot" else "",
                family=family,
                offset=offset,
            )
        )

    def _loop(self, op: ir.OpView, depth: int) -> None:
        body = op.regions[0].blocks[0]
        for init, argument in zip(list(op.operands)[3:], list(body.arguments)[1:], strict=True):
            if is_tile(argument):
                self._id(init)
                self._id(argument)
        self._region(op.regions[0], depth + 1)
        carried = zip(
            list(op.operands)[3:],
            list(body.arguments)[1:],
            list(_terminator(body).operands),
            list(op.results),
            strict=True,
        )
        for init, argument, next_, result in carried:
            if is_tile(argument):
                self._carry([init, next_], [argument, result], op.name, depth)

    def _while(self, op: ir.OpView, depth: int) -> None:
        before, after = (region.blocks[0] for region in op.regions)
        for value in (*op.operands, *before.arguments, *after.arguments):
            if is_tile(value):
                self._id(value)
        for region in op.regions:
            self._region(region, depth + 1)
        turns = zip(op.operands, before.arguments, _terminator(after).operands, strict=True)
        for init, argument, next_ in turns:
            if is_tile(argument):
                self._carry([init, next_], [argument], op.name, depth)
        ends = zip(list(_terminator(before).operands)[1:], after.arguments, op.results, strict=True)
        for value, argument, result in ends:
            if is_tile(argument):
                self._carry([value], [argument, result], op.name, depth)

    def _branch(self, op: ir.OpView, depth: int) -> None:
        for region in op.regions:
            self._region(region, depth)
        if not len(op.results):
            return
        yields = [list(_terminator(region.blocks[0]).operands) for region in op.regions]
        for at, result in enumerate(op.results):
            if is_tile(result):
                self._carry([values[at] for values in yields], [result], op.name, depth)

    def _carry(
        self, sources: list[ir.Value], targets: list[ir.Value], name: str, depth: int
    ) -> None:
        self._nodes.append(
            TileNode("same", name, self._ids(sources), self._ids(targets), depth=depth)
        )


def _permutation(op: ir.OpView) -> tuple[int, ...]:
    return tuple(ir.DenseI32ArrayAttr(op.attributes["permutation"]))


def _terminator(block: ir.Block) -> ir.OpView:
    return block.operations[len(block.operations) - 1]
