"""Packages that are not part of the project: the example plugin, and what `plugins new` makes.

Both are installed into a folder of their own, with pip, and seen by a fresh process.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "tile-plugin-example"
KERNEL = ROOT / "examples" / "bytecode" / "softmax_f32.tileirbc"


def _load_wheels() -> ModuleType:
    spec = importlib.util.spec_from_file_location("wheels", Path(__file__).parent / "wheels.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


wheels = _load_wheels()


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("example")
    wheels.install(EXAMPLE, target)
    return target


def run_tests(project: Path, target: Path) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(project)]
    done = subprocess.run(
        command, env=wheels.environment(target), cwd=target, capture_output=True, text=True,
        timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_example_is_discovered_and_listed(example: Path) -> None:
    listed = wheels.run_tilec(example, "plugins", "list", "--json")
    rows = {(r["plugin"], r["kind"], r["name"]) for r in json.loads(listed.stdout)["names"]}
    assert {
        ("example", "scheduler", "latest-start"),
        ("example", "layout-strategy", "thread-chunks"),
        ("example", "pass", "example-limit-registers"),
        ("example", "pipeline", "example"),
    } <= rows
    assert "tile-plugin-example 0.1.0" in wheels.run_tilec(example, "--version").stdout
    checked = wheels.run_tilec(example, "plugins", "check", "example")
    assert (checked.returncode, checked.stdout) == (0, "example: ok\n"), checked.stderr


def test_the_example_passes_its_own_tests(example: Path) -> None:
    run_tests(EXAMPLE / "tests", example)


@pytest.mark.parametrize(
    ("selection", "in_passes", "emit"),
    [
        (
            'scheduler = "latest-start"',
            "tileas-generate-schedule-constraints{scheduler=latest-start",
            # LLVM orders instructions anew, so the order of the tile program is compared.
            "mlir:tileas-materialize-schedule",
        ),
        (
            'layout-strategy = "thread-chunks"',
            "tileas-assign-layouts{strategy=thread-chunks ",
            "ptx",
        ),
        ("", "example-limit-registers{count=40}", "ptx"),
    ],
)
def test_toml_alone_selects_it_and_changes_the_output(
    example: Path, tmp_path: Path, selection: str, in_passes: str, emit: str
) -> None:
    text = f'[pipeline]\nname = "mine"\nextends = "-O"\n[set]\n{selection}\n'
    if not selection:
        text += (
            '[[segment]]\nname = "mine"\nnest = ["gpu.module"]\n'
            'passes = [{ pass = "example-limit-registers", count = 40 }]\n'
        )
    (tmp_path / "mine.toml").write_text(text)
    common = ("--gpu-name", "sm_90", "-O2")
    shown = wheels.run_tilec(example, "pipeline", "show", "mine.toml", *common, cwd=tmp_path)
    assert in_passes in shown.stdout
    outputs = []
    for extra in ((), ("--pipeline", "mine.toml")):
        done = wheels.run_tilec(
            example, "compile", str(KERNEL), *common, *extra, "--emit", emit, cwd=tmp_path
        )
        assert done.returncode == 0, done.stderr
        outputs.append(done.stdout)
    assert outputs[0] != outputs[1]
    assert (".maxnreg 40" in outputs[1]) == (not selection)


def test_the_pipeline_of_the_example_makes_a_cubin(example: Path, tmp_path: Path) -> None:
    done = wheels.run_tilec(
        example, "compile", str(KERNEL), "--gpu-name", "sm_90", "--pipeline", "example",
        "--set", "register-limit=80", "-o", "k.cubin", cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "k.cubin").read_bytes().startswith(b"\x7fELF")


def test_without_the_plugin_its_names_are_unknown(example: Path) -> None:
    shown = wheels.run_tilec(
        example, "--disable-plugin", "example", "pipeline", "show", "--scheduler", "latest-start"
    )
    assert shown.returncode == 2
    assert "names no scheduler" in shown.stderr


def test_a_new_scheduler_works_from_the_start(tmp_path: Path) -> None:
    made = wheels.run_tilec(
        tmp_path, "plugins", "new", "my-scheduler", "--scheduler", "--directory", str(tmp_path)
    )
    assert made.returncode == 0, made.stderr
    project, target = tmp_path / "my-scheduler", tmp_path / "installed"
    wheels.install(project, target)
    checked = wheels.run_tilec(target, "plugins", "check", "my_scheduler")
    assert (checked.returncode, checked.stdout) == (0, "my_scheduler: ok\n"), checked.stderr
    run_tests(project, target)
    shown = wheels.run_tilec(target, "schedule", str(KERNEL), "--scheduler", "my-scheduler")
    assert shown.returncode == 0, shown.stderr
    assert "[my-scheduler, sm_90]" in shown.stdout


@pytest.mark.parametrize("kind", ["layout-strategy", "dialect", "target"])
def test_what_else_a_new_package_can_bring(tmp_path: Path, kind: str) -> None:
    made = wheels.run_tilec(
        tmp_path, "plugins", "new", "my-own", f"--{kind}", "--directory", str(tmp_path)
    )
    assert made.returncode == 0, made.stderr
    project, target = tmp_path / "my-own", tmp_path / "installed"
    wheels.install(project, target)
    checked = wheels.run_tilec(target, "plugins", "check", "my_own")
    assert (checked.returncode, checked.stdout) == (0, "my_own: ok\n"), checked.stderr
    run_tests(project, target)


def test_a_new_plugin_works_from_the_start(tmp_path: Path) -> None:
    made = wheels.run_tilec(tmp_path, "plugins", "new", "my-passes", "--directory", str(tmp_path))
    assert made.returncode == 0, made.stderr
    project = tmp_path / "my-passes"
    wheels.install(project, tmp_path / "installed")
    target = tmp_path / "installed"
    checked = wheels.run_tilec(target, "plugins", "check", "my_passes")
    assert (checked.returncode, checked.stdout) == (0, "my_passes: ok\n"), checked.stderr
    run_tests(project, target)
    again = wheels.run_tilec(tmp_path, "plugins", "new", "my-passes", "--directory", str(tmp_path))
    assert again.returncode == 2
    assert "is already there" in again.stderr
