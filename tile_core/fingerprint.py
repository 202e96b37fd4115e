"""A digest of everything installed that decides what a program compiles to.

Caches of cubins key on what `--version` prints, so a changed pass, pipeline or plugin has to
change the text, edits in a checkout included: the digest covers the files themselves.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from tile_core.digests import sha256
from tile_core.snapshot import remembered

if TYPE_CHECKING:
    from tile_core.registry import Registry

#: File name endings that take part.
_SUFFIXES = (".py", ".toml", ".so", ".ll", ".bc")


def installed(disabled: Collection[str] = ()) -> str:
    """The fingerprint of everything installed, from the snapshot where nothing has changed.

    Args:
        disabled: plugins or distributions to leave out.
    """
    without = sorted(set(disabled))

    def make() -> tuple[str, list[Path]]:
        from tile_core.registry import Registry

        registry = Registry.discover(without, strict=False)
        return fingerprint(registry), behind(registry)

    which = sha256("\n".join(without).encode()).hexdigest()[:8] if without else "all"
    return remembered(f"fingerprint-{which}", make)


def behind(registry: Registry) -> list[Path]:
    """Files and folders that a fingerprint depends on."""
    found: list[Path] = []
    for package in sorted(_packages(registry)):
        for _, path in _files(package):
            found += [path.parent, path]
    return list(dict.fromkeys(found))


def fingerprint(registry: Registry) -> str:
    """Sixteen hex digits over the plugins, their files, and the versions of what they need."""
    digest = sha256()
    packages = _packages(registry)
    needed: set[str] = set()
    for plugin in registry.plugins:
        digest.update(f"{plugin.name} {plugin}\n".encode())
        needed |= _requirements(plugin.distribution)
    for name in sorted(needed):
        digest.update(f"{name} {_version(name)}\n".encode())
    for package in sorted(packages):
        for name, path in _files(package):
            digest.update(f"{package}/{name}\n".encode())
            digest.update(sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:16]


def _packages(registry: Registry) -> set[str]:
    return {"tile_core", "tile_pipelines", *(plugin.package for plugin in registry.plugins)}


def _requirements(distribution: str) -> set[str]:
    """Names of what a distribution requires, extras included: they bring ptxas and libdevice."""
    import importlib_metadata

    try:
        required = importlib_metadata.requires(distribution) or []
    except importlib_metadata.PackageNotFoundError:
        return set()
    return {match[0] for text in required if (match := re.match(r"[\w.-]+", text))}


def _version(distribution: str) -> str:
    import importlib_metadata

    try:
        return importlib_metadata.version(distribution)
    except importlib_metadata.PackageNotFoundError:
        return "absent"


def _files(package: str) -> Iterator[tuple[str, Path]]:
    spec = find_spec(package)
    for root in sorted(spec.submodule_search_locations or ()) if spec else ():
        base = Path(root)
        for path in sorted(base.rglob("*")):
            if path.suffix in _SUFFIXES and path.is_file():
                yield path.relative_to(base).as_posix(), path
