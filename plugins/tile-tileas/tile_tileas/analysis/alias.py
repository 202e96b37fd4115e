"""Which accesses may touch: where pointers come from, and whether elements of a view overlap.

Two pointers that a kernel is given may point into one array, so little is known to be apart: memory
that the kernel allocates for itself, and different globals.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from tile_tileaa.dialect import PtrType

from tile_core.mlir import ir
from tile_core.passes import PassContext
from tile_tileas.analysis.forward import Forward
from tile_tileas.analysis.views import TiledView, maker, tiled_view


@dataclass(frozen=True)
class Root:
    """What a pointer was made from: `kind` is "argument", "global" or "allocation"."""

    kind: str
    which: str | int


#: Where a pointer may come from; None: from anywhere.
Roots = frozenset[Root] | None


def may_alias(left: Roots, right: Roots) -> bool:
    """Whether pointers from there may point to the same byte."""
    if left is None or right is None:
        return True
    return any(_meet(a, b) for a in left for b in right)


def _meet(a: Root, b: Root) -> bool:
    if a == b:
        return True
    own = "allocation" in (a.kind, b.kind)
    return not own and not a.kind == b.kind == "global"


class AliasAnalysis(Forward[Roots]):
    """The roots of every pointer of one function."""

    name: ClassVar[str] = "alias"

    def __init__(self, op: ir.Operation, cx: PassContext | None = None) -> None:
        self._arguments: dict[ir.Value, Roots] = {
            value: frozenset([Root("argument", at)])
            for region in op.regions
            for at, value in enumerate(region.blocks[0].arguments)
        }
        self._allocations: dict[ir.Value, int] = {}
        super().__init__(op)

    def tracks(self, type_: ir.Type) -> bool:
        element = type_.element_type if isinstance(type_, ir.RankedTensorType) else type_
        return isinstance(element, PtrType)

    def unknown(self, value: ir.Value) -> Roots:
        return self._arguments.get(value)

    def join(self, left: Roots, right: Roots) -> Roots:
        return None if left is None or right is None else left | right

    def induction(self, loop: ir.OpView) -> Roots:
        raise AssertionError("no loop counts pointers")

    def number(self, allocation: ir.Value) -> int:
        """A number for an allocation, in the order in which they are met first."""
        return self._allocations.setdefault(allocation, len(self._allocations))

    def of_access(self, op: ir.OpView | ir.Operation) -> Roots:
        """The roots of what a load, store or atomic operation of nv_tileas touches."""
        address = op.operands[0]
        if op.operation.name in ("nv_tileas.tiled_load", "nv_tileas.tiled_store"):
            address = tiled_view(address).memref.base
        return self[address] if self.tracks(address.type) else None


def _same(op: ir.OpView, known: AliasAnalysis) -> Roots:
    return known[op.operands[0]]


def _either(op: ir.OpView, known: AliasAnalysis) -> Roots:
    return known.join(known[op.operands[-2]], known[op.operands[-1]])


def _cat(op: ir.OpView, known: AliasAnalysis) -> Roots:
    return known.join(known[op.operands[0]], known[op.operands[1]])


def _global(op: ir.OpView, known: AliasAnalysis) -> Roots:
    return frozenset([Root("global", ir.FlatSymbolRefAttr(op.attributes["symbol"]).value)])


def _allocation(op: ir.OpView, known: AliasAnalysis) -> Roots:
    return frozenset([Root("allocation", known.number(op.results[0]))])


AliasAnalysis.rules = {
    "arith.select": _either,
    "nv_tileaa.addptr": _same,
    "nv_tileaa.alloca": _allocation,
    "nv_tileaa.assume": _same,
    "nv_tileaa.bitcast": _same,
    "nv_tileaa.broadcast": _same,
    "nv_tileaa.cat": _cat,
    "nv_tileaa.extract": _same,
    "nv_tileaa.extract_slice": _same,
    "nv_tileaa.get_global": _global,
    "nv_tileaa.insert_slice": _cat,
    "nv_tileaa.permute": _same,
    "nv_tileaa.splat": _same,
    "nv_tileaa.view": _same,
    "nv_tileas.cat": _cat,
    "nv_tileas.convert_layout": _same,
    "nv_tileas.extract_slice": _same,
    "nv_tileas.insert_slice": _cat,
    "nv_tileas.view": _same,
}


def injective(axes: Iterable[tuple[int | None, int | None]]) -> bool:
    """Whether no two elements share an address.

    `axes` are (extent, stride) in elements, None for what is not known: along one axis any extent
    will do; of more, each has to step over everything that the smaller ones reach.
    """
    found = sorted(
        ((extent, stride) for extent, stride in axes if extent != 1),
        key=lambda axis: (axis[1] is None, axis[1] or 0),
    )
    reach = 0
    for at, (extent, stride) in enumerate(found):
        if stride is None or stride <= reach:
            return False
        if extent is None:
            return at == len(found) - 1  # nothing can step over it
        reach += (extent - 1) * stride
    return True


def elements_apart(view: TiledView) -> bool:
    """Whether no two elements inside a view share an address."""
    memref = view.memref
    return injective(
        (_known(size), _known(stride))
        for size, stride in zip(memref.sizes, memref.strides, strict=True)
    )


def tile_apart(view: TiledView) -> bool:
    """Whether no two elements of one tile of a view share an address."""
    return injective(
        (extent, _known(view.memref.strides[dim]))
        for extent, dim in zip(view.tile, view.dim_map, strict=True)
    )


def _known(value: int | ir.Value) -> int | None:
    return value if isinstance(value, int) else None


def is_same_view(left: ir.Value, right: ir.Value) -> bool:
    """Whether two tiled views are one and the same, each time that either is made."""
    record = tiled_view(left)
    if record != tiled_view(right):
        return False
    memref = record.memref
    values = [v for v in (memref.base, *memref.sizes, *memref.strides) if isinstance(v, ir.Value)]
    return all(is_made_once(value) for value in values)


def is_made_once(value: ir.Value) -> bool:
    """Whether a value is defined outside of all loops and branches."""
    holder = value.owner if isinstance(value.owner, ir.Block) else maker(value).operation.block
    return holder.owner.operation.name == "func.func"
