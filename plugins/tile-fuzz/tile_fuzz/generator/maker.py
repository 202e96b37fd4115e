"""What all parts of the generator share: the program under construction and the values in it."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from tile_cudatile.attrs import Dense
from tile_cudatile.evaluator.formats import dtype_of, encode
from tile_cudatile.locations import UNKNOWN
from tile_cudatile.ops.constraints import BASE_FLOATS, INTS
from tile_cudatile.transforms.rewrite import make
from tile_cudatile.tree import Block, Op, Region, Value
from tile_cudatile.types import (
    F4E2M1FN,
    F32,
    I1,
    I4,
    I32,
    SCALARS,
    TF32,
    Scalar,
    Tile,
    Type,
)

from tile_fuzz.case import Argument

SCALAR_I32 = Tile((), I32)
TRUTH = Tile((), I1)

#: How often elements are drawn.
WEIGHTS: dict[Scalar, int] = {
    **dict.fromkeys(SCALARS.values(), 2),
    **dict.fromkeys((*INTS, *BASE_FLOATS), 6),
    **dict.fromkeys((I32, F32), 14),
}
#: Elements that arrays in memory are made of; two f4E2M1FN share a byte, i4 has no memory form.
IN_MEMORY = tuple(e for e in WEIGHTS if e not in (F4E2M1FN, I4))


@dataclass(frozen=True, slots=True)
class Item:
    """A value that operations may use.

    `exact`: the language defines its bits, but for those of NaN. Others, such as sines, must not
    reach anything that could make a small difference a large one.
    """

    value: Value
    exact: bool = True


@dataclass(frozen=True)
class Settings:
    """Limits of what is generated.

    `operations` bounds the statements of a kernel, `elements` those of a tile, `blocks` the
    extent of a grid, `depth` the nesting of control flow. `avoid` names operations, elements
    and other things (`elementwise.FEATURES`) that must not occur, `favour` what shall occur often
    (`favoured.FAVOURED`).
    """

    operations: int = 24
    elements: int = 1024
    blocks: int = 3
    depth: int = 3
    avoid: frozenset[str] = frozenset()
    favour: frozenset[str] = frozenset()


class Maker:
    """One kernel under construction.

    `ops` is the block that operations are appended to; `items` are the values in scope, inner
    ones last. `memory` is the token that orders accesses to memory that the kernel writes, None
    where such accesses must not stand. `way_out` says what a branch may leave: "entry", "for",
    "loop", or "" where it must not; `may_return` whether a loop around it lets it leave the kernel.
    """

    def __init__(self, rng: random.Random, settings: Settings, shapes: list[tuple[int, ...]]):
        self.rng = rng
        self.settings = settings
        self.shapes = shapes
        self.ops: list[Op] = []
        self.items: list[Item] = []
        self.args: list[Value] = []
        self.arguments: list[Argument] = []
        self.memory: Value | None = None
        self.way_out = "entry"
        self.may_return = True
        self.exit_types: list[Type] = []  # what `continue` of the innermost loop gives
        #: Which values it has to give, by position: sums that are exact stay so.
        self.exit_values: dict[int, Value] = {}
        self.break_types: list[Type] = []  # what `break` gives
        self.turn: Value | None = None  # the next turn of the innermost `loop`, which bounds it
        self.depth = 0
        self.budget = settings.operations
        self.grid: tuple[int, int, int] = (1, 1, 1)
        self.block: Value | None = None  # number of the tile block in the grid
        #: Fresh values of a type, set by `values`.
        self.fresh: Callable[[Maker, Tile], Value] | None = None

    @property
    def blocks(self) -> int:
        """Tile blocks of the grid."""
        return count(self.grid)

    # --- operations ---------------------------------------------------------------------------

    def emit(
        self,
        name: str,
        operands: Sequence[Any],
        /,
        *results: Type,
        **attrs: Any,
    ) -> Any:
        """Appends an operation; gives its first result, None if it has none.

        `attrs` are its attributes, and its `regions` if it has any.
        """
        regions = attrs.pop("regions", ())
        op = make(name, tuple(operands), results, UNKNOWN, regions, **attrs)
        missing = len(op.spec.operands) - len(op.operands)
        op.operands = (*op.operands, *[None] * missing)
        if "inbounds" in op.attrs and not op.attrs["inbounds"]:
            index = op.group("index")
            assert isinstance(index, tuple)
            op.attrs["inbounds"] = (False,) * len(index)
        self.ops.append(op)
        return op.results[0] if op.results else None

    def keep(self, value: Value, exact: bool = True) -> Value:
        """Lets later operations use a value."""
        self.items.append(Item(value, exact))
        return value

    def argument(self, type_: Tile, argument: Argument) -> Value:
        """A further argument of the kernel."""
        self.args.append(Value(type_))
        self.arguments.append(argument)
        return self.args[-1]

    def constant(self, type_: Tile, values: Any) -> Value:
        """A constant: a number for all elements, or an array."""
        return self.emit("constant", [], type_, value=dense(type_, values))

    def number(self, value: int, element: Scalar = I32) -> Value:
        """A scalar constant."""
        return self.constant(Tile((), element), value)

    # --- regions ------------------------------------------------------------------------------

    def region(
        self, types: Sequence[Type], build: Callable[..., tuple[str, Sequence[Value]]]
    ) -> Region:
        """A region of one block; `build(*arguments)` gives its terminator and operands."""
        outer, self.ops = self.ops, []
        mark = len(self.items)
        args = tuple(map(Value, types))
        name, operands = build(*args)
        self.emit(name, [tuple(operands)])
        block, self.ops = Block(args, self.ops), outer
        del self.items[mark:]
        return Region([block])

    # --- choices ------------------------------------------------------------------------------

    def may(self, what: str) -> bool:
        """Whether an operation, or something else with a name, may occur."""
        return what not in self.settings.avoid

    def chance(self, probability: float) -> bool:
        """True that often."""
        return self.rng.random() < probability

    def element(self, among: Sequence[Scalar] = tuple(WEIGHTS)) -> Scalar:
        """An element type."""
        known = [e for e in among if e in WEIGHTS and self.may(e.name)]
        return self.rng.choices(known, [WEIGHTS[e] for e in known])[0]

    def shape(self) -> tuple[int, ...]:
        """One of the shapes that recur in the program."""
        return self.rng.choice(self.shapes)

    def pick(self, accepts: Callable[[Item], bool]) -> Item | None:
        """A value in scope, later ones more often."""
        found = [item for item in self.items if accepts(item)]
        if not found:
            return None
        at = max(self.rng.randrange(len(found)), self.rng.randrange(len(found)))
        return found[at]

    def value(self, type_: Tile, reuse: float = 0.85) -> Value:
        """An exact value of a type: one that is there, or a new one."""
        if self.chance(reuse):
            found = self.pick(lambda item: item.exact and item.value.type == type_)
            if found is not None:
                return found.value
        assert self.fresh is not None
        return self.fresh(self, type_)


def dense(type_: Tile, values: Any) -> Dense:
    """Constant data: a splat of a number, or the elements of an array."""
    element = type_.element
    assert isinstance(element, Scalar)
    array = np.asarray(values)
    if element == I1:
        if array.ndim == 0:
            return Dense(type_, b"\xff" if array else b"\x00")
        packed = np.packbits(array.reshape(-1).astype(np.bool_), bitorder="little").tobytes()
        return Dense(type_, packed)
    with np.errstate(all="ignore"):
        held = array.astype(dtype_of(element))
    if element == TF32:
        raw = (np.ascontiguousarray(held.reshape(-1)).view(np.uint32) >> 13).astype("<u4")
        return Dense(type_, raw.view(np.uint8).reshape(-1, 4)[:, :3].tobytes())
    if element == I4:
        held = ((held.astype(np.int8) & 15) ^ 8) - np.int8(8)
    return Dense(type_, np.ascontiguousarray(encode(held.reshape(-1), element)).tobytes())


def tile(value: Value) -> Tile:
    """The type of a value that is a tile."""
    assert isinstance(value.type, Tile)
    return value.type


def element(value: Value) -> Scalar:
    """The element type of a tile of numbers."""
    found = tile(value).element
    assert isinstance(found, Scalar)
    return found


def count(shape: Sequence[int]) -> int:
    """Elements of a shape."""
    return int(np.prod(shape, dtype=np.int64))
