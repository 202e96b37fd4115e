"""The passes on MLIR, as `tilec opt` runs them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tile_cudatile import from_mlir, parse_text, print_text, read_bytecode, to_mlir, verify
from tile_cudatile.dialect import load
from tile_cudatile.tree import Module
from tile_cudatile.versions import V13_5
from unit.tile_cudatile import samples
from unit.tile_cudatile.everything import everything

from tile_core.cli.main import run
from tile_core.mlir import ir

PASSES = ("canonicalize", "fuse-fma", "loop-split", "synthesize-debug-info-scopes")


def through(module: Module, name: str, folder: Path, *flags: str) -> Module:
    """The program after a pass."""
    source, target = folder / "in.mlir", folder / "out.mlir"
    with ir.Context():
        text = to_mlir(module).operation.get_asm(enable_debug_info=True)
    source.write_text(text)
    arguments = ["opt", "-p", f"cuda-tile-{name}", "--debug-info", *flags, str(source)]
    assert run([*arguments, "-o", str(target)]) == 0
    with ir.Context(), ir.Location.unknown():
        load()
        made = from_mlir(ir.Module.parse(target.read_text()))
    verify(made)
    return made


@pytest.mark.parametrize("name", PASSES)
@pytest.mark.parametrize("sample", ["collatz.13.5", "matmul.13.1", "everything"])
def test_programs_stay_valid(name: str, sample: str, tmp_path: Path) -> None:
    known = sample == "everything"
    module = everything(V13_5) if known else read_bytecode(samples.sample(sample))
    through(module, name, tmp_path)


LOOP = """\
entry @k(%p: tile<ptr<i32>>, %n: tile<i32>, %m: tile<i32>) {
  %one = constant <i32: 1> : tile<i32>
  for %i in (%one to %n, step %one) : tile<i32> {
    %c = cmpi less_than %i, %m, signed : tile<i32> -> tile<i1>
    if %c {
      %t = store_ptr_tko weak %p, %i : tile<ptr<i32>>, tile<i32> -> token
    }
  }
}
"""


def test_loops_are_split_and_their_branches_gone(tmp_path: Path) -> None:
    text = print_text(through(parse_text(LOOP), "loop-split", tmp_path))
    assert text.count("for ") == 1  # the second half is empty
    assert "if " not in text
    whole = through(parse_text(LOOP), "loop-split{split-threshold=0}", tmp_path)
    assert "if " in print_text(whole)


def test_scopes(tmp_path: Path) -> None:
    module = through(parse_text(LOOP), "synthesize-debug-info-scopes", tmp_path)
    text = print_text(module, locations=True)
    assert 'name = "k", linkageName = "k"' in text
