"""The language of `when`."""

from __future__ import annotations

import pytest

from tile_core.pipeline.condition import ConditionError, parse_condition

SCOPE = {"sm": 90, "num-ctas": 2, "strategy": "none", "clusters": True, "x": 0.5}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("sm>=90", True),
        ("sm > 90", False),
        ("num-ctas>1 and sm<100", True),
        ("strategy!='none'", False),
        ('strategy == "none"', True),
        ("not clusters", False),
        ("not clusters or sm == 90", True),
        ("not (clusters and sm == 90)", False),
        ("sm in (80, 86, 90)", True),
        ("strategy in ('a', 'b')", False),
        ("clusters == true", True),
        ("x < 1", True),
        ("x >= 0.5 and x <= 0.5", True),
        ("sm == 80 or sm == 90 and clusters", True),
        ("(sm == 80 or sm == 90) and not clusters", False),
        ("clusters", True),
    ],
)
def test_values(text: str, wanted: bool) -> None:
    assert parse_condition(text).holds(SCOPE) is wanted


@pytest.mark.parametrize(
    "text",
    ["", "sm >=", "sm >= 90 extra", "(sm", "and", "sm ==== 1", "sm + 1", "'open", "sm in 90",
     "__import__('os')", "sm.real"],
)  # fmt: skip
def test_refused(text: str) -> None:
    with pytest.raises(ConditionError):
        parse_condition(text).holds(SCOPE)


@pytest.mark.parametrize("text", ["sm == '90'", "strategy > 'a'", "clusters == 1", "true < false"])
def test_values_of_different_kinds_are_not_compared(text: str) -> None:
    with pytest.raises(ConditionError, match="cannot compare"):
        parse_condition(text).holds(SCOPE)


def test_unknown_names_are_found_in_branches_that_do_not_matter() -> None:
    with pytest.raises(ConditionError) as caught:
        parse_condition("sm >= 0 or smm > 1").holds(SCOPE)
    assert caught.value.name == "smm"


def test_names() -> None:
    assert parse_condition("a-b > 1 and not c in (d, 2) or a-b").names() == ("a-b", "c", "d")
