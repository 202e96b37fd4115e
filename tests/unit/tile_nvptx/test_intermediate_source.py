"""With debug information, Tile IR stands between the user's lines and the machine's code."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import tile_cudatile
from tile_cudatile.locations import DebugLoc
from tile_nvptx.emit.intermediate_source import with_source
from tile_sim import Module

import tile_core

BYTECODE = Path(__file__).resolve().parents[3] / "examples" / "bytecode"
_PAIR = re.compile(r"\.loc\s+1 (\d+) (\d+).*\n\s*\.loc_intermediate (\d+) (\d+) 1")
_TEXT = re.compile(r"\.source_begin\n(.*)\.source_end\n", re.DOTALL)


@cache
def compiled(name: str, level: int, option: str, emit: str = "ptx") -> tile_core.Artifact:
    data = (BYTECODE / f"{name}.tileirbc").read_bytes()
    return tile_core.compile(data, "sm_90", opt_level=level, emit=emit, options={option: True})


@pytest.mark.parametrize(("level", "option"), [(0, "device-debug"), (3, "lineinfo")])
@pytest.mark.parametrize("name", ["vector_add_f32", "softmax_f16"])
def test_lines_of_the_text_are_those_of_their_operations(
    name: str, level: int, option: str
) -> None:
    """Each line that is named has an operation of the user's line and column that is named."""
    program = tile_cudatile.read_bytecode((BYTECODE / f"{name}.tileirbc").read_bytes())
    ptx = str(compiled(name, level, option).stage("ptx"))
    text = _TEXT.search(ptx)
    assert text is not None
    assert text[1] == tile_cudatile.print_text(program)
    assert re.search(r"^\.version 9\.[4-9]", ptx, re.MULTILINE)
    lines = text[1].splitlines()
    names = {
        (op.loc.line, op.loc.column): op.name
        for op in program.entries[0].body.walk()
        if isinstance(op.loc, DebugLoc)
    }
    found = _PAIR.findall(ptx)
    assert found
    for line, column, file, own in found:
        assert f'.file {file} "' in ptx
        name_of = names[int(line), int(column)]
        shown = lines[int(own) - 1]
        assert re.search(rf"(?:^|= |\s){name_of}\b", shown) or shown.strip().startswith("}")


def test_loads_and_stores_are_behind_the_lines_that_make_them() -> None:
    ptx = str(compiled("vector_add_f32", 3, "lineinfo").stage("ptx"))
    text = _TEXT.search(ptx)
    assert text is not None
    lines, own, seen = text[1].splitlines(), 0, set()
    for line in ptx.splitlines():
        if found := re.match(r"\s*\.loc_intermediate \d+ (\d+)", line):
            own = int(found[1])
        if access := re.search(r"\b(ld|st)\.global", line):
            wanted = {"ld": "load_view_tko", "st": "store_view_tko"}[access[1]]
            assert wanted in lines[own - 1]
            seen.add(access[1])
    assert seen == {"ld", "st"}


def test_ptxas_makes_sections_of_it() -> None:
    made = compiled("vector_add_f32", 3, "lineinfo", "cubin")
    assert made.cubin is not None
    assert b".nv.tileir.debug_line\0" in made.cubin
    assert re.search(rb"\.nv\.tileir\.debug_txt\.[0-9a-f]{32}\0", made.cubin)
    assert b"load_view_tko weak" in made.cubin


def test_nothing_of_it_without_debug_information() -> None:
    data = (BYTECODE / "vector_add_f32.tileirbc").read_bytes()
    ptx = str(tile_core.compile(data, "sm_90", opt_level=3, emit="ptx").stage("ptx"))
    assert "intermediate" not in ptx


def test_an_older_ptxas_is_not_given_it() -> None:
    llvm = 'x\n; intermediate-source {"text":"entry @k() {\\n}\\n","places":[[1,"k.py",3,4]]}\n'
    ptx = '.version 9.0\n.loc 1 3 4\nret;\n.file 1 "k.py"\n'
    assert with_source(ptx, llvm, 90) == ptx
    assert with_source(ptx, llvm, None) == ptx
    assert with_source(ptx, "x\n", 95) == ptx
    made = with_source(ptx, llvm, 95)
    assert made.startswith(".version 9.4\n.loc 1 3 4\n.loc_intermediate 2 1 1\nret;\n")


def test_the_simulator_runs_it() -> None:
    ptx = str(compiled("vector_add_f32", 3, "lineinfo").stage("ptx"))
    x, y = (np.arange(2048, dtype=np.float32) + k for k in range(2))
    z = np.zeros_like(x)
    size = [np.int32(2048), np.int32(1)]
    arguments = [x, *size, y, *size, z, *size]
    report = Module(ptx).launch("vector_add_f32", (2, 1, 1), None, arguments, check=True)
    assert not report.findings
    np.testing.assert_array_equal(z, x + y)
