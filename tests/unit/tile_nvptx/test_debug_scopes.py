"""Subprograms, blocks and the compile unit of debug information are those of the program."""

from __future__ import annotations

import re

import pytest
from support.programs import Program
from tile_cudatile import locations as loc
from tile_cudatile import types as t
from tile_cudatile.bytecode.writer import write_bytecode
from tile_cudatile.tree import Module

import tile_core

APP, LIB = loc.File("kernel.py", "/src/app"), loc.File("lib.py", "/src/lib")
UNIT = loc.CompileUnit(loc.File("main.py", "/src/app"))
KERNEL = loc.Subprogram(APP, 10, "source_name", "k", UNIT, 11)
HELPER = loc.Subprogram(LIB, 100, "helper", "helper_1", UNIT, 101)
LINES = {"lineinfo": True}
DEBUG = {"device-debug": True}


def _at(line: int, scope: loc.Scope = KERNEL) -> loc.DebugLoc:
    file = scope.file
    return loc.DebugLoc(scope, f"{file.directory}/{file.name}", line, 3)


def _program(block: loc.Scope) -> Module:
    """A sum that was inlined from a library, and a product in a block."""
    p, type_ = Program(), t.Tile((64,), t.F32)
    a = p.load((64,), t.F32)
    b = p.emit("addf", [a, a], type_, rounding_mode="nearest_even")
    p.store(p.emit("mulf", [b, a], type_, rounding_mode="nearest_even"), (64,), t.F32)
    module = p.module()
    (entry,) = module.entries
    entry.loc = _at(10)
    for op in entry.body.walk():
        op.loc = _at(20)
        if op.name == "addf":
            op.loc = loc.CallSite(_at(105, HELPER), _at(30))
        if op.name == "mulf":
            op.loc = _at(13, block)
    return module


def _llvm(module: Module, options: dict[str, bool]) -> str:
    made = tile_core.compile(
        write_bytecode(module), "sm_90", emit="llvm", options=options,
        opt_level=0 if options == DEBUG else 3,
    )  # fmt: skip
    return str(made.stages["llvm"])


def _node(text: str, what: str) -> tuple[str, str]:
    """Number and fields of the one node of debug information that holds `what`."""
    found = [m for m in re.findall(r"^(!\d+) = (.*)$", text, re.MULTILINE) if what in m[1]]
    (node,) = found
    return node


@pytest.mark.parametrize("options", [LINES, DEBUG], ids=["lines", "debug"])
def test_scopes_are_those_of_the_program(options: dict[str, bool]) -> None:
    text = _llvm(_program(loc.LexicalBlock(KERNEL, APP, 12, 5)), options)
    unit, fields = _node(text, "!DICompileUnit(")
    kind = "FullDebug" if options == DEBUG else "DebugDirectivesOnly"
    assert f"emissionKind: {kind}" in fields
    assert f"isOptimized: {str(options == LINES).lower()}" in fields
    main, _ = _node(text, '!DIFile(filename: "main.py", directory: "/src/app")')
    app, _ = _node(text, '!DIFile(filename: "kernel.py", directory: "/src/app")')
    lib, _ = _node(text, '!DIFile(filename: "lib.py", directory: "/src/lib")')
    assert f"file: {main}," in fields

    kernel, fields = _node(text, 'linkageName: "k"')
    assert 'name: "source_name"' in fields
    assert f"file: {app}, line: 10," in fields
    assert "scopeLine: 11" in fields
    assert f"unit: {unit}" in fields
    assert re.search(rf"define .*@k\(.*!dbg {kernel} ", text)

    helper, fields = _node(text, 'linkageName: "helper_1"')
    assert f"file: {lib}, line: 100," in fields
    call, _ = _node(text, f"!DILocation(line: 30, column: 3, scope: {kernel})")
    sum_, _ = _node(text, f"!DILocation(line: 105, column: 3, scope: {helper}, inlinedAt: {call})")
    assert re.search(rf"fadd .*!dbg {sum_}$", text, re.MULTILINE)

    block, fields = _node(text, "!DILexicalBlock(")
    assert f"scope: {kernel}, file: {app}, line: 12, column: 5" in fields
    product, _ = _node(text, f"!DILocation(line: 13, column: 3, scope: {block})")
    assert re.search(rf"fmul .*!dbg {product}$", text, re.MULTILINE)


def test_the_cubin_names_the_unit_and_the_functions() -> None:
    """At -g: LLVM writes it for ptxas, which takes it."""
    module = _program(KERNEL)
    made = tile_core.compile(write_bytecode(module), "sm_90", options=DEBUG, opt_level=0)
    cubin = made.stages["cubin"]
    assert isinstance(cubin, bytes)
    for name in (b"main.py", b"/src/app", b"source_name", b"helper_1", b"tilec"):
        assert name + b"\0" in cubin


def test_two_kernels_share_the_unit() -> None:
    first, second = _program(KERNEL), _program(KERNEL)
    other = loc.Subprogram(LIB, 50, "other", "k2", loc.CompileUnit(LIB), 51)
    (entry,) = second.entries
    entry.name, entry.loc = "k2", _at(50, other)
    for op in entry.body.walk():
        op.loc = _at(52, other)
    first.entries.append(entry)
    text = _llvm(first, LINES)
    unit, _ = _node(text, "!DICompileUnit(")
    for name in ("k", "k2"):
        assert f"unit: {unit}" in _node(text, f'linkageName: "{name}"')[1]


def test_blocks_without_end_are_cut() -> None:
    block: loc.Scope = KERNEL
    for depth in range(300):
        block = loc.LexicalBlock(block, APP, depth, 70_000 * (depth % 2) + 1)
    text = _llvm(_program(block), LINES)
    assert text.count("!DILexicalBlock(") == 64


@pytest.mark.parametrize(
    "scope",
    [
        '{kind = "subprogram"}',
        '{kind = "lexical_block", file = "a", directory = "b", line = 1 : i64, column = 1 : i64}',
        '{kind = 3 : i64, name = "x"}',
        '{kind = "subprogram", file = "a", directory = 1 : i64, name = "f", linkage_name = "f", '
        'unit_file = "a", unit_directory = "b", line = 1 : i64, scope_line = 1 : i64}',
        '{kind = "subprogram", file = "a\\22", directory = "\\5C", name = "\\22", '
        'linkage_name = "k", unit_file = "a>", unit_directory = "b", line = -1 : i64, '
        "scope_line = 99999999999 : i64}",
    ],
)
def test_whatever_dictionary_a_text_holds_is_taken(scope: str) -> None:
    text = f"""
        module {{
          gpu.module @m {{
            llvm.func @k() attributes {{gpu.kernel, nvvm.kernel}} {{
              llvm.return loc(#p)
            }} loc(#p)
          }}
        }}
        #p = loc(fused<{scope}>["kernel.py":3:4])
    """
    made = tile_core.compile(
        text, "sm_90", start_at="llvm-ir", emit="ptx", options=LINES, keep_stages=True
    )
    assert ".entry k" in str(made.stages["ptx"])
