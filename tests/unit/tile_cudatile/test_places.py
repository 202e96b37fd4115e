"""Locations in assembly, as `tileirdisasm -g` prints them."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from tile_cudatile import locations as loc
from tile_cudatile import parse_text, print_text, read_bytecode, verify, write_bytecode
from tile_cudatile.text.scanner import TextError
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


# Reading them back.


@pytest.mark.parametrize("name", samples.NAMES)
def test_samples_are_read_back_with_their_places(name: str) -> None:
    module = read_bytecode(samples.sample(name))
    text = print_text(module, locations=True)
    again = parse_text(text, version=module.version)
    assert print_text(again, locations=True) == text
    for before, after in zip(module.entries, again.entries, strict=True):
        assert after.loc == before.loc


def test_every_kind_is_read_back() -> None:
    module = read_bytecode(with_all_kinds())
    text = print_text(module, locations=True)
    again = parse_text(text)
    assert print_text(again, locations=True) == text
    shown = [op.loc for op in module.entries[0].body.walk() if not op.spec.terminator]
    assert [op.loc for op in again.entries[0].body.walk() if not op.spec.terminator] == shown
    verify(again)


WRITTEN_OUT = """\
module @kernels {
  entry @k() {
    %0 = make_token : token loc("a.py":1:2)
    %1 = make_token : token loc(callsite("b.py":3:4 at #second))
    %2 = make_token : token loc(#cuda_tile.di_loc<"a.py":5:6 in #scope>)
    return loc(unknown)
  } loc(#cuda_tile.di_loc<"a.py":1:1 in #scope>)
} loc("m.py":1:1)
#scope = #cuda_tile.di_subprogram<file = <"a.py" in "/d">, line = 3, name = "k", linkageName = "k", compileUnit = #cuda_tile.di_compile_unit<file = #file>, scopeLine = 3>
#second = loc(#first)
#first = loc("c.py":7:8)
#file = #cuda_tile.di_file<"a.py" in "/d">
"""  # noqa: E501


def test_locations_may_be_written_out() -> None:
    module = parse_text(WRITTEN_OUT)
    scope = loc.Subprogram(FILE, 3, "k", "k", loc.CompileUnit(FILE), 3)
    assert module.loc == loc.FileLine("m.py", 1, 1)
    assert module.entries[0].loc == loc.DebugLoc(scope, "a.py", 1, 1)
    assert [op.loc for op in module.entries[0].body.walk()] == [
        loc.FileLine("a.py", 1, 2),
        loc.CallSite(loc.FileLine("b.py", 3, 4), loc.FileLine("c.py", 7, 8)),
        loc.DebugLoc(scope, "a.py", 5, 6),
        loc.UNKNOWN,
    ]


def test_implied_terminators_are_where_their_parents_are() -> None:
    module = parse_text(
        'entry @k(%c: tile<i1>) {\nif %c {\n} loc("a.py":1:2)\nif %c {\n}\nreturn\n}\n'
    )
    first, second = (op for op in module.entries[0].body.block.ops if op.name == "if")
    assert first.regions[0].block.ops[-1].loc == first.loc == loc.FileLine("a.py", 1, 2)
    assert second.regions[0].block.ops[-1].loc == loc.UNKNOWN


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("entry @k() {\nreturn loc(#a)\n}\n", "2:12.*undefined name '#a'"),
        ("entry @k() {\nreturn loc(nowhere)\n}\n", "2:12.*expected a location or an attribute"),
        ('entry @k() {\nreturn loc("a":1)\n}\n', "2:17.*expected ':'"),
        ("#a = loc(#b)\n#b = loc(#a)\n", "'#a' is defined by itself"),
        ('#a = loc("a":1:1)\n#a = loc(unknown)\n', "2:1.*redefinition of '#a'"),
        ("#a = #cuda_tile.di_thing<1>\n", "1:6.*unknown attribute '#cuda_tile.di_thing'"),
        ('#a = #cuda_tile.di_file<"a" in "b">\nentry @k() {\nreturn loc(#a)\n}\n',
         "3:12.*expected a location"),
        ("#a = #cuda_tile.di_loc<unknown in #a>\n", "1:24.*expected a line and a column"),
        ('#a = #cuda_tile.di_loc<"a":1:1 in #b>\n#b = loc(unknown)\n', "1:35.*expected a scope"),
        ('#a = #cuda_tile.di_compile_unit<file = #b>\n#b = loc(unknown)\n',
         "1:40.*expected a di_file"),
        ("#a = loc(" + "callsite(" * 5000, "nested too deep"),
        ("".join(f"#a{i} = loc(#a{i + 1})\n" for i in range(5000)), "nested too deep"),
    ],
)  # fmt: skip
def test_wrong_locations(text: str, message: str) -> None:
    with pytest.raises(TextError) as caught:
        parse_text(text)
    assert re.search(message, caught.value.render())
