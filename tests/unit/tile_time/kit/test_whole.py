"""A kit, built from the sources and run from end to end in a simulated driver, and its report."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tile_time.kit.build import MOST_BYTES
from tile_time.kit.runner import frameworks

from tile_core.cli.main import run

ROOT = Path(__file__).parents[4]
PARTS = ("device", "launch", "maps", "mechanisms", "times", "frameworks")


@pytest.fixture(scope="module")
def kit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kits") / "kit"
    command = [sys.executable, "tools/gpu_kit.py", "--quick", "--target", "sm_90", "--out",
               str(folder), "--part", *PARTS]  # fmt: skip
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


def _run(kit: Path, *parts: str) -> dict[str, Any]:
    command = [sys.executable, "run.py", "--driver", "tile_sim.bindings", "--patience", "50",
               "--seconds", "500", "--only", *parts]  # fmt: skip
    subprocess.run(command, cwd=kit, capture_output=True, text=True, check=False)
    return json.loads((kit / "results" / "results.json").read_text())


def test_it_is_one_small_folder(kit: Path) -> None:
    assert sum(path.stat().st_size for path in kit.rglob("*")) < MOST_BYTES
    assert {path.name for path in kit.iterdir()} == {"run.py", "runner", "sm_90"}


def test_what_it_runs_is_as_the_simulator_says(kit: Path) -> None:
    data = _run(kit, "device", "launch", "maps", "mechanisms", "frameworks")
    for part in ("device", "launch", "maps", "mechanisms"):
        assert data["parts"][part], part
        assert all(case["ok"] for case in data["parts"][part]), data["parts"][part]
    told = next(c for c in data["parts"]["launch"] if "accepted" in c)
    assert not told["accepted"]  # the stand-in refuses a block that is not (1, 1, 1)
    assert data["parts"]["frameworks"][0]["skipped"] == "torch is not installed"
    assert data["device"]["simulated"]


def test_a_wrong_result_fails(kit: Path, tmp_path: Path) -> None:
    copy = tmp_path / "kit"
    shutil.copytree(kit, copy, ignore=shutil.ignore_patterns("results"))
    path = copy / "sm_90" / "manifest.json"
    about = json.loads(path.read_text())
    case = next(p for p in about["parts"] if p["name"] == "launch")["cases"][0]
    arrays = dict(np.load(copy / "sm_90" / "arrays.npz"))
    arrays[case["expected"][0]["file"]][5] ^= 1
    np.savez_compressed(copy / "sm_90" / "arrays.npz", **arrays)  # type: ignore[arg-type]
    found = _run(copy, "launch")["parts"]["launch"]
    assert [case["ok"] for case in found[:2]] == [False, True]
    assert found[0]["arrays"][0]["different"] == 1


def test_the_report_compares_and_updates(
    kit: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _run(kit, "device", "mechanisms")
    results = kit / "results" / "results.json"
    machine = tmp_path / "h100.toml"
    shutil.copy(ROOT / "tile_core" / "machines" / "h100-sxm.toml", machine)
    document = tmp_path / "hardware.md"
    options = ["gpu-report", str(results), "--document", str(document), "--gpu", "h100"]
    assert run([*options, "--machine-file", str(machine)]) == 0
    text = document.read_text()
    assert "**A simulated driver: nothing here was measured.**" in text
    assert "| pipes.fma.latency | clk | 4 |" in text
    assert "tile-sim" in machine.read_text()
    capsys.readouterr()
    assert run(options) == 0  # without a file of its own, none is changed
    assert "no machine file is changed" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "message"),
    [("{", "is no JSON"), ("{}", "holds no results of a GPU kit"), (None, "cannot read")],
)
def test_files_that_are_no_results(
    tmp_path: Path, text: str | None, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "results.json"
    if text is not None:
        path.write_text(text)
    assert run(["gpu-report", str(path)]) == 1
    said = capsys.readouterr().err
    assert message in said
    assert "Traceback" not in said


def test_rows_that_are_timed_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("tools", "benchmarks", "examples"):
        monkeypatch.syspath_prepend(str(ROOT / folder))
    rows = import_module("gpu_kit_rows")
    names = {row.name for row in import_module("speed_rows").ROWS}
    assert {row.name for row in rows.TIMES} <= names
    assert {row["row"] for row in rows.FRAMEWORKS} <= names
    assert {row["function"] for row in rows.FRAMEWORKS} <= set(frameworks.FUNCTIONS)
