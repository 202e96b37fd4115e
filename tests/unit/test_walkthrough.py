"""The notebook runs from top to bottom."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def test_the_notebook_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cell by cell in one namespace, as a kernel of Jupyter would."""
    monkeypatch.chdir(ROOT)
    notebook = json.loads((ROOT / "examples" / "walkthrough.ipynb").read_text(encoding="utf-8"))
    namespace: dict[str, object] = {"__name__": "notebook"}
    cells = [c for c in notebook["cells"] if c["cell_type"] == "code"]
    assert len(cells) > 5
    for number, cell in enumerate(cells):
        exec(compile("".join(cell["source"]), f"cell {number}", "exec"), namespace)
    assert "mma" in str(namespace["ptx"])
