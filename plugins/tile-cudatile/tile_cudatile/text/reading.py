"""Reads operations by the descriptions of their syntax."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from tile_cudatile.attrs import Attr
from tile_cudatile.ops.spec import AttrSpec, OpSpec
from tile_cudatile.text.formats import DEFAULT_ROUNDING, Item
from tile_cudatile.text.literals import (
    parse_attribute,
    parse_constant,
    parse_hints,
    parse_predicate,
    parse_type,
)
from tile_cudatile.tree import Op, Value
from tile_cudatile.types import TOKEN, TensorView, Tile, Type

if TYPE_CHECKING:
    from tile_cudatile.text.parser import Parser

#: Operations whose result type is that of an operand and is not written.
_RESULT_LIKE = {
    "fpowi": "source",
    "insert": "destination",
    "mmaf": "acc",
    "mmai": "acc",
    "mmaf_scaled": "acc",
    "assume": "value",
}


class Reading:
    """What has been read of an operation so far."""

    def __init__(self, parser: Parser, spec: OpSpec) -> None:
        self._parser = parser
        self._scanner = parser.scanner
        self._spec = spec
        self._groups: dict[str, Any] = {}
        self._types: dict[str, tuple[Type, ...]] = {}
        self._attrs: dict[str, Attr] = {}
        self._specs = {a.name: a for a in spec.attrs}
        for attr in spec.attrs:
            if attr.default is not None:
                self._attrs[attr.name] = attr.default

    def items(self, items: tuple[Item, ...]) -> None:
        """Reads what `items` describe."""
        for item in items:
            _READ[item.kind](self, item)

    def _text(self, item: Item) -> None:
        for token in re.findall(r"\w+|->|[^\w\s]", item.name):
            self._scanner.expect(token)

    def _group(self, item: Item) -> None:
        if self._is_next(item.items[0], item.items[1:]):
            self.items(item.items)

    def _is_next(self, first: Item, rest: tuple[Item, ...]) -> bool:
        """Whether an optional part is there, judged by how it starts."""
        if first.kind == "text":
            tokens = re.findall(r"\w+|->|[^\w\s]", first.name)
            return (
                self._is_next(rest[0], rest[1:])
                if not tokens
                else (self._scanner.starts(tokens[0]) and self._is_wanted(tokens, rest))
            )
        if first.kind == "@":
            return any(self._scanner.starts(v) for v in self._specs[first.name].values)
        return self._scanner.starts("%")

    def _is_wanted(self, tokens: list[str], rest: tuple[Item, ...]) -> bool:
        """A type is written only for an operand that is there."""
        name = next((i.name for i in rest if i.kind in ("!", "!*")), None)
        return name is None or self._groups.get(name) not in (None, ())

    def _operand(self, item: Item) -> None:
        self._groups[item.name] = self._parser.value()

    def _operands(self, item: Item) -> None:
        self._groups[item.name] = self._parser.values("]")

    def _type(self, item: Item) -> None:
        self._types[item.name] = (parse_type(self._scanner),)

    def _type_list(self, item: Item) -> None:
        self._types[item.name] = self._parser.types()

    def _index_types(self, item: Item) -> None:
        found: list[Type] = []
        scanner = self._scanner
        while scanner.starts(","):
            before = scanner.position
            scanner.expect(",")
            type_ = parse_type(scanner)
            if type_ == TOKEN:  # belongs to what follows
                scanner.position = before
                break
            found.append(type_)
        index = self._groups[item.name]
        if len(found) == 1:
            found *= len(index)
        self._types[item.name] = tuple(found)

    def _attribute(self, item: Item) -> None:
        spec = self._specs[item.name]
        self._attrs[item.name] = self._inline(spec)

    def _inline(self, spec: AttrSpec) -> Attr:
        scanner = self._scanner
        if spec.kind == "enum":
            return self._enum(spec)
        if spec.kind in ("i32", "i64"):
            return scanner.integer()
        if spec.kind == "str":
            return scanner.string()
        if spec.kind == "symbol":
            return self._parser._symbol()
        if spec.kind == "dense":
            value = parse_constant(scanner)
            self._types["result"] = (value.type,)
            return value
        if spec.kind == "hints":
            return parse_hints(scanner)
        if spec.kind == "predicate":
            return parse_predicate(scanner)
        return self._array(spec)

    def _array(self, spec: AttrSpec) -> Attr:
        scanner = self._scanner
        found: list[Attr] = []
        scanner.expect("[")
        while not scanner.accept("]"):
            if found:
                scanner.expect(",")
            found.append(
                parse_attribute(scanner) if spec.kind == "bool_array" else scanner.integer()
            )
        return tuple(found)

    def _enum(self, spec: AttrSpec) -> str:
        scanner = self._scanner
        start = scanner.position
        word = scanner.word(f"one of {', '.join(spec.values)}")
        if word not in spec.values:
            if spec.name == "signedness" or spec.name.startswith("signedness_"):
                raise scanner.error(
                    "expected signedness to be one of: {'signed', 'unsigned'}", start
                )
            raise scanner.error(
                f'invalid {spec.name} attribute specification. Got "{word}" but expect one of: '
                f"{', '.join(spec.values)}",
                start,
            )
        if spec.name == "memory_scope" and self._attrs["memory_ordering_semantics"] == "weak":
            raise scanner.error(
                "operation specifies weak memory ordering semantics, but then provides "
                f'"{word}" scope, expected no memory scope.',
                start,
            )
        return word

    def _unit(self, item: Item) -> None:
        for name, spec in self._specs.items():
            if spec.kind == "unit" and self._scanner.accept(name):
                self._attrs[name] = True

    def _rounding(self, item: Item) -> None:
        self._attrs[item.name] = DEFAULT_ROUNDING.get(self._spec.name, "nearest_even")
        if self._scanner.accept("rounding"):
            self._scanner.expect("<")
            self._attrs[item.name] = self._enum(self._specs[item.name])
            self._scanner.expect(">")

    def _angled(self, item: Item) -> None:
        spec = self._specs[item.name]
        self._attrs.setdefault(item.name, spec.values[0])
        if self._scanner.accept(item.name):
            self._scanner.expect("<")
            self._attrs[item.name] = self._enum(spec)
            self._scanner.expect(">")

    def _dictionary(self, item: Item) -> None:
        scanner = self._scanner
        if scanner.accept("attributes"):
            for token in ("{", item.name, "=", f"#cuda_tile.multimem_{item.name}_kind", "<"):
                scanner.expect(token)
            self._attrs[item.name] = self._enum(self._specs[item.name])
            scanner.expect(">")
            scanner.expect("}")

    def _settle_optional(self) -> None:
        """Of several optional operands the first that takes the type is meant: a load may have a
        padding value and no mask."""
        optional = [o for o in self._spec.operands if o.arity == "optional" and o.name != "token"]
        for operand, following in pairwise(optional):
            types = self._types.get(operand.name)
            taken = self._groups.get(following.name) is not None
            if types and not taken and not operand.constraint.accepts(types[0]):
                self._groups[following.name] = self._groups.pop(operand.name)
                self._types[following.name] = self._types.pop(operand.name)

    def finish(self, start: int) -> Op:
        """The operation."""
        self._settle_optional()
        groups: list[Any] = []
        for operand in self._spec.operands:
            default: Any = () if operand.arity == "variadic" else None
            group = self._groups.get(operand.name, default)
            groups.append(group)
            types = self._types.get(operand.name)
            if types is not None and group not in (None, ()):
                values = group if isinstance(group, tuple) else (group,)
                self._parser.typed(values, types, start)
        self._check_implied(groups, start)
        if "inbounds" in self._attrs and not self._attrs["inbounds"]:
            self._attrs["inbounds"] = (False,) * len(self._groups["index"])
        results = tuple(map(Value, self._results()))
        return Op(self._spec, tuple(groups), results, self._attrs)

    def _check_implied(self, groups: list[Any], start: int) -> None:
        """Operands whose type is that of the result, and is not written."""
        written = self._types.get("result")
        for kind, names in self._spec.rules:
            if kind != "type" or "result" not in names or written is None:
                continue
            for operand, group in zip(self._spec.operands, groups, strict=True):
                if operand.name in names and isinstance(group, Value):
                    self._parser.typed((group,), written, start)

    def _results(self) -> tuple[Type, ...]:
        spec = self._spec
        if spec.name in _RESULT_LIKE:
            return (self._groups[_RESULT_LIKE[spec.name]].type,)
        found: list[Type] = []
        for result in spec.results:
            types = self._types.get(result.name)
            if types is None:
                types = (TOKEN,) if result.name == "result_token" else (found[0],)
            if result.arity == "variadic":
                return types * self._rank()
            found.append(types[0])
        return tuple(found)

    def _rank(self) -> int:
        source = self._groups["src"].type
        return len(source.shape if isinstance(source, (TensorView, Tile)) else source.tile_shape)


_READ: dict[str, Callable[[Reading, Item], None]] = {
    "text": Reading._text,
    "group": Reading._group,
    "$": Reading._operand,
    "$*": Reading._operands,
    "!": Reading._type,
    "!*": Reading._type_list,
    "!!": Reading._type,
    "&": Reading._index_types,
    "@": Reading._attribute,
    "?": Reading._unit,
    "~": Reading._rounding,
    "^": Reading._angled,
    "%": Reading._dictionary,
}
