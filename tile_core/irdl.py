"""Definitions of dialects as text of MLIR's `irdl` dialect, which loads dialects at run time.

The text is the same in all versions of the bindings that there are providers of, and MLIR reads it
in a fifth of the time that it takes to make the operations one by one from Python.

A constraint is `Any`, a class of types or attributes, ours or MLIR's, one such type
(`ir.IntegerType[32]`), a union of constraints, or a `TypeVar`, which means the same type wherever
an operation has it.
"""

from __future__ import annotations

import types as python_types
from collections.abc import Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar, Union, get_args, get_origin

from tile_core.mlir import ir, load_irdl

if TYPE_CHECKING:
    from tile_core.declarations import Field


def load(text: str) -> None:
    """Declare the dialect that `text` defines in the current context."""
    load_irdl(ir.Module.parse(text))


def dialect(name: str, definitions: Iterable[str]) -> str:
    """A module that defines a dialect."""
    return f"irdl.dialect @{name} {{\n{''.join(definitions)}}}\n"


def parameters(kind: str, name: str, fields: Iterable[tuple[str, Any]]) -> str:
    """The definition of a type or an attribute (`kind`), by parameters and their constraints."""
    values = _Constraints()
    listed = ", ".join(f"{field}: {values.of(constraint)}" for field, constraint in fields)
    return f"irdl.{kind} @{name} {{\n{values.text}irdl.parameters({listed})\n}}\n"


def operation(name: str, fields: Sequence[Field]) -> str:
    """The definition of an operation."""
    values = _Constraints()
    listed: dict[str, list[str]] = {}
    for field in fields:
        if field.kind == "attribute":
            text = f'"{field.name}" = {values.of(field.constraint)}'
        elif field.kind == "region":
            text = f"{field.name}: {values.add('irdl.region')}"
        else:
            often = "" if field.variadicity == "single" else f"{field.variadicity} "
            names = [field.name]
            if field.slots > 1:
                names = [f"{field.name}_{slot}" for slot in range(field.slots)]
            text = ", ".join(f"{name}: {often}{values.of(field.constraint)}" for name in names)
        listed.setdefault(field.kind, []).append(text)
    lines = [
        f"irdl.{kind}s{opened}{', '.join(listed[kind])}{closed}\n"
        for kind, opened, closed in _LISTS
        if kind in listed
    ]
    return f"irdl.operation @{name} {{\n{values.text}{''.join(lines)}}}\n"


#: What an operation lists of each kind of fields, and how that is put in brackets.
_LISTS = (
    ("operand", "(", ")"),
    ("attribute", " {", "}"),
    ("result", "(", ")"),
    ("region", "(", ")"),
)


class _Constraints:
    """Constraints of one definition; each use is a value of its own, as one value used twice would
    ask for equal types."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._variables: dict[str, str] = {}

    @property
    def text(self) -> str:
        """The operations that make them."""
        return "".join(self._lines)

    def add(self, operation: str) -> str:
        """The value that `operation` gives."""
        name = f"%{len(self._lines)}"
        self._lines.append(f"{name} = {operation}\n")
        return name

    def of(self, constraint: Any) -> str:
        """The value for a constraint.

        Raises:
            TypeError: it is none.
        """
        if constraint is Any:
            return self.add("irdl.any")
        if isinstance(constraint, TypeVar):
            known = self._variables
            if constraint.__name__ not in known:
                known[constraint.__name__] = self.of(constraint.__bound__ or Any)
            return known[constraint.__name__]
        origin = get_origin(constraint)
        if origin is python_types.UnionType or origin is Union:
            return self.add(f"irdl.any_of({', '.join(map(self.of, get_args(constraint)))})")
        if origin is not None:
            return self._instance(origin, get_args(constraint))
        return self.add(_base(constraint))

    def _instance(self, class_: Any, arguments: Sequence[Any]) -> str:
        """A type or attribute with parameters: of ours, constraints of them; of MLIR's, values."""
        if hasattr(class_, "symbol"):
            return self.add(
                f"irdl.parametric {class_.symbol}<{', '.join(map(self.of, arguments))}>"
            )
        return self.add(f"irdl.is {class_.get(*arguments)}")


@cache
def _base(class_: Any) -> str:
    """Anything of a class of types or attributes."""
    if isinstance(class_, type):
        if hasattr(class_, "symbol"):
            return f"irdl.base {class_.symbol}"
        if issubclass(class_, ir.Type):
            return f'irdl.base "!{_mlir_name(class_, "type_name")}"'
        if issubclass(class_, ir.Attribute):
            return f'irdl.base "#{_mlir_name(class_, "attr_name")}"'
    raise TypeError(f"{class_} is no constraint of a type or an attribute")


def _mlir_name(class_: Any, attribute: str) -> str:
    """What MLIR calls a class of its own: the bindings say so at the class."""
    return getattr(class_, attribute)
