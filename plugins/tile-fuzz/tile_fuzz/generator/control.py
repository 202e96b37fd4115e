"""Branches and loops, with results, carried values and early exits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tile_cudatile.tree import Value
from tile_cudatile.types import I8, I16, I32, I64, TOKEN, Scalar, Tile, Type

from tile_fuzz.favoured import LOOPS
from tile_fuzz.generator.maker import TRUTH, Item, Maker

#: Fills a block with random statements.
Fill = Callable[[Maker], None]
_MOST = 3  # carried values, and results of a branch


def control(maker: Maker, fill: Fill) -> None:
    """A branch or a loop."""
    maker.depth += 1
    maker.rng.choice(_FAVOURED if LOOPS in maker.settings.favour else _KINDS)(maker, fill)
    maker.depth -= 1


def _carried(maker: Maker) -> list[Value]:
    """Values to go around a loop, or types of what a branch gives."""
    found: list[Value] = []
    for _ in range(maker.rng.randint(0, _MOST)):
        item = maker.pick(_may_be_carried)
        if item is not None:
            found.append(item.value)
    return found


def _may_be_carried(item: Item) -> bool:
    return item.exact and isinstance(item.value.type, Tile)


def given(maker: Maker, types: Sequence[Type]) -> list[Value]:
    """Values of these types; a token is that of memory."""
    found: list[Value] = []
    for type_ in types:
        if type_ == TOKEN:
            assert maker.memory is not None
            found.append(maker.memory)
        else:
            assert isinstance(type_, Tile)
            found.append(maker.value(type_))
    return found


def take(maker: Maker, values: Sequence[Value]) -> None:
    """Results of an operation come into scope; a token orders memory from here on."""
    for value in values:
        if value.type == TOKEN:
            maker.memory = value
        else:
            maker.keep(value)


class Inside:
    """The state of a maker within a region, put back when it ends."""

    def __init__(
        self,
        maker: Maker,
        way_out: str,
        exit_types: Sequence[Type],
        exit_values: Mapping[int, Value] | None = None,
    ) -> None:
        self.maker = maker
        self.saved = maker.way_out, maker.memory, maker.exit_types, maker.may_return
        self.saved_values = maker.exit_values
        maker.exit_values = dict(exit_values or {})
        maker.way_out = way_out
        maker.may_return &= way_out != "for"
        maker.exit_types = list(exit_types)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        maker = self.maker
        maker.way_out, maker.memory, maker.exit_types, maker.may_return = self.saved
        maker.exit_values = self.saved_values


# --- branches -------------------------------------------------------------------------------------


def branch(maker: Maker, fill: Fill) -> None:
    """An `if` whose sides yield, or leave the loop or kernel."""
    condition = maker.value(TRUTH)
    types: list[Type] = [v.type for v in _carried(maker)]
    leaves = [_leave(maker) for _ in range(2)]
    if all(leaves):
        leaves[maker.rng.randrange(2)] = ""
    # Only with a result can what a side wrote be seen to come before what follows.
    threaded = maker.memory is not None and maker.chance(0.7)
    if threaded:
        types.append(TOKEN)
    before = maker.memory
    regions = []
    for leave in leaves:
        with Inside(maker, maker.way_out, maker.exit_types, maker.exit_values):
            maker.memory = before if threaded or leave else None
            regions.append(maker.region([], lambda leave=leave: _side(maker, fill, types, leave)))
    if not types and leaves[1] == "" and maker.chance(0.3):
        regions[1].blocks.clear()
    maker.emit("if", [condition], *types, regions=tuple(regions))
    take(maker, maker.ops[-1].results)


def _leave(maker: Maker) -> str:
    ways = {"entry": (), "for": ("continue",), "loop": ("continue", "break")}
    if not maker.way_out or maker.chance(0.75):
        return ""
    found = (*ways[maker.way_out], *["return"] * maker.may_return)
    return maker.rng.choice(found)


def _side(
    maker: Maker, fill: Fill, types: Sequence[Type], leave: str
) -> tuple[str, Sequence[Value]]:
    needed = maker.exit_types if leave in ("continue", "break") else []
    if leave == "break":
        needed = maker.break_types
    if TOKEN in needed and maker.memory is None:
        leave = ""
    fill(maker)
    if leave == "":
        return "yield", given(maker, types)
    if leave == "continue" and maker.way_out == "loop":
        assert maker.turn is not None
        return leave, [maker.turn, *given(maker, needed[1:])]
    values = given(maker, needed)
    if leave == "continue":
        values = [maker.exit_values.get(at, value) for at, value in enumerate(values)]
    return leave, values


# --- loops ----------------------------------------------------------------------------------------


def counted(maker: Maker, fill: Fill) -> None:
    """A `for` of a few turns, forwards in steps; none at times."""
    kind = maker.element([I8, I16, I32, I64])
    unsigned = maker.chance(0.2)
    # More turns than a schedule has stages; loops in loops would take long.
    most = 12 if LOOPS in maker.settings.favour and maker.depth == 1 else 4
    first = maker.rng.randint(0 if unsigned else -3, 3)
    bounds = [
        bound(maker, first, kind),
        bound(maker, first + maker.rng.choice((-1, 0, 1, 2, 3, most)) if not unsigned
               else first + maker.rng.randint(0, most), kind),
        maker.number(maker.rng.choice((1, 1, 2, 3)), kind),
    ]  # fmt: skip
    inits = _carried(maker)
    if maker.memory is not None and maker.chance(0.7):
        inits.append(maker.memory)
    types = [v.type for v in inits]

    def build(index: Value, *carried: Value) -> tuple[str, Sequence[Value]]:
        maker.memory = None
        maker.keep(index)
        take(maker, carried)
        fill(maker)
        return "continue", given(maker, types)

    with Inside(maker, "for", types):
        body = maker.region([Tile((), kind), *types], build)
    flags = {"unsignedCmp": True} if unsigned else {}
    maker.emit("for", [*bounds, tuple(inits)], *types, regions=(body,), **flags)
    take(maker, maker.ops[-1].results)


def bound(maker: Maker, number: int, kind: Scalar) -> Value:
    """A number that the compiler may or may not know."""
    from tile_fuzz.case import Argument

    if maker.chance(0.6):
        return maker.number(number, kind)
    return maker.argument(Tile((), kind), Argument(kind.name, value=number))


def endless(maker: Maker, fill: Fill) -> None:
    """A `loop` that breaks after a few turns, if not before."""
    scalar = Tile((), I32)
    inits = [maker.number(0), *_carried(maker)]
    if maker.memory is not None and maker.chance(0.7):
        inits.append(maker.memory)
    types = [v.type for v in inits]
    results: list[Type] = [v.type for v in _carried(maker)]
    if inits[-1].type == TOKEN:
        results.append(TOKEN)
    limit = bound(maker, maker.rng.randint(0, 4), I32)

    def build(turn: Value, *carried: Value) -> tuple[str, Sequence[Value]]:
        maker.memory = None
        maker.keep(turn)
        take(maker, carried)
        following = maker.emit("addi", [turn, maker.number(1)], scalar)
        late = maker.emit(
            "cmpi", [turn, limit], TRUTH,
            comparison_predicate="greater_than_or_equal", signedness="signed",
        )  # fmt: skip
        out = maker.region([], lambda: ("break", given(maker, results)))
        on = maker.region([], lambda: ("yield", []))
        maker.emit("if", [late], regions=(out, on))
        maker.turn = following
        fill(maker)
        if maker.chance(0.1) and (TOKEN not in results or maker.memory is not None):
            return "break", given(maker, results)
        return "continue", [following, *given(maker, types[1:])]

    saved = maker.turn, maker.break_types
    maker.break_types = results
    with Inside(maker, "loop", types):
        body = maker.region(types, build)
    maker.turn, maker.break_types = saved
    maker.emit("loop", [tuple(inits)], *results, regions=(body,))
    take(maker, maker.ops[-1].results)


_KINDS = (branch, branch, counted, endless)
_FAVOURED = (branch, counted, counted, counted, counted, endless)
