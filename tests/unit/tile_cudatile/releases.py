"""The released tools, one folder per release: `make releases` installs them.

`TILEIR_RELEASES` names other folders to search (separated as in `PATH`). Releases before 13.4 have
a compiler but no disassembler.
"""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from tile_cudatile.versions import Version

ROOT = Path(__file__).parents[3]
DEFAULT = ROOT / "build" / "releases"
#: Exit codes of the compiler for what it has read and verified: compiled, and not.
_VALID = (0, 5)
#: With no toolkit to be found, compiling fails right after the program was verified.
_NO_TOOLKIT = {**os.environ, "CUDA_ROOT": "/nonexistent"}


@dataclass(frozen=True)
class Verdict:
    """What a release says about a file: its text if it prints one, or its first complaint."""

    accepted: bool
    text: str = ""
    complaint: str = ""
    crashed: bool = False


@dataclass(frozen=True)
class Release:
    """One release of the compiler."""

    name: str  # "13.4.92"
    compiler: Path
    disassembler: Path | None

    @property
    def version(self) -> Version:
        """The newest bytecode that it reads."""
        major, minor, _ = self.name.split(".")
        return int(major), int(minor)

    def disassemble(self, path: Path, *flags: str) -> Verdict:
        """What its disassembler says."""
        assert self.disassembler is not None
        ran = _run([str(self.disassembler), *flags, str(path)])
        return Verdict(ran.returncode == 0, ran.stdout, _first_line(ran.stderr), ran.returncode < 0)

    def reads(self, path: Path) -> Verdict:
        """Whether its compiler reads and verifies a file."""
        with TemporaryDirectory() as folder:
            command = [str(self.compiler), str(path), "--gpu-name", "sm_100", "-O0"]
            ran = _run([*command, "-o", f"{folder}/out"])
        return Verdict(
            ran.returncode in _VALID, "", _first_line(ran.stderr), crashed=ran.returncode < 0
        )

    def verdict(self, path: Path) -> Verdict:
        """What it says, by its disassembler if there is one."""
        return self.reads(path) if self.disassembler is None else self.disassemble(path)


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        timeout=60,
        env=_NO_TOOLKIT,
    )


def _first_line(text: str) -> str:
    return text.split("\n", 1)[0]


@cache
def releases() -> tuple[Release, ...]:
    """All that are installed, oldest first."""
    given = os.environ.get("TILEIR_RELEASES")
    folders = [Path(f) for f in given.split(os.pathsep)] if given else [DEFAULT]
    own = find_spec("nvidia")
    folders += [Path(f) for f in (own.submodule_search_locations or ())] if own else []
    found: dict[str, Release] = {}
    for folder in folders:
        for compiler in sorted(folder.glob("**/bin/tileiras")):
            release = _release(compiler)
            if release is not None:
                found.setdefault(release.name, release)
    return tuple(sorted(found.values(), key=lambda r: tuple(map(int, r.name.split(".")))))


def _release(compiler: Path) -> Release | None:
    if compiler.read_bytes()[:4] != b"\x7fELF":  # one of ours
        return None
    match = re.search(r"V(\d+\.\d+\.\d+)", _run([str(compiler), "--version"]).stdout)
    disassembler = compiler.with_name("tileirdisasm")
    if match is None:
        return None
    return Release(match[1], compiler, disassembler if disassembler.is_file() else None)


def matching(version: Version) -> tuple[Release, ...]:
    """The releases of a bytecode version."""
    return tuple(r for r in releases() if r.version == version)
