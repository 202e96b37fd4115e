"""docs/schedulers.md: the tests that it names are there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def test_named_tests_exist() -> None:
    page = (ROOT / "docs" / "schedulers.md").read_text(encoding="utf-8")
    named = re.findall(r"`(tests/[^`:]+)(?:::(\w+))?`", page)
    assert len(named) >= 15
    for file, test in named:
        path = ROOT / file
        assert path.is_file(), file
        assert not test or f"def {test}(" in path.read_text(encoding="utf-8"), test


def test_every_vector_has_a_test() -> None:
    texts = [
        (ROOT / "tests" / "unit" / "tile_sched" / f"test_{name}.py").read_text(encoding="utf-8")
        for name in ("vectors", "buffers")
    ]
    found = {int(n) for text in texts for n in re.findall(r"def test_v(\d+)_", text)}
    assert found == set(range(1, 24))
