"""The roster is whole and true, and the page made of it is up to date."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from tile_core.registry import Registry

TOOLS = Path(__file__).resolve().parents[2] / "tools"


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    """tools/gen_specification.py, which brings `roster`."""
    path = TOOLS / "gen_specification.py"
    spec = importlib.util.spec_from_file_location("gen_specification", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def roster(generator: ModuleType) -> ModuleType:
    return sys.modules["roster"]


def test_every_row_has_its_test_or_its_reason(roster: ModuleType) -> None:
    found = list(roster.problems(roster.areas(), Registry.discover()))
    assert not found, "\n".join(found)


def test_the_page_is_up_to_date(generator: ModuleType, roster: ModuleType) -> None:
    text = generator.PAGE.read_text(encoding="utf-8")
    assert text == generator.page(roster.areas()), "run python tools/gen_specification.py"


OPERATION = {
    "title": "t",
    "kind": "operation",
    "dialect": "nv_tileaa",
    "tested": [
        {
            "test": "tests/filecheck/tileaa/convert-cudatile-to-tileaa.mlir",
            "names": ["addf"],
        }
    ],
}


def _with(state: str, **keys: object) -> dict[str, object]:
    table = {**OPERATION["tested"][0], **keys}
    kept = {key: value for key, value in table.items() if value is not None}
    return {**OPERATION, "tested": [], state: [kept]}


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (_with("tested", test="tests/no_such_test.py"), "which does not exist"),
        (_with("tested", test="tests/unit/test_docs.py::test_nothing"), "there is no such test"),
        (_with("tested", test="tests/unit/test_docs.py"), "is not mentioned in"),
        (_with("tested", names=["adds"]), "is no registered operation ('nv_tileaa.adds')"),
        (_with("absent", test=None, why="nobody has time for it"), "but it is registered"),
        (_with("absent", test=None, why="no", names=["adds"]), "has no reason"),
        (_with("tested", test=""), "has no test"),
    ],
)
def test_mistakes_are_found(roster: ModuleType, table: dict[str, object], said: str) -> None:
    group = roster._group(table, "x.toml")
    known = roster.registered(Registry.discover())
    assert any(said in text for row in group.rows for text in roster._wrong(group, row, known))


def test_what_is_left_out_is_found(roster: ModuleType) -> None:
    """A registered name that no file has."""
    areas = roster.areas()
    for kind, name in (
        ("operation", "addf"),
        ("pass", "tileas-assign-layouts"),
        ("option", "tileas-assign-layouts.strategy"),
    ):
        fewer = [
            replace(
                area,
                groups=tuple(
                    replace(g, rows=tuple(r for r in g.rows if g.kind != kind or r.ours != name))
                    for g in area.groups
                ),
            )
            for area in areas
        ]
        said = list(roster.problems(fewer, Registry.discover()))
        assert any(f"the {kind} '" in text and name in text for text in said), (kind, name)


def test_names_that_are_absent_have_reasons_of_their_own(roster: ModuleType) -> None:
    reason = "nobody has needed it so far"
    table = {**OPERATION, "absent": [{"names": {"first": reason, "second": reason}}]}
    area = roster.Area("a.toml", "t", (roster._group(table, "a.toml"),))
    found = list(roster.problems([area], Registry.discover()))
    assert sum("shares its reason with another name" in problem for problem in found) == 2
    table["absent"] = [{"names": {"first": reason, "second": "another one"}}]
    area = roster.Area("a.toml", "t", (roster._group(table, "a.toml"),))
    found = list(roster.problems([area], Registry.discover()))
    assert not any("shares its reason" in problem for problem in found)


def test_what_happens_instead_is_a_test_that_exists(roster: ModuleType) -> None:
    table = {
        **OPERATION,
        "absent": [{"test": "tests/none.py", "names": {"first": "no reason yet"}}],
    }
    area = roster.Area("a.toml", "t", (roster._group(table, "a.toml"),))
    found = list(roster.problems([area], Registry.discover()))
    assert any("names 'tests/none.py', which does not exist" in problem for problem in found)


def test_tables_without_form_are_refused(roster: ModuleType) -> None:
    for table in (
        {**OPERATION, "kind": "thing"},
        {**OPERATION, "unknown": []},
        {**OPERATION, "absent": [{"names": ["x"]}]},
    ):
        with pytest.raises(ValueError, match="keys"):
            roster._group(table, "x.toml")
