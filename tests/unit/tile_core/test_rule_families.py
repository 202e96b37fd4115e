"""Rules that are loaded when their operation is met: the tables are whole and true."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tile_nvptx.passes.tileas import rules as llvm_rules
from tile_tileaa.passes.convert_cudatile import rules as tileaa_rules
from tile_tileas.mma.families import FAMILIES
from tile_tileas.mma.tiers import TIERS
from tile_tileas.passes.convert_tileaa import rules as tileas_rules

from tile_core.convert import RuleSet
from tile_core.diagnostics import ConfigurationError

MODULE = """
from holder import rules

@rules.on({names})
def rule(op, cx):
    return None
"""


@pytest.mark.parametrize(
    "rules", [llvm_rules.rules, tileaa_rules, tileas_rules], ids=lambda rules: rules.name
)
def test_every_operation_of_a_family_has_its_rule(rules: RuleSet) -> None:
    # A module whose rules are not those of the table raises when it is imported.
    for name in rules.names():
        assert rules.find(name) is not None
    for module in rules.modules:
        path = Path(str(sys.modules[module].__file__))
        assert path.is_file()


def test_no_file_of_rules_is_in_no_family() -> None:
    folder = Path(str(llvm_rules.__file__)).parent
    for path in folder.glob("*.py"):
        if "@rules.on(" in path.read_text() and path.stem not in llvm_rules.__all__:
            assert f"tile_nvptx.passes.tileas.rules.{path.stem}" in llvm_rules.rules.modules


def test_tiers_are_in_the_order_of_their_names() -> None:
    assert tuple(tier.family for tier in TIERS) == FAMILIES


@pytest.fixture
def holder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RuleSet:
    """A rule set whose family `toy.a` is in a module of its own, not yet imported."""
    import types

    rules = RuleSet("toy-convert", {"toy_family": ("toy.a", "toy.b")})
    module = types.ModuleType("holder")
    vars(module)["rules"] = rules
    monkeypatch.setitem(sys.modules, "holder", module)
    monkeypatch.delitem(sys.modules, "toy_family", raising=False)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "toy_family.py").write_text(MODULE.format(names="'toy.a', 'toy.b'"))
    return rules


def test_a_family_is_loaded_by_the_first_of_its_operations(holder: RuleSet) -> None:
    joined = holder.joined([])
    assert joined.names() == ["toy.a", "toy.b"]
    assert joined.find("toy.c") is None
    assert "toy_family" not in sys.modules
    assert joined.find("toy.b") is joined.find("toy.a") is not None


def test_another_rule_goes_first_even_when_the_family_is_loaded_later(holder: RuleSet) -> None:
    other = RuleSet("other")

    @other.on("toy.a")
    def mine(op: object, cx: object) -> None:
        """Instead of the family's."""

    joined = holder.joined([other])
    assert joined.find("toy.b") is not mine
    assert joined.find("toy.a") is mine


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ("'toy.a', 'toy.b', 'toy.c'", "families say nothing of it"),
        ("'toy.a', 'toy.a'", "two rules"),
    ],
)
def test_rules_that_the_table_does_not_know(
    names: str, said: str, holder: RuleSet, tmp_path: Path
) -> None:
    (tmp_path / "toy_family.py").write_text(MODULE.format(names=names))
    with pytest.raises(ConfigurationError, match=said):
        holder.find("toy.a")


def test_a_rule_in_another_module_than_the_table_says(holder: RuleSet) -> None:
    with pytest.raises(ConfigurationError, match="families say toy_family"):
        holder.on("toy.a")(lambda op, cx: None)
