"""The one buffer that a load's tile goes to, through nothing but views."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tile_cute.linear import LinearLayout

from tile_core.mlir import ir
from tile_tileas.analysis.buffers import ALLOC
from tile_tileas.analysis.tile_views import is_view, pulled_back
from tile_tileas.dialect import distributed
from tile_tileas.dialect.buffers import Buffer
from tile_tileas.dialect.tensor import UMMA
from tile_tileas.tma.element_types import is_rounding

_DOT, _ANEW = "nv_tileas.dot", "nv_tileas.buffer_reinterpret"
_PRODUCTS = (_DOT, *UMMA)
_READS = ("nv_tileas.copy", *_PRODUCTS, "nv_tileas.extract_slice", "nv_tileas.insert_slice")


@dataclass(frozen=True)
class Target:
    """The buffer that a load's tile goes to: `views` of the tile, one of which may round it, then
    `copy` into `alloc`.
    """

    views: tuple[ir.OpView, ...]
    copy: ir.OpView
    alloc: ir.OpView

    @property
    def readers(self) -> list[ir.Operation]:
        """What reads the buffer, by its own type or by others."""
        return list(_readers(self.alloc.results[0], self.copy.operation))

    @property
    def to_threads(self) -> bool:
        """Whether threads read the buffer, and not products alone."""
        return any(reader.name not in _PRODUCTS for reader in self.readers)

    @property
    def rounds(self) -> bool:
        """Whether the tile is rounded on its way, which tensor maps alone do in passing."""
        return any(is_rounding(view) for view in self.views)


def target_of(load: ir.OpView, block: ir.Block, *, inside: bool = False) -> Target | str:
    """The one buffer that the tile goes to, through views alone. It is read in `block`; `inside`:
    or in loops and branches there.
    """
    views: list[ir.OpView] = []
    value = load.results[0]
    while True:
        uses = list(value.uses)
        if len(uses) != 1:
            return "the tile is used more than once"
        user = _view(uses[0].owner)
        name = user.operation.name
        if user.operation.block != block:
            return "the tile is used under a branch"
        if is_view(user) or is_rounding(user):
            views.append(user)
            value = user.results[0]
        elif name == "nv_tileas.copy" and not len(user.results):
            alloc = user.operands[1].owner
            if isinstance(alloc, ir.Block) or alloc.operation.name != ALLOC:
                return "the buffer is not allocated there"
            target = Target(tuple(views), user, _view(alloc))
            return reads_problem(target, block, inside=inside) or target
        else:
            return f"the tile goes through '{name}'"


def _view(op: ir.Operation | ir.OpView) -> ir.OpView:
    return op.opview if isinstance(op, ir.Operation) else op


def _readers(buffer: ir.Value, copy: ir.Operation) -> Iterator[ir.Operation]:
    for use in buffer.uses:
        user = use.owner.operation
        if user.name == _ANEW:
            yield from _readers(user.results[0], copy)
        elif user != copy:
            yield user


def reads_problem(target: Target, block: ir.Block, *, inside: bool = False) -> str | None:
    """Why the buffer is not filled by the copy, and then read in `block`, alone; `inside`: or in
    loops and branches there.
    """
    if target.alloc.operation.block != block:
        return "the buffer stands elsewhere"
    for user in target.readers:
        if not (inside or user.block == block) or user.name not in _READS:
            return f"'{user.name}' works on the buffer"
        if user.name == "nv_tileas.copy" and not len(user.results):
            return "the buffer is filled twice"
    return None


def seen_by(load: ir.OpView, target: Target) -> Buffer:
    """The target's buffer in coordinates of the load's tile."""
    buffer = Buffer.of(target.alloc.results[0].type)
    assert buffer is not None
    layout = buffer.layout
    assert layout is not None, "given when buffers were made"
    for view in reversed(target.views):
        layout = layout if is_rounding(view) else pulled_back(layout, view)
    return stage_for(load, layout, buffer.tile.element_type)


def stage_for(load: ir.OpView, layout: LinearLayout, element: ir.Type | None = None) -> Buffer:
    """One stage for the tile of a load; with `element`, of these."""
    tile = ir.RankedTensorType(load.results[0].type)
    plain = ir.RankedTensorType.get(tile.shape, element or tile.element_type)
    return Buffer(ir.RankedTensorType(distributed(plain, layout)), "shared", 1)
