"""Every text of the verifier is expected, word for word, by some test of a rule."""

from __future__ import annotations

from pathlib import Path

import pytest
import tile_cudatile.rules
from support.texts import ANYTHING, pattern, texts

RULES = Path(tile_cudatile.rules.__file__).parent
MODULES = sorted(path.name for path in RULES.glob("*.py"))
TESTS = Path(__file__).parent

EXPECTED = "\n".join(
    text
    for path in sorted(TESTS.glob("test_rules*.py"))
    if path.name != Path(__file__).name
    for _, text in texts(path)
)


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
