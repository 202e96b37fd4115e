"""How values of many types fit into the runs of equal types that an operation in MLIR has room for.

What a loop carries, a branch yields or a reduction folds may stand in any order, as long as it is
the same at every end: where types alternate too often, values of one type are put side by side
(`arrange`). What is printed has an order, and becomes several prints (`split_print`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tile_cudatile.dialect.ops import CARRIED_RUNS
from tile_cudatile.print_format import CONVERSION, shows_value
from tile_cudatile.tree import Op, Value
from tile_cudatile.types import TOKEN, Type

#: Runs that later dialects have room for in what is folded and printed; what loops and
#: branches carry has no such limit there.
_FOLDED = 16

#: Positions of values in the tree, in the order that they have in MLIR.
Order = tuple[int, ...]


@dataclass(frozen=True)
class Arrangement:
    """Orders of what belongs to one operation; what is not named stays as it is.

    Attributes:
        operands: of operand groups, by name.
        results: of the results.
        arguments: of the arguments of every block of the operation's regions.
        terminators: of the operands of `break`, `continue` or `yield` that end them.
        identities: of a reduction's or scan's attribute.
    """

    operands: dict[str, Order] = field(default_factory=dict)
    results: Order | None = None
    arguments: Order | None = None
    terminators: dict[str, Order] = field(default_factory=dict)
    identities: Order | None = None


#: The terminators that belong to an operation, wherever inside of it they stand.
TERMINATORS = {
    "for": ("continue",),
    "loop": ("continue", "break"),
    "if": ("yield",),
    "reduce": ("yield",),
    "scan": ("yield",),
}


def arrange(op: Op) -> Arrangement | None:
    """Orders in which the types of `op` form few runs; None if they do as they are."""
    room = _FOLDED if op.name in ("reduce", "scan") else CARRIED_RUNS
    results = _order([value.type for value in op.results], room)
    if op.name == "if":
        if results is None:
            return None
        return Arrangement(results=results, terminators={"yield": results})
    name = "initValues" if op.name in ("for", "loop") else "operands"
    group = op.group(name)
    assert isinstance(group, tuple)
    order = _order([value.type for value in group], room)
    if op.name in ("reduce", "scan"):
        if order is None:
            return None
        # Operands and results differ in shape alone; the region has two arguments per operand.
        pairs = tuple(2 * i + j for i in order for j in (0, 1))
        return Arrangement({name: order}, order, pairs, {"yield": order}, order)
    if order is None and results is None:
        return None
    ends = {"continue": order, "break": results if op.name == "loop" else None}
    return Arrangement(
        {} if order is None else {name: order},
        results,
        order if order is None or op.name == "loop" else (0, *(i + 1 for i in order)),
        {end: found for end, found in ends.items() if found is not None},
    )


def _order(types: Sequence[Type], room: int) -> Order | None:
    if len(types) <= room or _count(types) <= room:
        return None
    first: dict[Type, int] = {}
    for type_ in types:
        first.setdefault(type_, len(first))
    return tuple(sorted(range(len(types)), key=lambda i: first[types[i]]))


def _count(types: Sequence[Type]) -> int:
    return sum(1 for at, type_ in enumerate(types) if at == 0 or type_ != types[at - 1])


def split_print(op: Op) -> list[Op]:
    """Prints that together write what `op` does; `op` alone if its types form few runs."""
    values, token = op.operands
    assert isinstance(values, tuple)
    if len(values) <= _FOLDED or _count([value.type for value in values]) <= _FOLDED:
        return [op]
    made: list[Op] = []
    for text, part in _parts(str(op.attrs["str"]), values):
        attrs = {**op.attrs, "str": text}
        made.append(Op(op.spec, (part, token), (Value(TOKEN),), attrs, loc=op.loc))
        token = made[-1].result
    return made


def _parts(text: str, values: tuple[Value, ...]) -> Iterator[tuple[str, tuple[Value, ...]]]:
    """The format in pieces of `_FOLDED` conversions, each with its values."""
    start = taken = 0
    for shown, match in enumerate(filter(shows_value, CONVERSION.finditer(text)), 1):
        if shown - taken == _FOLDED:
            yield text[start : match.end()], values[taken:shown]
            start, taken = match.end(), shown
    if text[start:] or taken < len(values):
        yield text[start:], values[taken:]
