"""Loops whose products read what others gave: attention, its gradients, and what is like them.

A turn makes scores of tiles, weights of scores, and adds products of weights to carried sums that
may be scaled before or after. All numbers are whole or powers of two, and so few bits lie between
the largest and the smallest (`_BITS`) that sums of f32 are exact in every order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import log2

from tile_cudatile.tree import Value
from tile_cudatile.types import BF16, F8E4M3FN, F8E5M2, F16, F32, I1, I32, Scalar, Tile

from tile_fuzz.generator.control import Fill, Inside, bound, take
from tile_fuzz.generator.maker import SCALAR_I32, Maker, tile
from tile_fuzz.generator.movement import spread
from tile_fuzz.generator.rows import combine, compare, exp2, fold, limited, stretch
from tile_fuzz.generator.streams import Stream, stream

#: Of the 24 that f32 has.
_BITS = 22
#: Of an array's small numbers (the rule "small": at most 4), and of weights: whole ones up to 4,
#: or powers of two from 1/8 to 1.
_OF_VALUES, _OF_WEIGHTS = 2, 3
#: Turns after which halves of a total have few bits.
_FEW = 5
_TURNS = (0, 1, 2, 2, 3, 3, 4, 5, 5, 8, 12)
#: What a sum may be multiplied by, and how many bits that can add.
_FACTORS = (((1.0, -1.0), 0), ((1.0, 0.0), 0), ((1.0, 2.0), 1), ((0.5, 1.0), 1), ((0.5, 2.0), 2))
_KINDS = (F16, F16, BF16, BF16, F8E4M3FN, F8E5M2)


@dataclass(frozen=True)
class _Sizes:
    """Rows and columns of scores, columns of sums, extent along which scores are added up."""

    rows: int
    columns: int
    wide: int
    deep: int


@dataclass
class _Sum:
    """A carried sum of products of weights, or of weights turned, and tiles of `other`."""

    start: Value
    other: Stream
    turned: bool
    bits: int  # that its factors may add, a turn

    @property
    def type(self) -> Tile:
        return tile(self.start)


def chain(maker: Maker, fill: Fill) -> None:
    """A `for` in which products read what others gave."""
    maker.depth += 1
    _Chain(maker, fill).emit()
    maker.depth -= 1


class _Chain:
    """What one loop is made of, all of it chosen before its body is."""

    def __init__(self, maker: Maker, fill: Fill) -> None:
        rng = maker.rng
        self.maker, self.fill = maker, fill
        kinds = [kind for kind in _KINDS if maker.may(kind.name)]
        self.kind: Scalar = rng.choice(kinds or [F32])
        self.sizes = sizes = _Sizes(
            rng.choice((64, 128, 128, 128, 256, 256)), rng.choice((32, 64, 128, 128)),
            rng.choice((32, 64, 128, 128)), rng.choice((32, 64, 128)),
        )  # fmt: skip
        self.turns = rng.choice(_TURNS)
        # Or as attention has it: one kind of scores and one sum, and nothing else that turns load.
        self.many = many = maker.chance(0.4)
        self.lhs = self._stream((sizes.rows, sizes.deep), 0, 1)
        self.moves = many and maker.chance(0.4)  # every turn reads other rows on the left, too
        if self.moves:
            self.lhs = self._stream((sizes.rows, sizes.deep), 0, self.turns)
        self.rhs = [
            self._stream((sizes.deep, sizes.columns), 1, self.turns)
            for _ in range(rng.choice((1, 2)) if many else 1)
        ]
        self.sums = [self._sum(many) for _ in range(rng.choice((1, 2)) if many else 1)]
        self.lines = self._line_of(sizes.rows), self._line_of(sizes.columns)
        self.largest = maker.constant(Tile((sizes.rows, 1), F32), -64.0)
        self.total = maker.constant(Tile((sizes.rows, 1), F32), 0.0)
        self.powers = maker.chance(0.5)
        self.talks = many and maker.chance(0.2)

    # --- what a turn loads ------------------------------------------------------------------------

    def _stream(self, shape: tuple[int, int], along: int, turns: int) -> Stream:
        """Tiles of such a shape, which may lie turned."""
        maker, kind = self.maker, self.kind
        plain = maker.chance(0.9)
        if maker.chance(0.6):
            return stream(maker, Tile(shape, kind), along, turns, "small", plain=plain)
        back = Tile(shape[::-1], kind)
        return replace(
            stream(maker, back, 1 - along, turns, "small", plain=plain), turned=True
        )  # fmt: skip

    def _line_of(self, extent: int) -> Stream:
        """A number for each row or column, another one in every turn."""
        return stream(self.maker, Tile((extent,), F32), 0, self.turns, "small", plain=True)

    def _sum(self, may_turn: bool) -> _Sum:
        maker, sizes = self.maker, self.sizes
        turned = may_turn and maker.chance(0.4)
        rows, deep = (sizes.columns, sizes.rows) if turned else (sizes.rows, sizes.columns)
        of_one = (deep - 1).bit_length() + _OF_VALUES + _OF_WEIGHTS
        spare = _BITS - of_one - self.turns.bit_length()
        start = maker.constant(Tile((rows, sizes.wide), F32), maker.rng.choice((0.0, 0.0, 1.0)))
        other = self._stream((deep, sizes.wide), 0, 1 if turned else self.turns)
        return _Sum(start, other, turned, spare // max(self.turns, 1))

    # --- the loop ---------------------------------------------------------------------------------

    def emit(self) -> None:
        maker = self.maker
        zero = maker.number(0)
        lhs = None if self.moves else self.lhs.load(maker, zero)
        fixed = None if self.many else [line.load(maker, zero) for line in self.lines]
        others = [one.other.load(maker, zero) if one.turned else None for one in self.sums]
        inits = [*(one.start for one in self.sums), self.largest, self.total]
        types = [value.type for value in inits]
        bounds = [bound(maker, 0, I32), bound(maker, self.turns, I32), maker.number(1, I32)]

        def build(turn: Value, *carried: Value) -> tuple[str, Sequence[Value]]:
            maker.memory = None
            left = lhs or self.lhs.load(maker, turn)
            return "continue", _Turn(self, turn, left, others, fixed, carried).following()

        with Inside(maker, "", types):
            body = maker.region([SCALAR_I32, *types], build)
        maker.emit("for", [*bounds, tuple(inits)], *types, regions=(body,))
        take(maker, maker.ops[-1].results)


class _Turn:
    """The body of the loop."""

    def __init__(
        self,
        of: _Chain,
        turn: Value,
        lhs: Value,
        others: Sequence[Value | None],
        lines: Sequence[Value] | None,
        carried: Sequence[Value],
    ) -> None:
        """Makes the scores. `others` and `lines` are what was loaded before the loop."""
        self.of, self.turn, self.lhs, self.others, self.lines = of, turn, lhs, others, lines
        self.maker = maker = of.maker
        self.type = Tile((of.sizes.rows, of.sizes.columns), F32)
        *self.sums, self.before, self.total = carried
        made = [self._made(one) for one in of.rhs]
        if len(made) > 1:
            made = [combine(maker, maker.rng.choice(("addf", "maxf", "subf")), *made)]
        self.scores = self._worked(made[0])
        self.largest = combine(maker, "maxf", self.before, fold(maker, self.scores, 1, "maxf"))

    def following(self) -> list[Value]:
        """The values that the turn gives."""
        maker, of = self.maker, self.of
        weights = self._powers() if of.powers else limited(maker, self.scores, -2.0, 4.0)
        weights = self._masked(weights) if maker.chance(0.3) else weights
        if of.talks:
            maker.keep(weights)
            of.fill(maker)
        total = self._total(weights)
        after = [
            self._added(one, weights, at, before)
            for at, (one, before) in enumerate(zip(of.sums, self.sums, strict=True))
        ]
        return [*after, self.largest, total]

    def _shrunk(self) -> Value:
        """How much less the largest scores were before, a number for each row."""
        return combine(self.maker, "subf", self.before, self.largest)

    def _total(self, weights: Value) -> Value:
        """The sum of the weights so far; as attention has it, those before are scaled."""
        maker, before = self.maker, self.total
        if maker.chance(0.2):
            return before
        if self.of.turns <= _FEW and maker.chance(0.6):
            power = exp2(maker, limited(maker, self._shrunk(), -1.0, 0.0))
            before = combine(maker, "mulf", before, power)
        return combine(maker, "addf", before, fold(maker, weights, 1, "addf"))

    # --- weights ----------------------------------------------------------------------------------

    def _made(self, of: Stream) -> Value:
        """The scores of one product."""
        maker = self.maker
        start = maker.constant(self.type, float(self.of.many and maker.chance(0.25)))
        if self.of.many and maker.chance(0.15):
            start = stretch(maker, self._line(1), self.type)
        return maker.emit("mmaf", [self.lhs, of.load(maker, self.turn), start], self.type)

    def _worked(self, scores: Value) -> Value:
        """Something done to scores that leaves whole numbers."""
        maker = self.maker
        if maker.chance(0.3):
            by = maker.constant(self.type, maker.rng.choice((2.0, -1.0, 4.0)))
            scores = combine(maker, "mulf", scores, by)
        if maker.chance(0.3):
            line = stretch(maker, self._line(maker.rng.randrange(2)), self.type)
            scores = combine(maker, maker.rng.choice(("addf", "subf", "maxf")), scores, line)
        return self._masked(scores, -32.0) if maker.chance(0.3) else scores

    def _masked(self, values: Value, otherwise: float = 0.0) -> Value:
        """Another number where a column lies behind a row, in some or all turns."""
        maker, sizes = self.maker, self.of.sizes
        at = [self._places(axis) for axis in range(2)]
        step = maker.constant(SCALAR_I32, maker.rng.choice((0, sizes.columns // 2, sizes.columns)))
        moved = spread(maker, maker.emit("muli", [self.turn, step], SCALAR_I32), tile(at[1]).shape)
        column = maker.emit("addi", [at[1], moved], at[1].type)
        keeps = maker.emit(
            "cmpi", [at[0], column], Tile(self.type.shape, I1), signedness="signed",
            comparison_predicate=maker.rng.choice(("greater_than_or_equal", "less_than")),
        )  # fmt: skip
        if not maker.chance(0.3):
            other = maker.constant(self.type, otherwise)
            return maker.emit("select", [keeps, values, other], self.type)
        late = self._compared(self.turn, maker.rng.randint(0, 3))

        def masked() -> tuple[str, list[Value]]:
            other = maker.constant(self.type, otherwise)
            return "yield", [maker.emit("select", [keeps, values, other], self.type)]

        sides = maker.region([], masked), maker.region([], lambda: ("yield", [values]))
        return maker.emit("if", [late], self.type, regions=sides)

    def _places(self, axis: int) -> Value:
        maker, shape = self.maker, self.type.shape
        line = maker.emit("iota", [], Tile((shape[axis],), I32))
        lying = (shape[0], 1) if axis == 0 else (1, shape[1])
        standing = maker.emit("reshape", [line], Tile(lying, I32))
        return maker.emit("broadcast", [standing], Tile(shape, I32))

    def _compared(self, number: Value, with_: int) -> Value:
        return self.maker.emit(
            "cmpi", [number, self.maker.number(with_)], Tile((), I1), signedness="signed",
            comparison_predicate=self.maker.rng.choice(("greater_than_or_equal", "equal")),
        )  # fmt: skip

    def _powers(self) -> Value:
        """Powers of two from 1/8 to 1, of how far scores lie under what is no smaller."""
        maker, scores, largest = self.maker, self.scores, self.largest
        if maker.chance(0.3):
            largest = fold(maker, scores, maker.rng.choice((0, 1, 1)), "maxf")
        under = combine(maker, "subf", scores, stretch(maker, largest, self.type))
        return exp2(maker, limited(maker, under, -3.0, 0.0))

    def _line(self, axis: int) -> Value:
        """A number from memory for each row (0) or column (1) of scores, to be stretched."""
        maker, sizes = self.maker, self.of.sizes
        shape = (sizes.rows, 1) if axis == 0 else (1, sizes.columns)
        loaded = self.lines[axis] if self.lines else self.of.lines[axis].load(maker, self.turn)
        return maker.emit("reshape", [loaded], Tile(shape, F32))

    # --- sums -------------------------------------------------------------------------------------

    def _added(self, one: _Sum, weights: Value, at: int, before: Value) -> Value:
        """The sum, scaled before or after or not at all, and the product of the weights."""
        maker = self.maker
        held = maker.emit(
            "ftof", [weights], Tile(self.type.shape, self.of.kind), rounding_mode="nearest_even"
        )
        if one.turned:
            turned = Tile(self.type.shape[::-1], self.of.kind)
            held = maker.emit("permute", [held], turned, permutation=(1, 0))
        other = self.others[at] or one.other.load(maker, self.turn)
        scale = self._scale(one, weights)
        way = maker.rng.choice(("before", "before", "before", "after", "apart", "branch"))
        way = way if self.of.many or maker.chance(0.3) else "before"
        if way == "after" and scale is not None:
            return scale(maker.emit("mmaf", [held, other, before], one.type))
        if way == "branch" and scale is not None:
            before = self._where(one, scale, before)
        elif scale is not None:
            before = scale(before)
        if way != "apart":
            return maker.emit("mmaf", [held, other, before], one.type)
        product = maker.emit("mmaf", [held, other, maker.constant(one.type, 0.0)], one.type)
        return combine(maker, "addf", before, product)

    def _where(self, one: _Sum, scale: Callable[[Value], Value], before: Value) -> Value:
        """The sum scaled in some turns, or where any row has a new largest score."""
        maker = self.maker
        if maker.chance(0.5):
            condition = self._compared(self.turn, maker.rng.randint(0, 3))
        else:
            grown = combine(maker, "subf", self.largest, self.before)
            most = fold(maker, grown, 0, "maxf")
            scalar = maker.emit("reshape", [most], Tile((), F32))
            condition = compare(maker, "greater_than", scalar, 0.0)
        sides = (
            maker.region([], lambda: ("yield", [scale(before)])),
            maker.region([], lambda: ("yield", [before])),
        )
        return maker.emit("if", [condition], one.type, regions=sides)

    def _scale(self, one: _Sum, weights: Value) -> Callable[[Value], Value] | None:
        """How a sum is scaled; None if it is not."""
        maker = self.maker
        if maker.chance(0.2):
            return None
        fits = [pair for pair, bits in _FACTORS if bits <= one.bits]
        if not fits:
            return None
        pair = maker.rng.choice(fits)
        source = self._source(one, weights)
        if source is None:
            constant = maker.constant(one.type, maker.rng.choice(pair))
            return lambda value: combine(maker, "mulf", value, constant)
        factor = self._chosen(source, pair)
        wide = stretch(maker, factor, one.type)
        return lambda value: combine(maker, "mulf", value, wide)

    def _chosen(self, source: Value, pair: tuple[float, float]) -> Value:
        """One of two numbers by what `source` is, or powers of two of it."""
        maker, type_ = self.maker, tile(source)
        if maker.chance(0.5) and min(pair) > 0:
            return exp2(maker, limited(maker, source, *map(log2, pair)))
        first, second = (maker.constant(type_, number) for number in pair)
        above = compare(maker, "greater_than", source, float(maker.rng.choice((-1, 0, 1))))
        return maker.emit("select", [above, first, second], type_)

    def _source(self, one: _Sum, weights: Value) -> Value | None:
        """What factors are made of: whole numbers, or powers of two where they are compared."""
        maker = self.maker
        way = maker.rng.choice(("carried", "carried", "line", "fold", "all", "turn", "constant"))
        if way == "constant":
            return None
        if way == "turn":
            number = maker.emit("itof", [self.turn], Tile((), F32), signedness="signed",
                                rounding_mode="nearest_even")  # fmt: skip
            return maker.emit("reshape", [number], Tile((1, 1), F32))
        if way == "carried" and not one.turned:
            return self._shrunk()
        if way == "line" or one.turned:
            line = self._line(1 if one.turned else 0)
            return maker.emit("reshape", [line], Tile((one.type.shape[0], 1), F32))
        found = self._rounded(fold(maker, weights, 1, maker.rng.choice(("maxf", "minf"))))
        return fold(maker, found, 0, "maxf") if way == "all" else found

    def _rounded(self, powers: Value) -> Value:
        """Whole numbers: 1 in place of a power that is 1, and 0 of others."""
        maker, type_ = self.maker, tile(powers)
        if not self.of.powers:
            return powers
        full = compare(maker, "greater_than_or_equal", powers, 1.0)
        one, none = maker.constant(type_, 1.0), maker.constant(type_, 0.0)
        return maker.emit("select", [full, one, none], type_)
