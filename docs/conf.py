"""Sphinx' configuration; `make docs` builds with it, warnings being errors."""

from __future__ import annotations

import importlib.util
from pathlib import Path

HERE = Path(__file__).resolve().parent

project = "tilec"
copyright = "the tilec authors"  # noqa: A001 - Sphinx' name
extensions = ["myst_parser"]
html_theme = "furo"
html_title = "tilec"
exclude_patterns = ["_build"]

myst_enable_extensions = ["colon_fence"]
# Headings of so many levels have anchors, which links inside of the documentation use.
myst_heading_anchors = 4
# Blocks in languages that Pygments does not know are shown as they are.
suppress_warnings = ["misc.highlighting_failure"]


def _reference() -> None:
    """The pages that are made of the code."""
    path = HERE.parent / "tools" / "gen_reference.py"
    spec = importlib.util.spec_from_file_location("gen_reference", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.write(HERE / "reference")


_reference()
