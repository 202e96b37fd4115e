"""The generated documentation is up to date, and the written one says what the code does."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

from tile_core import diagnostics
from tile_core.diagnostics import ExitCode, SourceLocation, TileError
from tile_core.registry import Registry

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("gen_docs", ROOT / "tools" / "gen_docs.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_passes_are_up_to_date(generator: ModuleType) -> None:
    text = (ROOT / "docs" / "passes.md").read_text(encoding="utf-8")
    assert text == generator.passes_text(Registry.discover()), "run python tools/gen_docs.py"


def test_check_sees_a_stale_file(generator: ModuleType, tmp_path, monkeypatch, capsys) -> None:
    stale = tmp_path / "passes.md"
    stale.write_text("# Passes\n")
    monkeypatch.setattr(generator, "PASSES", stale)
    assert generator.main(["--check"]) == 1
    assert "run python tools/gen_docs.py" in capsys.readouterr().err
    assert generator.main([]) == 0
    assert generator.main(["--check"]) == 0


def test_every_pass_is_described(generator: ModuleType) -> None:
    registry = Registry.discover()
    text = generator.passes_text(registry)
    for entry in generator.own_passes(registry):
        known = registry.load("pass", entry.lazy.name)
        assert f"## {entry.lazy.name}\n\n{known.description()}" in text
        for name in known.options():
            assert f"| `{name}` |" in text


def documented() -> str:
    return (ROOT / "docs" / "diagnostics.md").read_text(encoding="utf-8")


def test_exit_codes_are_those_of_the_code() -> None:
    rows = re.findall(r"^\| (\d+) \| `(\w+)` \|", documented(), re.MULTILINE)
    assert {(int(code), name) for code, name in rows} == {(c.value, c.name) for c in ExitCode}


def test_error_classes_are_those_of_the_code() -> None:
    rows = re.findall(r"^\| `(\w+Error)` \| `(\w+)` \|", documented(), re.MULTILINE)
    classes = [
        value
        for value in vars(diagnostics).values()
        if isinstance(value, type) and issubclass(value, TileError) and value is not TileError
    ]
    assert set(rows) == {(cls.__name__, cls.exit_code.name) for cls in classes}


def test_the_form_of_an_error() -> None:
    """The example of the document, word for word."""
    error = TileError(
        "'nv_tileas.load' op has no access plan; run 'tileas-plan-accesses' before",
        where=SourceLocation("k.mlir", 6, 12),
        notes=("in pass 'tileas-assign-layouts' on 'func.func' @k",),
        hint="what to do, where there is something to do",
    )
    assert error.render() in documented()
