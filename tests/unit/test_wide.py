"""tools/wide.py: this compiler's code, and options of it that do not fit."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("cuda.tile", reason="cuTile exports the programs; `make test` installs it")

TOOL = Path(__file__).resolve().parents[2] / "tools" / "wide.py"


def wide(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The tool on the first program, under one schedule."""
    first = ["--gpu-name", "sm_90", "--every", "100", "--schedule", "late"]
    command = [sys.executable, str(TOOL), *first, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)


def test_our_code() -> None:
    done = wide("--compiler", "tilec", "--set", "pipeline-strategy=warp-specialize")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "matmul 128x128x64 float16, 1 CTAs [asynchronous, tma, wgmma]: right" in done.stdout


def test_options_that_do_not_fit() -> None:
    refused = wide("--compiler", "tilec", "--set", "num-ctas=x")
    assert refused.returncode == 1
    assert "option 'num-ctas' expects an integer, but got 'x'" in refused.stdout
    assert "--set is of the compiler tilec" in wide("--set", "num-ctas=1").stderr
    assert "--set takes OPTION=VALUE" in wide("--compiler", "tilec", "--set", "num-ctas").stderr


@pytest.mark.parametrize(("tile", "ctas"), [((16, 16, 4), 2), ((16, 16, 2), 1), ((16, 16, 4), 1)])
def test_stages_start_where_boxes_may(tile: tuple[int, int, int], ctas: int) -> None:
    """Tiles of 64 bytes lie 64 bytes apart, where no tensor copy begins: threads copy them."""
    script = (
        "import json, sys, wide; given = json.loads(sys.argv[1]);"
        "program = wide.Program('matmul', tuple(given[0]), given[1]);"
        "found = wide.run(wide.ours([]), program, 'sm_90', ['late']); assert found.good, found"
    )
    command = [sys.executable, "-c", script, json.dumps([tile, ctas])]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=600, check=False,
        env={"PYTHONPATH": str(TOOL.parent)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
