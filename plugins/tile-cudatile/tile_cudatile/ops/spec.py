"""How an operation is declared. Reader, writer, printer, verifier, MLIR dialect and evaluator
all work from these declarations; nothing else in the package lists operations' fields.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, TypeAlias

from tile_cudatile.attrs import Attr
from tile_cudatile.ops.constraints import Constraint
from tile_cudatile.versions import V13_1, Version

Arity: TypeAlias = Literal["one", "optional", "variadic"]
Effects: TypeAlias = Literal["pure", "none", "recursive", "memory"]
AttrKind: TypeAlias = Literal[
    "enum",
    "i32",
    "i64",
    "bool",
    "str",
    "symbol",
    "dense",
    "i32_array",
    "bool_array",
    "array",
    "hints",
    "predicate",
    "unit",
    "type",
]


@dataclass(frozen=True)
class ValueSpec:
    """An operand group or a result group."""

    name: str
    constraint: Constraint
    arity: Arity = "one"
    since: Version | None = None  # None: as old as the operation


@dataclass(frozen=True)
class AttrSpec:
    """An inherent attribute. `default` is what files older than `since` mean."""

    name: str
    kind: AttrKind
    values: tuple[str, ...] = ()  # of an enum
    optional: bool = False
    default: Attr | None = None
    since: Version | None = None

    @property
    def flagged(self) -> bool:
        """Whether a flag bit of the record tells its presence."""
        return self.optional or self.kind == "unit"


@dataclass(frozen=True)
class OpSpec:
    """One operation.

    `effects`: "pure" (speculatable, no memory), "none" (no memory, may be undefined for some
    inputs), "recursive" (those of its regions) or "memory".
    `same` lists groups of operand/result names of equal type, `same_shape`, `same_element` and
    `same_rank` likewise. `parents` are the operations a terminator may stand in.
    """

    name: str
    opcode: int
    since: Version = V13_1
    operands: tuple[ValueSpec, ...] = ()
    attrs: tuple[AttrSpec, ...] = ()
    results: tuple[ValueSpec, ...] = ()
    regions: tuple[str, ...] = ()
    effects: Effects = "memory"
    segmented: bool = False
    terminator: bool = False
    parents: tuple[str, ...] = ()
    class_name: str = ""  # of the reference implementation; appears in its messages
    rules: tuple[tuple[str, tuple[str, ...]], ...] = field(default=())

    @cached_property
    def counted(self) -> bool:
        """Whether the record starts with the number of results."""
        return any(v.arity == "variadic" for v in (*self.operands, *self.results))

    @cached_property
    def result_count(self) -> int | None:
        """How many results there are; None for any number."""
        if any(r.arity == "variadic" for r in self.results):
            return None
        return len(self.results)

    @cached_property
    def variable(self) -> bool:
        """Whether any operand group is optional or variadic."""
        return any(v.arity != "one" for v in self.operands)

    @cached_property
    def flag_bits(self) -> dict[str, int]:
        """Field name -> bit: by version, attributes before operands, in declaration order."""
        fields = [(a.since or self.since, a.name) for a in self.attrs if a.flagged]
        if self.segmented:
            fields += [
                (o.since or self.since, o.name) for o in self.operands if o.arity == "optional"
            ]
        ordered = sorted(fields, key=lambda item: item[0])  # stable: declaration order within
        return {name: bit for bit, (_, name) in enumerate(ordered)}

    @cached_property
    def flags_since(self) -> Version | None:
        """First version whose records have the flags field; None if there is none."""
        fields = [a.since or self.since for a in self.attrs if a.flagged]
        if self.segmented:
            fields += [o.since or self.since for o in self.operands if o.arity == "optional"]
        return min(fields, default=None)

    @cached_property
    def operand_index(self) -> dict[str, int]:
        """Operand group name -> position."""
        return {o.name: i for i, o in enumerate(self.operands)}

    @cached_property
    def result_index(self) -> dict[str, int]:
        """Result group name -> position."""
        return {r.name: i for i, r in enumerate(self.results)}


def one(name: str, constraint: Constraint, since: Version | None = None) -> ValueSpec:
    """A single operand or result."""
    return ValueSpec(name, constraint, "one", since)


def maybe(name: str, constraint: Constraint, since: Version | None = None) -> ValueSpec:
    """An operand that may be absent."""
    return ValueSpec(name, constraint, "optional", since)


def many(name: str, constraint: Constraint, since: Version | None = None) -> ValueSpec:
    """Any number of operands or results."""
    return ValueSpec(name, constraint, "variadic", since)


def ones(constraint: Constraint, *names: str) -> tuple[ValueSpec, ...]:
    """Single operands or results of one constraint."""
    return tuple(one(name, constraint) for name in names)


def enum(
    name: str,
    values: tuple[str, ...],
    *,
    default: str | None = None,
    since: Version | None = None,
    optional: bool = False,
) -> AttrSpec:
    """An enumeration attribute, held by its mnemonic."""
    return AttrSpec(name, "enum", values, optional, default, since)


def unit(name: str, since: Version | None = None) -> AttrSpec:
    """A flag: `True` or absent."""
    return AttrSpec(name, "unit", since=since)


def same(*names: str) -> tuple[str, tuple[str, ...]]:
    """All of these have one type."""
    return ("type", names)


def same_shape(*names: str) -> tuple[str, tuple[str, ...]]:
    """All of these have one shape."""
    return ("shape", names)


def same_rank(*names: str) -> tuple[str, tuple[str, ...]]:
    """All of these have one rank."""
    return ("rank", names)


def same_element(*names: str) -> tuple[str, tuple[str, ...]]:
    """All of these have one element type."""
    return ("element", names)


class OpTable:
    """Operations by name and by opcode."""

    def __init__(self, *families: Iterable[OpSpec]) -> None:
        self.by_name: dict[str, OpSpec] = {}
        self.by_opcode: dict[int, OpSpec] = {}
        for family in families:
            for spec in family:
                assert spec.name not in self.by_name, spec.name
                assert spec.opcode not in self.by_opcode, spec.name
                self.by_name[spec.name] = spec
                self.by_opcode[spec.opcode] = spec

    def __iter__(self) -> Iterator[OpSpec]:
        return iter(self.by_name.values())
