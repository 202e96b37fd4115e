"""Locations in assembly, as `tileirdisasm -g` prints them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from tile_cudatile import locations as loc
from tile_cudatile import print_text, read_bytecode, write_bytecode
from tile_cudatile.versions import SUPPORTED, V13_5, Version
from unit.tile_cudatile import samples
from unit.tile_cudatile.everything import everything
from unit.tile_cudatile.peer import DISASSEMBLER, needs_disassembler

FILE, OTHER = loc.File("a.py", "/d"), loc.File('b"q.py', "/d")
OUTER = loc.Subprogram(FILE, 3, "collatz", "collatz", loc.CompileUnit(FILE), 3, loc.DECLARATION)
INNER = loc.Subprogram(OTHER, 7, "inl", "inl", loc.CompileUnit(OTHER), 8)
BLOCK, DEEP = loc.LexicalBlock(OUTER, FILE, 4, 5), loc.LexicalBlock(INNER, OTHER, 4, 5)
CALLED = loc.CallSite(loc.DebugLoc(DEEP, "b.py", 8, 2), loc.DebugLoc(INNER, "b.py", 9, 5))
PLACES = (
    loc.DebugLoc(OUTER, "a.py", 3, 1),
    loc.DebugLoc(BLOCK, "a.py", 4, 6),
    loc.CallSite(loc.DebugLoc(INNER, "b.py", 8, 2), loc.DebugLoc(OUTER, "a.py", 5, 5)),
    loc.CallSite(CALLED, loc.DebugLoc(BLOCK, "a.py", 5, 5)),
    loc.UNKNOWN,
    loc.DebugLoc(OUTER, "zz/a.py", 100, 0),
)


def with_all_kinds() -> bytes:
    module = read_bytecode(samples.sample("collatz.13.5"))
    (entry,) = module.entries
    entry.loc = PLACES[0]
    for index, op in enumerate(entry.body.walk()):
        op.loc = PLACES[index % len(PLACES)]
    module.layout = None
    return write_bytecode(module, V13_5)


def released(data: bytes, folder: Path) -> str:
    path = folder / "program.tileirbc"
    path.write_bytes(data)
    assert DISASSEMBLER is not None
    return subprocess.run(
        [DISASSEMBLER, "-g", str(path)], capture_output=True, text=True, check=True
    ).stdout


def test_every_kind() -> None:
    text = print_text(read_bytecode(with_all_kinds()), locations=True)
    assert text.startswith("entry @collatz(%arg0: tile<ptr<i32>>")
    for line in (
        '#di_file1 = #cuda_tile.di_file<"b\\22q.py" in "/d">',
        "#di_compile_unit = #cuda_tile.di_compile_unit<file = #di_file>",
        '#di_subprogram = #cuda_tile.di_subprogram<file = #di_file, line = 3, name = "collatz", '
        'linkageName = "collatz", compileUnit = #di_compile_unit, scopeLine = 3, '
        "flags = declaration>",
        "#di_lexical_block = #cuda_tile.di_lexical_block<scope = #di_subprogram, file = #di_file, "
        "line = 4, column = 5>",
        "#loc5 = loc(unknown)",
        "#loc17 = loc(callsite(#loc16 at #loc15))",
    ):
        assert f"\n{line}\n" in text


@needs_disassembler
@pytest.mark.parametrize("name", samples.NAMES)
def test_samples_like_the_released_tool(name: str, tmp_path: Path) -> None:
    data = samples.sample(name)
    assert print_text(read_bytecode(data), locations=True) == released(data, tmp_path)


@needs_disassembler
@pytest.mark.parametrize("version", SUPPORTED, ids=str)
def test_everything_like_the_released_tool(version: Version, tmp_path: Path) -> None:
    data = write_bytecode(everything(version))
    assert print_text(read_bytecode(data), locations=True) == released(data, tmp_path)


@needs_disassembler
def test_every_kind_like_the_released_tool(tmp_path: Path) -> None:
    data = with_all_kinds()
    assert print_text(read_bytecode(data), locations=True) == released(data, tmp_path)
