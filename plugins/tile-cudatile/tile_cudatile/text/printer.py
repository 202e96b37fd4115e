"""Prints programs."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import chain, repeat
from typing import Any

from tile_cudatile import attrs as a
from tile_cudatile.locations import UNKNOWN
from tile_cudatile.text.formats import DEFAULT_ROUNDING, Item, format_items
from tile_cudatile.text.naming import Names
from tile_cudatile.text.numbers import dense_text, quoted, scalar_text
from tile_cudatile.text.places import Places
from tile_cudatile.tree import LOOP_SPLIT, Block, Entry, Global, Module, Op, Region, Value
from tile_cudatile.types import F64, I1, I64, Scalar, TensorView

_INDENT = "  "
#: Names in dictionaries that need no quotes.
_BARE = re.compile(r"[A-Za-z_][\w$.]*", re.ASCII)


def print_text(module: Module, *, locations: bool = False) -> str:
    """The assembly of a program, as `tileirdisasm` prints it; with `locations`, as for its `-g`."""
    places = Places() if locations else None
    text = print_module(module, places)
    return places.named(text) if places else text


def print_module(module: Module, places: Places | None) -> str:
    """The assembly of a program; with `places`, with their marks where locations stand."""
    producer = "" if module.producer is None else f"// Producer: {module.producer}\n"
    # The module itself is nowhere; others hear of it only if it holds globals, or nothing.
    unplaced = places and (module.globals or not module.entries)
    nowhere = places.mark(UNKNOWN) if places and unplaced else ""
    items = [f"{_global_text(item)}{nowhere}" for item in module.globals]
    items += [EntryPrinter(entry, places).text() for entry in module.entries]
    return producer + "\n".join(items) + "\n"


def _global_text(item: Global) -> str:
    visibility = "private " if item.visibility == "private" else ""
    constant = " constant" if item.constant else ""
    alignment = f" alignment = {item.alignment}" if item.alignment else ""
    return f"global {visibility}{constant} @{_symbol(item.name)}{alignment} {_constant(item.value)}"


def _symbol(name: str) -> str:
    plain = name.replace("_", "a").replace("$", "a").replace(".", "a")
    return name if plain.isalnum() and plain.isascii() and not name[0].isdigit() else quoted(name)


def _constant(value: a.Dense) -> str:
    return f"<{value.type.element}: {dense_text(value)}> : {value.type}"


def attribute_text(value: a.Attr, typed: bool = True) -> str:
    """An attribute in MLIR's own syntax; numbers with their type if `typed`."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, a.Integer):
        if value.type == I1:
            return "true" if value.bits else "false"
        return f"{value.value} : {value.type}" if typed else str(value.value)
    if isinstance(value, a.Float):
        return f"{scalar_text(value)} : {value.type}" if typed else scalar_text(value)
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, tuple):
        return f"[{', '.join(map(_element_text, value))}]"
    if isinstance(value, dict):
        items = (f"{_key(k)} = {attribute_text(v)}" for k, v in sorted(value.items()))
        return f"{{{', '.join(items)}}}"
    if isinstance(value, a.TypeRef):
        return str(value.type) if isinstance(value.type, Scalar) else f"!cuda_tile.{value.type}"
    prefix = "" if isinstance(value, a.Dense) else "#cuda_tile."
    return prefix + _SPECIAL[type(value)](value)


def predicate_text(value: a.Predicate) -> str:
    """The predicate of an assumption, which needs no prefix."""
    return _SPECIAL[type(value)](value)


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else quoted(name)


def _element_text(value: a.Attr) -> str:
    """An attribute in an array, where MLIR leaves out the types that it takes numbers to be of."""
    finite = not isinstance(value, a.Float) or not scalar_text(value).startswith("0x")
    plain = isinstance(value, a.Integer | a.Float) and value.type in (I64, F64) and finite
    return attribute_text(value, typed=not plain)


def _hints_text(value: a.Hints) -> str:
    parts: list[str] = []
    for target, hints in sorted(value.targets.items()):
        assert isinstance(hints, dict)
        inner = (f"{_key(k)} = {attribute_text(v, typed=False)}" for k, v in sorted(hints.items()))
        parts.append(f"{target} = {{{', '.join(inner)}}}")
    return f"<{', '.join(parts)}>"


def _div_by_text(value: a.DivBy) -> str:
    if value.every is None:
        return f"div_by<{value.divisor}>"
    return f"div_by<{value.divisor}, every {value.every} along {value.along}>"


def _bound(value: int | None) -> str:
    return "?" if value is None else str(value)


_SPECIAL: dict[type, Callable[[Any], str]] = {
    a.Hints: lambda v: f"optimization_hints{_hints_text(v)}",
    a.DivBy: _div_by_text,
    a.SameElements: lambda v: f"same_elements<[{', '.join(map(str, v.values))}]>",
    a.Bounded: lambda v: f"bounded<{_bound(v.lb)}, {_bound(v.ub)}>",
    a.Dense: lambda v: f"dense<{dense_text(v)}> : {v.type}",
    a.MultimemReduction: lambda v: f"multimem_reduction_kind<{v.kind}>",
}


def _argument_text(attrs: a.Attr) -> str:
    return f" {attribute_text(attrs)}" if attrs else ""


def _split_text(hint: object) -> str:
    return "" if hint is None else f" {{{LOOP_SPLIT} = {hint} : i64}}"


class EntryPrinter:
    """Prints one kernel."""

    def __init__(self, entry: Entry, places: Places | None = None) -> None:
        self._entry = entry
        self._places = places
        self._names = Names(entry.body)

    def text(self) -> str:
        """The kernel without a final line break."""
        entry = self._entry
        where = self._places.mark(entry.loc) if self._places else ""
        given = chain((_argument_text(attr) for attr in entry.arg_attrs), repeat(""))
        pairs = zip(entry.args, given, strict=False)
        args = ", ".join(f"{self._names[v]}: {v.type}{attrs}" for v, attrs in pairs)
        hints = ""
        if entry.hints.targets:
            hints = f" optimization_hints={_hints_text(entry.hints)}"
        body = self._block(entry.body.block, 0, hide="")
        split = _split_text(entry.loop_split)
        return f"entry @{_symbol(entry.name)}({args}){hints} {body}{split}{where}"

    def _block(self, block: Block, depth: int, hide: str) -> str:
        """A block in braces; a last operation named `hide` without operands is left out."""
        ops = block.ops
        if ops and ops[-1].name == hide and not ops[-1].values():
            ops = ops[:-1]
        pad = _INDENT * (depth + 1)
        lines = [f"{pad}{self._op(op, depth + 1)}\n" for op in ops]
        return f"{{\n{''.join(lines)}{_INDENT * depth}}}"

    def _op(self, op: Op, depth: int) -> str:
        where = self._places.mark(op.loc) if self._places else ""
        custom = _CUSTOM.get(op.name)
        if custom is not None:
            text = custom(self, op, depth) + _split_text(op.attrs.get(LOOP_SPLIT))
        else:
            items = format_items(op.name)
            assert items is not None, op.name
            text = self._items(op, items)
        return f"{self._names.definition(op)}{op.name}{text}{where}"

    def _items(self, op: Op, items: tuple[Item, ...]) -> str:
        return "".join([_PRINT[item.kind](self, op, item) for item in items])

    def _literal(self, op: Op, item: Item) -> str:
        return item.name

    def _optional(self, op: Op, item: Item) -> str:
        return self._items(op, item.items) if _present(op, item) else ""

    def _operand(self, op: Op, item: Item) -> str:
        value = op.group(item.name)
        assert isinstance(value, Value)
        return self._names[value]

    def _operands(self, op: Op, item: Item) -> str:
        return self._list(op.group(item.name))

    def _list(self, values: Any) -> str:
        return ", ".join([self._names[v] for v in values])

    def _type(self, op: Op, item: Item) -> str:
        index = op.spec.operand_index.get(item.name)
        value = op.results[op.spec.result_index[item.name]] if index is None else op.operands[index]
        assert isinstance(value, Value)
        return str(value.type)

    def _type_list(self, op: Op, item: Item) -> str:
        return ", ".join(str(v.type) for v in op.group(item.name))  # type: ignore[union-attr]

    def _first_type(self, op: Op, item: Item) -> str:
        return str(op.results[0].type)

    def _index_types(self, op: Op, item: Item) -> str:
        group = op.group(item.name)
        assert isinstance(group, tuple)
        types = [str(v.type) for v in group]
        if len(set(types)) == 1:
            types = types[:1]
        return "".join(f", {t}" for t in types)

    def _attribute(self, op: Op, item: Item) -> str:
        value = op.attrs[item.name]
        spec = next(s for s in op.spec.attrs if s.name == item.name)
        if spec.kind == "enum":
            return str(value)
        if spec.kind == "symbol":
            return f"@{_symbol(str(value))}"
        if spec.kind == "dense":
            assert isinstance(value, a.Dense)
            return _constant(value)
        if spec.kind in ("i32_array", "bool_array"):
            texts = (str(v).lower() for v in value)  # type: ignore[union-attr]
            return f"[{', '.join(texts)}]"
        if spec.kind == "hints":
            return _hints_text(value)  # type: ignore[arg-type]
        if spec.kind == "predicate":
            return predicate_text(value)  # type: ignore[arg-type]
        return str(value) if spec.kind in ("i32", "i64") else attribute_text(value)

    def _unit(self, op: Op, item: Item) -> str:
        return f" {item.name}" if op.attrs.get(item.name) else ""

    def _rounding(self, op: Op, item: Item) -> str:
        mode = op.attrs[item.name]
        default = DEFAULT_ROUNDING.get(op.name, "nearest_even")
        return "" if mode == default else f"rounding<{mode}>"

    def _angled(self, op: Op, item: Item) -> str:
        spec = next(s for s in op.spec.attrs if s.name == item.name)
        value = op.attrs[item.name]
        default = spec.default if spec.default is not None else spec.values[0]
        return "" if value == default else f" {item.name}<{value}>"

    def _dictionary(self, op: Op, item: Item) -> str:
        spec = next(s for s in op.spec.attrs if s.name == item.name)
        value = op.attrs[item.name]
        if value == spec.default:
            return ""
        return f" attributes {{{item.name} = #cuda_tile.multimem_{item.name}_kind<{value}>}}"

    # Operations with a syntax of their own.

    def _make_tensor_view(self, op: Op, depth: int) -> str:
        base, shape, strides = op.operands
        type_ = op.result.type
        assert isinstance(base, Value)
        assert isinstance(shape, tuple)
        assert isinstance(strides, tuple)
        assert isinstance(type_, TensorView)
        lists = (self._mixed(type_.shape, shape), self._mixed(type_.strides, strides))
        dynamic = [*shape, *strides]
        source = f"{dynamic[0].type} -> " if dynamic else ""
        if type_.kind is not None:
            source = ", ".join([str(base.type), *([str(dynamic[0].type)] if dynamic else [])])
            source += " -> "
        return (
            f" {self._names[base]}, shape = [{lists[0]}], strides = [{lists[1]}] : {source}{type_}"
        )

    def _mixed(self, static: tuple[int | None, ...], dynamic: tuple[Value, ...]) -> str:
        values = iter(dynamic)
        return ", ".join(self._names[next(values)] if s is None else str(s) for s in static)

    def _if(self, op: Op, depth: int) -> str:
        results = f" -> ({self._types(op.results)})" if op.results else ""
        condition = op.operands[0]
        assert isinstance(condition, Value)
        text = f" {self._names[condition]}{results} {self._region(op.regions[0], depth, 'yield')}"
        if op.regions[1].blocks:
            text += f" else {self._region(op.regions[1], depth, 'yield')}"
        return text

    def _region(self, region: Region, depth: int, hide: str) -> str:
        return self._block(region.blocks[0], depth, hide)

    def _types(self, values: tuple[Value, ...]) -> str:
        return ", ".join(str(v.type) for v in values)

    def _iter_values(self, args: tuple[Value, ...], init: tuple[Value, ...]) -> str:
        pairs = (f"{self._names[x]} = {self._names[y]}" for x, y in zip(args, init, strict=True))
        return f"iter_values({', '.join(pairs)})"

    def _for(self, op: Op, depth: int) -> str:
        lower, upper, step, init = op.operands
        assert isinstance(init, tuple)
        block = op.regions[0].block
        induction, *carried = block.args
        bounds = f"{self._names[lower]} to {self._names[upper]}, step {self._names[step]}"  # type: ignore[index]
        unsigned = " unsigned" if op.attrs.get("unsignedCmp") else ""
        iterated = ""
        if init:
            values = self._iter_values(tuple(carried), init)
            iterated = f"{values} -> ({self._types(init)}) "
        return (
            f"{unsigned} {self._names[induction]} in ({bounds}) : {induction.type} {iterated}"
            f"{self._block(block, depth, 'continue')}"
        )

    def _loop(self, op: Op, depth: int) -> str:
        init = op.operands[0]
        assert isinstance(init, tuple)
        block = op.regions[0].block
        text = " "
        if init:
            text += f"{self._iter_values(block.args, init)} "
        if init or op.results:
            text += ": "
        if init:
            text += f"{self._types(init)} {'-> ' if op.results else ''}"
        if op.results:
            text += f"{self._types(op.results)} "
        return text + self._block(block, depth, "continue")

    def _reduce(self, op: Op, depth: int) -> str:
        operands = op.operands[0]
        assert isinstance(operands, tuple)
        reverse = ""
        if op.name == "scan":
            reverse = f" reverse={attribute_text(op.attrs['reverse'])}"
        block = op.regions[0].block
        args = ", ".join(f"{self._names[v]}: {v.type}" for v in block.args)
        return (
            f" {self._list(operands)} dim={op.attrs['dim']}{reverse} "
            f"identities={attribute_text(op.attrs['identities'])} : {self._types(operands)} -> "
            f"{self._types(op.results)} \n{_INDENT * depth}({args}) "
            f"{self._block(block, depth, '')}"
        )


def _present(op: Op, item: Item) -> bool:
    """Whether what an optional group names is there."""
    name = next(i.name for i in item.items if i.kind not in ("text", "group"))
    index = op.spec.operand_index.get(name)
    if index is not None:
        return op.operands[index] not in (None, ())
    value = op.attrs.get(name)
    if name == "inbounds":
        return any(value or ())  # type: ignore[arg-type]
    return value is not None


_PRINT: dict[str, Callable[[EntryPrinter, Op, Item], str]] = {
    "text": EntryPrinter._literal,
    "group": EntryPrinter._optional,
    "$": EntryPrinter._operand,
    "$*": EntryPrinter._operands,
    "!": EntryPrinter._type,
    "!*": EntryPrinter._type_list,
    "!!": EntryPrinter._first_type,
    "&": EntryPrinter._index_types,
    "@": EntryPrinter._attribute,
    "?": EntryPrinter._unit,
    "~": EntryPrinter._rounding,
    "^": EntryPrinter._angled,
    "%": EntryPrinter._dictionary,
}

_CUSTOM: dict[str, Callable[[EntryPrinter, Op, int], str]] = {
    "make_tensor_view": EntryPrinter._make_tensor_view,
    "if": EntryPrinter._if,
    "for": EntryPrinter._for,
    "loop": EntryPrinter._loop,
    "reduce": EntryPrinter._reduce,
    "scan": EntryPrinter._reduce,
}
