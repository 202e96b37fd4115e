"""Programs that apply elementwise operations to special numbers, as constants and as data.

MLIR, LLVM and our own passes compute operations on constants, and drop operations that a constant
operand makes an identity. What they leave has to give what the instructions give, bit by bit, for
all types, attributes and special numbers.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np
from tile_cudatile.evaluator.formats import FLOATS, dtype_of
from tile_cudatile.rules.verify import verify
from tile_cudatile.tree import Block, Entry, Module, Op, Region, Value
from tile_cudatile.types import (
    F4E2M1FN,
    F8E8M0FNU,
    F32,
    I1,
    I4,
    I8,
    TOKEN,
    Function,
    PartitionView,
    Scalar,
    TensorView,
    Tile,
)
from tile_fuzz.case import FILLS, Case, Launch
from tile_fuzz.generator.forms import Form
from tile_fuzz.generator.guards import GUARDS, approximate, ordered
from tile_fuzz.generator.maker import Maker, Settings, element, tile
from tile_fuzz.generator.memory import base

Operands = Sequence[Value]

#: Elements of a constant tile; two, since four-bit floats come in pairs.
PAIR = 2
#: Elements of a tile of special numbers that is read from memory.
DATA = 16
_NEAREST = {"rounding_mode": "nearest_even"}
#: Formats that are not in memory: read and written by way of others.
_READ = {I4: (I8, "trunci", {"overflow": "none"}), F4E2M1FN: (F32, "ftof", _NEAREST)}
_WRITTEN = {I4: (I8, "exti", {"signedness": "signed"}), F4E2M1FN: (F32, "ftof", _NEAREST)}


def special(kind: Scalar) -> list[float]:
    """Zeros, ones, the ends of the range, subnormal, infinite, not a number, and others."""
    if not kind.is_float:
        if kind == I1:
            return [0, 1]
        high = 1 << (kind.width - 1)
        return [0, 1, -1, 2, 3, -7, high - 1, -high, 1 - high, 5]
    form = FLOATS[kind]
    if kind == F8E8M0FNU:
        return [1.0, 2.0, 0.5, form.largest]
    normal = 2.0**form.min_exponent
    least = normal * 2.0 ** (1 - form.precision)
    found = [0.0, 1.0, 2.5, 0.6875, least, 3 * least, normal, form.largest]
    if form.signed:
        found += [-x for x in found]
    if form.has_inf:
        found += [np.inf, -np.inf]
    return [*found, np.nan] if form.has_nan else found


def specials(rng: np.random.Generator, element: Scalar, count: int) -> np.ndarray:
    """Special numbers for an array, in another order for every seed."""
    numbers = np.resize(rng.permutation(np.array(special(element))), count)
    with np.errstate(all="ignore"):
        return numbers.astype(dtype_of(element))


FILLS["special"] = specials


class Applied:
    """A program that applies operations, one after the other.

    `names[n]` says which operation's results argument n holds; "" for inputs.
    """

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.maker = Maker(self.rng, Settings(), [])
        self.names: list[str] = []
        self.inputs: dict[Scalar, Value] = {}

    def add(self, form: Form, tuples: int) -> None:
        """Applies an operation to some `tuples` of constants, then to data and constants."""
        pool = list(product(*(special(kind) for kind in form.kinds)))
        chosen = pool if len(pool) <= tuples else self.rng.sample(pool, tuples)
        rows = [
            [self._splat(*x, PAIR) for x in zip(form.kinds, row, strict=True)] for row in chosen
        ]
        self._store(form, [self._apply(form, row) for row in rows], PAIR)
        self._store(form, [self._apply(form, row) for row in self._mixed(form)], DATA)

    def _mixed(self, form: Form) -> Iterator[Operands]:
        """The same data for all operands; and a constant for one of them."""
        data = [self._data(kind) for kind in form.kinds]
        yield data
        for at, kind in enumerate(form.kinds if len(data) > 1 else ()):
            for number in special(kind):
                yield [*data[:at], self._splat(kind, number, DATA), *data[at + 1 :]]

    def _apply(self, form: Form, operands: Operands) -> Value:
        old, maker = form.operation, self.maker
        shape = tile(operands[0]).shape
        types = [Tile(shape, _kind(result)) for result in old.results]
        op = Op(old.spec, tuple(operands), tuple(map(Value, types)), dict(old.attrs))
        guard = GUARDS.get(op.name)
        if guard is not None:
            op.operands = tuple(guard(maker, op, list(operands)))
        maker.ops.append(op)
        return op.results[0]

    # --- operands and results -----------------------------------------------------------------

    def _splat(self, kind: Scalar, number: float, count: int) -> Value:
        """A constant; those of i4 are made by folding."""
        if kind != I4:
            return self.maker.constant(Tile((count,), kind), number)
        return self._converted(_READ[I4], self.maker.constant(Tile((count,), I8), number), I4)

    def _data(self, kind: Scalar) -> Value:
        """Special numbers that the compiler does not know."""
        if kind not in self.inputs:
            self.inputs[kind] = self._loaded(kind)
        return self.inputs[kind]

    def _loaded(self, kind: Scalar) -> Value:
        if kind in _READ:
            found = self._loaded(_READ[kind][0])
            return self._converted(_READ[kind], ordered(self.maker, found), kind)
        view = self._view(kind, 1, DATA, "special")
        return self.maker.emit(
            "load_view_tko", [view, (self.maker.number(0),), None], Tile((DATA,), kind), TOKEN,
            memory_ordering_semantics="weak",
        )  # fmt: skip

    def _converted(
        self, way: tuple[Scalar, str, dict[str, str]], value: Value, to: Scalar
    ) -> Value:
        _, name, attrs = way
        return self.maker.emit(name, [value], Tile(tile(value).shape, to), **attrs)

    def _view(self, kind: Scalar, tiles: int, size: int, fill: str, exact: bool = True) -> Value:
        """An array of `tiles` tiles of `size` elements."""
        pointer = base(self.maker, kind, tiles * size, fill, exact)
        tensor = TensorView(kind, (tiles * size,), (1,))
        whole = self.maker.emit("make_tensor_view", [pointer, (), ()], tensor)
        return self.maker.emit("make_partition_view", [whole], PartitionView((size,), tensor, (0,)))

    def _store(self, form: Form, results: Operands, size: int) -> None:
        kind = _kind(results[0])
        if kind in _WRITTEN:
            way = _WRITTEN[kind]
            results, kind = [self._converted(way, r, way[0]) for r in results], way[0]
        view = self._view(kind, len(results), size, "zeros", not approximate(form.operation))
        self.names += [""] * (len(self.maker.arguments) - 1 - len(self.names))
        self.names.append(f"{form}, {'constants' if size == PAIR else 'data'}")
        for at, result in enumerate(results):
            self.maker.emit(
                "store_view_tko", [result, view, (self.maker.number(at),), None], TOKEN,
                memory_ordering_semantics="weak",
            )  # fmt: skip

    def case(self) -> Case:
        """The program and its launch."""
        maker = self.maker
        maker.emit("return", [()])
        type_ = Function(tuple(a.type for a in maker.args), ())
        entry = Entry("k", type_, Region([Block(tuple(maker.args), maker.ops)]))
        module = Module(entries=[entry])
        verify(module)
        return Case(module, [Launch("k", (1, 1, 1), tuple(maker.arguments))])


def _kind(value: object) -> Scalar:
    assert isinstance(value, Value)
    return element(value)
