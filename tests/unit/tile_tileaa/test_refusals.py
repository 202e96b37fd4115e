"""Every text of nv_tileaa's verifiers is said of some operation, at its place."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import tile_tileaa.dialect
from support.functions import function
from support.texts import ANYTHING, pattern, returned_texts, texts
from unit.tile_tileaa.refused import REFUSED
from unit.tile_tileaa.refused_accesses import ARGUMENTS, HEAD

from tile_core.diagnostics import InputError

DIALECT = Path(tile_tileaa.dialect.__file__).parent
MODULES = sorted(path.name for path in DIALECT.glob("*.py"))
HERE = Path(__file__).parent
EXPECTED = "\n".join(
    text
    for name in ("refused.py", "refused_accesses.py", "test_verifiers.py")
    for _, text in texts(HERE / name)
)


@pytest.mark.parametrize(("line", "text"), REFUSED, ids=[text[:60] for _, text in REFUSED])
def test_refusal(line: str, text: str) -> None:
    source = f"{HEAD}func.func @f({ARGUMENTS}) {{\n{line}\nreturn\n}}"
    with pytest.raises(InputError) as caught, function(source):
        pass
    assert re.fullmatch(rf"'[\w.]+' op {re.escape(text)}", caught.value.message)
    assert caught.value.where is not None


@pytest.mark.parametrize("module", MODULES)
def test_every_text_is_expected(module: str) -> None:
    found = list(returned_texts(DIALECT / module))
    missing = [f"{module}:{line}: {t}" for line, t in found if not pattern(t).search(EXPECTED)]
    assert not missing, "\n".join(missing).replace(ANYTHING, "{}")


def test_the_texts_are_found() -> None:
    every = [text for module in MODULES for _, text in returned_texts(DIALECT / module)]
    assert len(every) > 90
    assert "expects non-empty tileSizes" in every
