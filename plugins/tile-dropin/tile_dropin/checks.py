"""What `tilec doctor` says about the programs that call `tileiras`, and about tools beside it."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator

import importlib_metadata
from tile_nvptx.emit.toolchain import find

from tile_core.doctor import Finding

#: Optional tools of NVIDIA's: what they are for, and the wheel that brings them.
_OPTIONAL = {
    "cuobjdump": ("takes cubins apart", "nvidia-cuda-cuobjdump>=13.5,<13.6"),
}


def check_clients() -> Iterable[Finding]:
    """cuTile and what it calls; then tools that are of use and not needed."""
    yield _cutile()
    yield from _tools()


def _cutile() -> Finding:
    try:
        version = importlib_metadata.version("cuda-tile")
    except importlib_metadata.PackageNotFoundError:
        hint = 'pip install "cuda-tile>=1.7,<2"'
        return Finding("cuda-tile", False, "not installed here", hint, needed=False)
    from tile_dropin.activation import Environment, active

    choice = active(Environment.of(None))[0]
    if choice.ours:
        return Finding("cuda-tile", True, f"{version}, calls this tileiras")
    called = choice.path or "no tileiras"
    return Finding("cuda-tile", False, f"{version}, calls {called}", "tilec activate", needed=False)


def _tools() -> Iterator[Finding]:
    """Beside ptxas, or on the PATH."""
    ptxas = find("ptxas")
    for name, (use, wheel) in _OPTIONAL.items():
        beside = shutil.which(name, path=str(ptxas.path.parent)) if ptxas is not None else None
        path = beside or shutil.which(name)
        hint = "" if path else f'pip install "{wheel}"'
        yield Finding(name, path is not None, path or f"{use}; not found", hint, needed=False)
