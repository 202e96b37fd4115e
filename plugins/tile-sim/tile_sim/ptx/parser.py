"""PTX text to a syntax tree: modules, functions, declarations, statements."""

from __future__ import annotations

from functools import lru_cache

from tile_sim.errors import SimError
from tile_sim.ptx.cursor import Cursor
from tile_sim.ptx.lexer import Source
from tile_sim.ptx.syntax import (
    Function,
    Guard,
    Instr,
    Label,
    Module,
    Name,
    Operand,
    Prototype,
    Scope,
    Variable,
)

_OLDEST, _NEWEST = (6, 0), (9, 9)
_LINKAGE = {".visible", ".extern", ".weak", ".common"}
_SPACES = {".reg", ".sreg", ".const", ".global", ".local", ".param", ".shared", ".tex"}
_SCALARS = (
    "pred", "b1", "b8", "b16", "b32", "b64", "b128", "u8", "u16", "u32", "u64", "s8", "s16", "s32",
    "s64", "f16", "f16x2", "bf16", "bf16x2", "tf32", "f32", "f64", "e4m3", "e5m2", "e4m3x2",
    "e5m2x2", "texref", "samplerref", "surfref",
)  # fmt: skip
_TYPES = {f".{name}" for name in _SCALARS}
# Kernel directives: how many integers may follow (a range), PTX ISA "Performance-Tuning" and
# "Cluster Dimension Directives".
_FUNCTION_DIRECTIVES: dict[str, tuple[int, int]] = {
    ".maxntid": (1, 3),
    ".reqntid": (1, 3),
    ".maxnreg": (1, 1),
    ".minnctapersm": (1, 1),
    ".maxnctapersm": (1, 1),
    ".reqnctapercluster": (1, 3),
    ".maxclusterrank": (1, 1),
    ".explicitcluster": (0, 0),
    ".blocksareclusters": (0, 0),
    ".noreturn": (0, 0),
    ".language": (1, 1),
    ".minperctamemory": (1, 1),  # in tileiras' code: bytes of its hidden workspace a CTA
    ".abi_preserve": (1, 1),
    ".abi_preserve_control": (1, 1),
}
_LISTS = {".branchtargets", ".calltargets", ".callprototype"}


class Parser(Cursor):
    """Recursive descent over one module."""

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self.loc: tuple[int, int, int] | None = None
        self.module = Module((0, 0), "")

    def parse(self) -> Module:
        self._header()
        while self.token.kind != "end":
            self._top_level()
        return self.module

    # --- header and top level ---------------------------------------------------------------

    def _header(self) -> None:
        if not self.at(".version"):
            self.fail("not PTX text: a module starts with .version")
        self.next()
        token = self.next()
        try:
            major, minor = (int(x) for x in token.text.split("."))
        except ValueError:
            self.fail(f"bad PTX version {token.text!r}", token)
        if not _OLDEST <= (major, minor) <= _NEWEST:
            self.fail(f"PTX version {major}.{minor} is not supported (6.0 to 9.x are)", token)
        self.module.version = (major, minor)
        self.expect(".target")
        self.module.target = self.identifier("a target such as sm_80").text
        options = []
        while self.accept(","):
            options.append(self.identifier("a target option").text)
        self.module.target_options = tuple(options)
        if self.accept(".address_size"):
            self.module.address_size = self.integer()
        if self.module.address_size != 64:
            self.fail(f".address_size {self.module.address_size} is not supported, 64 is")

    def _top_level(self) -> None:
        if self.accept(";"):
            return
        if self._debug_directive():
            return
        linkage = self.next().text[1:] if self.token.text in _LINKAGE else ""
        token = self.token
        if token.text in (".entry", ".func"):
            self._function(linkage)
        elif token.text in _SPACES:
            self.module.variables.extend(self._variables(linkage))
            self.expect(";")
        elif token.text == ".alias":
            self._alias()
        else:
            self.fail(f"unexpected {token.text or 'end of the text'!r} at module level")

    def _alias(self) -> None:
        self.next()
        alias = self.identifier("an alias").text
        self.expect(",")
        self.module.aliases[alias] = self.identifier("a function").text
        self.expect(";")

    def _debug_directive(self) -> bool:
        """`.file`, `.loc`, `.loc_intermediate`, `.section`, `.pragma`: consumed here, `.loc`
        remembered."""
        text = self.token.text
        if text == ".file":
            self.next()
            index = self.integer()
            name = self.next()
            self.module.files[index] = name.text.strip('"')
            while self.accept(","):
                self.integer()
        elif text == ".loc":
            self.next()
            self.loc = (self.integer(), self.integer(), self.integer())
            while self.accept(","):
                self._loc_attribute()
        elif text == ".loc_intermediate":
            # As `.loc`, in the file of the intermediate source; reports name the user's lines.
            self.next()
            for _ in range(3):
                self.integer()
        elif text == ".section":
            self._section()
        elif text == ".pragma":
            self.next()
            while not self.accept(";"):
                if self.token.kind == "end":
                    self.fail("unterminated .pragma")
                self.next()
        else:
            return False
        return True

    def _loc_attribute(self) -> None:
        name = self.identifier("a .loc attribute").text
        if name == "function_name":
            self.expression()
        elif name == "inlined_at":
            for _ in range(3):
                self.integer()
        else:
            self.fail(f"unknown .loc attribute {name!r}")

    def _section(self) -> None:
        self.next()
        self.next()
        self.expect("{")
        while not self.accept("}"):
            if self.token.kind == "end":
                self.fail("unterminated .section")
            self.next()

    # --- functions --------------------------------------------------------------------------

    def _function(self, linkage: str) -> None:
        entry = self.next().text == ".entry"
        self.accept(".noreturn")
        returns = () if entry or not self.at("(") else self._parameters()
        token = self.identifier("a function name")
        function = Function(token.text, entry, token.pos, returns=returns, linkage=linkage)
        if self.at("("):
            function.params = self._parameters()
        self._function_directives(function)
        if not self.accept(";"):
            self.loc = None
            self.expect("{")
            function.body = self._scope()
        known = self.module.functions.get(token.text)
        if known is not None and known.body is not None:
            if function.body is not None:
                self.fail(f"function {token.text!r} is defined twice", token)
            return
        self.module.functions[token.text] = function

    def _parameters(self) -> tuple[Variable, ...]:
        self.expect("(")
        params: list[Variable] = []
        while not self.accept(")"):
            # Not in the PTX ISA: parameters that the driver, not the caller, fills in.
            hidden = self.accept(".hidden") is not None
            params.extend(self._variables("hidden" if hidden else "", single=True))
            if not self.at(")"):
                self.expect(",")
        return tuple(params)

    def _function_directives(self, function: Function) -> None:
        while self.token.kind == "dot":
            if self._debug_directive():
                continue
            token = self.next()
            if token.text == ".attribute":
                self.operand()
                continue
            if token.text not in _FUNCTION_DIRECTIVES:
                self.fail(f"unknown function directive {token.text!r}", token)
            low, high = _FUNCTION_DIRECTIVES[token.text]
            values = [self.integer()] if low else []
            while low and len(values) < high and self.accept(","):
                values.append(self.integer())
            function.directives[token.text[1:]] = tuple(values)

    # --- declarations -----------------------------------------------------------------------

    def _variables(self, linkage: str, single: bool = False) -> list[Variable]:
        """Declarations after a state space: one type, then names (only one in a list)."""
        start = self.next()
        space = start.text[1:]
        if start.text not in _SPACES:
            self.fail(f"expected a state space, found {start.text!r}", start)
        align, vector, kind = None, 1, None
        while self.token.kind == "dot":
            token = self.next()
            if token.text == ".align":
                align = self.integer()
            elif token.text in (".v2", ".v4", ".v8"):
                vector = int(token.text[2:])
            elif token.text == ".ptr":
                self._pointer_attributes()
            elif token.text == ".attribute":
                self.operand()
            elif token.text in _TYPES:
                kind = token.text[1:]
            elif token.text.startswith("::") or token.text in (".cta", ".cluster"):
                continue
            else:
                self.fail(f"unexpected {token.text!r} in a declaration", token)
        if kind is None:
            self.fail("a declaration needs a type")
        found = []
        while True:
            found.append(self._declarator(space, kind, align, vector, linkage))
            if single or not self.accept(","):
                return found

    def _pointer_attributes(self) -> None:
        while self.at(".global", ".shared", ".const", ".local", ".param", ".align"):
            if self.next().text == ".align":
                self.integer()

    def _declarator(
        self, space: str, kind: str, align: int | None, vector: int, linkage: str
    ) -> Variable:
        token = self.identifier("a name")
        count, shape, init = None, [], None
        if self.accept("<"):
            # Not an expression: `>` closes the range.
            count = self._count()
            self.expect(">")
        while self.accept("["):
            shape.append(None if self.at("]") else self.integer())
            self.expect("]")
        if self.accept("="):
            init = self._initialiser()
        if kind in ("texref", "samplerref", "surfref"):
            self.fail(f".{kind} variables are not supported", token)
        return Variable(
            space, kind, token.text, token.pos, align, vector, tuple(shape), init, count, linkage
        )

    def _count(self) -> int:
        value = self.number() if self.token.kind == "num" else None
        if value is None or not hasattr(value, "value"):
            self.fail("expected the number of registers")
        return int(value.value)

    def _initialiser(self) -> object:
        if self.accept("{"):
            items: list[object] = []
            while not self.accept("}"):
                items.append(self._initialiser())
                if not self.at("}"):
                    self.expect(",")
            return tuple(items)
        if self.at("generic"):
            self.next()
            self.expect("(")
            inner = self.expression()
            self.expect(")")
            if not isinstance(inner, Name):
                self.fail("generic() needs a variable")
            return Name(inner.name, "generic", inner.offset)
        return self.expression()

    # --- statements -------------------------------------------------------------------------

    def _scope(self) -> Scope:
        """The statements up to the closing brace, which is consumed."""
        scope = Scope()
        while not self.accept("}"):
            token = self.token
            if token.kind == "id":
                if self.tokens[self.i + 1].text == ":":
                    self._label(scope)
                else:
                    scope.body.append(self._instruction())
                continue
            if token.kind == "end":
                self.fail("the text ends inside a function body")
            if self.accept(";") or self._debug_directive():
                continue
            if self.accept("{"):
                scope.body.append(self._scope())
            elif token.text in _SPACES:
                scope.body.extend(self._variables(""))
                self.expect(";")
            elif token.text in _LINKAGE:
                scope.body.extend(self._variables(self.next().text[1:]))
                self.expect(";")
            else:
                scope.body.append(self._instruction())
        return scope

    def _label(self, scope: Scope) -> None:
        token = self.next()
        self.expect(":")
        if self.token.text not in _LISTS:
            scope.body.append(Label(token.text, token.pos))
            return
        kind = self.next().text[1:]
        if kind == "callprototype":
            returns = self._parameters() if self.at("(") else ()
            self.identifier("`_`")
            params = self._parameters() if self.at("(") else ()
            self.accept(".noreturn")
            scope.body.append(Prototype(token.text, kind, returns, params))
        else:
            names = [self.identifier("a label").text]
            while self.accept(","):
                names.append(self.identifier("a label").text)
            scope.body.append(Prototype(token.text, kind, targets=tuple(names)))
        self.expect(";")

    def _instruction(self) -> Instr:
        guard = None
        start = self.token.pos
        if self.accept("@"):
            negated = self.accept("!") is not None
            guard = Guard(self.identifier("a predicate").text, negated)
        name = self.identifier("an instruction")
        first = self.i
        while self.tokens[self.i].kind == "dot":
            self.i += 1
        mods = [token.text[1:] for token in self.tokens[first : self.i]]
        operands: list[Operand] = []
        while not self.accept(";"):
            operands.append(self.operand())
            if not self.at(";"):
                self.expect(",")
                if self.at(";"):
                    self.fail("expected an operand after the comma")
        pos = name.pos if guard is None else start
        return Instr(name.text, tuple(mods), tuple(operands), guard, pos, self.loc)


def parse(text: str) -> tuple[Module, Source]:
    """Parse PTX text.

    Returns the syntax tree and the text with its line table. Raises SimError (`syntax`).
    """
    return _parsed(required_text(text))


def required_text(text: object) -> str:
    """Raises SimError (`syntax`) for what is no text."""
    if not isinstance(text, str):
        raise SimError("syntax", f"PTX must be text, not {type(text).__name__}")
    return text


@lru_cache(maxsize=2)  # nobody changes a tree
def _parsed(text: str) -> tuple[Module, Source]:
    source = Source(text.rstrip("\0"))
    return Parser(source).parse(), source
