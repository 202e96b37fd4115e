"""Rules that the operation tables state: what operands and results may be, and which match."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tile_cudatile.rules.words import quote
from tile_cudatile.tree import Op, Value
from tile_cudatile.types import I1, Pointer, Tile, Type


def field_problems(op: Op) -> Iterator[str]:
    """Violations of the operation's declaration."""
    yield from _constraints(op)
    for kind, names in op.spec.rules:
        yield from _MATCHES[kind](op, names)


def _constraints(op: Op) -> Iterator[str]:
    position = 0
    for group, spec in zip(op.operands, op.spec.operands, strict=True):
        values = group if isinstance(group, tuple) else () if group is None else (group,)
        prefix = "variadic of " if spec.arity == "variadic" else ""
        for value in values:
            if not spec.constraint.accepts(value.type):
                yield (
                    f"operand #{position} must be {prefix}{spec.constraint.summary}, but got "
                    f"{quote(value.type)}"
                )
            position += 1
    position = 0
    for values, spec in _result_groups(op):
        prefix = "variadic of " if spec.arity == "variadic" else ""
        for value in values:
            if not spec.constraint.accepts(value.type):
                yield (
                    f"result #{position} must be {prefix}{spec.constraint.summary}, but got "
                    f"{quote(value.type)}"
                )
            position += 1


def _result_groups(op: Op):
    specs = op.spec.results
    if len(specs) == 1 and specs[0].arity == "variadic":
        yield op.results, specs[0]
    else:
        for value, spec in zip(op.results, specs, strict=True):
            yield (value,), spec


def result_count_problem(op: Op) -> str | None:
    """Whether the number of results is that of the declaration."""
    count = op.spec.result_count
    if count is None or len(op.results) == count:
        return None
    return f"expected {count} results, but found {len(op.results)}"


def _types(op: Op, names: tuple[str, ...]) -> list[tuple[Type, ...]]:
    """The types of operands or results, absent ones left out."""
    found: list[tuple[Type, ...]] = []
    for name in names:
        index = op.spec.operand_index.get(name)
        if index is not None:
            group = op.operands[index]
        elif op.spec.results[op.spec.result_index[name]].arity == "variadic":
            group = op.results
        else:
            group = op.results[op.spec.result_index[name]]
        if isinstance(group, tuple):
            found.append(tuple(v.type for v in group))
        elif group is not None:
            found.append((group.type,))
    return found


def _all_equal(kind: str, key: Callable[[Type], object]):
    def check(op: Op, names: tuple[str, ...]) -> Iterator[str]:
        keys = [tuple(map(key, types)) for types in _types(op, names)]
        if any(k != keys[0] for k in keys):
            yield f"failed to verify that all of {{{', '.join(names)}}} have same {kind}"

    return check


def _shape(type_: Type) -> object:
    return type_.shape if isinstance(type_, Tile) else None


def _rank(type_: Type) -> object:
    return len(type_.shape) if isinstance(type_, Tile) else None


def _element(type_: Type) -> object:
    return type_.element if isinstance(type_, Tile) else None


def _same_element(op: Op, names: tuple[str, ...]) -> Iterator[str]:
    elements = [_element(types[0]) for types in _types(op, names)]
    if any(e != elements[0] for e in elements):
        yield (f"failed to verify that all of {{{', '.join(names)}}} have the same element type")


def _i1_like(op: Op, names: tuple[str, ...]) -> Iterator[str]:
    (source,), (result,) = _types(op, names)
    if isinstance(source, Tile) and result != Tile(source.shape, I1):
        yield ("failed to verify that Result type has i1 element type and same shape as operands")


def _every_value(op: Op) -> list[Value]:
    return [*op.values(), *op.results]


def _elementwise_element(op: Op, _: tuple[str, ...]) -> Iterator[str]:
    elements = [_element(v.type) for v in _every_value(op)]
    if any(e != elements[0] for e in elements):
        yield "requires the same element type for all operands and results"


def _elementwise_shape(op: Op, _: tuple[str, ...]) -> Iterator[str]:
    shapes = [_shape(v.type) for v in _every_value(op)]
    if any(s != shapes[0] for s in shapes):
        yield "requires the same shape for all operands and results"


def _operands_shape(op: Op, _: tuple[str, ...]) -> Iterator[str]:
    shapes = [_shape(v.type) for v in op.values()]
    if any(s != shapes[0] for s in shapes):
        yield "requires the same shape for all operands"


def _points_to(op: Op, names: tuple[str, ...]) -> Iterator[str]:
    (pointers,), (values,) = _types(op, names)
    assert isinstance(pointers, Tile)
    assert isinstance(values, Tile)
    pointer = pointers.element
    matches = (
        isinstance(pointer, Pointer)
        and pointers.shape == values.shape
        and pointer.pointee == values.element
    )
    if not matches:
        yield (
            f"failed to verify that `{names[0]}` type is expected a pointer type of "
            f"`{names[1]}` type"
        )


def _mask(op: Op, names: tuple[str, ...]) -> Iterator[str]:
    types = _types(op, names)
    if len(types) == 2 and _shape(types[0][0]) != _shape(types[1][0]):
        first, second = ("mask", "source") if names[0] == "source" else ("destination", "mask")
        yield f"failed to verify that shape of '{first}' must match the shape of '{second}'"


def _padding(op: Op, names: tuple[str, ...]) -> Iterator[str]:
    types = _types(op, names)
    if len(types) == 2 and types[0] != types[1]:
        yield "failed to verify that type of 'paddingValue' must match the type of 'result'"


_MATCHES: dict[str, Callable[[Op, tuple[str, ...]], Iterator[str]]] = {
    "type": _all_equal("type", lambda t: t),
    "shape": _all_equal("shape", _shape),
    "rank": _all_equal("rank", _rank),
    "element": _same_element,
    "i1_like": _i1_like,
    "elementwise_element": _elementwise_element,
    "elementwise_shape": _elementwise_shape,
    "operands_shape": _operands_shape,
    "points_to": _points_to,
    "mask": _mask,
    "padding": _padding,
}
