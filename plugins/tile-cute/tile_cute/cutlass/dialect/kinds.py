"""Kinds of operands and results, and the check that reads them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tile_core.mlir import ir
from tile_cute.cutlass.records import KINDS
from tile_cute.errors import LayoutError

_SCHEDULES = "|".join(KINDS)
#: Kind -> (what a type of it looks like, what messages call it).
_KINDS: dict[str, tuple[str, str]] = {
    "i1": (r"i1", "i1"),
    "i32": (r"i32", "i32"),
    "i64": (r"i64", "i64"),
    "word": (r"i32|i64", "i32 or i64"),
    "pipe": (r"!cutlass\.pipeline<\d+(?: : i\d+)?>", "a cutlass.pipeline"),
    "state": (r"!cutlass\.pipeline_state<\d+(?: : i\d+)?>", "a cutlass.pipeline_state"),
    "participants": (r"!cutlass\.participants<\[.*\], \[.*\]>", "cutlass.participants"),
    "bar": (r"!cutlass\.seq_bar<.*>", "a cutlass.seq_bar"),
    "bar_state": (r"!cutlass\.seq_bar_state<.*>", "a cutlass.seq_bar_state"),
    "params": (
        rf'!cutlass\.tile_scheduler_params<"(?:{_SCHEDULES})">',
        f"cutlass.tile_scheduler_params of {', '.join(KINDS)}",
    ),
    "info": (
        rf'!cutlass\.work_tile_info<"(?:{_SCHEDULES})">',
        f"cutlass.work_tile_info of {', '.join(KINDS)}",
    ),
    "launched": (r'!cutlass\.tile_scheduler<"sm100">', 'a cutlass.tile_scheduler<"sm100">'),
    "scheduler": (
        rf'!cutlass\.tile_scheduler(?:_params)?<"(?:{_SCHEDULES})">',
        "a scheduler or its parameters",
    ),
    "shared": (
        r'!llvm\.ptr<3>|!cute\.(?:ptr|memref)<.*"smem".*>', "an address of shared memory"
    ),
    "global": (
        r'!llvm\.ptr<1>|!cute\.(?:ptr|memref)<.*"gmem".*>', "an address of global memory"
    ),
    "rmem": (r'!cute\.memref<.*"rmem".*>', "a cute.memref in rmem"),
    "gmem": (r'!cute\.memref<.*"gmem".*>', "a cute.memref in gmem"),
    "vector": (r"vector<\d+x(?:f32|f16|bf16|i32|f64)>", "a vector of numbers"),
}  # fmt: skip

#: (name, kind, whether it may be missing) of a value.
Value = tuple[str, str, bool]


def read(text: str) -> tuple[Value, ...]:
    """`"pipe:pipe acquired:i1?"` as values."""
    found = []
    for part in text.split():
        name, _, kind = part.partition(":")
        found.append((name, kind.rstrip("?"), kind.endswith("?")))
    return tuple(found)


def check_values(values: Sequence[Value], types: Sequence[ir.Type]) -> None:
    """LayoutError at the first type that is not of its kind."""
    for (name, kind, _), type_ in zip(values, types, strict=False):
        pattern, called = _KINDS[kind]
        if re.fullmatch(pattern, str(type_)) is None:
            raise LayoutError(f"expects {name} to be {called}, but got {type_}")
