"""Elementwise operations with all types and attributes that they can have."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from tile_cudatile.attrs import Attr
from tile_cudatile.tree import Op, Value
from tile_cudatile.types import Scalar, Tile

from tile_fuzz.generator.elementwise import Signature, problems, signatures, values_of
from tile_fuzz.generator.maker import element

_PAIR = 2  # elements; four-bit floats come in pairs


@dataclass(frozen=True)
class Form:
    """An operation with its types and attributes."""

    operation: Op

    @property
    def kinds(self) -> list[Scalar]:
        """The element types of the operands."""
        return [_kind(v) for v in self.operation.operands]

    def __str__(self) -> str:
        op = self.operation
        kinds = [str(_kind(v)) for v in (*op.operands, *op.results)]
        return " ".join([op.name, *kinds, *(str(v) for v in op.attrs.values())])


def forms() -> list[Form]:
    """Every elementwise operation with all types and attributes that are valid."""
    return [form for found in signatures().values() for form in _forms(found)]


def _forms(found: Signature) -> Iterator[Form]:
    spec = found.spec
    for kinds in product(*(choices for _, choices in found.groups)):
        of = {name: k for (names, _), k in zip(found.groups, kinds, strict=True) for name in names}
        types = [Tile((_PAIR,), of[v.name]) for v in (*spec.operands, *spec.results)]
        for chosen in product(*(dict.fromkeys(values_of(a)) for a in spec.attrs)):
            attrs: dict[str, Attr] = {
                a.name: v for a, v in zip(spec.attrs, chosen, strict=True) if v is not None
            }
            inputs = len(spec.operands)
            op = Op(
                spec, tuple(map(Value, types[:inputs])), tuple(map(Value, types[inputs:])), attrs
            )
            if next(problems(op), None) is None:
                yield Form(op)


def _kind(value: object) -> Scalar:
    assert isinstance(value, Value)
    return element(value)
