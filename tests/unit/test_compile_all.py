"""tools/compile_all.py: where it sends files, and what it says of those that do not compile."""

from __future__ import annotations

import importlib.util
import json
import shutil
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("compile_all", ROOT / "tools" / "compile_all.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # for its dataclasses
    spec.loader.exec_module(module)
    return module


def test_files_are_spread_evenly_and_elsewhere_in_each_turn(tool: ModuleType) -> None:
    paths = [Path(f"{i}.tileirbc") for i in range(12)]
    pairs = [("sm_80", 0), ("sm_90", 1), ("sm_90", 3)]
    turns = [tool.spread(paths, pairs, turn) for turn in range(3)]
    for turn in turns:
        assert Counter((target, level) for _, target, level in turn) == dict.fromkeys(pairs, 4)
    assert len({one for turn in turns for one in turn}) == 36


def test_what_does_not_compile_is_named(
    tool: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = next((ROOT / "examples" / "bytecode").glob("vector_add*.tileirbc"))
    shutil.copy(good, tmp_path / "a.tileirbc")
    (tmp_path / "b.tileirbc").write_bytes(good.read_bytes()[:100])
    results = tmp_path / "results.json"
    arguments = [str(tmp_path), "--gpu-name", "sm_80", "sm_90", "-O", "0", "--turns", "0", "1"]
    assert tool.main([*arguments, "--json", str(results)]) == 1
    printed = capsys.readouterr().out
    assert "| sm_80 | 1 of 2 |\n| sm_90 | 1 of 2 |" in printed
    assert "as b sm_90 -O0" in printed
    outcomes = json.loads(results.read_text())
    assert [bool(o["error"]) for o in outcomes] == [False, True, False, True]
    (tmp_path / "b.tileirbc").unlink()
    assert tool.main(arguments) == 0
