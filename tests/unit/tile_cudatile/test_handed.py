"""The tree that a reader leaves for the first pass that works on one."""

from __future__ import annotations

from pathlib import Path

import pytest
from tile_cudatile import handed, read_bytecode, to_mlir
from tile_cudatile.dialect import read as reading

import tile_core
from tile_core.frontend import FrontendContext

BYTECODE = Path(__file__).resolve().parents[3] / "examples" / "bytecode"
#: A product, chained products, and a norm.
PROGRAMS = ("matmul_f16", "attention_f16", "layer_norm_f16")


def ptx(source: bytes | str) -> str:
    made = tile_core.compile(source, "sm_100", opt_level=3, emit="ptx", keep_stages=False)
    return str(made.output)


@pytest.mark.parametrize("name", PROGRAMS)
def test_it_is_the_program(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same code with it, without it, and of the MLIR form."""
    source = (BYTECODE / f"{name}.tileirbc").read_bytes()
    found = ptx(source)
    monkeypatch.setattr(FrontendContext, "leave", lambda *_: None)
    assert ptx(source) == found


def test_it_is_read_back_where_nobody_left_it(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[object] = []
    real = reading.from_mlir
    monkeypatch.setattr(reading, "from_mlir", lambda op: (read.append(op), real(op))[1])
    source = (BYTECODE / "matmul_f16.tileirbc").read_bytes()
    ptx(source)
    assert not read
    ptx(str(to_mlir(read_bytecode(source))))
    assert len(read) == 2  # by the rules of the language, and by the pass


def test_it_can_be_taken_once() -> None:
    tree = read_bytecode((BYTECODE / "matmul_f16.tileirbc").read_bytes())
    left = handed.Handed(tree)
    assert left.take() is tree
    assert left.take() is None
