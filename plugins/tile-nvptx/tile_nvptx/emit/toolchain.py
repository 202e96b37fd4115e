"""Where ptxas and libdevice are, and where they were looked for.

Order: what the user names (`--ptxas`, `--libdevice`), NVIDIA's wheels in this Python, the toolkit
that CUDA_ROOT, CUDA_HOME or CUDA_PATH names (the first one set and not empty), the PATH (ptxas) or
the toolkit that holds the ptxas on it (libdevice), and /usr/local/cuda. Wheels come before the
environment: they are what was installed beside this program.

What is named is never passed over in silence: a file or a toolkit without the tool is an error
where it would have been used, and a warning where a wheel comes first. Paths are made absolute
here, so that a relative one is never looked up on the PATH by whoever runs it.
"""

from __future__ import annotations

import os
import re
import shutil
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

from tile_core.diagnostics import ConfigurationError
from tile_nvptx.emit.process import run_tool

ROOT_VARIABLES = ("CUDA_ROOT", "CUDA_HOME", "CUDA_PATH")
DEFAULT_ROOT = Path("/usr/local/cuda")

_EXECUTABLE = "ptxas.exe" if os.name == "nt" else "ptxas"
_DISASSEMBLER = "nvdisasm.exe" if os.name == "nt" else "nvdisasm"
_DUMPER = "cuobjdump.exe" if os.name == "nt" else "cuobjdump"


@dataclass(frozen=True)
class Tool:
    """What a file is for, where it lies in a toolkit, and which wheel brings it."""

    name: str  # key of `EmitContext.toolchain`, and the option `--<name>`
    places: tuple[str, ...]  # relative to a toolkit root
    wheel: str
    executable: bool


TOOLS = {
    "ptxas": Tool("ptxas", (f"bin/{_EXECUTABLE}",), "nvidia-cuda-nvcc>=13.5,<13.6", True),
    "nvdisasm": Tool(
        "nvdisasm", (f"bin/{_DISASSEMBLER}",), "nvidia-cuda-nvdisasm>=13.5,<13.6", True
    ),
    "cuobjdump": Tool("cuobjdump", (f"bin/{_DUMPER}",), "nvidia-cuda-cuobjdump>=13.5,<13.6", True),
    "libdevice": Tool(
        "libdevice", ("nvvm/libdevice/libdevice.10.bc",), "nvidia-nvvm>=13.5,<13.6", False
    ),
}


#: Those for which commands have an option of their name.
_NAMED = ("ptxas", "libdevice")


@dataclass(frozen=True)
class Found:
    """A file of the toolchain, and which rule found it."""

    path: Path
    origin: str  # "--ptxas", "wheel", "CUDA_HOME", "PATH", "/usr/local/cuda"


@dataclass(frozen=True)
class Candidate:
    """A place that was looked at."""

    path: Path
    origin: str

    @property
    def exists(self) -> bool:
        return self.path.is_file()


class ToolchainWarning(UserWarning):
    """A toolkit that was named cannot be used, and another one is."""


def candidates(tool: Tool, named: Mapping[str, Path]) -> Iterator[Candidate]:
    """Every place where `tool` may lie, best first; absolute paths."""
    if tool.name in named:
        # A tool that the user names is the only candidate: falling back would be a surprise.
        yield Candidate(Path(named[tool.name]).absolute(), f"--{tool.name}")
        return
    for origin, root in _roots():
        for place in tool.places:
            yield Candidate(root.absolute() / place, origin)


def _roots() -> Iterator[tuple[str, Path]]:
    """Toolkit folders; a link on the PATH counts as where it stands and where it leads."""
    yield from (("wheel", root) for root in _wheel_roots())
    named = _named_root()
    if named is not None:
        # So is a toolkit: a newer or older one in its place would be a surprise.
        yield named
        return
    on_path = shutil.which(_EXECUTABLE)
    if on_path is not None:
        yield "PATH", Path(on_path).absolute().parent.parent
        yield "PATH", Path(on_path).resolve().parent.parent
    yield str(DEFAULT_ROOT), DEFAULT_ROOT


def _named_root() -> tuple[str, Path] | None:
    """The first variable that names a toolkit, and the folder."""
    for variable in ROOT_VARIABLES:
        if os.environ.get(variable):  # an empty one is as good as none, not the current folder
            return variable, Path(os.environ[variable])
    return None


def _warn_of_named_root(tool: Tool, used: Found) -> None:
    """Say so if the environment names a toolkit without the tool, and `used` is another's."""
    named = _named_root()
    if named is None or used.origin != "wheel":
        return
    variable, root = named
    if not any((root / place).is_file() for place in tool.places):
        warnings.warn(
            f"{variable}={root} holds no {tool.name}; using {used.path}",
            ToolchainWarning,
            stacklevel=2,
        )


def _wheel_roots() -> list[Path]:
    # The wheels share the namespace package `nvidia`; importing it is not needed. Newest first.
    spec = find_spec("nvidia")
    listed = (spec.submodule_search_locations or ()) if spec else ()
    places = [place for place in map(Path, listed) if place.is_dir()]
    return [root for place in places for root in _toolkits_in(place, place.stat().st_mtime_ns)]


@lru_cache(maxsize=16)
def _toolkits_in(folder: Path, changed: int) -> tuple[Path, ...]:
    """Toolkits of a folder, newest first, as long as nothing comes into it or goes (`changed`)."""
    del changed
    return tuple(sorted(folder.glob("cu[0-9]*"), reverse=True))


def find(name: str, named: Mapping[str, Path] | None = None) -> Found | None:
    """The file of tool `name` ("ptxas", "libdevice"), or None.

    Args:
        name: a key of `TOOLS`.
        named: what the user said explicitly, by tool name.

    Raises:
        ConfigurationError: `named` has a tool that does not exist.
    """
    for unknown in sorted(set(named or {}) - set(TOOLS)):
        raise ConfigurationError(
            f"there is no tool '{unknown}'", hint=f"tools are {' and '.join(TOOLS)}"
        )
    for candidate in candidates(TOOLS[name], named or {}):
        if candidate.exists:
            return Found(candidate.path, candidate.origin)
    return None


def files(named: Mapping[str, Path]) -> dict[str, Path]:
    """The tools that would be used, by name, for the key of the artifact cache."""
    found = {name: find(name, {k: v for k, v in named.items() if k == name}) for name in TOOLS}
    return {name: tool.path for name, tool in found.items() if tool is not None}


def require(name: str, named: Mapping[str, Path] | None = None) -> Found:
    """Like `find`, but an error when there is none, and a warning as said above.

    Raises:
        ConfigurationError: with the places looked at and how to install the tool.
    """
    found, tool = find(name, named), TOOLS[name]
    if found is not None:
        _warn_of_named_root(tool, found)
        return found
    looked = tuple(f"looked for {c.path} ({c.origin})" for c in candidates(tool, named or {}))
    raise ConfigurationError(
        f"{name} not found",
        notes=looked,
        hint=f'pip install "{tool.wheel}", or point CUDA_HOME at a CUDA toolkit'
        + (f", or say --{name}=FILE" if name in _NAMED else ""),
    )


_WHEEL = re.compile(r"-((\d+)\.(\d+)[\d.]*)\.dist-info$")
_RELEASE = re.compile(r"release (\d+)\.(\d+), V([\d.]+)")


@dataclass(frozen=True)
class PtxasVersion:
    """The release of a ptxas: `(13, 5)` and its full number "13.5.37"."""

    release: tuple[int, int]
    full: str

    @property
    def highest_ptx(self) -> int:
        """The newest PTX ISA version it reads, x10 (PTX ISA, release notes)."""
        major, minor = self.release
        if major == 12:
            return _PTX_OF_CUDA_12[min(minor, len(_PTX_OF_CUDA_12) - 1)]
        return major * 10 + min(minor, 9) - 40 if major >= 13 else 70


#: PTX ISA of CUDA 12.0 ... 12.9, x10. From CUDA 13 on it is the release minus 4.
_PTX_OF_CUDA_12 = (80, 81, 82, 83, 84, 85, 85, 86, 87, 88)


def ptxas_version(found: Found) -> PtxasVersion:
    """What the ptxas that was `found` is: by the wheel's number, else by what it says.

    Raises:
        ConfigurationError: it cannot be run, or is no ptxas.
    """
    status = found.path.stat()
    if found.origin == "wheel":
        known = _version_of_wheel(found.path, status.st_mtime_ns, status.st_size)
        if known is not None:
            return known
    return _version(found.path, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=8)
def _version_of_wheel(path: Path, _mtime: int, _size: int) -> PtxasVersion | None:
    """What the name of the wheel says: nvidia/cu13/bin/ptxas lies beside
    nvidia_cuda_nvcc-13.5.37.dist-info, among everything else that is installed.
    """
    if len(path.parents) <= 3:
        return None
    wheels = list(path.parents[3].glob("nvidia_cuda_nvcc-*.dist-info"))
    number = _WHEEL.search(wheels[0].name) if len(wheels) == 1 else None
    return None if number is None else PtxasVersion((int(number[2]), int(number[3])), number[1])


@lru_cache(maxsize=8)
def _version(path: Path, _mtime: int, _size: int) -> PtxasVersion:
    try:
        done = run_tool([str(path), "--version"], timeout=60)
    except OSError as error:
        raise ConfigurationError(f"cannot run {path}: {error.strerror}") from error
    found = _RELEASE.search(done.output)
    if done.status != 0 or found is None:
        raise ConfigurationError(
            f"{path} is not ptxas: --version ended with {done.ending}",
            notes=tuple(done.output.splitlines()[:4]),
        )
    return PtxasVersion((int(found[1]), int(found[2])), found[3])
