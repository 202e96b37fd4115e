"""Folds of single operations."""

from __future__ import annotations

from tile_core.deferred_numpy import np
from tile_cudatile.attrs import Dense, element_count, storage_bytes
from tile_cudatile.transforms.rewrite import (
    Pattern,
    Place,
    Rewriter,
    make,
    negated,
    negation,
    number_of,
    truth,
)
from tile_cudatile.transforms.selection import Questions, nearer_arms, one_of_its_parts
from tile_cudatile.tree import Op, Value
from tile_cudatile.types import I1, Tile


def assume_twice(rewriter: Rewriter, op: Op, place: Place) -> bool:
    """assume p (assume p x) => assume p x"""
    value = op.operands[0]
    assert isinstance(value, Value)
    inner = value.owner
    if not isinstance(inner, Op) or inner.name != "assume":
        return False
    if inner.attrs["predicate"] != op.attrs["predicate"]:
        return False
    rewriter.replace(op.result, value)
    return True


def product_first(rewriter: Rewriter, op: Op, place: Place) -> bool:
    """addf x, (mulf ..) => addf (mulf ..), x"""
    left, right = op.operands
    if not _is_product(right) or _is_product(left):
        return False
    op.operands = (right, left)
    place.again(op)
    return True


def _is_product(value: object) -> bool:
    return isinstance(value, Value) and isinstance(value.owner, Op) and value.owner.name == "mulf"


def _parts(op: Op) -> tuple[Value, Value, Value]:
    condition, then, other = op.operands
    assert isinstance(condition, Value)
    assert isinstance(then, Value)
    assert isinstance(other, Value)
    return condition, then, other


def select_known(rewriter: Rewriter, op: Op, place: Place) -> bool:
    """A selection that is one of its operands."""
    found = one_of_its_parts(_parts(op), _ASK)
    if found is None:
        return False
    rewriter.replace(op.result, found)
    return True


def _compared(value: Value) -> tuple[str, frozenset[Value]] | None:
    owner = value.owner
    if not isinstance(owner, Op) or owner.name != "cmpi":
        return None
    return str(owner.attrs["comparison_predicate"]), frozenset(owner.values())


def _selection(value: Value) -> tuple[Value, Value, Value] | None:
    owner = value.owner
    return _parts(owner) if isinstance(owner, Op) and owner.name == "select" else None


_ASK = Questions(truth, _compared, _selection)


def select_turned(rewriter: Rewriter, op: Op, place: Place) -> bool:
    """select (not c) x y => select c y x, and what the same condition decided before"""
    condition, then, other = _parts(op)
    plain = negated(condition)
    if plain is not None:
        op.operands = (plain, other, then)
    else:
        nearer = nearer_arms((condition, then, other), _ASK)
        if nearer is None:
            return False
        op.operands = (condition, *nearer)
    place.again(op)
    return True


def select_made(rewriter: Rewriter, op: Op, place: Place) -> bool:
    """Selections of constants."""
    made = _made(op)
    if not made:
        return False
    rewriter.replace(op.result, made[-1].result)
    place.again(*made)
    return True


def _made(op: Op) -> list[Op]:
    condition, then, other = _parts(op)
    if truth(then) is False and truth(other) is True:
        return negation(condition, op.loc)
    elements = [_elements(value) for value in (condition, then, other)]
    if all(e is not None for e in elements):
        chosen = np.where(*elements)  # type: ignore[arg-type]
        return [make("constant", (), [op.result.type], op.loc, value=_dense(op.result, chosen))]
    numbers = (_number(then), _number(other))
    if numbers == (1, 0):
        return [_extended(condition, op)]
    if numbers == (0, 1):
        turned = negation(condition, op.loc)
        return [*turned, _extended(turned[-1].result, op)]
    return []


def _extended(condition: Value, op: Op) -> Op:
    return make("exti", (condition,), [op.result.type], op.loc, signedness="unsigned")


def _dense_of(value: Value) -> Dense | None:
    owner = value.owner
    if isinstance(owner, Op) and owner.name == "constant":
        data = owner.attrs["value"]
        assert isinstance(data, Dense)
        return data
    return None


def _number(value: Value) -> int | None:
    """The integer that all elements of a constant are."""
    known = truth(value)
    return number_of(value) if known is None else int(known)


def _elements(value: Value) -> np.ndarray | None:
    """The elements of a constant as bytes; of truth values as booleans."""
    data = _dense_of(value)
    if data is None:
        return None
    count = element_count(data.type.shape)
    raw = np.frombuffer(data.data, np.uint8)
    if data.type.element == I1:
        if data.is_splat:
            return np.full(count, bool(raw[0] & 1))
        return np.unpackbits(raw, bitorder="little")[:count].astype(bool)
    size = storage_bytes(data.type.element)
    cells = np.frombuffer(data.data, f"V{size}")
    return np.broadcast_to(cells, (count,)) if len(cells) == 1 else cells


def _dense(result: Value, elements: np.ndarray) -> Dense:
    assert isinstance(result.type, Tile)
    data, first = elements.tobytes(), elements[:1].tobytes()
    same = data == first * len(elements)
    if result.type.element == I1:
        if same:
            return Dense(result.type, b"\xff" if elements[0] else b"\x00")
        return Dense(result.type, np.packbits(elements, bitorder="little").tobytes())
    return Dense(result.type, first if same else data)


FOLDS: dict[str, tuple[Pattern, ...]] = {
    "assume": (assume_twice,),
    "addf": (product_first,),
    "select": (select_known, select_turned, select_made),
}
