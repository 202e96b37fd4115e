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


def test_every_variable_is_described() -> None:
    """Those of the compiler; what processes of a server tell each other is no user's."""
    import tomli

    own = {"TILEC_PYTHON", "TILEC_CLIENT", "TILEC_ENTRY", "TILEC_IDENTITY", "TILEC_MARK"}
    known = tomli.loads((ROOT / "tile_core" / "variables.toml").read_text(encoding="utf-8"))
    used = set()
    for folder in (ROOT / "tile_core", ROOT / "plugins"):
        for file in folder.rglob("*.py"):
            used |= set(re.findall(r'"(TILEC_[A-Z_]+)"', file.read_text(encoding="utf-8")))
    assert used - own <= set(known), "describe it in tile_core/variables.toml"


def test_the_reference_is_made_of_the_code(tmp_path: Path) -> None:
    path = ROOT / "tools" / "gen_reference.py"
    spec = importlib.util.spec_from_file_location("gen_reference", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    pages = {file.stem: file.read_text() for file in module.write(tmp_path)}
    assert "## tilec pipeline validate" in pages["commands"]
    assert "| `ftz` |" in pages["options"]
    assert "`nv_tileas.dot`" in pages["operations"]
    assert "## tile_schedulers" in pages["hooks"]
    assert "smaller tiles" in pages["diagnostics"].lower()


def test_the_pipeline_file_of_the_guide_is_valid(tmp_path: Path) -> None:
    from tile_core.cli.main import run

    page = (ROOT / "docs" / "pipeline-files.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    file = tmp_path / "mine.toml"
    file.write_text(example)
    assert run(["pipeline", "validate", str(file), "--gpu-name", "sm_90"]) == 0


def test_every_page_is_in_the_contents() -> None:
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    for page in (ROOT / "docs").glob("*.md"):
        assert page.stem == "index" or re.search(rf"^{page.stem}$", index, re.MULTILINE), page
