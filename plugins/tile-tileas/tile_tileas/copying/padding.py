"""Loads of views whose elements outside become something else than zero, which is all that the
copies of the hardware give: the tile is loaded from a view that pads with zeros, and padded behind.
"""

from __future__ import annotations

from dataclasses import dataclass

from tile_tileaa.dialect.base import TiledViewType

from tile_core.mlir import ir
from tile_tileas.access import AccessPlan
from tile_tileas.analysis.views import maker, tiled_view

_ZERO = "zero"


@dataclass(frozen=True)
class Separated:
    """A load from a view that pads with zeros, and the operation that pads what it gives."""

    load: ir.OpView
    pad: ir.OpView | None

    @staticmethod
    def of(load: ir.OpView, plan: AccessPlan) -> Separated | None:
        """Separate a load; None if elements outside are zero or unspecified, or come from no view.

        `plan` says along which axes a tile may reach past the end. Without any the padding says
        nothing.
        """
        if load.operation.name != "nv_tileas.tiled_load":
            return None
        view = load.operands[0]
        if (tiled_view(view).padding or _ZERO) == _ZERO:
            return None
        tile, coords = load.results[0], list(load.coords)
        load.operation.operands[0] = _padded_with_zeros(view)
        if not plan.checked:
            return Separated(load, None)
        with load.location, ir.InsertionPoint.after(load.operation):
            attributes = {
                "access": plan.attribute(),
                "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 1, len(coords)]),
            }
            pad = ir.Operation.create(
                "nv_tileas.pad_outside", [tile.type], [view, tile, *coords], attributes
            )
        tile.replace_all_uses_except(pad.results[0], pad)
        return Separated(load, pad.opview)

    def undo(self) -> None:
        """Let the load pad again."""
        if self.pad is None:
            return  # tiles never leave the view: its padding says nothing
        zeros = self.load.operands[0]
        self.load.operation.operands[0] = self.pad.operands[0]
        self.pad.results[0].replace_all_uses_with(self.load.results[0])
        self.pad.operation.erase()
        maker(zeros).operation.erase()


def _padded_with_zeros(view: ir.Value) -> ir.Value:
    """The same tiled view with another padding."""
    old = maker(view).operation
    source, tile, dim_map, _ = view.type.params
    type_ = TiledViewType.get(source, tile, dim_map, ir.StringAttr.get(_ZERO))
    attributes = {name: old.attributes[name] for name in old.attributes}
    with old.location, ir.InsertionPoint.after(old):
        return ir.Operation.create(old.name, [type_], list(old.operands), attributes).results[0]
