"""Installing a pure Python project into a folder: pip, but no build back end and no network."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path

import tomli


def build_wheel(project: Path, where: Path) -> Path:
    """The wheel that the project's pyproject.toml describes; it must be one pure package."""
    described = tomli.loads((project / "pyproject.toml").read_text())
    about = described["project"]
    (package,) = described["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    stem = f"{about['name'].replace('-', '_')}-{about['version']}"
    info = f"{stem}.dist-info"
    points = "".join(
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in entries.items())
        for group, entries in about["entry-points"].items()
    )
    texts = {
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {about['name']}\n"
        f"Version: {about['version']}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": points,
    }
    for path in sorted((project / package).rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            texts[path.relative_to(project).as_posix()] = path.read_text()
    record = "".join(f"{name},,\n" for name in [*texts, f"{info}/RECORD"])
    wheel = where / f"{stem}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, text in {**texts, f"{info}/RECORD": record}.items():
            archive.writestr(name, text)
    return wheel


def install(project: Path, target: Path) -> None:
    """Install the project, and nothing it depends on, into folder `target`."""
    target.mkdir(parents=True, exist_ok=True)
    wheel = build_wheel(project, target)
    # Environments that uv makes have no pip.
    pip = [sys.executable, "-m", "pip"] if find_spec("pip") else ["uv", "pip"]
    options = ["--quiet", "--no-deps", "--no-index", "--target", str(target / "site")]
    command = [*pip, "install", *options, str(wheel)]
    subprocess.run(command, check=True, capture_output=True, text=True)


def environment(target: Path) -> dict[str, str]:
    """Environment variables under which Python finds what was installed into `target`."""
    search = os.pathsep.join((str(target / "site"), os.environ.get("PYTHONPATH", "")))
    return os.environ | {"PYTHONPATH": search, "NO_COLOR": "1"}


def run_tilec(
    target: Path, *arguments: str, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run `tilec` in a process that sees what was installed into `target`."""
    command = [sys.executable, "-c", "from tile_core.cli.main import main; main()", *arguments]
    return subprocess.run(
        command, env=environment(target), cwd=cwd, capture_output=True, text=True, timeout=120
    )
