"""The kit's own parts: arrays by seed, comparisons, and what bounds a part that hangs or dies."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tile_time.kit.build import MOST_SECONDS as WHOLE
from tile_time.kit.build import PARTS, check_size, copy_runner
from tile_time.kit.runner.checks import compare
from tile_time.kit.runner.inputs import BITS, decode, encode, make_array

from tile_core.diagnostics import CompileError

SMALL = {"bf16": ml_dtypes.bfloat16, "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2}


@pytest.mark.parametrize("kind", BITS)
@pytest.mark.parametrize("how", ["small", "unit"])
def test_arrays_by_seed_hold_what_their_type_has_exactly(kind: str, how: str) -> None:
    made = make_array(kind, 3000, how, 7)
    assert made.tobytes() == make_array(kind, 3000, how, 7).tobytes()
    assert made.tobytes() != make_array(kind, 3000, how, 8).tobytes()
    values = decode(made, kind)
    assert np.isfinite(values.astype(np.float64)).all()
    assert len(np.unique(values)) > 3
    assert np.abs(values.astype(np.float64)).max() <= 100
    assert encode(values, kind).tobytes() == made.tobytes() or how == "unit"


def test_the_first_values_are_these() -> None:
    """They must never change: kits of different versions would not agree."""
    assert make_array("i32", 4, "small", 1).tolist() == [-2, -1, 4, 2]
    assert make_array("f32", 3, "unit", 2).tolist() == [0.53125, -0.9296875, 0.6328125]


@pytest.mark.parametrize("kind", SMALL)
def test_small_floats_are_read_as_others_read_them(kind: str) -> None:
    bits = np.arange(256 if BITS[kind] == "u1" else 65536).astype(BITS[kind])
    with np.errstate(invalid="ignore"):
        theirs = bits.view(SMALL[kind]).astype(np.float64)
        np.testing.assert_array_equal(decode(bits, kind), theirs)


def test_comparison_by_bits_and_within_a_bound() -> None:
    wanted = np.array([1.0, 2.0, np.nan, np.inf], np.float32)
    got = np.array([1.0, 2.0 + 1e-6, np.nan, np.inf], np.float32)
    exact = compare(got, wanted, {"kind": "f32"})
    assert not exact["ok"]
    assert (exact["different"], exact["first"]) == (1, 1)
    assert compare(got, wanted, {"kind": "f32", "relative": 1e-5, "absolute": 0.0})["ok"]
    assert not compare(got, wanted, {"kind": "f32", "relative": 1e-8, "absolute": 0.0})["ok"]
    lost = np.array([1.0, 2.0, 3.0, np.inf], np.float32)  # a number where NaN belongs
    assert not compare(lost, wanted, {"kind": "f32", "relative": 1.0, "absolute": 9.0})["ok"]


def _kit(folder: Path, *parts: dict[str, Any]) -> None:
    copy_runner(folder)
    own = folder / "sm_90"
    own.mkdir()
    np.savez_compressed(own / "arrays.npz")
    about = {"kit": {"commit": "test"}, "target": "sm_90", "parts": list(parts)}
    (own / "manifest.json").write_text(json.dumps(about))


def _run(folder: Path, *options: str) -> tuple[dict[str, Any], subprocess.CompletedProcess[str]]:
    command = [sys.executable, "run.py", "--driver", "tile_sim.bindings", *options]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    results = folder / "results" / "results.json"
    return (json.loads(results.read_text()) if results.exists() else {}), done


FACTS = {"name": "facts", "kind": "facts", "seconds": 20}
HANGS = {"name": "hangs", "kind": "spin", "how": "hang", "seconds": 0.3}
DIES = {"name": "dies", "kind": "spin", "how": "exit", "seconds": 5}


def test_a_hang_and_a_crash_end_their_case_only(tmp_path: Path) -> None:
    cases = [HANGS, FACTS, DIES, {**FACTS, "name": "after"}]
    _kit(tmp_path, {"name": "bad", "seconds": 60, "cases": [DIES, *cases]},
         {"name": "next", "seconds": 30, "cases": [FACTS]})  # fmt: skip
    data, done = _run(tmp_path)
    assert [case["ok"] for case in data["parts"]["bad"]] == [False, False, True, False, True]
    assert "its process ended with 3" in data["parts"]["bad"][0]["error"]
    assert "more than" in data["parts"]["bad"][1]["error"]
    assert [case["ok"] for case in data["parts"]["next"]] == [True]
    assert done.returncode == 1
    assert "**failed**" in (tmp_path / "results" / "results.md").read_text()


def test_parts_keep_to_their_time_and_the_kit_to_its(tmp_path: Path) -> None:
    slow = {**HANGS, "seconds": 100}
    _kit(tmp_path, {"name": "slow", "seconds": 2, "cases": [slow, FACTS]},
         {"name": "never", "seconds": 100, "cases": [slow, FACTS]})  # fmt: skip
    start = time.monotonic()
    data, _ = _run(tmp_path, "--seconds", "4")
    assert time.monotonic() - start < 30
    assert "time is up" in data["parts"]["slow"][0]["error"]
    for case in (data["parts"]["slow"][1], data["parts"]["never"][1]):
        assert case["skipped"] == "no time was left"


def test_a_driver_that_is_not_there_is_told(tmp_path: Path) -> None:
    _kit(tmp_path, {"name": "a", "seconds": 5, "cases": [FACTS]})
    command = [sys.executable, "run.py", "--driver", "no_such_driver"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "no GPU: ModuleNotFoundError: No module named 'no_such_driver'" in done.stderr


def test_a_target_or_part_that_is_not_there_is_told(tmp_path: Path) -> None:
    _kit(tmp_path, {"name": "a", "seconds": 5, "cases": [FACTS]})
    assert (
        "the kit has nothing for sm_80; it has: sm_90"
        in _run(tmp_path, "--target", "sm_80")[1].stderr
    )
    assert "there is no part 'b'; there are: a" in _run(tmp_path, "--only", "b")[1].stderr
    assert "a: 1 cases, 5 s" in _run(tmp_path, "--list")[1].stdout


def test_all_parts_fit_into_eight_minutes() -> None:
    assert sum(PARTS.values()) <= WHOLE == 480


def test_a_kit_that_is_too_large_is_refused(tmp_path: Path) -> None:
    with (tmp_path / "much").open("wb") as file:
        file.truncate((40 << 20) + 1)
    with pytest.raises(CompileError, match=r"40\.0 MiB, more than 40"):
        check_size(tmp_path)


def test_the_runner_needs_numpy_alone(tmp_path: Path) -> None:
    copy_runner(tmp_path)
    program = (
        "import sys, runner.main, runner.part; "
        "print([m for m in sys.modules if m.startswith(('tile_', 'torch', 'cuda'))])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
