"""NVIDIA's compiler of TileIR bytecode, where it is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from tile_core.diagnostics import CompileError, ConfigurationError
from tile_core.elf import MAGIC
from tile_sim.peer.cubin import Cubin

NAME = "tileiras"
_SECONDS = 600.0


@dataclass(frozen=True)
class Tileiras:
    """An installed tileiras."""

    path: str

    @property
    def version(self) -> str:
        """What it calls itself, on one line."""
        return _version(self.path)

    def compile(self, bytecode: bytes, arch: str, level: int = 3) -> Cubin:
        """The cubin of a program, PTX inside. `arch` is "sm_90"; suffixes are dropped.

        Raises CompileError with what the compiler said.
        """
        with tempfile.TemporaryDirectory(prefix="tile-sim-") as folder:
            source, made = Path(folder) / "program.tileirbc", Path(folder) / "program.cubin"
            source.write_bytes(bytecode)
            command = [self.path, str(source), "-o", str(made), "--gpu-name", arch.rstrip("af")]
            command += [f"-O{level}", "--lineinfo"]
            try:
                done = subprocess.run(
                    command, capture_output=True, text=True, errors="replace", check=False,
                    timeout=_SECONDS, cwd=folder,
                )  # fmt: skip
            except subprocess.TimeoutExpired:
                raise CompileError(f"{NAME} took more than {_SECONDS:g} s") from None
            if done.returncode or not made.is_file():
                raise _refused(done.stderr or done.stdout, done.returncode)
            return Cubin(made.read_bytes())


def _refused(output: str, status: int) -> CompileError:
    """What it said, the first line first; the last one only tells that it failed."""
    said = [line.strip().removeprefix("error: ") for line in output.splitlines() if line.strip()]
    ending = f"{NAME} ended with {status}"
    return CompileError(said[0] if said else ending, notes=(ending, *said[1:8]))


def find(path: str | None = None) -> Tileiras:
    """The given one, that of NVIDIA's wheel in this environment, or the first on PATH.

    Scripts of that name, which stand for it, are passed over. Raises ConfigurationError.
    """
    if path is not None:
        if not _is_binary(Path(path)):
            raise ConfigurationError(f"'{path}' is no {NAME} that can be run")
        return Tileiras(str(Path(path).resolve()))
    folders = [*_wheel_folders(), *os.environ.get("PATH", "").split(os.pathsep)]
    for folder in folders:
        found = shutil.which(NAME, path=folder) if folder else None
        if found is not None and _is_binary(Path(found)):
            return Tileiras(str(Path(found).resolve()))
    raise ConfigurationError(
        f"{NAME} is not installed", hint="pip install nvidia-cuda-tileiras, or put it on PATH"
    )


def _wheel_folders() -> list[str]:
    """Where NVIDIA's wheels keep programs."""
    spec = find_spec("nvidia")
    roots = spec.submodule_search_locations if spec is not None else None
    return [str(b) for root in roots or () for b in sorted(Path(root).glob("*/bin"), reverse=True)]


def _is_binary(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return os.access(path, os.X_OK) and file.read(4) == MAGIC
    except OSError:
        return False


@cache
def _version(path: str) -> str:
    done = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
    lines = [line.strip() for line in done.stdout.splitlines() if line.strip()]
    return "; ".join(lines)
