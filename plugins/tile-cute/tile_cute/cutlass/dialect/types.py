"""Types of cutlass: `!cutlass.pipeline<3>`, `!cutlass.work_tile_info<"streamk">`, ..."""

# pyright: reportGeneralTypeIssues=false

import re
from typing import Any

from tile_core.dialect import Dialect, Type
from tile_core.mlir import ir


class Cutlass(Dialect, name="cutlass"):
    """Pipes between warps, barriers and tile schedulers."""


class PipelineType(Type, dialect=Cutlass, name="pipeline"):
    """A pipe of so many stages."""

    stages: Any


class PipelineStateType(Type, dialect=Cutlass, name="pipeline_state"):
    """A cursor: index, phase and count."""

    stages: Any


class ParticipantsType(Type, dialect=Cutlass, name="participants"):
    """Who produces and who consumes: numbers of warps."""

    producers: Any
    consumers: Any


class SeqBarType(Type, dialect=Cutlass, name="seq_bar"):
    """Barriers by which `length` groups take turns, of `depth` stages."""

    depth: Any
    length: Any


class SeqBarStateType(Type, dialect=Cutlass, name="seq_bar_state"):
    """The cursor of one group."""

    depth: Any


class ParamsType(Type, dialect=Cutlass, name="tile_scheduler_params"):
    """What a scheduler is told; kind: dp, static_persistent, streamk."""

    kind: Any


class TileSchedulerType(Type, dialect=Cutlass, name="tile_scheduler"):
    """A scheduler that asks the hardware for work."""

    kind: Any


class WorkTileInfoType(Type, dialect=Cutlass, name="work_tile_info"):
    """A piece of work."""

    kind: Any


_NUMBER = re.compile(r"(-?\d+)(?: : \w+)?")
_STRING = re.compile(r'"(\w+)"')
_TYPE = re.compile(r"!cutlass\.(\w+)<(.*)>")


def name_of(type_: ir.Type) -> str:
    """The mnemonic of a type of cutlass; empty for another."""
    found = _TYPE.fullmatch(str(type_))
    return found[1] if found else ""


def numbers_of(type_: ir.Type) -> tuple[int, ...]:
    """Numbers among the parameters of a type of cutlass, in order."""
    found = _TYPE.fullmatch(str(type_))
    return tuple(int(m[1]) for m in _NUMBER.finditer(found[2])) if found else ()


def kind_of(type_: ir.Type) -> str:
    """The kind of scheduler that a type is of."""
    found = _STRING.search(str(type_))
    return found[1] if found else ""


_LIST = re.compile(r"\[([^\]]*)\]")


def participants_of(type_: ir.Type) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Producers and consumers of a type of participants."""
    producers, consumers = (
        tuple(int(m[1]) for m in _NUMBER.finditer(part)) for part in _LIST.findall(str(type_))
    )
    return producers, consumers
