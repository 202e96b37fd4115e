"""The GPU kit through pytest, on the GPU of this machine: `make gpu`.

The kit is the one that the environment variable TILEC_GPU_KIT names, or built anew; its results are
in its folder afterwards.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PARTS = ("device", "launch", "maps", "results", "times", "frameworks", "mechanisms", "open")
pytestmark = pytest.mark.gpu


def _target() -> str:
    driver = pytest.importorskip("cuda.bindings.driver")
    from tile_time.kit.runner.gpu import DriverError, Gpu

    try:
        major, minor = Gpu().facts()["capability"]
    except DriverError as error:
        pytest.skip(f"no GPU: {error}")
    del driver
    return {8: "sm_80", 9: "sm_90", 10: "sm_100", 12: "sm_120"}.get(major, f"sm_{major}{minor}")


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    target = _target()
    given = os.environ.get("TILEC_GPU_KIT")
    kit = Path(given) if given else tmp_path_factory.mktemp("kits") / "kit"
    if not (kit / "run.py").exists():
        command = [sys.executable, "tools/gpu_kit.py", "--target", target, "--out", str(kit)]
        subprocess.run(command, cwd=ROOT, check=True)
    subprocess.run([sys.executable, "run.py"], cwd=kit, check=False)
    return json.loads((kit / "results" / "results.json").read_text())


@pytest.mark.parametrize("part", PARTS)
def test_part(results: dict[str, Any], part: str) -> None:
    cases = results["parts"].get(part, [])
    if not cases:
        pytest.skip(f"the kit has no part '{part}' for this GPU")
    failed = [(c["name"], c.get("error") or c.get("arrays")) for c in cases if c["ok"] is False]
    assert not failed
