"""The coverage-guided fuzzer of bytecode, for a while."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(
    find_spec("atheris") is None, reason="needs atheris, which has wheels for Linux on x86-64"
)
FUZZER = Path(__file__).with_name("fuzz_bytecode.py")
SEED = os.environ.get("FUZZ_SEED", "1")


def _run(folder: Path, *options: str) -> None:
    command = [sys.executable, str(FUZZER), f"-seed={SEED}", "-rss_limit_mb=3000", "-timeout=60"]
    result = subprocess.run(
        [*command, *options], cwd=folder, capture_output=True, text=True, check=False
    )
    found = {path.name: path.read_bytes().hex() for path in folder.glob("*-*") if path.is_file()}
    assert result.returncode == 0, f"{result.stderr[-3000:]}\n{found}"
    assert "Done" in result.stderr


def test_for_some_seconds(tmp_path: Path) -> None:
    _run(tmp_path, "-runs=400", "-max_total_time=15")


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_for_a_long_time(tmp_path: Path, part: int) -> None:
    _run(tmp_path, "-max_total_time=600", f"-seed={int(SEED) * 100 + part}", "-max_len=20000")


@pytest.mark.slow
def test_compiling_what_is_valid(tmp_path: Path) -> None:
    _run(tmp_path, "--compile", "-max_total_time=600")
