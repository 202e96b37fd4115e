"""Runs tests/filecheck/<plugin>/<pass>.mlir in process: the passes of its RUN line, FileCheck.

A file is split at `// -----`. Each part is run by itself and compared with its own CHECK lines;
a part whose CHECK lines speak of an `error:` has to fail, and its error is what is compared. With
`--remarks -` the remarks stand before the module.

tests/filecheck/effects/ has MLIR's own passes on our operations: what their effects allow.
"""

from __future__ import annotations

import io
import re
import shlex
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from filecheck.finput import FInput
from filecheck.matcher import Matcher
from filecheck.options import Options
from filecheck.parser import Parser, pattern_for_opts
from support.bindings import needs_effects
from support.tiles import registry

from tile_core.cli.opt import opt
from tile_core.diagnostics import TileError
from tile_core.opt import OptJob, Selection, optimize, split_input
from tile_core.remarks import as_listing

HERE = Path(__file__).parent / "filecheck"
PLUGINS = ("cudatile", "cute", "nvptx", "tileaa", "tileas")
RUN = re.compile(r"^// RUN: tilec opt (?P<arguments>.+)$", re.MULTILINE)
CHECK = re.compile(r"//\s*CHECK[A-Z-]*:")
FAILS = re.compile(r"//\s*CHECK[A-Z-]*:.*\berror:")


@cache
def parts_of(path: Path) -> list[tuple[str, int]]:
    """The parts of a file, each with the number of lines before it."""
    return split_input(path.read_text(encoding="utf-8"))


def job_of(path: Path) -> OptJob:
    """What the RUN line says, read by the command's own parser."""
    (run,) = RUN.finditer(path.read_text(encoding="utf-8"))
    context = opt.make_context("opt", shlex.split(run["arguments"]))
    given: dict[str, Any] = context.params
    selection = Selection(passes=given["passes"], target=given["gpu_name"])
    return OptJob(
        registry(), selection, path.name, generic=given["generic"], debug_info=given["debug_info"]
    )


def output_of(text: str, first_line: int, job: OptJob, with_remarks: bool = False) -> str:
    """The module after the passes, or the error where one is expected."""
    if not FAILS.search(text):
        done = optimize(text, first_line, job)
        return (as_listing(done.artifact.remarks) if with_remarks else "") + done.text
    try:
        return optimize(text, first_line, job).text
    except TileError as error:
        return error.render() + "\n"


def matches(text: str, output: str, name: str, first_line: int = 0) -> bool:
    """Whether `output` is what the CHECK lines of `text` want; FileCheck prints what is not."""
    options = Options(match_filename=name)
    parser = Parser(options, io.StringIO(text), *pattern_for_opts(options), first_line)
    return Matcher(options, FInput("output", output), parser).run() == 0


CASES = [
    pytest.param(
        path,
        at,
        id=f"{path.parent.name}/{path.stem}-{at + 1}",
        marks=[needs_effects] if path.parent.name == "effects" else [],
    )
    for path in sorted(HERE.rglob("*.mlir"))
    for at in range(len(parts_of(path)))
]


@pytest.mark.parametrize(("path", "at"), CASES)
def test_filecheck(path: Path, at: int) -> None:
    text, first_line = parts_of(path)[at]
    assert CHECK.search(text), "a part without CHECK lines cannot fail"
    output = output_of(text, first_line, job_of(path), "--remarks -" in path.read_text("utf-8"))
    assert matches(text, output, path.name, first_line), output


@pytest.mark.parametrize("plugin", PLUGINS)
def test_every_pass_has_a_file(plugin: str) -> None:
    """Each with something changed, something left alone, and something refused."""
    passes = {e.lazy.name for e in registry().entries("pass") if e.plugin.name == plugin}
    files = {path.stem: path for path in (HERE / plugin).glob("*.mlir")}
    assert set(files) == passes
    for path in files.values():
        fails = [bool(FAILS.search(text)) for text, _ in parts_of(path)]
        assert True in fails, f"{path.name} has no invalid case"
        assert fails.count(False) >= 2, f"{path.name} needs a positive and a no-change case"


def test_mismatches_are_seen() -> None:
    assert matches("// CHECK: func.func @f\n", "func.func @f() {\n", "f")
    assert not matches("// CHECK: func.func @g\n", "func.func @f() {\n", "f")
    assert not matches("// CHECK-NOT: @f\n", "func.func @f() {\n", "f")
