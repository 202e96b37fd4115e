"""Reads locations: behind operations, and the names that stand for them behind a program.

`places.py` writes them. Names may be used before they are defined, as printers put all
definitions at the end.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

from tile_cudatile import locations as loc
from tile_cudatile.text.scanner import Scanner

_ALIAS = re.compile(r"#[A-Za-z_]\w*(?![\w.])")
_DEFINITION = re.compile(r"^(#[A-Za-z_]\w*)[ \t]*=", re.MULTILINE)
_ATTRIBUTE = re.compile(r"#cuda_tile\.\w+")
#: Records in records, as names defined later or written out. Definitions in the order in which
#: they are printed, parts before what they are parts of, need one.
_DEEPEST = 64
R = TypeVar("R", bound=loc.DebugRecord)

_SCOPES = (loc.Subprogram, loc.LexicalBlock)
_PLACES = (loc.Unknown, loc.FileLine, loc.DebugLoc, loc.CallSite)


class Aliases:
    """The names that a text defines, and the locations in it."""

    def __init__(self, scanner: Scanner, name: str) -> None:
        self._scanner = scanner
        self._name = name
        self._known: dict[str, loc.DebugRecord] = {}
        self._open: set[str] = set()
        self._depth = 0
        self._starts: dict[str, int] = {}
        for match in _DEFINITION.finditer(scanner.text):
            if match[1] in self._starts:
                raise scanner.error(f"redefinition of '{match[1]}'", match.start())
            self._starts[match[1]] = match.end()
        for alias in self._starts:
            self._resolved(alias, scanner, self._starts[alias])

    def definition(self) -> bool:
        """Passes over a definition, if one comes next."""
        scanner = self._scanner
        match = _DEFINITION.match(scanner.text, scanner.position)
        if match is None:
            return False
        scanner.position = match.end()
        scanner.skip()
        self._record(scanner)
        return True

    def location(self) -> loc.Location | None:
        """`loc(..)`, if it comes next."""
        scanner = self._scanner
        if not scanner.starts("loc"):
            return None
        return self._in_parentheses(scanner)

    def _in_parentheses(self, scanner: Scanner) -> loc.Location:
        scanner.expect("loc")
        scanner.expect("(")
        found = self._place(scanner)
        scanner.expect(")")
        return found

    def _resolved(self, alias: str, scanner: Scanner, at: int) -> loc.DebugRecord:
        found = self._known.get(alias)
        if found is not None:
            return found
        start = self._starts.get(alias)
        if start is None:
            raise scanner.error(f"undefined name '{alias}'", at)
        if alias in self._open:
            raise scanner.error(f"'{alias}' is defined by itself", at)
        self._open.add(alias)
        inner = Scanner(scanner.text, self._name, start)
        found = self._known[alias] = self._record(inner)
        self._open.remove(alias)
        return found

    def _record(self, scanner: Scanner) -> loc.DebugRecord:
        """Whatever comes next: a name, an attribute or a location."""
        self._depth += 1
        if self._depth > _DEEPEST:
            raise scanner.error("locations are nested too deep")
        try:
            if scanner.starts("loc"):
                return self._in_parentheses(scanner)
            start = scanner.position
            alias = scanner.maybe(_ALIAS)
            if alias is not None:
                return self._resolved(alias, scanner, start)
            attribute = scanner.take(_ATTRIBUTE, "a location or an attribute of one")
            read = _READ.get(attribute)
            if read is None:
                raise scanner.error(f"unknown attribute '{attribute}'", start)
            return self._inside(scanner, read)
        finally:
            self._depth -= 1

    def _inside(self, scanner: Scanner, read: Callable[[Aliases, Scanner], R]) -> R:
        scanner.expect("<")
        found = read(self, scanner)
        scanner.expect(">")
        return found

    def _place(self, scanner: Scanner) -> loc.Location:
        """A location without the word `loc` around it."""
        start = scanner.position
        if scanner.accept("unknown"):
            return loc.UNKNOWN
        if scanner.starts('"'):
            return self._position(scanner)
        if scanner.accept("callsite"):
            return self._call(scanner)
        found = self._record(scanner)
        if not isinstance(found, _PLACES):
            raise scanner.error("expected a location", start)
        return found

    def _position(self, scanner: Scanner) -> loc.FileLine:
        name = scanner.string()
        scanner.expect(":")
        line = scanner.integer("a line")
        scanner.expect(":")
        return loc.FileLine(name, line, scanner.integer("a column"))

    def _call(self, scanner: Scanner) -> loc.CallSite:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise scanner.error("locations are nested too deep")
        scanner.expect("(")
        callee = self._place(scanner)
        scanner.expect("at")
        caller = self._place(scanner)
        scanner.expect(")")
        self._depth -= 1
        return loc.CallSite(callee, caller)

    # The attributes, without their brackets.

    def file(self, scanner: Scanner) -> loc.File:
        """`"name" in "directory"`."""
        name = scanner.string()
        scanner.expect("in")
        return loc.File(name, scanner.string())

    def compile_unit(self, scanner: Scanner) -> loc.CompileUnit:
        """`file = ..`."""
        return loc.CompileUnit(self._file(scanner))

    def subprogram(self, scanner: Scanner) -> loc.Subprogram:
        """`file = .., line = .., name = .., linkageName = .., compileUnit = .., scopeLine = ..`."""
        file = self._file(scanner)
        line = self._number(scanner, "line")
        self._field(scanner, "name")
        name = scanner.string()
        self._field(scanner, "linkageName")
        linkage_name = scanner.string()
        self._field(scanner, "compileUnit")
        unit = self._nested(scanner, loc.CompileUnit, Aliases.compile_unit)
        scope_line, flags = self._number(scanner, "scopeLine"), 0
        if scanner.accept(","):
            scanner.expect("flags")
            scanner.expect("=")
            scanner.expect("declaration")
            flags = loc.DECLARATION
        return loc.Subprogram(file, line, name, linkage_name, unit, scope_line, flags)

    def lexical_block(self, scanner: Scanner) -> loc.LexicalBlock:
        """`scope = .., file = .., line = .., column = ..`."""
        scanner.expect("scope")
        scanner.expect("=")
        scope = self._scope(scanner)
        scanner.expect(",")
        file = self._file(scanner)
        line = self._number(scanner, "line")
        return loc.LexicalBlock(scope, file, line, self._number(scanner, "column"))

    def placed(self, scanner: Scanner) -> loc.DebugLoc:
        """`position in scope`."""
        start = scanner.position
        at = self._place(scanner)
        if not isinstance(at, loc.FileLine):
            raise scanner.error("expected a line and a column of a file", start)
        scanner.expect("in")
        return loc.DebugLoc(self._scope(scanner), at.filename, at.line, at.column)

    def _file(self, scanner: Scanner) -> loc.File:
        scanner.expect("file")
        scanner.expect("=")
        return self._nested(scanner, loc.File, Aliases.file)

    def _nested(self, scanner: Scanner, kind: type[R], read: Callable[[Aliases, Scanner], R]) -> R:
        """A parameter: a name, or written out with or without what it is called."""
        start = scanner.position
        found = self._inside(scanner, read) if scanner.starts("<") else self._record(scanner)
        if not isinstance(found, kind):
            raise scanner.error(f"expected a {_NAMES[kind]}", start)
        return found

    def _scope(self, scanner: Scanner) -> loc.Scope:
        start = scanner.position
        found = self._record(scanner)
        if not isinstance(found, _SCOPES):
            raise scanner.error("expected a scope", start)
        return found

    def _field(self, scanner: Scanner, name: str) -> None:
        scanner.expect(",")
        scanner.expect(name)
        scanner.expect("=")

    def _number(self, scanner: Scanner, name: str) -> int:
        self._field(scanner, name)
        return scanner.integer()


_NAMES: dict[type, str] = {loc.File: "di_file", loc.CompileUnit: "di_compile_unit"}
_READ: dict[str, Callable[[Aliases, Scanner], loc.DebugRecord]] = {
    "#cuda_tile.di_file": Aliases.file,
    "#cuda_tile.di_compile_unit": Aliases.compile_unit,
    "#cuda_tile.di_subprogram": Aliases.subprogram,
    "#cuda_tile.di_lexical_block": Aliases.lexical_block,
    "#cuda_tile.di_loc": Aliases.placed,
}
