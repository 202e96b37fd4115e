"""Elementwise operations, straight from the operation tables.

Every operation whose declaration says that all its operands and results are tiles of numbers of
one shape is drawn; a new row of the tables comes in by itself. What the language leaves undefined
for some operands is kept out by `guards`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import product

from tile_cudatile.ops import BODY_OPS
from tile_cudatile.ops.constraints import NUMBERS
from tile_cudatile.ops.spec import AttrSpec, OpSpec
from tile_cudatile.rules.fields import field_problems
from tile_cudatile.rules.registry import RULES
from tile_cudatile.tree import Op, Value
from tile_cudatile.types import BF16, F4E2M1FN, F8E5M3FNU, F16, Scalar, Tile

from tile_fuzz.generator.guards import GUARDS, UNDEFINED, approximate
from tile_fuzz.generator.maker import Maker, element

#: Rules that tie shapes together; "type" and "element" tie elements.
_SHAPES = ("type", "shape", "i1_like", "elementwise_shape", "operands_shape")
_ELEMENTS = ("type", "element")
_ATTEMPTS = 20


@dataclass(frozen=True)
class Signature:
    """Which names of an operation share an element, and what it can be."""

    spec: OpSpec
    groups: tuple[tuple[frozenset[str], tuple[Scalar, ...]], ...]


def signature(spec: OpSpec) -> Signature | None:
    """How an elementwise operation is typed; None for any other operation."""
    values = (*spec.operands, *spec.results)
    plain = spec.effects in ("pure", "none") and not spec.regions and not spec.terminator
    if not plain or not spec.operands or len(spec.results) != 1:
        return None
    if any(v.arity != "one" or v.constraint.classes != (Tile,) for v in values):
        return None
    names = [v.name for v in values]
    if len(_joined(names, spec, _SHAPES)) != 1:
        return None
    groups = []
    for group in _joined(names, spec, _ELEMENTS):
        choices = [set(v.constraint.elements or NUMBERS) for v in values if v.name in group]
        # A tile of pointers has no elements that are numbers.
        if any(v.constraint.elements == frozenset() for v in values):
            return None
        groups.append((group, tuple(sorted(set.intersection(*choices), key=lambda e: e.name))))
    return Signature(spec, tuple(groups))


def _joined(names: list[str], spec: OpSpec, kinds: tuple[str, ...]) -> list[frozenset[str]]:
    """The names in groups that rules of these kinds tie together."""
    groups = [{name} for name in names]
    for kind, tied in spec.rules:
        if kind in kinds:
            together = set(tied) or set(names)
            hit = [g for g in groups if g & together]
            groups = [g for g in groups if not g & together] + [set().union(*hit)]
    return [frozenset(g) for g in sorted(groups, key=lambda g: min(map(names.index, g)))]


@cache
def signatures() -> dict[str, Signature]:
    """The elementwise operations of the language."""
    found = {spec.name: signature(spec) for spec in BODY_OPS}
    return {name: made for name, made in found.items() if made is not None}


# --- drawing --------------------------------------------------------------------------------------


def elementwise(maker: Maker) -> None:
    """A random elementwise operation on values in scope."""
    chosen = maker.rng.choice(list(signatures().values()))
    drawable = all(any(maker.may(e.name) for e in choices) for _, choices in chosen.groups)
    if not maker.may(chosen.spec.name) or not drawable:
        return
    op = _typed(maker, chosen)
    if op is not None:
        complete(maker, op)


def convert(maker: Maker, name: str, source: Value, target: Tile) -> Value | None:
    """`source` as `target` by the conversion `name`; None if that takes other types."""
    found = signatures()[name]
    specs = (found.spec.operands[0], found.spec.results[0])
    if not all(s.constraint.accepts(t) for s, t in zip(specs, (source.type, target), strict=True)):
        return None
    op = _attributed(maker, found.spec, [source.type, target])  # type: ignore[list-item]
    if op is None:
        return None
    return complete(maker, op, [source])


def _typed(maker: Maker, chosen: Signature) -> Op | None:
    """The operation with types and attributes, on values that are not there yet."""
    near = maker.pick(lambda item: item.exact and isinstance(item.value.type, Tile)
                      and isinstance(item.value.type.element, Scalar))  # fmt: skip
    shape, liked = maker.shape(), None
    if near is not None and maker.chance(0.8):
        assert isinstance(near.value.type, Tile)
        shape, liked = near.value.type.shape, element(near.value)
    for _ in range(_ATTEMPTS):
        elements = {}
        for names, choices in chosen.groups:
            kind = liked if liked in choices and maker.chance(0.7) else maker.element(choices)
            elements.update(dict.fromkeys(names, kind))
        values = (*chosen.spec.operands, *chosen.spec.results)
        types = [Tile(shape, elements[v.name]) for v in values]
        if F4E2M1FN in elements.values() and not any(extent > 1 for extent in shape):
            continue
        op = _attributed(maker, chosen.spec, types)
        if op is not None:
            return op
    return None


def _attributed(maker: Maker, spec: OpSpec, types: list[Tile]) -> Op | None:
    """An operation of these types with random attributes; None if none fit."""
    inputs = len(spec.operands)
    choices = list(product(*(values_of(a) for a in spec.attrs)))
    for chosen in maker.rng.sample(choices, len(choices)):
        attrs = zip((a.name for a in spec.attrs), chosen, strict=True)
        op = Op(
            spec,
            tuple(map(Value, types[:inputs])),
            tuple(map(Value, types[inputs:])),
            {name: value for name, value in attrs if value is not None},
        )
        avoided = any(is_so(op) and not maker.may(name) for name, is_so in FEATURES.items())
        if not avoided and next(problems(op), None) is None:
            return op
    return None


def values_of(spec: AttrSpec) -> tuple[str | bool | None, ...]:
    """What an attribute may be, several times what shall occur more often."""
    if spec.kind == "unit":
        return (None, None, True)
    assert spec.kind == "enum", f"no values for attributes of kind {spec.kind}"
    if spec.name == "overflow":
        return ("none",)  # flags that hold are added once values are known
    return spec.values


def _sixteen_bits(op: Op) -> bool:
    """A directed rounding that no instruction has."""
    mode = op.attrs.get("rounding_mode", "nearest_even")
    directed = mode in ("zero", "negative_inf", "positive_inf")
    return directed and op.name != "ftof" and element(op.results[0]) in (F16, BF16)


def _rounded_conversion(op: Op) -> bool:
    return op.name == "ftof" and op.attrs["rounding_mode"] != "nearest_even"


def _e5m3(op: Op) -> bool:
    return op.name == "ftof" and F8E5M3FNU in (element(op.operands[0]), element(op.results[0]))  # type: ignore[arg-type]


#: What `Settings.avoid` can name besides operations.
FEATURES: dict[str, Callable[[Op], bool]] = {
    "directed 16-bit rounding": _sixteen_bits,
    "rounded conversion": _rounded_conversion,
    "f8E5M3FNU conversion": _e5m3,
    "full division": lambda op: op.name == "divf" and op.attrs["rounding_mode"] == "full",
}


def problems(op: Op) -> Iterator[object]:
    yield from field_problems(op)
    for rule in RULES.get(op.name, ()):
        yield from rule(op)
    if any(undefined(op) for undefined in UNDEFINED.get(op.name, ())):
        yield "undefined"


def complete(maker: Maker, op: Op, operands: list[Value] | None = None) -> Value:
    """Gives a typed operation operands that it is defined for, and appends it."""
    if operands is None:
        operands = [maker.value(v.type) for v in op.operands]  # type: ignore[union-attr,arg-type]
    guard = GUARDS.get(op.name)
    if guard is not None:
        operands = guard(maker, op, operands)
    op.operands = tuple(operands)
    maker.ops.append(op)
    return maker.keep(op.results[0], exact=not approximate(op))
