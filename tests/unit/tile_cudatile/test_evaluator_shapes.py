"""Operations that move elements or reinterpret them, on every type: no bit may change."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest
from tile_cudatile import evaluate, verify
from tile_cudatile import types as t
from tile_cudatile.attrs import Dense
from tile_cudatile.evaluator import EvaluationError
from tile_cudatile.ops.constraints import INTS, NUMBERS
from tile_cudatile.tree import Op, Value
from unit.tile_cudatile.apply import program
from unit.tile_cudatile.exact_floats import FORMATS
from unit.tile_cudatile.raw_runs import Writer, argument, cells, empty, patterns

ALL = [*NUMBERS, t.I4]
COUNT = 16
ROW = t.Tile((COUNT,), t.I32)


def bits(element: t.Scalar, count: int = COUNT) -> list[int]:
    """Patterns, NaN with payloads among them."""
    rng = random.Random(count)
    found = [rng.getrandbits(element.width) for _ in range(count)]
    if element.is_float:
        edges = FORMATS[element.name].edges()
        found[: len(edges[-6:])] = edges[-6:]
    if element == t.F8E5M3FNU or element == t.F8E8M0FNU:
        found[0] = 255
    return found


Build = Callable[[Writer, Value, Callable[..., t.Tile]], Value]


def moved(element: t.Scalar, build: Build, given: list[int], size: int = COUNT) -> list[int]:
    """`build` on a tile of these patterns; it gives a row of `size` elements."""
    source, out = cells(element, given, len(given)), empty(element, size)

    def make(ops: list[Op], *args: Value) -> None:
        writer = Writer(ops)
        loaded = writer.load(args[0], element, len(given))
        value = build(writer, loaded, lambda *shape: t.Tile(shape, element))
        writer.store(args[1], value, element, size)

    module = program(make, [argument(element)] * 2)
    verify(module)
    evaluate(module, "k", (1,), [source, out])
    return patterns(element, out, size)


def index(writer: Writer, value: int) -> Value:
    tile = t.Tile((), t.I32)
    return writer.emit("constant", [], tile, value=Dense(tile, value.to_bytes(4, "little")))


@pytest.mark.parametrize("element", ALL, ids=str)
def test_moves(element: t.Scalar) -> None:
    given = bits(element)
    whole = np.array(given, object).reshape(2, 8)

    def square(writer: Writer, value: Value, tile) -> Value:
        return writer.emit("reshape", [value], tile(2, 8))

    def permute(writer: Writer, value: Value, tile) -> Value:
        turned = writer.emit(
            "permute", [square(writer, value, tile)], tile(8, 2), permutation=(1, 0)
        )
        return writer.emit("reshape", [turned], tile(COUNT))

    assert moved(element, permute, given) == list(whole.T.ravel())

    def cat(writer: Writer, value: Value, tile) -> Value:
        two = square(writer, value, tile)
        joined = writer.emit("cat", [two, two], tile(2, 16), dim=1)
        return writer.emit("reshape", [joined], tile(2 * COUNT))

    assert moved(element, cat, given, 2 * COUNT) == list(np.hstack([whole, whole]).ravel())

    def extract(writer: Writer, value: Value, tile) -> Value:
        two = square(writer, value, tile)
        where = (index(writer, 1), index(writer, 2))
        part = writer.emit("extract", [two, where], tile(1, 2))
        return writer.emit("reshape", [part], tile(2))

    assert moved(element, extract, given, 2) == list(whole[1:, 4:6].ravel())

    def insert(writer: Writer, value: Value, tile) -> Value:
        two = square(writer, value, tile)
        part = writer.emit("extract", [two, (index(writer, 1), index(writer, 2))], tile(1, 2))
        made = writer.emit("insert", [part, two, (index(writer, 0), index(writer, 0))], tile(2, 8))
        return writer.emit("reshape", [made], tile(COUNT))

    changed = whole.copy()
    changed[0, :2] = whole[1, 4:6]
    assert moved(element, insert, given) == list(changed.ravel())

    def broadcast(writer: Writer, value: Value, tile) -> Value:
        column = writer.emit("reshape", [value], tile(COUNT, 1))
        wide = writer.emit("broadcast", [column], tile(COUNT, 2))
        return writer.emit("reshape", [wide], tile(2 * COUNT))

    assert moved(element, broadcast, given, 2 * COUNT) == [g for g in given for _ in range(2)]


@pytest.mark.parametrize("element", [e for e in ALL if e != t.F4E2M1FN], ids=str)
def test_selections(element: t.Scalar) -> None:
    given, mask = bits(element, 32), bits(t.I1, COUNT)

    def select(writer: Writer, value: Value, tile) -> Value:
        halves = [
            writer.emit("extract", [value, (index(writer, i),)], tile(COUNT)) for i in range(2)
        ]
        truth = t.Tile((COUNT,), t.I1)
        data = np.packbits(mask, bitorder="little").tobytes()
        condition = writer.emit("constant", [], truth, value=Dense(truth, data))
        return writer.emit("select", [condition, *halves], tile(COUNT))

    found = moved(element, select, given, COUNT)
    assert found == [given[i] if mask[i] else given[COUNT + i] for i in range(COUNT)]


@pytest.mark.parametrize("element", NUMBERS, ids=str)
def test_constants(element: t.Scalar) -> None:
    given = bits(element)
    size = (element.width + 7) // 8
    data = b"".join(g.to_bytes(size, "little") for g in given)
    if element == t.I1:
        data = np.packbits(given, bitorder="little").tobytes()

    def constant(writer: Writer, value: Value, tile) -> Value:
        return writer.emit("constant", [], tile(COUNT), value=Dense(tile(COUNT), data))

    assert moved(element, constant, given) == given

    def splat(writer: Writer, value: Value, tile) -> Value:
        one = b"\xff" if element == t.I1 else given[3].to_bytes(size, "little")
        return writer.emit("constant", [], tile(COUNT), value=Dense(tile(COUNT), one))

    assert moved(element, splat, given) == [1 if element == t.I1 else given[3]] * COUNT


@pytest.mark.parametrize("element", INTS, ids=str)
def test_counting(element: t.Scalar) -> None:
    count = min(COUNT, 1 << element.width)

    def iota(writer: Writer, value: Value, tile) -> Value:
        return writer.emit("iota", [], tile(count))

    assert moved(element, iota, bits(element), count) == list(range(count))


def test_counting_to_the_end_of_the_type() -> None:
    def iota(writer: Writer, value: Value, tile) -> Value:
        return writer.emit("iota", [], tile(256))

    assert moved(t.I8, iota, bits(t.I8), 256) == list(range(256))


def _bytes(element: t.Scalar, given: list[int]) -> bytes:
    """The elements as they lie one behind the other, 1- and 4-bit ones packed."""
    if element.width < 8:
        whole = sum(g << i * element.width for i, g in enumerate(given))
        return whole.to_bytes(len(given) * element.width // 8, "little")
    if element == t.TF32:
        return b"".join((g << 13).to_bytes(4, "little") for g in given)
    return b"".join(g.to_bytes(element.width // 8, "little") for g in given)


@pytest.mark.parametrize("element", [e for e in ALL if e.width != 8], ids=str)
def test_packing(element: t.Scalar) -> None:
    given = bits(element)
    expected = _bytes(element, given)
    out, back = np.zeros(len(expected), np.uint8), empty(element, COUNT)

    def build(ops: list[Op], *args: Value) -> None:
        writer = Writer(ops)
        value = writer.load(args[0], element, COUNT)
        packed = writer.emit("pack", [value], t.Tile((len(expected),), t.I8))
        writer.store(args[1], packed, t.I8, len(expected))
        again = writer.emit("unpack", [packed], t.Tile((COUNT,), element))
        writer.store(args[2], again, element, COUNT)

    module = program(build, [argument(element), argument(t.I8), argument(element)])
    verify(module)
    evaluate(module, "k", (1,), [cells(element, given, COUNT), out, back])
    assert out.tobytes() == expected
    assert patterns(element, back, COUNT) == given


@pytest.mark.parametrize("element", INTS, ids=str)
@pytest.mark.parametrize("pointee", [e for e in NUMBERS if e != t.F4E2M1FN], ids=str)
def test_addresses(element: t.Scalar, pointee: t.Scalar) -> None:
    """Offsets are signed numbers of elements; casts of pointers keep the address."""
    far = 1 << element.width - 1 if element.width < 64 else 1 << 40
    given = [0, 1, (1 << element.width) - 1, far]
    out, distance = np.zeros(1, np.float32), np.zeros(len(given), np.int64)
    lanes = t.Tile((len(given),), t.Pointer(pointee))
    longs, floats = t.Tile((len(given),), t.I64), t.Tile((len(given),), t.Pointer(t.F32))

    def build(ops: list[Op], *args: Value) -> None:
        writer = Writer(ops)
        steps = writer.load(args[0], element, len(given))
        one = writer.emit("reshape", [args[1]], t.Tile((1,), t.Pointer(t.F32)))
        base = writer.emit("ptr_to_ptr", [writer.emit("broadcast", [one], floats)], lanes)
        moved_ = writer.emit("offset", [base, steps], lanes)
        again = writer.emit("int_to_ptr", [writer.emit("ptr_to_int", [moved_], longs)], lanes)
        start, end = (writer.emit("ptr_to_int", [p], longs) for p in (base, again))
        away = writer.emit("subi", [end, start], longs)
        writer.store(args[2], away, t.I64, len(given))

    module = program(build, [argument(element), argument(t.F32), argument(t.I64)])
    verify(module)
    evaluate(module, "k", (1,), [cells(element, given, len(given)), out, distance])
    size = 4 if pointee == t.TF32 else max(pointee.width // 8, 1)
    half = 1 << element.width - 1
    assert list(distance) == [((g ^ half) - half) * size for g in given]


def test_offsets_that_leave_the_address_space_are_reported() -> None:
    lanes = t.Tile((), t.Pointer(t.F32))

    def build(ops: list[Op], base: Value, step: Value) -> None:
        Writer(ops).emit("offset", [base, step], lanes)

    module = program(build, [argument(t.F32), t.Tile((), t.I64)])
    evaluate(module, "k", (1,), [np.zeros(1, np.float32), -(1 << 20)])
    with pytest.raises(EvaluationError, match="overflows"):
        evaluate(module, "k", (1,), [np.zeros(1, np.float32), 1 << 61])
