"""The syntax tree of a PTX module: what is written, before any name is resolved."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Name:
    """A register, variable, label, function or special register; `part` is `.x`, `.y`, ..."""

    name: str
    part: str | None = None
    offset: int = 0
    negated: bool = False


@dataclass(frozen=True)
class Int:
    """An integer constant, unbounded."""

    value: int


@dataclass(frozen=True)
class Float:
    """A floating constant: `bits` wide (32 or 64 when written as hex, 64 when decimal)."""

    value: float
    pattern: int
    bits: int


@dataclass(frozen=True)
class Vector:
    """`{a, b, ...}`."""

    items: tuple[Operand, ...]


@dataclass(frozen=True)
class Address:
    """`[base + offset]`, with coordinates or a second address after a comma when written."""

    base: Name | Int
    offset: int = 0
    extra: tuple[Operand, ...] = ()


@dataclass(frozen=True)
class Pair:
    """`d|p`: two destinations (or sources) of one instruction."""

    first: Operand
    second: Operand


@dataclass(frozen=True)
class Group:
    """`(a, b)`: parameters of a call."""

    items: tuple[Operand, ...]


Operand = Name | Int | Float | Vector | Address | Pair | Group


@dataclass(frozen=True)
class Guard:
    """`@p` or `@!p`."""

    name: str
    negated: bool


@dataclass(frozen=True)
class Instr:
    """One instruction; `mods` are the dotted words after the opcode, without dots."""

    op: str
    mods: tuple[str, ...]
    operands: tuple[Operand, ...]
    guard: Guard | None
    pos: int
    loc: tuple[int, int, int] | None = None

    @property
    def spelling(self) -> str:
        return ".".join((self.op, *self.mods))


@dataclass(frozen=True)
class Label:
    name: str
    pos: int


@dataclass(frozen=True)
class Variable:
    """A declared variable or parameter.

    `shape` holds the array extents (None for `[]`), `vector` is 1, 2 or 4, `init` a nested tuple
    of operands, `count` the N of a parameterised name `%r<N>`. `linkage` is "hidden" for parameters
    that the caller of a kernel does not pass.
    """

    space: str
    type: str
    name: str
    pos: int
    align: int | None = None
    vector: int = 1
    shape: tuple[int | None, ...] = ()
    init: object = None
    count: int | None = None
    linkage: str = ""


@dataclass(frozen=True)
class Prototype:
    """A `.callprototype`, `.branchtargets` or `.calltargets` list under a label."""

    name: str
    kind: str
    returns: tuple[Variable, ...] = ()
    params: tuple[Variable, ...] = ()
    targets: tuple[str, ...] = ()


@dataclass
class Scope:
    """`{ ... }`: names declared inside are not seen outside."""

    body: list[Statement] = field(default_factory=list)


Statement = Instr | Label | Variable | Prototype | Scope


@dataclass
class Function:
    """An `.entry` or `.func`; `body` is None for a declaration."""

    name: str
    entry: bool
    pos: int
    params: tuple[Variable, ...] = ()
    returns: tuple[Variable, ...] = ()
    directives: dict[str, tuple[int, ...]] = field(default_factory=dict)
    body: Scope | None = None
    linkage: str = ""


@dataclass
class Module:
    """A parsed module."""

    version: tuple[int, int]
    target: str
    target_options: tuple[str, ...] = ()
    address_size: int = 64
    functions: dict[str, Function] = field(default_factory=dict)
    variables: list[Variable] = field(default_factory=list)
    files: dict[int, str] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
