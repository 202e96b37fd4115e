"""benchmarks/published.py: rows whose hint of CTAs an SM today's code does not meet."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))
import published
from tile_time.ptx import with_registers


def _measured(name: str) -> published.Measured:
    return next(m for m in published.B200 if m.row.name == name)


_NORM = _measured("RMS norm f16 65536x1024, regular, 1x1024")


def _found(ctas: int, **other: Any) -> dict[str, Any]:
    plain = {"us": 90.0, "ctas_per_sm": ctas, "binds": [], "remarks": []}
    asked = published.as_asked(_NORM.row)
    assert asked is not None
    return {_NORM.row.name: {"tileiras": plain}, asked.name: {"tileiras": other}}


def test_the_limit_lets_in_as_many_ctas_as_were_asked_for() -> None:
    row = published.as_asked(_NORM.row)
    assert row is not None
    assert row.registers == 32  # 16 CTAs of 4 warps
    assert published.as_asked(_measured("transpose f16 2048x2028, 64x64").row) is None


def test_only_a_hint_that_is_not_met_counts() -> None:
    one = published._as_asked(_found(9, us=80.0, spills=8), _NORM, 2.0)
    assert one is not None
    assert one.us == pytest.approx(82.0)
    assert published._as_asked(_found(16, us=80.0, spills=8), _NORM, 2.0) is None
    assert published._as_asked(_found(9, error="no"), _NORM, 2.0) is None


def test_another_limit_of_registers() -> None:
    text = ".visible .entry k()\n.maxnreg 64\n.reqntid 128\n{ ret; }"
    assert with_registers(text, 32) == text.replace("64", "32")
    assert with_registers("{ ret; }", 32) == "{ ret; }"
