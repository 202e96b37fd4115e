"""`tileiras` through a compile server: the same bytes, messages and codes as without one."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tile_core.server import client

EXAMPLES = Path(__file__).parents[3] / "examples" / "bytecode"
CLIENT = [sys.executable, "-S", "-E", client.__file__, "tile_dropin.main:run", "tileiras"]

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="watches Linux's poll")


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    folder = tmp_path_factory.mktemp("served")
    made = os.environ | {
        "TILEC_SERVER": "on", "TILEC_SERVER_DIR": str(folder / "run"),
        "TILEC_CACHE_DIR": str(folder / "cache"), "TILEC_CACHE": "off",
    }  # fmt: skip
    yield made
    stop = [sys.executable, "-m", "tile_core", "serve", "--stop"]
    assert subprocess.run(stop, env=made, capture_output=True, timeout=60).returncode == 0


def run(environment: dict[str, str], *arguments: str, cwd: Path) -> tuple[int, bytes, bytes]:
    done = subprocess.run([*CLIENT, *arguments], env=environment, cwd=cwd, capture_output=True,
                          timeout=120)  # fmt: skip
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("name", ["vector_add_f32", "matmul_f16"])
def test_the_same_bytes_however_they_are_made(
    name: str, environment: dict[str, str], tmp_path: Path
) -> None:
    arguments = (str(EXAMPLES / f"{name}.tileirbc"), "--gpu-name", "sm_90", "--lineinfo", "-o", "-")
    ways = {
        "cold": {"TILEC_SERVER": "off"}, "served": {}, "again": {},
        "filling the cache": {"TILEC_CACHE": "on"}, "cached": {"TILEC_CACHE": "on"},
        "cached, cold": {"TILEC_CACHE": "on", "TILEC_SERVER": "off"},
    }  # fmt: skip
    made = {way: run(environment | more, *arguments, cwd=tmp_path) for way, more in ways.items()}
    assert made["cold"][0] == 0
    assert made["cold"][1].startswith(b"\x7fELF")
    assert all(answer == made["cold"] for answer in made.values()), [*made]


@pytest.mark.parametrize(
    "arguments", [(), ("--version",), ("missing.bc",), ("--bogus",), ("bad.bc", "--arch", "sm_90")]
)
def test_the_same_answers(
    arguments: tuple[str, ...], environment: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "bad.bc").write_bytes(b"bad")
    cold = run(environment | {"TILEC_SERVER": "off"}, *arguments, cwd=tmp_path)
    assert run(environment, *arguments, cwd=tmp_path) == cold


def test_the_server_is_told_of(environment: dict[str, str], tmp_path: Path) -> None:
    assert run(environment, "--list-versions", cwd=tmp_path)[0] == 0
    status = [sys.executable, "-m", "tile_core", "serve", "--status"]
    done = subprocess.run(status, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0
    assert done.stdout.startswith("process ")
