"""`tileaa-canonicalize`: every rule has something that it changes and something it leaves alone."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from support.functions import function
from tile_tileaa.canonical import rules
from unit.tile_tileaa.canonical_cases import ARGUMENTS, CASES, HEAD

from tile_core.diagnostics import CompileError
from tile_core.rewrite import Rewriter, Rewrites


def rewritten(body: str) -> tuple[str, Counter[str]]:
    """The function after the rules, verified, and how often each was applied."""
    with function(f"{HEAD}func.func @f({ARGUMENTS}) {{\n{body}\nreturn\n}}") as func:
        applied = rules.apply(func.operation)
        assert func.operation.verify()
        return str(func), applied


@pytest.mark.parametrize("rule", CASES)
def test_what_a_rule_changes(rule: str) -> None:
    case = CASES[rule]
    text, applied = rewritten(case.before)
    assert applied[rule] >= 1, applied
    # What nobody needs any more is left to dead code elimination.
    for pattern in case.after:
        assert re.search(pattern, text), text
    for pattern in case.gone:
        used = [line for line in text.splitlines() if re.search(pattern, line)]
        assert not any(_is_used(line, text) for line in used), text


def _is_used(line: str, text: str) -> bool:
    name = re.match(r"\s*(%\w+)", line)
    return name is None or len(re.findall(rf"{name[1]}\b", text)) > 1


@pytest.mark.parametrize(
    ("rule", "at"), [(rule, at) for rule in CASES for at in range(len(CASES[rule].unchanged))]
)
def test_what_a_rule_leaves_alone(rule: str, at: int) -> None:
    _, applied = rewritten(CASES[rule].unchanged[at])
    assert not applied


def test_every_rule_has_cases() -> None:
    assert set(CASES) == set(rules.statistics)
    assert all(case.unchanged and case.after for case in CASES.values())


def test_rules_that_undo_each_other_are_an_error() -> None:
    endless = Rewrites("endless")

    @endless.on("arith.addi")
    def swapped(op, cx: Rewriter):
        """x + y => y + x"""
        left, right = op.operands
        return cx.create("arith.addi", [right, left], [op.result.type]).result

    with (
        function("func.func @f(%a: i32, %b: i32) { %c = arith.addi %a, %b : i32 return }") as func,
        pytest.raises(CompileError, match="'endless' finds no end"),
    ):
        endless.apply(func.operation)
