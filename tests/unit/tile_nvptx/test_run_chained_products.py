"""Loops of chained products, from cuTile programs: right in check mode under every schedule."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

SUPPORT = Path(__file__).parents[2] / "support"
HAVE_CUTILE = (
    importlib.util.find_spec("cuda") is not None
    and importlib.util.find_spec("cuda.tile") is not None
)


@pytest.mark.skipif(not HAVE_CUTILE, reason="cuda-tile is not installed")
@pytest.mark.parametrize("schedule", ["late", "early", "random"])
@pytest.mark.parametrize("program", ["chained_products", "folded_factors"])
def test_they_are_right(program: str, schedule: str) -> None:
    command = [sys.executable, str(SUPPORT / f"{program}.py"), schedule]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
