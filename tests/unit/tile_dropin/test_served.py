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
    code, out, err = run([str(path)], environment, "--help", cwd=tmp_path)
    assert (code, err) == (0, b"")
    assert b"--gpu-name" in out
    away = environment | {"TILEC_SERVER": "off"}
    assert run([str(path)], away, "--help", cwd=tmp_path)[0] == 127


@pytest.fixture
def alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[list[str], dict[str, str], Path]:
    """A client that has neither a server nor Python, its environment, and a folder of modules."""
    monkeypatch.setattr(sys, "executable", str(Path(sys.executable).with_name("absent")))
    made = native.compiled("tile_dropin.main:run", "test")
    if made is None:
        pytest.skip("no C compiler here")
    path, modules = tmp_path / "tileiras", tmp_path / "modules"
    modules.mkdir()
    path.write_bytes(made)
    path.chmod(0o755)
    environment = os.environ | {
        "TILEC_SERVER": "off", "TILEC_CACHE_DIR": str(tmp_path / "cache"),
        "PYTHONPATH": str(modules), "TILEC_DEFAULTS": str(tmp_path / "defaults.toml"),
    }  # fmt: skip
    return [str(path)], environment, modules


def test_a_program_gives_the_version_itself_while_nothing_has_changed(
    alone: tuple[list[str], dict[str, str], Path], tmp_path: Path
) -> None:
    tool, environment, modules = alone
    assert run(tool, environment, "--version", cwd=tmp_path)[0] == 127
    cold = run(SCRIPT, environment, "--version", cwd=tmp_path)
    assert cold[0] == 0
    for option in ("--version", "-version"):
        assert run(tool, environment, option, cwd=tmp_path) == cold
    assert run(tool, environment, "--list-versions", cwd=tmp_path)[1].startswith(b"13.1\n")
    assert run(tool, environment, "--help", cwd=tmp_path)[0] == 127
    assert run(tool, environment, "--version", "x", cwd=tmp_path)[0] == 127
    # Each of these may change the fingerprint, so Python has to look.
    other = environment | {"TILEC_DEFAULTS": "off"}
    assert run(tool, other, "--version", cwd=tmp_path)[0] == 127
    (tmp_path / "defaults.toml").write_text('[instead.tma-descriptors]\nhost = "off"\n')
    assert run(tool, environment, "--version", cwd=tmp_path)[0] == 127
    changed = run(SCRIPT, environment, "--version", cwd=tmp_path)
    assert changed != cold
    assert run(tool, environment, "--version", cwd=tmp_path) == changed
    (modules / "new.py").touch()
    assert run(tool, environment, "--version", cwd=tmp_path)[0] == 127
    assert run(SCRIPT, environment, "--version", cwd=tmp_path) == changed
    assert run(tool, environment, "--version", cwd=tmp_path) == changed


@pytest.mark.parametrize("harm", ["cut", "garbage", "open to others"])
def test_answers_that_cannot_be_trusted_are_not_given(
    harm: str, alone: tuple[list[str], dict[str, str], Path], tmp_path: Path
) -> None:
    tool, environment, _ = alone
    assert run(SCRIPT, environment, "--version", cwd=tmp_path)[0] == 0
    (file,) = (tmp_path / "cache" / "snapshots").glob("answers-*")
    assert run(tool, environment, "--version", cwd=tmp_path)[0] == 0
    if harm == "cut":
        file.write_bytes(file.read_bytes()[: file.read_bytes().index(b"answer ") + 30])
    elif harm == "garbage":
        file.write_bytes(b"\0\xff" * 1000)
    else:
        file.chmod(0o666)
    assert run(tool, environment, "--version", cwd=tmp_path)[0] == 127
