"""Reads programs from their assembly."""

from __future__ import annotations

import re
from collections.abc import Callable

from tile_cudatile.attrs import Attr, Hints
from tile_cudatile.locations import Location, Unknown
from tile_cudatile.ops import BODY_OPS
from tile_cudatile.ops.spec import OpSpec
from tile_cudatile.rules.words import quote
from tile_cudatile.text.aliases import Aliases
from tile_cudatile.text.formats import format_items
from tile_cudatile.text.literals import (
    parse_attribute,
    parse_constant,
    parse_dictionary,
    parse_hints,
    parse_type,
)
from tile_cudatile.text.reading import Reading
from tile_cudatile.text.scanner import Scanner, TextError
from tile_cudatile.tree import LOOP_SPLIT, Block, Entry, Global, Module, Op, Region, Value
from tile_cudatile.types import Function, TensorView, Type
from tile_cudatile.versions import NEWEST, Version

_VALUE = re.compile(r"%[\w$.-]+(?:#\d+)?")
_DEFINITION = re.compile(r"%[\w$.-]+(?::\d+)?")
_SYMBOL = re.compile(r"@[A-Za-z_$.][\w$.]*")
_INTEGER_TYPE = re.compile(r"i\d+")
_PRODUCER = re.compile(r"//[ \t]*Producer: ([^\n]*)")


def parse_text(text: str, *, name: str = "<text>", version: Version = NEWEST) -> Module:
    """The program that `text` describes, in the syntax that `print_text` writes.

    Locations are read where they are written; a terminator that is not has that of its parent.

    Raises:
        TextError: the text is not a program; with line and column of `name`.
    """
    scanner = Scanner(text, name)
    parser = Parser(scanner, version, Aliases(scanner, name))
    module = parser.module()
    producer = _PRODUCER.match(text)
    if producer is not None:
        module.producer = producer[1]
    return module


#: Where a terminator is that the text leaves out, until it has the place of what it ends.
_IMPLIED = Unknown()


def _place_implied(region: Region, where: Location) -> None:
    for block in region.blocks:
        if block.ops[-1].loc is _IMPLIED:
            block.ops[-1].loc = where


class Parser:
    """Reads one text."""

    def __init__(self, scanner: Scanner, version: Version, aliases: Aliases) -> None:
        self.scanner = scanner
        self._aliases = aliases
        self._version = version
        self._scopes: list[dict[str, Value]] = []

    def module(self) -> Module:
        """All of it; a `module` around the rest is allowed."""
        scanner, module = self.scanner, Module(self._version)
        wrapped = scanner.accept("cuda_tile.module") or scanner.accept("module")
        if wrapped:
            self._symbol()
            scanner.expect("{")
        while not scanner.at_end() and not (wrapped and scanner.starts("}")):
            if scanner.accept("cuda_tile.entry") or scanner.accept("entry"):
                module.entries.append(self._entry())
            elif scanner.accept("cuda_tile.global") or scanner.accept("global"):
                module.globals.append(self._global())
            elif self._aliases.definition():
                continue
            else:
                raise scanner.error("expected 'entry' or 'global'")
        if wrapped:
            scanner.expect("}")
            module.loc = self._aliases.location() or module.loc
            while self._aliases.definition():
                pass
        if not scanner.at_end():
            raise scanner.error("expected the end of the program")
        return module

    def _symbol(self) -> str:
        scanner = self.scanner
        if scanner.text.startswith('@"', scanner.position):
            scanner.position += 1
            return scanner.string()
        return scanner.take(_SYMBOL, "a symbol")[1:]

    def _global(self) -> Global:
        scanner = self.scanner
        visibility = "private" if scanner.accept("private") else "public"
        scanner.accept("public")
        constant = scanner.accept("constant")
        name = self._symbol()
        alignment = 0
        if scanner.accept("alignment"):
            scanner.expect("=")
            alignment = scanner.integer()
        made = Global(name, parse_constant(scanner), alignment, constant, visibility)
        self._aliases.location()  # says nothing: a global has no place of its own
        return made

    def _entry(self) -> Entry:
        scanner = self.scanner
        name = self._symbol()
        self._scopes.append({})
        given: list[Attr] = []
        args = self._arguments(given)
        hints = Hints({})
        if scanner.accept("optimization_hints"):
            scanner.expect("=")
            hints = parse_hints(scanner)
        block = self._block(args, "return")
        self._scopes.pop()
        signature = Function(tuple(a.type for a in args), ())
        made = Entry(
            name,
            signature,
            Region([block]),
            hints,
            tuple(given) if any(given) else (),
            loop_split=self._loop_split(),
        )
        made.loc = self._aliases.location() or made.loc
        _place_implied(made.body, made.loc)
        return made

    def _arguments(self, attrs: list[Attr] | None = None) -> tuple[Value, ...]:
        """`(%name: type, ..)`; those of kernels may have a dictionary each, which `attrs` gets."""
        scanner = self.scanner
        args: list[Value] = []
        scanner.expect("(")
        while not scanner.accept(")"):
            if args:
                scanner.expect(",")
            start = scanner.position
            name = scanner.take(_VALUE, "an argument")
            scanner.expect(":")
            args.append(Value(parse_type(scanner)))
            if attrs is not None:
                attrs.append(parse_dictionary(scanner) if scanner.starts("{") else {})
            self._define(name, args[-1], start)
        return tuple(args)

    def _define(self, name: str, value: Value, start: int) -> None:
        if any(name in scope for scope in self._scopes):
            raise self.scanner.error(f"redefinition of SSA value '{name}'", start)
        self._scopes[-1][name] = value

    def _block(self, args: tuple[Value, ...], implied: str) -> Block:
        """Operations in braces; `implied` is added if there is no terminator."""
        self.scanner.expect("{")
        block = Block(args, [])
        while not self.scanner.accept("}"):
            block.ops.append(self._op())
        if not block.ops or not block.ops[-1].spec.terminator:
            block.ops.append(Op(BODY_OPS.by_name[implied], ((),), loc=_IMPLIED))
        return block

    def _region(self, args: tuple[Value, ...], implied: str) -> Region:
        region = Region([self._block(args, implied)])
        self._scopes.pop()
        return region

    def _op(self) -> Op:
        scanner = self.scanner
        names: list[tuple[str, int, int]] = []
        if scanner.starts("%"):
            while True:
                start = scanner.position
                name, _, count = scanner.take(_DEFINITION, "a name").partition(":")
                names.append((name, int(count or 1), start))
                if not scanner.accept(","):
                    break
            scanner.expect("=")
        start = scanner.position
        word = scanner.word("an operation").removeprefix("cuda_tile.")
        word = {"pow": "fpowf", "print": "print_tko"}.get(word, word)
        spec = BODY_OPS.by_name.get(word)
        if spec is None:
            raise scanner.error(f"unknown operation '{word}'", start)
        op = self._by_format(spec, start) if word not in _CUSTOM else _CUSTOM[word](self, spec)
        split = self._loop_split() if word in ("if", "for") else None
        if split is not None:
            op.attrs[LOOP_SPLIT] = split
        where = self._aliases.location()
        if where is not None:
            op.loc = where
            for region in op.regions:
                _place_implied(region, where)
        self._name_results(op, names, start)
        return op

    def _name_results(self, op: Op, names: list[tuple[str, int, int]], start: int) -> None:
        total = sum(count for _, count, _ in names)
        if names and total != len(op.results):
            raise self.scanner.error(
                f"operation defines {len(op.results)} results but was provided {total} to bind",
                start,
            )
        index = 0
        for name, count, where in names:
            self._define(name, op.results[index], where)
            for offset in range(count):
                self._scopes[-1][f"{name}#{offset}"] = op.results[index + offset]
            index += count

    def _loop_split(self) -> int | None:
        """`{cuda_tile.loop_split = 4 : i64}`, if it comes next."""
        scanner = self.scanner
        if not scanner.accept("{"):
            return None
        scanner.expect(LOOP_SPLIT)
        scanner.expect("=")
        found = scanner.integer()
        if scanner.accept(":"):
            scanner.take(_INTEGER_TYPE, "the type of an integer")
        scanner.expect("}")
        return found

    def value(self) -> Value:
        """A use of a value."""
        start = self.scanner.position
        name = self.scanner.take(_VALUE, "a value")
        for scope in reversed(self._scopes):
            if name in scope:
                return scope[name]
        raise self.scanner.error(f"use of undeclared SSA value name '{name}'", start)

    def values(self, closing: str) -> tuple[Value, ...]:
        """Values separated by commas; none if `closing` comes next."""
        if self.scanner.starts(closing):
            return ()
        found = [self.value()]
        while self.scanner.accept(","):
            found.append(self.value())
        return tuple(found)

    def types(self) -> tuple[Type, ...]:
        """Types separated by commas."""
        found = [parse_type(self.scanner)]
        while self.scanner.accept(","):
            found.append(parse_type(self.scanner))
        return tuple(found)

    def _by_format(self, spec: OpSpec, start: int) -> Op:
        items = format_items(spec.name)
        assert items is not None
        reading = Reading(self, spec)
        reading.items(items)
        return reading.finish(start)

    def typed(self, values: tuple[Value, ...], types: tuple[Type, ...], start: int) -> None:
        """Checks the types that are written behind values."""
        if len(values) != len(types):
            raise self.scanner.error(
                f"{len(values)} operands present, but expected {len(types)}", start
            )
        for value, type_ in zip(values, types, strict=True):
            if value.type != type_:
                raise self.scanner.error(
                    f"use of value expects different type than prior uses: {quote(type_)} vs "
                    f"{quote(value.type)}",
                    start,
                )

    # Operations with a syntax of their own.

    def make_tensor_view(self, spec: OpSpec) -> Op:
        """Static extents are written between the dynamic ones."""
        scanner = self.scanner
        base = self.value()
        lists: list[tuple[tuple[int | None, ...], tuple[Value, ...]]] = []
        for name in ("shape", "strides"):
            scanner.expect(",")
            scanner.expect(name)
            scanner.expect("=")
            lists.append(self._mixed())
        scanner.expect(":")
        start = scanner.position
        found = parse_type(scanner)
        while scanner.accept(",") or scanner.accept("->"):
            start = scanner.position
            found = parse_type(scanner)
        if not isinstance(found, TensorView):
            raise scanner.error(f"expected 'tensor_view' type, but got {found}", start)
        if (lists[0][0], lists[1][0]) != (found.shape, found.strides):
            raise scanner.error("the extents differ from those of the type", start)
        return Op(spec, (base, lists[0][1], lists[1][1]), (Value(found),))

    def _mixed(self) -> tuple[tuple[int | None, ...], tuple[Value, ...]]:
        scanner = self.scanner
        static: list[int | None] = []
        dynamic: list[Value] = []
        scanner.expect("[")
        while not scanner.accept("]"):
            if static:
                scanner.expect(",")
            if scanner.starts("%"):
                dynamic.append(self.value())
                static.append(None)
            else:
                static.append(scanner.integer())
        return tuple(static), tuple(dynamic)

    def if_(self, spec: OpSpec) -> Op:
        """Branches."""
        scanner = self.scanner
        condition = self.value()
        results: tuple[Type, ...] = ()
        if scanner.accept("->"):
            scanner.expect("(")
            results = self.types()
            scanner.expect(")")
        self._scopes.append({})
        regions = [self._region((), "yield"), Region()]
        if scanner.accept("else"):
            self._scopes.append({})
            regions[1] = self._region((), "yield")
        return Op(spec, (condition,), tuple(map(Value, results)), {}, tuple(regions))

    def for_(self, spec: OpSpec) -> Op:
        """Counted loops."""
        scanner = self.scanner
        attrs: dict[str, Attr] = {"unsignedCmp": True} if scanner.accept("unsigned") else {}
        start = scanner.position
        name = scanner.take(_VALUE, "the induction variable")
        bounds: list[Value] = []
        for before in ("in", "to", ","):
            scanner.expect(before)
            if before == "in":
                scanner.expect("(")
            elif before == ",":
                scanner.expect("step")
            bounds.append(self.value())
        scanner.expect(")")
        scanner.expect(":")
        induction = Value(parse_type(scanner))
        pairs = self._pairs() if scanner.accept("iter_values") else []
        types: tuple[Type, ...] = ()
        if pairs:
            scanner.expect("->")
            scanner.expect("(")
            types = self.types()
            scanner.expect(")")
        init = tuple(value for _, value, _ in pairs)
        self.typed(init, types, start)
        self._scopes.append({})
        self._define(name, induction, start)
        carried = self._carried(pairs, types)
        region = self._region((induction, *carried), "continue")
        return Op(spec, (*bounds, init), tuple(map(Value, types)), attrs, (region,))

    def _pairs(self) -> list[tuple[str, Value, int]]:
        scanner = self.scanner
        found: list[tuple[str, Value, int]] = []
        scanner.expect("(")
        while not scanner.accept(")"):
            if found:
                scanner.expect(",")
            start = scanner.position
            name = scanner.take(_VALUE, "a name")
            scanner.expect("=")
            found.append((name, self.value(), start))
        return found

    def _carried(
        self, pairs: list[tuple[str, Value, int]], types: tuple[Type, ...]
    ) -> tuple[Value, ...]:
        values = tuple(map(Value, types))
        for (name, _, start), value in zip(pairs, values, strict=True):
            self._define(name, value, start)
        return values

    def loop(self, spec: OpSpec) -> Op:
        """Endless loops."""
        scanner = self.scanner
        start = scanner.position
        pairs = self._pairs() if scanner.accept("iter_values") else []
        types: tuple[Type, ...] = ()
        results: tuple[Type, ...] = ()
        if scanner.accept(":"):
            first = self.types()
            if pairs:
                types = first
                results = self.types() if scanner.accept("->") else ()
            else:
                results = first
        init = tuple(value for _, value, _ in pairs)
        self.typed(init, types, start)
        self._scopes.append({})
        region = self._region(self._carried(pairs, types), "continue")
        return Op(spec, (init,), tuple(map(Value, results)), {}, (region,))

    def aggregate(self, spec: OpSpec) -> Op:
        """Reductions and scans."""
        scanner = self.scanner
        operands = self.values("dim")
        start = scanner.position
        attrs: dict[str, Attr] = {}
        scanner.expect("dim")
        scanner.expect("=")
        attrs["dim"] = scanner.integer()
        if spec.name == "scan":
            scanner.expect("reverse")
            scanner.expect("=")
            attrs["reverse"] = parse_attribute(scanner)
        scanner.expect("identities")
        scanner.expect("=")
        attrs["identities"] = parse_attribute(scanner)
        scanner.expect(":")
        self.typed(operands, self.types(), start)
        scanner.expect("->")
        results = self.types()
        self._scopes.append({})
        region = self._region(self._arguments(), "yield")
        return Op(spec, (operands,), tuple(map(Value, results)), attrs, (region,))


_CUSTOM: dict[str, Callable[[Parser, OpSpec], Op]] = {
    "make_tensor_view": Parser.make_tensor_view,
    "if": Parser.if_,
    "for": Parser.for_,
    "loop": Parser.loop,
    "reduce": Parser.aggregate,
    "scan": Parser.aggregate,
}

__all__ = ["TextError", "parse_text"]
