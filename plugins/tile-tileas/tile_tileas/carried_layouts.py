"""Values that a loop carries, in the layout in which it makes them.

    for .. carried x : L                      for .. carried x : M
      y : M = reduce ..            =>           y : M = reduce ..
      x = addf(x, convert_layout(y))            x = addf(x, y)
    f(x : L)                                  f(convert_layout(x))

What is behind a loop asks for a layout, as a sum of products does for that of what scales it, and
would have each step convert what it adds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tile_cute.linear import LayoutError, LinearLayout, permute_dims, reshape

from tile_core.mlir import ir
from tile_tileas.analysis.axis import shape_of
from tile_tileas.dialect import distributed, layout_of
from tile_tileas.moves import plan_move
from tile_tileas.relayout import clone_in, converted, converted_behind
from tile_tileas.storage import storage_bits
from tile_tileas.tile_graph import is_free, is_tile, kind_of

_CONVERT = "nv_tileas.convert_layout"
#: Registers of a thread that the value may take then, for each that it takes now.
_MORE = 2


def keep_carried(loop: ir.OpView) -> int:
    """Let an `scf.for` carry values in the layout of what it makes them of, where nothing but that
    uses them in it; how many.
    """
    updates = (_update_of(loop, at) for at in range(len(loop.results)))
    found = [update for update in updates if update is not None]
    for update in found:
        update.apply()
    return len(found)


@dataclass(frozen=True)
class _Update:
    """What makes the next value of the one that `loop` carries in place `at`: operations on single
    elements, whose other tiles are in `layout` but for a conversion, or may be in any.
    """

    loop: ir.OpView
    at: int
    ops: list[ir.OpView]
    layout: LinearLayout

    def apply(self) -> None:
        """Carry it in that layout, which it is converted to and from outside of the loop."""
        loop, argument = self.loop, _argument(self.loop, self.at)
        old, first, result = argument.type, loop.operands[3 + self.at], loop.results[self.at]
        loop.operands[3 + self.at] = _in(first, self.layout, loop)
        argument.set_type(distributed(old, self.layout))
        own = [argument]
        for op in self.ops:
            for number, operand in enumerate(op.operands):
                if is_tile(operand) and operand not in own:
                    op.operands[number] = _in(operand, self.layout, op)
            own.append(op.results[0])
            op.results[0].set_type(distributed(op.results[0].type, self.layout))
        result.set_type(argument.type)
        converted_behind(result, old, loop)


def _update_of(loop: ir.OpView, at: int) -> _Update | None:
    argument, block = _argument(loop, at), loop.regions[0].blocks[0]
    if not is_tile(argument):
        return None
    users = _users(argument, block, at)
    if not users:
        return None
    ops = [op for op in block.operations if op.operation in users]
    own = {argument, *(op.results[0] for op in ops)}
    others = {x for op in ops for x in op.operands if is_tile(x) and x not in own}
    made = [x for x in others if not is_free(x)]
    layouts, now = {_origin_layout(x) for x in made}, layout_of(argument.type)
    if len(layouts) != 1 or now is None or not any(_is_in(x, block) for x in made):
        return None
    (layout,) = layouts
    if layout is None or layout.elements_per_thread > _MORE * now.elements_per_thread:
        return None
    try:
        moved = plan_move(layout, now, storage_bits(argument.type.element_type))
    except LayoutError:  # with views between, it is another move than the one in the loop
        return None
    return _Update(loop, at, ops, layout) if moved.cost else None


def _argument(loop: ir.OpView, at: int) -> ir.Value:
    return loop.regions[0].blocks[0].arguments[at + 1]


def _users(argument: ir.Value, block: ir.Block, at: int) -> set[ir.Operation]:
    """The operations between a carried value and its next one; none if there are others that use
    it, or one changes more than single elements.
    """
    end = block.operations[len(block.operations) - 1].operation
    found: set[ir.Operation] = set()
    pending = [argument]
    while pending:
        for use in pending.pop().uses:
            user = use.owner.operation
            if user == end and use.operand_number == at:
                continue
            if user.block != block or not _is_simple(user):
                return set()
            if user not in found:
                found.add(user)
                pending.append(user.results[0])
    made = end.operands[at].owner
    return found if not isinstance(made, ir.Block) and made.operation in found else set()


def _is_simple(op: ir.Operation) -> bool:
    return kind_of(op) == "same" and len(op.results) == 1 and not len(op.regions)


def _views(value: ir.Value) -> Iterator[ir.Operation]:
    """What names axes of `value` anew, the last one first, and the conversion that it stands
    behind, if there is one.
    """
    while not isinstance(value.owner, ir.Block):
        owner = value.owner.operation
        if owner.name == _CONVERT:
            yield owner
            return
        if kind_of(owner) not in ("view", "permute"):
            return
        yield owner
        value = owner.operands[0]


def _is_in(value: ir.Value, block: ir.Block) -> bool:
    """Whether `block` makes the value."""
    return not isinstance(value.owner, ir.Block) and value.owner.operation.block == block


def _origin_layout(value: ir.Value) -> LinearLayout | None:
    """The layout that `value` has without the conversion behind which it is made."""
    ops = list(_views(value))
    if not ops or ops[-1].name != _CONVERT:
        return None
    layout = layout_of(ops[-1].operands[0].type)
    for view in reversed(ops[:-1]):
        layout = layout if layout is None else _seen(view, layout)
    return layout


def _seen(view: ir.Operation, layout: LinearLayout) -> LinearLayout:
    """The layout of what a view gives of a tile in `layout`."""
    if kind_of(view) == "view":
        return reshape(layout, shape_of(view.results[0]))
    return permute_dims(layout, tuple(ir.DenseI32ArrayAttr(view.attributes["permutation"])))


def _in(value: ir.Value, layout: LinearLayout, op: ir.OpView) -> ir.Value:
    """`value` in `layout`, in front of `op`."""
    place, maker = ir.InsertionPoint(op), value.owner
    if not isinstance(maker, ir.Block) and is_free(value):
        return clone_in(maker, distributed(value.type, layout), place).result
    if _origin_layout(value) != layout:
        return converted(value, layout, op)
    conversion, *views = reversed(list(_views(value)))
    tile = conversion.operands[0]
    for view in views:
        before = layout_of(tile.type)
        assert before is not None, "asked before"
        made = clone_in(view, distributed(view.results[0].type, _seen(view, before)), place)
        made.operands[0] = tile
        tile = made.result
    return tile
