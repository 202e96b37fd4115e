"""Making clients find this `tileiras` where they would find NVIDIA's.

cuTile Python looks into the folder of the package `nvidia.cu13` when NVIDIA's three wheels are
installed, and on the PATH otherwise. `nvidia.cu13` is a namespace package: a folder of the same
name earlier on Python's search path comes first. So a folder with `nvidia/cu13/bin/tileiras`, put
in front of both paths, takes the place of the wheel's, and the wheel is left alone.

A `.pth` file does that for every process of an environment; a shell script for those of one shell.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tile_core.cli.output import write_file
from tile_core.diagnostics import ConfigurationError, UsageError
from tile_core.server import client
from tile_core.server.native import compiled

#: Set to 0, it makes an activated environment as if it were not.
SWITCH = "TILEC_ACTIVE"
PTH = "tilec-activate.pth"
SCRIPT = "activate.sh"
_BIN = Path("nvidia", "cu13", "bin")
_ENTRIES = {
    "tileiras": "tile_dropin.main:run",
    "tileirdisasm": "tile_cudatile.disassembler:run",
}
#: A launcher that is a compiled program is smaller than this.
_LOOKED_AT = 1 << 16
_MARK = "# written by `tilec activate`"


@dataclass(frozen=True)
class Environment:
    """A Python environment: its interpreter and where its packages and data are."""

    python: str
    packages: Path
    prefix: Path

    @classmethod
    def of(cls, python: str | None) -> Environment:
        """The environment of an interpreter; None is the one that runs this.

        Raises:
            UsageError: it cannot be run.
        """
        python = python or sys.executable
        code = (
            "import json, sys, sysconfig; "
            "print(json.dumps([sysconfig.get_path('purelib'), sys.prefix]))"
        )
        try:
            done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
            packages, prefix = json.loads(done.stdout)
        except (OSError, subprocess.CalledProcessError, ValueError) as error:
            raise UsageError(f"cannot run '{python}': {error}") from error
        return cls(python, Path(packages), Path(prefix))

    @property
    def folder(self) -> Path:
        """Where the launchers of an activated environment are."""
        return self.prefix / "share" / "tilec" / "active"

    @property
    def pth(self) -> Path:
        """The file that Python reads at its start."""
        return self.packages / PTH


def activate(environment: Environment) -> Path:
    """Make every process of `environment` find this tool first; the file that does it."""
    write_launchers(environment.folder)
    write_file(str(environment.pth), _pth(environment.folder))
    return environment.pth


def activate_project(folder: Path) -> Path:
    """Write a shell script that does so for the processes of one shell."""
    home = folder.resolve() / ".tilec"
    write_launchers(home)
    script = home / SCRIPT
    write_file(str(script), _script(home))
    return script


def deactivate(environment: Environment) -> list[Path]:
    """Undo `activate`; what was removed."""
    return _removed([environment.pth], environment.folder)


def deactivate_project(folder: Path) -> list[Path]:
    """Undo `activate_project`."""
    home = folder.resolve() / ".tilec"
    return _removed([home / SCRIPT], home)


def _removed(files: list[Path], home: Path) -> list[Path]:
    files = [*files, *(home / _BIN / tool for tool in _ENTRIES)]
    found = [path for path in files if path.is_file()]
    try:
        for path in found:
            path.unlink()
        for folder in (home / _BIN, *(home / _BIN).parents):
            if not folder.is_relative_to(home) or not folder.is_dir() or any(folder.iterdir()):
                break
            folder.rmdir()
    except OSError as error:
        raise ConfigurationError(f"cannot remove '{error.filename}': {error.strerror}") from error
    return found


def write_launchers(home: Path) -> None:
    """Write `home`/nvidia/cu13/bin/tileiras and tileirdisasm."""
    folder = home / _BIN
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigurationError(f"cannot make '{folder}': {error.strerror}") from error
    for tool, entry in _ENTRIES.items():
        path = folder / tool
        write_file(str(path), compiled(entry, _MARK) or launcher(entry))
        path.chmod(0o755)


def launcher(entry: str) -> str:
    """A shell script that runs the thin client with this interpreter, whatever calls it."""
    python, script = shlex.quote(sys.executable), shlex.quote(os.path.realpath(client.__file__))
    return f'#!/bin/sh\n{_MARK}\nexec {python} -S -E {script} {entry} "$0" "$@"\n'


def _pth(folder: Path) -> str:
    home, tools = str(folder), str(folder / _BIN)
    # One line: Python runs lines that start with `import`, and ignores the others.
    return (
        f"{_MARK}\n"
        f"import os, sys; on = os.environ.get({SWITCH!r}) != '0' and os.path.isdir({tools!r}); "
        f"p = os.environ.get('PATH', ''); "
        f"on and {home!r} not in sys.path and sys.path.insert(0, {home!r}); "
        f"on and not p.startswith({tools!r}) and "
        f"os.environ.__setitem__('PATH', {tools!r} + os.pathsep + p)\n"
    )


def _script(home: Path) -> str:
    tools = shlex.quote(str(home / _BIN))
    return (
        f"{_MARK}; use it with: . {home / SCRIPT}\n"
        f"PYTHONPATH={shlex.quote(str(home))}${{PYTHONPATH:+:$PYTHONPATH}}\n"
        f"PATH={tools}:$PATH\n"
        f"CUTILE_TILEIRAS_PATH={tools}/tileiras\n"
        f"TRITON_TILEIRAS_PATH={tools}\n"
        "export PYTHONPATH PATH CUTILE_TILEIRAS_PATH TRITON_TILEIRAS_PATH\n"
    )


# --- what is active ------------------------------------------------------------------------------

#: Asks cuTile itself, in the environment in question.
_ASK = """
import json, shutil
found = {"path": shutil.which("tileiras")}
try:
    from cuda.tile import __version__ as version
    from cuda.tile._compile import _find_compiler_bin
    found["version"] = version
    found["cutile"] = _find_compiler_bin().path
except ImportError:
    pass
except Exception as error:
    found["problem"] = str(error)
print(json.dumps(found))
"""


@dataclass(frozen=True)
class Choice:
    """Which `tileiras` one client calls."""

    client: str
    path: str | None
    ours: bool
    note: str = ""


def active(environment: Environment) -> list[Choice]:
    """What the clients that this shell would start, in `environment`, call."""
    done = subprocess.run([environment.python, "-c", _ASK], capture_output=True, text=True)
    try:
        found = json.loads(done.stdout)
    except ValueError:
        found = {"problem": (done.stderr.strip().splitlines() or ["no answer"])[-1]}
    choices: list[Choice] = []
    if "version" in found:
        name = f"cuTile {found['version']}"
        choices.append(_choice(name, found.get("cutile"), found.get("problem", "")))
    else:
        choices.append(Choice("cuTile", None, False, found.get("problem", "not installed")))
    choices.append(_choice("PATH (cuTile.jl, TornadoVM)", found.get("path")))
    file = os.environ.get("CUTILE_TILEIRAS_PATH")
    choices.append(_choice("CUTILE_TILEIRAS_PATH (cutile-rs)", file))
    folder = os.environ.get("TRITON_TILEIRAS_PATH")
    tool = str(Path(folder) / "tileiras") if folder else None
    choices.append(_choice("TRITON_TILEIRAS_PATH (Triton)", tool))
    return choices


def _choice(name: str, path: str | None, note: str = "") -> Choice:
    if path is None:
        return Choice(name, None, False, note or "not set")
    return Choice(name, path, is_ours(Path(path)), note)


def is_ours(path: Path) -> bool:
    """Whether the file is a launcher, or the script that an installer made for this tool."""
    try:
        text = path.read_bytes()[:_LOOKED_AT]
    except OSError:
        return False
    return _MARK.encode() in text or b"tile_dropin" in text
