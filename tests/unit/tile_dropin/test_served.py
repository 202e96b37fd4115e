"""`tileiras` through a compile server: the same bytes, messages and codes as without one."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tile_core.server import client, native

EXAMPLES = Path(__file__).parents[3] / "examples" / "bytecode"
SCRIPT = [sys.executable, "-S", "-E", client.__file__, "tile_dropin.main:run", "tileiras"]

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="watches Linux's poll")


@pytest.fixture(scope="module", params=["script", "program"])
def tool(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The client in Python, and the compiled one."""
    if request.param == "script":
        return SCRIPT
    made = native.compiled("tile_dropin.main:run", "test")
    if made is None:
        pytest.skip("no C compiler here")
    path = tmp_path_factory.mktemp("bin") / "tileiras"
    path.write_bytes(made)
    path.chmod(0o755)
    return [str(path)]


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    folder = tmp_path_factory.mktemp("served")
    made = os.environ | {
        "TILEC_SERVER": "wait", "TILEC_SERVER_DIR": str(folder / "run"),
        "TILEC_CACHE_DIR": str(folder / "cache"), "TILEC_CACHE": "off",
    }  # fmt: skip
    yield made
    stop = [sys.executable, "-m", "tile_core", "serve", "--stop"]
    assert subprocess.run(stop, env=made, capture_output=True, timeout=60).returncode == 0


def run(
    tool: list[str], environment: dict[str, str], *arguments: str, cwd: Path
) -> tuple[int, bytes, bytes]:
    done = subprocess.run([*tool, *arguments], env=environment, cwd=cwd, capture_output=True,
                          timeout=120)  # fmt: skip
    # Messages repeat how the tool was called.
    plain = [
        text.replace(os.fsencode(tool[-1]), b"tileiras") for text in (done.stdout, done.stderr)
    ]
    return done.returncode, plain[0], plain[1]


@pytest.mark.parametrize("name", ["vector_add_f32", "matmul_f16"])
def test_the_same_bytes_however_they_are_made(
    name: str, tool: list[str], environment: dict[str, str], tmp_path: Path
) -> None:
    arguments = (str(EXAMPLES / f"{name}.tileirbc"), "--gpu-name", "sm_90", "--lineinfo", "-o", "-")
    ways = {
        "cold": {"TILEC_SERVER": "off"}, "served": {}, "again": {},
        "filling the cache": {"TILEC_CACHE": "on"}, "cached": {"TILEC_CACHE": "on"},
        "cached, cold": {"TILEC_CACHE": "on", "TILEC_SERVER": "off"},
    }  # fmt: skip
    made = {
        way: run(tool, environment | more, *arguments, cwd=tmp_path) for way, more in ways.items()
    }
    assert made["cold"][0] == 0
    assert made["cold"][1].startswith(b"\x7fELF")
    assert all(answer == made["cold"] for answer in made.values()), [*made]


@pytest.mark.parametrize(
    "arguments", [(), ("--version",), ("missing.bc",), ("--bogus",), ("bad.bc", "--arch", "sm_90")]
)
def test_the_same_answers(
    arguments: tuple[str, ...], tool: list[str], environment: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "bad.bc").write_bytes(b"bad")
    cold = run(tool, environment | {"TILEC_SERVER": "off"}, *arguments, cwd=tmp_path)
    assert run(tool, environment, *arguments, cwd=tmp_path) == cold


def test_the_server_is_told_of(
    tool: list[str], environment: dict[str, str], tmp_path: Path
) -> None:
    assert run(tool, environment, "--list-versions", cwd=tmp_path)[0] == 0
    status = [sys.executable, "-m", "tile_core", "serve", "--status"]
    done = subprocess.run(status, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0
    assert done.stdout.startswith("process ")


def test_a_program_finds_the_server_that_a_script_started(
    environment: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both have to say the same of who they are and where the socket is."""
    assert run(SCRIPT, environment, "--version", cwd=tmp_path)[0] == 0
    # The same folder, so the same installation, but no Python to fall back on.
    monkeypatch.setattr(sys, "executable", str(Path(sys.executable).with_name("absent")))
    made = native.compiled("tile_dropin.main:run", "test")
    if made is None:
        pytest.skip("no C compiler here")
    path = tmp_path / "tileiras"
    path.write_bytes(made)
    path.chmod(0o755)
    code, out, err = run([str(path)], environment, "--list-versions", cwd=tmp_path)
    assert (code, err) == (0, b"")
    assert out.startswith(b"13.1")
    away = environment | {"TILEC_SERVER": "off"}
    assert run([str(path)], away, "--list-versions", cwd=tmp_path)[0] == 127
