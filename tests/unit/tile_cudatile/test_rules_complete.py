"""Every text of the verifier is expected, word for word, by some test of a rule."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import tile_cudatile.rules

RULES = Path(tile_cudatile.rules.__file__).parent
MODULES = sorted(path.name for path in RULES.glob("*.py"))
TESTS = Path(__file__).parent
#: Texts are shown with what stands in for values in them.
ANYTHING = "\0"


def _text(node: ast.expr) -> str | None:
    """A string expression, `ANYTHING` where something is filled in; None if it is no string."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return re.sub(r"(?<!{){\w*}", ANYTHING, node.value)
    if isinstance(node, ast.JoinedStr):
        parts = [_text(v) if isinstance(v, ast.Constant) else ANYTHING for v in node.values]
        return "".join(p or "" for p in parts)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        parts = [_text(node.left), _text(node.right)]
        if any(p is not None for p in parts):
            return "".join(ANYTHING if p is None else p for p in parts)
    return None


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """The strings of a module that are sentences, with their lines; not the docstrings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    seen = {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if node in seen or not isinstance(node, ast.expr):
            continue
        text = _text(node)
        if text is not None:
            seen |= set(ast.walk(node))
            if text.replace(ANYTHING, "").count(" ") >= 2:
                yield node.lineno, text


EXPECTED = "\n".join(
    text
    for path in sorted(TESTS.glob("test_rules*.py"))
    if path.name != Path(__file__).name
    for _, text in texts(path)
)


def pattern(text: str) -> re.Pattern[str]:
    """What a text may look like with its values."""
    parts = [re.escape(part) for part in text.strip("!").strip().split(ANYTHING)]
    return re.compile("[^\n]*".join(parts))


@pytest.mark.parametrize("module", MODULES)
def test_every_text_is_expected(module: str) -> None:
    found = list(texts(RULES / module))
    missing = [f"{module}:{line}: {t}" for line, t in found if not pattern(t).search(EXPECTED)]
    assert not missing, "\n".join(missing).replace(ANYTHING, "{}")


def test_the_texts_are_found() -> None:
    """The search sees what it should see."""
    every = [text for module in MODULES for _, text in texts(RULES / module)]
    assert len(every) > 120
    assert "expect two or more tokens" in every
    assert not pattern("a text that no rule has").search(EXPECTED)
