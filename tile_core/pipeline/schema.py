"""What may stand in a pipeline file: one dataclass per table.

The classes are the only description of the format. `tables.py` checks parsed TOML against them
on every load, with the standard library alone; `tilec pipeline schema` turns the same classes
into a JSON Schema for editors through pydantic.
"""

# Annotations are values here: loading reads them, and would have to compile texts at each start.

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

Scalar = bool | int | float | str


@dataclass(frozen=True)
class Table:
    """Common to all tables: no keys but the declared ones."""

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}


@dataclass(frozen=True)
class Head(Table):
    """`[pipeline]`."""

    name: str
    summary: str = ""
    #: Another pipeline's name; "-O" stands for the pipeline of the requested level.
    extends: str | None = None
    #: "listing" pipelines are for display: their passes need not exist, and they do not run.
    kind: Literal["compile", "listing"] = "compile"


@dataclass(frozen=True)
class Option(Table):
    """`[options.NAME]`: a typed option that conditions and passes may refer to."""

    type: Literal["int", "bool", "str", "float"]
    default: Scalar
    help: str = ""
    choices: list[Scalar] = field(default_factory=list)
    min: int | None = None
    max: int | None = None
    #: Kind of registered names a value must be one of: "scheduler", "layout-strategy".
    names: str | None = None
    #: Declared for passes to come: any value but the default is refused, never ignored.
    reserved: bool = False
    #: What must hold where the value is not the default, as in `when`; and what is said if not.
    needs: str | None = None
    refusal: str = ""


@dataclass(frozen=True)
class Segment(Table):
    """`[[segment]]`: passes run in order on every operation that `nest` leads to."""

    name: str
    passes: list[str | dict[str, Any]] = field(default_factory=list)
    #: Operations from the module inwards, e.g. ["gpu.module", "func.func"].
    nest: list[str] = field(default_factory=list)
    when: str | None = None
    #: Dialects of which nothing may survive the segment.
    removes: list[str] = field(default_factory=list)
    #: Where a segment goes that a derived file adds: beside another one, else last.
    before: str | None = None
    after: str | None = None


@dataclass(frozen=True)
class Insert(Table):
    """`[[insert]]`: passes added to a segment of the extended pipeline."""

    segment: str
    passes: list[str | dict[str, Any]]
    #: Pass name or id; with neither, at the end.
    before: str | None = None
    after: str | None = None


@dataclass(frozen=True)
class Replace(Table):
    """`[[replace]]`: a pass of the extended pipeline gives way to others, or to none."""

    segment: str
    old: str
    passes: list[str | dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True)
class Emit(Table):
    """`[emit]`: what turns the last MLIR into files."""

    chain: list[str] = field(default_factory=list)
    #: `[emit.options.EMITTER]`; values may be "$option" like those of passes.
    options: dict[str, dict[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class PipelineFile(Table):
    """A whole file."""

    pipeline: Head
    options: dict[str, Option] = field(default_factory=dict)
    set: dict[str, Scalar] = field(default_factory=dict)
    segment: list[Segment] = field(default_factory=list)
    insert: list[Insert] = field(default_factory=list)
    replace: list[Replace] = field(default_factory=list)
    emit: Emit | None = None


#: Keys of a pass entry `{ pass = "...", ... }` that are no options of the pass.
ENTRY_KEYS = ("pass", "id", "when", "preserve")
