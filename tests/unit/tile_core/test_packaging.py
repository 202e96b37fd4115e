"""One name to install: `tilec` holds every package of the framework and requires every plugin."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import tomli

ROOT = Path(__file__).parents[3]
ABOUT = tomli.loads((ROOT / "pyproject.toml").read_text())
PLUGINS = {
    path.parent.name: tomli.loads(path.read_text())["project"]
    for path in sorted((ROOT / "plugins").glob("*/pyproject.toml"))
}


def test_every_package_is_installed() -> None:
    folders = [p.parent.relative_to(ROOT) for p in (ROOT / "tile_core").rglob("__init__.py")]
    packages = {".".join(folder.parts) for folder in folders} | {"tile_pipelines"}
    assert set(ABOUT["tool"]["setuptools"]["packages"]) == packages


def test_every_plugin_is_required_at_its_version() -> None:
    required = {r for r in ABOUT["project"]["dependencies"] if r.startswith("tile-")}
    assert required == {f"{p['name']}=={p['version']}" for p in PLUGINS.values()}
    assert set(ABOUT["tool"]["uv"]["sources"]) == {p["name"] for p in PLUGINS.values()}


@pytest.mark.parametrize("folder", PLUGINS)
def test_a_plugin_is_called_as_its_folder_and_requires_this_version(folder: str) -> None:
    assert PLUGINS[folder]["name"] == folder
    assert f"tilec=={ABOUT['project']['version']}" in PLUGINS[folder]["dependencies"]


def _backend() -> ModuleType:
    path = ROOT / "tools" / "packaging" / "checkout.py"
    spec = importlib.util.spec_from_file_location("checkout", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("settings", [None, {}, {"requirements": "names"}])
def test_a_checkout_says_where_its_plugins_are(
    settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("setuptools")
    backend = _backend()

    def prepare(folder: str, _settings: Any) -> str:
        info = Path(folder, "tilec.dist-info")
        info.mkdir()
        lines = ("Name: tilec", "Requires-Dist: tile-sim==0.1.0", "Requires-Dist: rich>=13.7",
                 "Requires-Dist: other==1.0")  # fmt: skip
        (info / "METADATA").write_text("\n".join(lines))
        return info.name

    monkeypatch.setattr(backend.build_meta, "prepare_metadata_for_build_wheel", prepare)
    name = backend.prepare_metadata_for_build_wheel(str(tmp_path), settings)
    text = (tmp_path / name / "METADATA").read_text()
    place = (ROOT / "plugins" / "tile-sim").as_uri()
    located = not settings
    assert (f"Requires-Dist: tile-sim @ {place}" in text) is located
    assert ("Requires-Dist: tile-sim==0.1.0" in text) is not located
    assert "Requires-Dist: rich>=13.7\nRequires-Dist: other==1.0" in text
