"""Views of tiles: the same elements by other coordinates, and layouts as they are seen through."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from tile_cute.linear import LinearLayout, permute_dims, reshape

from tile_core.mlir import ir
from tile_tileas.layouts import inverse_permutation


def _permuted_back(layout: LinearLayout, view: ir.OpView) -> LinearLayout:
    axes = tuple(ir.DenseI32ArrayAttr(view.attributes["permutation"]))
    return permute_dims(layout, inverse_permutation(axes))


def _reshaped_back(layout: LinearLayout, view: ir.OpView) -> LinearLayout:
    return reshape(layout, list(view.operands[0].type.shape))


#: View of a tile -> the layout of its operand from that of its result.
_PULL: dict[str, Callable[[LinearLayout, ir.OpView], LinearLayout]] = {
    "nv_tileaa.permute": _permuted_back,
    "nv_tileas.view": _reshaped_back,
}


def is_view(op: ir.OpView | ir.Operation) -> bool:
    """Whether an operation gives the elements of its operand by other coordinates."""
    return op.operation.name in _PULL


def pulled_back(layout: LinearLayout, view: ir.OpView) -> LinearLayout:
    """The layout of a view's operand from that of its result."""
    return _PULL[view.operation.name](layout, view)


def origin(tile: ir.Value, layout: LinearLayout) -> tuple[ir.Value, LinearLayout]:
    """What a tile is a view of, and `layout` in the coordinates of that."""
    while not isinstance(tile.owner, ir.Block) and is_view(tile.owner):
        view = tile.owner.opview if isinstance(tile.owner, ir.Operation) else tile.owner
        tile, layout = view.operands[0], pulled_back(layout, view)
    return tile, layout


def with_views(tile: ir.Value) -> Iterator[tuple[ir.Value, Sequence[ir.OpView]]]:
    """A tile and all that are views of it, with the views in between, the outermost last."""
    pending: list[tuple[ir.Value, tuple[ir.OpView, ...]]] = [(tile, ())]
    while pending:
        value, views = pending.pop()
        yield value, views
        for use in value.uses:
            user = use.owner.opview if isinstance(use.owner, ir.Operation) else use.owner
            if is_view(user):
                pending.append((user.results[0], (*views, user)))


def erase_unused(tile: ir.Value) -> None:
    """Erase views that nobody uses any more, `tile` first."""
    while not isinstance(tile.owner, ir.Block) and is_view(tile.owner) and not any(tile.uses):
        view, tile = tile.owner, tile.owner.operands[0]
        view.operation.erase()
