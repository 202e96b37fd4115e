"""Accesses keep the line of the operation they come from, through LLVM's optimisations."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import tile_cudatile
from tile_cudatile.locations import DebugLoc

import tile_core

BYTECODE = Path(__file__).resolve().parents[3] / "examples" / "bytecode"
_LINE = re.compile(r"\s*\.loc\s+\d+ (\d+) ")
#: cp.async and copies by tensor maps are loads that begin ahead of their loops.
_ACCESS = re.compile(r"\b(?:(ld|st)\.global|cp\.async\.\S*\.global)")
KINDS = {"load_view_tko": "ld", "store_view_tko": "st"}


def lines_of_program(name: str) -> dict[str, set[int]]:
    """The lines of loads and of stores, as the program says."""
    program = tile_cudatile.read_bytecode((BYTECODE / f"{name}.tileirbc").read_bytes())
    found: dict[str, set[int]] = {"ld": set(), "st": set()}
    for op in program.entries[0].body.walk():
        if op.name in KINDS:
            assert isinstance(op.loc, DebugLoc)
            found[KINDS[op.name]].add(op.loc.line)
    return found


def lines_of_code(ptx: str) -> Iterator[tuple[str, int]]:
    """Each access of global memory and the line that debug information gives it."""
    line = 0
    for text in ptx.splitlines():
        if found := _LINE.match(text):
            line = int(found[1])
        if access := _ACCESS.search(text):
            yield access[1] or "ld", line


@pytest.mark.parametrize("level", [1, 3])
@pytest.mark.parametrize("name", ["saxpy_loop_f32", "layer_norm_f32", "batched_matmul_f16"])
def test_accesses_keep_their_lines(name: str, level: int) -> None:
    made = tile_core.compile(
        (BYTECODE / f"{name}.tileirbc").read_bytes(),
        "sm_90",
        opt_level=level,
        emit="ptx",
        options={"lineinfo": True},
        keep_stages=False,
    )
    meant = lines_of_program(name)
    found = list(lines_of_code(str(made.stage("ptx"))))
    assert {kind for kind, _ in found} == {"ld", "st"}
    for kind, line in found:
        assert line in meant[kind], f"an {kind} has line {line}, not one of {meant[kind]}"
