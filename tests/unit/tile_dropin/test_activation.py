"""`tilec activate`: which tileiras Python finds, in an environment with NVIDIA's layout."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tile_dropin import activation

from tile_core.cli.main import run

#: How cuTile looks for the tool of NVIDIA's wheels.
LOOK = """
import shutil, nvidia.cu13
print(shutil.which("tileiras", path=nvidia.cu13.__path__[0] + "/bin"), shutil.which("tileiras"))
"""


@pytest.fixture
def environment(tmp_path: Path) -> activation.Environment:
    """A Python environment with something in the place of NVIDIA's wheel."""
    home = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", home], check=True, timeout=60)
    made = activation.Environment.of(str(home / "bin" / "python"))
    tool = made.packages / "nvidia" / "cu13" / "bin" / "tileiras"
    tool.parent.mkdir(parents=True)
    tool.write_text("#!/bin/sh\necho theirs\n")
    tool.chmod(0o755)
    return made


def look(environment: activation.Environment, **variables: str) -> list[str]:
    plain = {k: v for k, v in os.environ.items() if not k.startswith("TILEC")}
    plain |= {"PATH": "/usr/bin:/bin"} | variables
    command = [environment.python, "-c", LOOK]
    done = subprocess.run(command, env=plain, capture_output=True, text=True, check=True)
    return done.stdout.split()


def files(folder: Path) -> dict[Path, bytes]:
    return {p: p.read_bytes() for p in folder.rglob("*") if p.is_file() and "pycache" not in str(p)}


def test_the_environment_finds_ours_and_the_wheel_is_left_alone(
    environment: activation.Environment,
) -> None:
    theirs = str(environment.packages / "nvidia/cu13/bin/tileiras")
    before = files(environment.prefix)
    assert look(environment) == [theirs, "None"]

    activation.activate(environment)
    ours = str(environment.folder / "nvidia/cu13/bin/tileiras")
    assert look(environment) == [ours, ours]
    assert look(environment, TILEC_ACTIVE="0") == [theirs, "None"]
    assert activation.is_ours(Path(ours))
    assert not activation.is_ours(Path(theirs))
    assert before.items() <= files(environment.prefix).items()

    activation.deactivate(environment)
    assert look(environment) == [theirs, "None"]
    assert files(environment.prefix) == before
    assert not environment.folder.exists()


def test_the_launcher_is_the_tool(environment: activation.Environment, tmp_path: Path) -> None:
    activation.activate(environment)
    tool = environment.folder / "nvidia/cu13/bin/tileiras"

    def said(argument: str) -> tuple[int, str]:
        done = subprocess.run(
            [tool, argument], capture_output=True, text=True, cwd=tmp_path,
            env=os.environ | {"TILEC_SERVER": "off"},
        )  # fmt: skip
        return done.returncode, done.stderr

    message = "error: unable to read input file 'missing.bc': No such file or directory\n"
    assert said("missing.bc") == (1, message)
    assert f"Try: '{tool} --help'" in said("-x")[1]


def test_a_project_is_for_shells_that_ask_for_it(
    environment: activation.Environment, tmp_path: Path
) -> None:
    script = activation.activate_project(tmp_path)
    command = f'. "{script}" && "{environment.python}" -c "{LOOK}" && echo "$CUTILE_TILEIRAS_PATH"'
    done = subprocess.run(["sh", "-c", command.replace('"tileiras"', "'tileiras'").replace(
        '"/bin"', "'/bin'")], capture_output=True, text=True, check=True)  # fmt: skip
    ours = str(tmp_path / ".tilec/nvidia/cu13/bin/tileiras")
    assert done.stdout.split() == [ours, ours, ours]
    activation.deactivate_project(tmp_path)
    assert not (tmp_path / ".tilec").exists()


def test_what_is_active_is_shown(
    environment: activation.Environment, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["activate", "--python", environment.python, "--json"]) == 0
    choices = {c["client"].split()[0]: c for c in json.loads(capsys.readouterr().out)}
    assert choices["PATH"]["ours"]
    assert choices["cuTile"]["note"] == "not installed"
    assert run(["deactivate", "--python", environment.python]) == 0
    assert "removed" in capsys.readouterr().out


def test_an_interpreter_that_is_none_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["activate", "--python", "/no/python"]) == 1
    assert "cannot run '/no/python'" in capsys.readouterr().err


def test_doctor_says_how_to_get_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from tile_dropin import checks

    def missing(name: str) -> str:
        raise checks.importlib_metadata.PackageNotFoundError(name)

    monkeypatch.setattr(checks.importlib_metadata, "version", missing)
    monkeypatch.setattr(checks.shutil, "which", lambda *_, **__: None)
    found = {finding.what: finding for finding in checks.check_clients()}
    assert [f.ok or f.needed for f in found.values()] == [False] * 2
    assert found["cuda-tile"].hint == 'pip install "cuda-tile>=1.7,<2"'
    assert "nvidia-cuda-cuobjdump" in found["cuobjdump"].hint
