"""tileas-slicing: a loop as several loops, one behind the other, each over a part of its range."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from tile_core.mlir import ir
from tile_core.passes import Pass, PassContext, error_at
from tile_tileas.analysis.constants import splat_integer

#: On an `scf.for`: into how many loops it is cut.
SLICE_COUNT = "sliceCount"


@dataclass(frozen=True)
class Slicing(Pass):
    """Cut loops that carry `sliceCount` into so many loops over consecutive parts of their range,
    and one more over the iterations that are left, if any.

    What is carried goes from one to the next, so that nothing is computed in another order. Bounds
    and step are constants, as the parts have to be known.
    """

    name = "tileas-slicing"
    anchor = "func.func"
    statistics = {"loops": "loops that were cut", "slices": "loops that they became"}

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        for loop in list(_marked(op)):
            made = _sliced(loop)
            cx.count("loops")
            cx.count("slices", made)


def _marked(op: ir.Operation | ir.OpView) -> Iterator[ir.OpView]:
    """Operations with the mark, inner ones first."""
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                yield from _marked(inner.operation)
                if SLICE_COUNT in inner.attributes:
                    yield inner


def _sliced(loop: ir.OpView) -> int:
    """Put the slices in place of `loop`; how many there are."""
    if loop.operation.name != "scf.for" or "unsignedCmp" in loop.attributes:
        raise error_at(loop, "unsupported op in Slicing pass")
    parts = _ranges(loop)
    carried = list(loop.operands)[3:]
    type_, at = loop.operands[0].type, ir.InsertionPoint(loop)
    for first, last in parts:
        slice_ = loop.operation.clone(ip=at)
        del slice_.attributes[SLICE_COUNT]
        slice_.operands[0] = _constant(first, type_, slice_)
        slice_.operands[1] = _constant(last, type_, slice_)
        for number, value in enumerate(carried):
            slice_.operands[3 + number] = value
        carried = list(slice_.results)
    for result, value in zip(loop.results, carried, strict=True):
        result.replace_all_uses_with(value)
    loop.operation.erase()
    return len(parts)


def _ranges(loop: ir.OpView) -> list[tuple[int, int]]:
    """Lower and upper bound of each slice."""
    count = loop.attributes[SLICE_COUNT]
    if not isinstance(count, ir.IntegerAttr) or count.value < 1:
        raise error_at(loop, "The `sliceCount` need to be a `IntegerAttr`").noted(
            f"it is {count}, and should be at least 1"
        )
    lower, upper, step = (splat_integer(value) for value in list(loop.operands)[:3])
    if lower is None:
        raise error_at(loop, "unsupported op to be a lower bound in slicing pass ")
    if upper is None or step is None or step < 1:
        raise error_at(loop, "unsupported op in Slicing pass").noted(
            "its upper bound and its step have to be constants"
        )
    trips = max(0, -(-(upper - lower) // step))
    each = trips // count.value
    starts = [min(upper, lower + n * each * step) for n in range(count.value + 1)]
    parts = [(a, b) for a, b in pairwise(starts) if a < b]
    if starts[-1] < upper or not parts:
        parts.append((starts[-1], upper))
    return parts


def _constant(value: int, type_: ir.Type, before: ir.Operation) -> ir.Value:
    attributes = {"value": ir.IntegerAttr.get(type_, value)}
    made = ir.Operation.create(
        "arith.constant", [type_], [], attributes, loc=before.location, ip=ir.InsertionPoint(before)
    )
    return made.results[0]
