"""A Tile IR program as a tree of plain Python objects. Needs no MLIR."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Union

from tile_cudatile.attrs import Attr, Dense, Hints
from tile_cudatile.locations import UNKNOWN, Location
from tile_cudatile.ops.spec import OpSpec
from tile_cudatile.types import Function, Type
from tile_cudatile.versions import NEWEST, Version

if TYPE_CHECKING:
    from tile_cudatile.bytecode.tables import Layout

#: What `if`, `for` and kernels may carry beside their own attributes: from how many operations in a
#: branch on a loop is split for it; 0 is never. Assembly and MLIR can say it, bytecode cannot.
LOOP_SPLIT = "cuda_tile.loop_split"

#: One operand group: a value, None (absent optional), or a tuple (variadic).
Group = Union["Value", None, tuple["Value", ...]]


class Value:
    """A result of an operation or an argument of a block. Compared by identity."""

    __slots__ = ("index", "owner", "type")

    def __init__(self, type_: Type, owner: Op | Block | None = None, index: int = 0) -> None:
        self.type = type_
        self.owner = owner
        self.index = index

    def __repr__(self) -> str:
        owner = self.owner.name if isinstance(self.owner, Op) else "block"
        return f"<{owner}#{self.index}: {self.type}>"


class Op:
    """One operation.

    `operands` has one entry per operand group of `spec`, in order; `attrs` holds every attribute
    that is present or has a default; unit attributes are `True` or missing.
    """

    __slots__ = ("attrs", "loc", "operands", "regions", "results", "spec")

    def __init__(
        self,
        spec: OpSpec,
        operands: tuple[Group, ...],
        results: tuple[Value, ...] = (),
        attrs: dict[str, Attr] | None = None,
        regions: tuple[Region, ...] = (),
        loc: Location = UNKNOWN,
    ) -> None:
        self.spec = spec
        self.operands = operands
        self.results = results
        self.attrs = {} if attrs is None else attrs
        self.regions = regions
        self.loc = loc
        for index, value in enumerate(results):
            value.owner = self
            value.index = index

    @property
    def name(self) -> str:
        """The mnemonic, without the dialect's prefix."""
        return self.spec.name

    @property
    def result(self) -> Value:
        """The first result."""
        return self.results[0]

    def group(self, name: str) -> Group:
        """The operand group of that name."""
        return self.operands[self.spec.operand_index[name]]

    def values(self) -> list[Value]:
        """All operands, flat."""
        flat: list[Value] = []
        for group in self.operands:
            if isinstance(group, tuple):
                flat.extend(group)
            elif group is not None:
                flat.append(group)
        return flat

    def walk(self) -> Iterator[Op]:
        """This operation and all inside it, in pre-order."""
        yield self
        for region in self.regions:
            yield from region.walk()

    def __repr__(self) -> str:
        return f"<{self.name}: {', '.join(str(r.type) for r in self.results)}>"


class Block:
    """Arguments and operations, the last a terminator."""

    __slots__ = ("args", "ops")

    def __init__(self, args: tuple[Value, ...] = (), ops: list[Op] | None = None) -> None:
        self.args = args
        self.ops = [] if ops is None else ops
        for index, value in enumerate(args):
            value.owner = self
            value.index = index

    def walk(self) -> Iterator[Op]:
        """All operations in pre-order."""
        for op in self.ops:
            yield from op.walk()


class Region:
    """Blocks; in a valid program one, or none for the absent branch of an `if`."""

    __slots__ = ("blocks",)

    def __init__(self, blocks: list[Block] | None = None) -> None:
        self.blocks = [] if blocks is None else blocks

    @property
    def block(self) -> Block:
        """The only block."""
        (block,) = self.blocks
        return block

    def walk(self) -> Iterator[Op]:
        """All operations in pre-order."""
        for block in self.blocks:
            yield from block.walk()


@dataclass
class Global:
    """A named array in global memory, initialised when the module is loaded."""

    name: str
    value: Dense
    alignment: int = 0
    constant: bool = False
    visibility: str = "public"


@dataclass
class Entry:
    """A kernel. `loop_split` is its `LOOP_SPLIT`."""

    name: str
    type: Function
    body: Region
    hints: Hints = field(default_factory=lambda: Hints({}))
    arg_attrs: tuple[Attr, ...] = ()
    loc: Location = UNKNOWN
    loop_split: int | None = None

    @property
    def args(self) -> tuple[Value, ...]:
        """The kernel's arguments."""
        return self.body.block.args


@dataclass
class Module:
    """A program. `tag` is the header's; bit 0 says that preview features occur.

    `loc`, where the source file is named, cannot be said in bytecode.
    """

    version: Version = NEWEST
    globals: list[Global] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)
    producer: str | None = None
    tag: int = 0
    loc: Location = UNKNOWN
    layout: Layout | None = None  # how the file was laid out, for a byte-exact copy

    def entry(self, name: str) -> Entry:
        """The kernel of that name; raises `KeyError`."""
        for entry in self.entries:
            if entry.name == name:
                return entry
        raise KeyError(f"no entry named {name}; there are {[e.name for e in self.entries]}")
