"""The page of features says what its table says, and its commands do what they say."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest
from tile_dropin.options import OPTIONS

ROOT = Path(__file__).resolve().parents[2]


def _tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("features", ROOT / "tools" / "features.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["features"] = module  # where dataclasses look for the names in annotations
    spec.loader.exec_module(module)
    return module


FEATURES = _tool()
ROWS = FEATURES.rows()
#: What runs in every `make test`; the others in `make fuzz`, and by `tools/features.py --run`.
QUICK = ("compiler as a command", "C1:", "only an executable", "`--apply-controls`")


def test_the_page_is_made_of_the_table() -> None:
    text = (ROOT / "docs" / "features.md").read_text(encoding="utf-8")
    assert text == FEATURES.page(), "run python tools/features.py"


def test_nothing_is_left_out() -> None:
    counted = {kind: [row for row in ROWS if row.kind == kind] for kind in ("feature", "pain")}
    assert {kind: len(found) for kind, found in counted.items()} == {"feature": 27, "pain": 15}
    found = [row.name.partition(":")[0] for row in ROWS if row.kind == "finding"]
    assert found == [f"C{number}" for number in range(1, 12)]
    flags = [row.name for row in ROWS if row.kind == "flag"]
    named = {name for flag in flags for name in re.findall(r"`--?([\w-]+)", flag)}
    assert named == set(OPTIONS)


def test_every_row_looks_at_what_its_command_prints() -> None:
    for row in ROWS:
        assert row.shows, row.name
        assert not re.search(row.shows, ""), row.name


@pytest.mark.parametrize(
    "row",
    [
        pytest.param(row, id=row.name, marks=() if row.name.startswith(QUICK) else pytest.mark.slow)
        for row in ROWS
    ],
)
def test_the_command_shows_it(row: object, tmp_path: Path) -> None:
    assert FEATURES.problem_of(row, tmp_path, FEATURES.prepared(tmp_path)) == ""


def test_a_command_that_does_something_else_is_told(tmp_path: Path) -> None:
    environment = FEATURES.prepared(tmp_path)
    row = FEATURES.Row("pain", "x", "echo no; exit 3", shows="yes")
    assert "exit code 3" in FEATURES.problem_of(row, tmp_path, environment)
    row = FEATURES.Row("pain", "x", "echo no", shows="yes")
    assert "no 'yes'" in FEATURES.problem_of(row, tmp_path, environment)
