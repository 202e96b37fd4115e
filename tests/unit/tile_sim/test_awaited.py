"""What happens right after a module was imported, and not before."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest
from tile_sim.awaited import when_imported


def test_once_after_the_first_import(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "awaited_here.py").write_text("ready = True\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    finders = list(sys.meta_path)
    seen: list[bool] = []
    when_imported("awaited_here", lambda: seen.append(sys.modules["awaited_here"].ready))
    assert seen == []
    importlib.import_module("json")
    assert seen == []
    importlib.import_module("awaited_here")
    importlib.reload(sys.modules["awaited_here"])
    assert seen == [True]
    assert sys.meta_path == finders
    when_imported("awaited_here", lambda: seen.append(False))
    assert seen == [True, False]
    del sys.modules["awaited_here"]


def test_a_module_that_does_not_exist_stays_missing() -> None:
    when_imported("awaited_nowhere", lambda: pytest.fail("it is not there"))
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("awaited_nowhere")
