"""benchmarks/speed.py: one row measured as it does, and the table it makes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"


@pytest.fixture(autouse=True)
def _benchmarks() -> Iterator[None]:
    sys.path.insert(0, str(BENCHMARKS))
    yield
    sys.path.remove(str(BENCHMARKS))


def test_rows_have_different_names_and_eight_are_quick() -> None:
    rows = import_module("speed_rows").ROWS
    assert len({row.name for row in rows}) == len(rows)
    assert sum(row.quick for row in rows) == 8


def _one(name: str, gpu: str) -> dict[str, Any]:
    pytest.importorskip("cuda.tile")
    command = [sys.executable, str(BENCHMARKS / "speed.py"), "--one", name, gpu, "tilec"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_a_row_is_measured() -> None:
    found = _one("vector add f32 32M", "h100")
    assert found["by"] == "bytes"
    assert found["binds"][0][0] == "DRAM"
    assert 0.5 < found["peak"] < 1.0
    assert found["seconds"] < 15
    assert found["bytes"] < 2 << 30


def test_types_that_a_gpu_has_not_are_skipped() -> None:
    found = _one("batched e4m3 2x1024^3, 128x256x128", "a100")
    assert "A100" in found["skipped"]


def test_table() -> None:
    one = {"us": 10.0, "tflops": 50.0, "gbps": 1.0, "by": "flops", "peak": 0.5,
           "binds": [["tensor", 0.75], ["L2", 0.25]], "spills": 8}  # fmt: skip
    rows = {
        "a": {"tilec": one, "tileiras": {**one, "us": 5.0}},
        "b": {"tilec": {**one, "us": 5.0}, "tileiras": {**one, "by": "bytes"}},
        "c": {"tilec": {"error": "no"}, "tileiras": one},
        "d": {"tilec": {"skipped": "no such type"}, "tileiras": one},
    }
    lines = import_module("speed").table("h100", rows).splitlines()
    ours = "10.0 | 50 TFLOP/s | 50% | tensor 75%, L2 25% | 8"
    assert lines[4] == f"| a | {ours} | 5.0 | 50 TFLOP/s | 50% | tensor 75%, L2 25% | 0.50 |"
    assert "| 1 GB/s |" in lines[5]
    assert lines[6].startswith("| c | failed |")
    assert lines[6].endswith("|  |")
    assert lines[-1] == "Geometric mean of tileiras / tilec over 2 rows: 1.00."


def test_the_cache_knows_the_simulator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import tile_sim

    speed = import_module("speed")
    what = ("vector add f32 32M", "h100", "tileiras", "3", "speed_rows:ROWS")
    monkeypatch.setattr(speed, "_version", lambda _: "")
    (tmp_path / "suite").mkdir()
    (tmp_path / "isa.py").write_text("1")
    monkeypatch.setattr(tile_sim, "__file__", str(tmp_path / "__init__.py"))
    first = speed._digest("tileiras", what)
    (tmp_path / "suite" / "more.py").write_text("2")
    assert speed._digest("tileiras", what) == first  # no time depends on it
    (tmp_path / "isa.py").write_text("3")
    assert speed._digest("tileiras", what) != first
